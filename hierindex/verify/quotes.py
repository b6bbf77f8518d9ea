"""The check that quotes are verbatim where they point."""

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from hierindex.record import Quote
from hierindex.store.hashed_metadata import hash_text
from hierindex.store.rows import quotes_in
from hierindex.verify.links import Links
from hierindex.verify.report import Findings

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("level", "text", "record")  # of the chunks


class Quotes:
    """The places that quotes of summaries name, with a hash of what each quotes.

    Texts are not kept: the chunks are read once more, and each is compared with the quotes of it.

    Parameters
    ----------
    links : Links
        Of the same rows.
    """

    def __init__(self, links: Links) -> None:
        self.found = Findings("quotes")
        self._links = links
        self._incomplete = links.incomplete
        self._number = {d: i for i, d in enumerate(links.document_ids.to_pylist())}
        # Node, document, start, end, hash and whether it is verbatim, of each quote.
        self._places = [array("q") for _ in range(6)]

    def add(self, node: int, level: int, text: str, quotes: Sequence[Quote]) -> None:
        """Check the quotes of a node within its text, and note the places in chunks."""
        for quote in quotes:
            self.found.checked += 1
            lengths = {span.end - span.start for span in quote.sources} if quote.verbatim else set()
            if not 0 <= quote.at <= quote.to <= len(text):
                self.found.add(self._links.id(node), f"{_named(quote)} is not within its text")
            elif not lengths <= {quote.to - quote.at}:
                self.found.add(
                    self._links.id(node), f"{_named(quote)} is not as long as its source"
                )
            elif level > 0 and not self._incomplete[node]:
                hashed = hash_text(text[quote.at : quote.to])
                for span in quote.sources:
                    number = self._number.get(span.document, -1)
                    values = (node, number, span.start, span.end, hashed, quote.verbatim)
                    for column, value in zip(self._places, values, strict=True):
                        column.append(value)

    def check(self, chunks: "Iterable[pa.RecordBatch]") -> Findings:
        """Compare the quotes with the chunks that hold their places.

        Parameters
        ----------
        chunks : iterable of RecordBatch
            With the columns `COLUMNS`; rows that are no chunks are passed over.
        """
        columns = [np.frombuffer(column, np.int64) for column in self._places]
        order = np.lexsort((columns[2], columns[1]))
        node, document, start, end, hashed, verbatim = (column[order] for column in columns)
        held, differs = np.zeros(len(order), np.bool_), np.zeros(len(order), np.bool_)
        bounds = np.searchsorted(document, np.arange(len(self._number) + 1))
        for batch in chunks:
            for row in batch.filter(pc.less_equal(batch["level"], 0)).to_pylist():
                for quote in quotes_in(row["record"]):
                    if quote.source is None or quote.source.document not in self._number:
                        continue
                    source, number = quote.source, self._number[quote.source.document]
                    first, last = bounds[number], bounds[number + 1]
                    of = slice(
                        first + np.searchsorted(start[first:last], source.start),
                        first + np.searchsorted(start[first:last], source.end),
                    )
                    for i in (of.start + np.flatnonzero(end[of] <= source.end)).tolist():
                        held[i] = True
                        at = quote.at + start[i] - source.start
                        part = row["text"][at : at + end[i] - start[i]]
                        if quote.verbatim and verbatim[i] and hash_text(part) != hashed[i]:
                            differs[i] = True

        def where(i: int) -> str:
            return self._links.id(int(node[i]))

        def place(i: int) -> str:
            of = self._links.document_ids[int(document[i])].as_py() if document[i] >= 0 else "?"
            return f"{of} ({start[i]}-{end[i]})"

        self.found.add_all(
            np.flatnonzero(~held),
            where,
            lambda i: f"no chunk has the place that it cites: {place(i)}",
        )
        self.found.add_all(
            np.flatnonzero(differs), where, lambda i: f"it quotes another text than {place(i)}"
        )
        return self.found


def _named(quote: Quote) -> str:
    return f"its quote of characters {quote.at} to {quote.to}"
