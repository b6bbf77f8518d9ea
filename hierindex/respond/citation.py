"""Citations: the places in documents that an answer refers to, and what stands there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self


@dataclass(frozen=True, repr=False)
class Citation:
    """A place in a document that an answer or a source cites; what is not known is left empty.

    Attributes
    ----------
    document : str
        The document's id; empty if the place is not known.
    start, end : int
        Characters of the document's text as read; `end` is exclusive.
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
        The text from `start` to `end`, verbatim; empty if the node was rewritten, so that it does
        not hold this text.
    supported : bool, optional
        Whether the place supports what the answer says; None if that was not judged.
    by : {"model", "hierindex"}, optional
        Who cites: the language model, or hierindex, which quotes, or found the place for a
        sentence that the model wrote without a citation. None for the places of a source.
    also : tuple of Citation
        Other places with the same text.
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
