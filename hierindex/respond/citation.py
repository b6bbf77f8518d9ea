"""Citations: the places in documents that an answer refers to, and what stands there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self


@dataclass(frozen=True, repr=False)
class Citation:
    """A span of a document that an answer or a source cites; unknown fields are empty.

    Attributes
    ----------
    document : str
        The document's id; "" if the position is unknown.
    start, end : int
        Character offsets in the document's text as it was read; `end` is exclusive.
    page : int, optional
    page_label, anchor : str
        As in `Span`.
    section : tuple of str
        Titles above the place, the outermost first.
    title : str
        The document's title, if it has one.
    node : str
        In the answer of a language model, the id of the passage's node.
    quote : str
        The text from `start` to `end`, verbatim; "" if the node was rewritten by a model.
    supported : bool, optional
        Whether the cited text supports the sentence of the answer; None if this was not checked.
    by : {"model", "hierindex"}, optional
        "model" if the language model cited it, "hierindex" for quotes and for citations that were
        added to sentences without one; None for the citations of a `Source`.
    also : tuple of Citation
        Other positions of the same text.
    """

    document: str = ""
    start: int = 0
    end: int = 0
    page: int | None = None
    page_label: str = ""
    section: tuple[str, ...] = ()
    anchor: str = ""
    title: str = ""
    node: str = ""
    quote: str = ""
    supported: bool | None = None
    by: Literal["model", "hierindex"] | None = None
    also: tuple["Citation", ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the citation that `to_json` returned, such as one of a response's metadata."""
        also = tuple(map(Citation.from_json, data.get("also", ())))
        return cls(**{**data, "section": tuple(data.get("section", ())), "also": also})

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not empty, as plain values.

        >>> Citation("a.md", 3, 9, section=("Results",), quote="It ran").to_json()
        {'document': 'a.md', 'start': 3, 'end': 9, 'section': ['Results'], 'quote': 'It ran'}
        """
        lists = {"section": [*self.section], "also": [each.to_json() for each in self.also]}
        unknown = () if self.document else ("start", "end")
        data = {key: value for key, value in vars(self).items() if key not in unknown} | lists
        return {key: value for key, value in data.items() if value not in (None, "", [])}

    def __repr__(self) -> str:
        """Return the fields that are not empty."""
        return f"Citation({', '.join(f'{key}={value!r}' for key, value in self.to_json().items())})"
