"""Equations of Office files (OMML) as text."""

import re
from collections import defaultdict
from typing import Any

BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\|[^|]*\|")
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"


def equation(element: Any) -> str:
    """Return an equation on one line, such as "x=(a+b)/c^2"."""
    kind = element.tag.removeprefix(MATH)
    if kind == "t":
        return element.text or ""
    texts, parts = list[str](), defaultdict[str, list[str]](list)
    for child in element:
        texts.append(equation(child))
        parts[child.tag.removeprefix(MATH)].append(texts[-1])

    def part(name: str) -> str:
        return ", ".join(parts[name])

    def script(sign: str, name: str) -> str:
        return part(name) and f"{sign}{_grouped(part(name))}"

    def sign(name: str, default: str) -> str:
        found = element.find(f"{MATH}{kind}Pr/{MATH}{name}")
        return default if found is None else str(found.get(f"{MATH}val", ""))

    scripts = script("_", "sub") + script("^", "sup")
    match kind:
        case "f" if sign("type", "bar") == "noBar":
            return f"{part('num')} choose {part('den')}"
        case "f":
            return f"{_grouped(part('num'))}/{_grouped(part('den'))}"
        case "sSup" | "sSub" | "sSubSup":
            return _grouped(part("e")) + scripts
        case "sPre":
            return scripts + part("e")
        case "rad":
            return f"{script('^', 'deg')}√{_grouped(part('e'))}"
        case "nary":
            return f"{sign('chr', '∫')}{scripts} {part('e')}"
        case "d":
            inside = sign("sepChr", "|").join(parts["e"])
            return sign("begChr", "(") + inside + sign("endChr", ")")
        case "func":
            return f"{part('fName')} {part('e')}"
        case "limLow" | "limUpp":
            return part("e") + script("_" if kind == "limLow" else "^", "lim")
        case "acc":
            return part("e") + sign("chr", "\u0302")
        case "m":
            return f"[{'; '.join(parts['mr'])}]"
        case "mr":
            return part("e")
        case "eqArr":
            return "; ".join(parts["e"])
        case "oMathPara":
            return " ".join(parts["oMath"])
    return "".join(texts)


def _grouped(text: str) -> str:
    text = text.strip()
    is_whole = len(text) <= 1 or text.isalnum() or BRACKETED.fullmatch(text)
    return text if is_whole else f"({text})"
