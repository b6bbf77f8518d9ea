"""Equations of Office files (OMML) as text."""

from collections.abc import Callable
from typing import Any

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"


def equation(element: Any) -> str:
    """Return an equation on one line, such as "x=(a+b)/c^2"."""
    tag = element.tag
    if not isinstance(tag, str) or not tag.startswith(MATH):
        return "".join(map(equation, element)) if isinstance(tag, str) else ""
    kind = tag.removeprefix(MATH)
    if kind == "t":
        return element.text or ""
    if kind.endswith("Pr"):
        return ""
    if kind in SHAPES:
        return SHAPES[kind](_Parts(element))
    between = " " if kind == "oMathPara" else ""
    return between.join(map(equation, element))


class _Parts:
    """The parts of an equation by their names."""

    def __init__(self, element: Any) -> None:
        self.element = element

    def __getitem__(self, name: str) -> str:
        return ", ".join(self.all(name))

    def all(self, name: str) -> list[str]:
        return [equation(part) for part in self.element.iterfind(MATH + name)]

    def grouped(self, name: str) -> str:
        """Return a part, in parentheses if it has more than one term."""
        return _grouped(self[name])

    def given(self, name: str, default: str) -> str:
        """Return a sign among the properties."""
        found = self.element.find(f"{MATH}{self.element.tag.removeprefix(MATH)}Pr/{MATH}{name}")
        return default if found is None else str(found.get(f"{MATH}val", ""))


def _grouped(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


def _limits(parts: _Parts) -> str:
    below, above = parts["sub"], parts["sup"]
    return (below and f"_{_grouped(below)}") + (above and f"^{_grouped(above)}")


def _delimited(parts: _Parts) -> str:
    inside = parts.given("sepChr", "|").join(parts.all("e"))
    return parts.given("begChr", "(") + inside + parts.given("endChr", ")")


def _root(degree: str, inside: str) -> str:
    return (degree and f"^{_grouped(degree)}") + f"√{inside}"


def _rows(parts: _Parts) -> str:
    return (
        "["
        + "; ".join(", ".join(_Parts(row).all("e")) for row in parts.element.iterfind(MATH + "mr"))
        + "]"
    )


SHAPES: dict[str, Callable[[_Parts], str]] = {
    "f": lambda p: f"{p.grouped('num')}/{p.grouped('den')}",
    "sSup": lambda p: f"{p.grouped('e')}^{p.grouped('sup')}",
    "sSub": lambda p: f"{p.grouped('e')}_{p.grouped('sub')}",
    "sSubSup": lambda p: p.grouped("e") + _limits(p),
    "sPre": lambda p: f"{_limits(p)}{p['e']}",
    "rad": lambda p: _root(p["deg"], p.grouped("e")),
    "nary": lambda p: f"{p.given('chr', '∫')}{_limits(p)} {p['e']}",
    "d": _delimited,
    "func": lambda p: f"{p['fName']} {p['e']}",
    "limLow": lambda p: f"{p['e']}_{p.grouped('lim')}",
    "limUpp": lambda p: f"{p['e']}^{p.grouped('lim')}",
    "acc": lambda p: p["e"] + p.given("chr", "\u0302"),
    "m": _rows,
    "eqArr": lambda p: "; ".join(p.all("e")),
}
"""How the parts of an equation are joined, by its kind."""
