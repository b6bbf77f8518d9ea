"""The check that quotes are verbatim where they point."""

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hierindex.core.identity import hash_text
from hierindex.node import Quote
from hierindex.store.rows import quotes_in
from hierindex.verify.links import Links, Mask
from hierindex.verify.report import Check

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("level", "text", "record")  # of the chunks
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)  # what JSON of another form raises


class Places:
    """Places of documents that are quoted, with a hash of each quoted text."""

    def __init__(self) -> None:
        # Node, document, start, end, hash and whether it is verbatim.
        self._columns = [array("q") for _ in range(6)]

    def add(self, *values: int) -> None:
        """Add a place."""
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def sort(self, n_documents: int) -> None:
        """Order the places by document and start, after which texts can be compared."""
        columns = [np.frombuffer(column, np.int64) for column in self._columns]
        order = np.lexsort((columns[2], columns[1]))
        self.node, self.document, self.start, self.end, self.hash, self.verbatim = (
            column[order] for column in columns
        )
        self.held = np.zeros(len(order), dtype=np.bool_)
        """Whether a chunk has the place."""
        self.differs = np.zeros(len(order), dtype=np.bool_)
        """Whether a chunk has another text there."""
        self._first = np.searchsorted(self.document, np.arange(n_documents + 1))

    def compare(self, document: int, text: str, quote: Quote) -> None:
        """Compare the places within a chunk's quote of its document with the chunk's text."""
        assert quote.source is not None
        begins, ends = quote.source.start, quote.source.end
        first, last = self._first[document], self._first[document + 1]
        low, high = first + np.searchsorted(self.start[first:last], [begins, ends])
        for i in (low + np.flatnonzero(self.end[low:high] <= ends)).tolist():
            self.held[i] = True
            at = quote.at + self.start[i] - begins
            part = text[at : at + self.end[i] - self.start[i]]
            if quote.verbatim and self.verbatim[i] and hash_text(part) != self.hash[i]:
                self.differs[i] = True


class Quotes:
    """The quotes of all nodes. Texts are not kept: the chunks are read a second time.

    Parameters
    ----------
    links : Links
        Of the same rows.
    """

    def __init__(self, links: Links) -> None:
        self._found = Check("quotes")
        self._links = links
        self._documents = links.flat("documents")[1].unique().to_pylist()
        self._number = {d: i for i, d in enumerate(self._documents)}
        self._places = Places()

    def add(self, node: int, level: int, text: str, quotes: Sequence[Quote]) -> None:
        """Check the quotes of a node within its text, and note the places that a summary quotes.

        Those of a summary that may hold text of a deleted chunk are not noted.
        """
        is_noted = level > 0 and not self._links.incomplete[node]
        for quote in quotes:
            self._found.checked += 1
            which = f"its quote of characters {quote.at} to {quote.to}"
            lengths = {span.end - span.start for span in quote.sources}
            if not 0 <= quote.at <= quote.to <= len(text):
                self._found.add(self._links.id(node), f"{which} is not within its text")
            elif quote.verbatim and not lengths <= {quote.to - quote.at}:
                self._found.add(self._links.id(node), f"{which} is not as long as its source")
            elif is_noted:
                hashed = hash_text(text[quote.at : quote.to])
                for span in quote.sources:
                    document = self._number.get(span.document, -1)
                    self._places.add(node, document, span.start, span.end, hashed, quote.verbatim)

    def check(self, batches: "Iterable[pa.RecordBatch]") -> Check:
        """Compare the noted places with the chunks, given batches with the columns `COLUMNS`."""
        import pyarrow.compute as pc

        places = self._places
        places.sort(len(self._number))
        for batch in batches:
            for row in batch.filter(pc.less_equal(batch["level"], 0)).to_pylist():
                for quote in _readable(row["record"]):
                    if quote.source is not None and quote.source.document in self._number:
                        places.compare(self._number[quote.source.document], row["text"], quote)
        self._add(~places.held, "no chunk has the place that it cites, {}")
        self._add(places.differs, "it quotes another text than is at {}")
        return self._found

    def _add(self, wrong: Mask, what: str) -> None:
        names, places = self._documents, self._places

        def place(i: int) -> str:
            known = places.document[i] >= 0
            document = names[int(places.document[i])] if known else "a document that is not there"
            return f"{document} ({places.start[i]}-{places.end[i]})"

        self._found.add_all(
            np.flatnonzero(wrong),
            lambda i: self._links.id(int(places.node[i])),
            lambda i: what.format(place(i)),
        )


def _readable(record: str) -> Sequence[Quote]:
    """Return the quotes of a record; none if it cannot be read, which another check reports."""
    try:
        return quotes_in(record)
    except UNREADABLE:
        return ()
