"""Outlines: selected sentences from the parts of an index, within a token budget."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hierindex.core.arguments import Floats1d, Ints1d
from hierindex.core.forest import select_cut, shares
from hierindex.core.identity import wholes
from hierindex.core.ranking import cosines
from hierindex.core.titles import CUT
from hierindex.errors import NotFoundError
from hierindex.models.record import llm_tokenizer
from hierindex.node import TITLES_SPAN, Found, Node, shared_section, titles_of
from hierindex.retrieve.search import Search, first_place, without_copies
from hierindex.retrieve.tree import TREE_COLUMNS, is_in, tree_of, whole_tree
from hierindex.store.filters import Prefilter, of_documents
from hierindex.store.snapshot import Snapshot
from hierindex.summarize.extractive import SalientSentences, informative
from hierindex.summarize.summary import Budget, CountTokens, joined
from hierindex.text.sentences import Sentence, split_sentences

if TYPE_CHECKING:
    import pyarrow as pa

LINE = 20  # tokens, about, for which an outline has one more part
MANY = 1000  # documents; for nodes of more, all rows are read


def outline(
    search: Search,
    budget: int,
    *,
    of: Sequence[str] | None = None,
    at: Prefilter | None = None,
    most: int | None = None,
    question: bool = False,
    whole: bool = False,
    count: CountTokens | None = None,
) -> list[Found]:
    """Return the parts of an index with sentences of each; no part is an ancestor of another.

    Parameters
    ----------
    search : Search
        The question; nodes must pass its filters.
    budget : int
        Maximum number of tokens in all sentences together.
    of : sequence of str, optional
        Ids of documents or mailboxes, and ids or unique id prefixes of nodes. Only nodes with text
        of these documents alone, these nodes, and nodes under them are used. By default the whole
        index.
    at : Prefilter, optional
        Select only nodes that meet this condition.
    most : int, optional
        Maximum number of parts; never more than one for every 20 tokens of the budget.
    question : bool
        Whether text that is more similar to the question gets more weight.
    whole : bool
        Whether each document stays one part, if there are several documents.
    count : callable, optional
        Counts the tokens of texts; by default with LlamaIndex's global tokenizer.

    Returns
    -------
    list[Found]
        Nodes whose text is reduced to the chosen sentences, in reading order, documents in the
        order of their ids. A score is the node's share of the text that passes the filters, or of
        all text if none passes.

    Raises
    ------
    NotFoundError
        If no sentence fits the budget, or an id in `of` is unknown or ambiguous.

    Notes
    -----
    In a tree with several parents per node, a node is under the strongest parent that may be
    selected. See `select_cut` for the selection of parts; groups of documents are divided before
    documents are. See `SalientSentences` for the selection of sentences. The columns of all rows
    are read, or those of the documents named by `of`, and the vectors if there is a question.
    """
    snapshot = search.snapshot
    if not snapshot.exists:
        return []
    if of is None:
        tree, where = whole_tree(snapshot), Prefilter()
    else:
        documents, node_ids, where = _named(snapshot, of)
        rows = snapshot.select(*TREE_COLUMNS, "documents", where=where)
        tree = tree_of(rows, documents, node_ids)
    forest = tree.forest
    if not forest.is_text.any():
        return []
    cosine = _cosines(search, where, tree.ids) if question else None
    share = shares(forest, tree.n_tokens, cosine)
    may = share > 0
    if search.filters is not None:
        partial = search.partial_summaries
        may &= is_in(tree.ids, snapshot.ids(search.filters, where, partial_summaries=partial))
        text = np.where(forest.is_text & may, share, 0.0)
        if text.any():
            share = forest.summed(text) / text.sum()
    if at is not None:
        may &= is_in(tree.ids, snapshot.ids(None, at & where))
    document = forest.highest(tree.is_whole & may)
    groups = document == -1
    if whole and len(np.unique(document[~groups])) > 1:
        may &= groups | (document == np.arange(len(document)))
    most = min(most or budget, max(1, budget // LINE))
    rows = select_cut(forest, share, may, groups, most, tree.id_of)
    nodes = snapshot.nodes(tree.ids.take(rows).to_pylist())
    found = [Found(node, float(share[row])) for node, row in zip(nodes, rows, strict=True)]
    counted = Budget(budget, count or _count_tokens)
    return excerpts(sorted(without_copies(found, search), key=first_place), counted)


def excerpts(found: Sequence[Found], budget: Budget) -> list[Found]:
    """Return the parts with their selected sentences; parts without any are left out.

    Raises
    ------
    NotFoundError
        If there are parts and no sentence fits the budget.
    """
    every = [
        sentence
        for i, (node, share) in enumerate(found)
        for sentence in split_sentences(node.text, node.quotes, i, size=share)
    ]
    chosen = defaultdict[int, list[Sentence]](list)
    for sentence in SalientSentences().select(every, budget):
        chosen[sentence.child].append(sentence)
    if every and not chosen:
        least = int(budget.costs(informative(every)[0]).min())
        raise NotFoundError(
            f"No sentence fits a budget of {budget.max_tokens} tokens; the shortest has {least}."
        )
    return [Found(_excerpt(found[i].node, of), found[i].score) for i, of in sorted(chosen.items())]


def _count_tokens(texts: Sequence[str]) -> Ints1d:
    tokens = llm_tokenizer()
    return np.array([len(tokens(text)) for text in texts], dtype=np.int64)


def name_of_part(node: Node) -> str:
    """Return a node's title, or for a part of a document without a title the heading above it.

    Without a heading, it is the document's name. First words are no title.
    """
    title = "" if node.title.endswith(CUT) else " ".join(node.title.split())
    sections = [span.section for span in node.citations]
    headings = {each for section in sections for each in titles_of(section)}
    first = titles_of(title.split(", ")[0].split(TITLES_SPAN)[0])
    is_named = len(node.documents) > 1 or node.whole_document or not headings.isdisjoint(first)
    if is_named:
        return title
    return "".join(titles_of(shared_section(sections))[-1:]) or node.document_name or title


def _excerpt(node: Node, sentences: Sequence[Sentence]) -> Node:
    """Return a node reduced to some of its sentences."""
    text, starts = joined(sentences)
    quotes = [
        quote._replace(at=quote.at - s.at + start, to=quote.to - s.at + start)
        for s, start in zip(sentences, starts, strict=True)
        for quote in [s.quote]
    ]
    return replace(node, text=text, quotes=tuple(quotes))


def _named(snapshot: Snapshot, of: Sequence[str]) -> tuple[list[str], list[str], Prefilter]:
    """Return the ids of documents, the ids of nodes, and a condition that their rows meet."""
    rows = snapshot.select("documents", where=snapshot.of_each_document)["documents"]
    inside = {d: {*wholes(d)}.intersection(of) for row in rows.to_pylist() for d in row}
    documents = [document for document, named in inside.items() if named]
    others = {*of}.difference(*inside.values())
    node_ids = [snapshot.id_beginning(each) for each in sorted(others)]
    of_nodes = snapshot.rows(node_ids, columns=("id", "documents"))
    every = {*documents, *(document for row in of_nodes for document in row["documents"])}
    where = of_documents(every) if len(every) <= MANY else Prefilter()
    return documents, node_ids, where


def _cosines(search: Search, where: Prefilter, ids: "pa.StringArray") -> Floats1d:
    """Return the similarities of nodes to the question, among those that meet a condition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    q = np.array(search.embedding, dtype=np.float32)
    read, similarities = list[pa.Array](), [np.zeros(0)]
    for batch in search.snapshot.batches("id", "vector", where=where):
        X = batch["vector"].flatten().to_numpy().reshape(-1, len(q))
        read.append(batch["id"])
        similarities.append(cosines(X, q))
    row = pc.index_in(ids, pa.chunked_array(read, pa.string())).to_numpy()
    return np.asarray(np.concatenate(similarities)[row])
