"""Demo documents from scikit-learn's docstrings, which are installed with hierindex."""

import importlib
import inspect
import re
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llama_index.core.schema import Document

QUESTIONS = {
    "chunks": "How does t-SNE work?",
    1: "How are outliers detected?",
    "documents": "Which module handles missing values?",
}
"""An example question per level."""

SECTION = re.compile(r"\n(?:Parameters|Attributes|Examples)\n-{3}")  # what follows is no prose
ASIDE = re.compile(r"\s*(?:\.\. |Read more|Refer to|See |For (?:an?|more) .*\b(?:examples?|on)\b)")
ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.(?=\w+`))?([^`<]+?)(?:\s*<[^`]*>)?`")  # of a cross-reference
NOTE = re.compile(r"\s*(?:\[\d+\]_?|Read more in [^.]*\.)")


def demo_documents() -> "list[Document]":
    """Return one document for each public module of scikit-learn, with its docstrings' prose.

    Each is read like a Markdown file with a section for every class and function.
    """
    import sklearn
    from llama_index.core.schema import Document

    from hierindex.read.documents import Documents

    texts = {name: _module_text(f"sklearn.{name}") for name in sklearn.__all__}
    files = {
        f"sklearn.{name}.md": f"# sklearn.{name}\n\n{text}" for name, text in texts.items() if text
    }
    read = [Documents().of(BytesIO(text.encode()), name) for name, text in files.items()]
    return [each for documents in read for each in documents if isinstance(each, Document)]


def _module_text(name: str) -> str:
    try:
        module = importlib.import_module(name)
    except ImportError:  # a function, or an experimental module
        return ""
    parts = [_prose(module)]
    for member in sorted(getattr(module, "__all__", ())):
        try:
            prose = _prose(getattr(module, member))
        except (ImportError, AttributeError):  # experimental members raise on access
            continue
        if prose:
            parts.append(f"## {member}\n\n{prose}")
    return "\n\n".join(filter(None, parts))


def _prose(thing: object) -> str:
    """Return the informative paragraphs of a docstring, as Markdown."""
    paragraphs = SECTION.split(inspect.getdoc(thing) or "")[0].split("\n\n")
    prose = "\n\n".join(each for each in paragraphs if not ASIDE.match(each))
    return ROLE.sub(r"`\1`", NOTE.sub("", prose)).replace("``", "`").strip()
