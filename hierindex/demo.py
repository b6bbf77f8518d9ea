"""Demo documents from scikit-learn's docstrings, which every installation has."""

import importlib
import inspect
from typing import TYPE_CHECKING

from hierindex.node import TITLE

if TYPE_CHECKING:
    from llama_index.core.schema import Document

QUESTIONS = {
    0: "How does DBSCAN treat points in regions of low density?",
    1: "How can the quality of a clustering be measured?",
    2: "Which kinds of linear models are there?",
}
"""An example question per level."""


def demo_documents() -> "list[Document]":
    """Return one document per public module of scikit-learn, of its docstrings' prose."""
    import sklearn
    from llama_index.core.schema import Document

    texts = {f"sklearn.{name}": _module_text(f"sklearn.{name}") for name in sklearn.__all__}
    hidden = {"excluded_embed_metadata_keys": [TITLE], "excluded_llm_metadata_keys": [TITLE]}
    return [
        Document(text=text, id_=name, metadata={TITLE: name}, **hidden)
        for name, text in texts.items()
        if text
    ]


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
            parts.append(f"{member}\n\n{prose}")
    return "\n\n".join(parts)


def _prose(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\nParameters\n----------")[0].strip()
