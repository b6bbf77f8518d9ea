"""Runs notebooks and stores what they show: python tests/run_notebooks.py [NAME...]."""

import ast
import asyncio
import os
import sys
from contextlib import redirect_stdout
from functools import cache
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
STORED_ON = "hierindex"  # key of the metadata
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "LANCE_LOG": "error",
    "PYTHONWARNINGS": "ignore:IProgress",  # tqdm's, in a kernel without widgets
    "TOKENIZERS_PARALLELISM": "false",
}


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: NotebookNode) -> str:
    """What a cell prints and the text of its value, without figures."""
    texts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            texts.append(output.text)
        elif output.output_type == "execute_result":
            texts.append(output.data["text/plain"] + "\n")
    return "".join(texts)


def printed(path: Path) -> list[str]:
    """What each cell prints in this process, in an event loop as in a kernel."""
    names: dict[str, Any] = {"__name__": path.stem}

    async def run_cells() -> list[str]:
        texts = []
        for cell in code_cells(read(path)):
            with redirect_stdout(StringIO()) as out:
                run(cell.source, path.name, names)
            texts.append(out.getvalue())
        return texts

    return asyncio.run(run_cells())


def run(source: str, name: str, names: dict[str, Any]) -> None:
    """Run a cell, and show the value of its last line unless that is None."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, type_ignores=[]), name, "exec"), names)
    if last is not None:
        sys.displayhook(eval(compile(ast.Expression(last.value), name, "eval"), names))


def executed(path: Path) -> NotebookNode:
    """The notebook with what a new kernel shows."""
    import nbclient

    notebook = read(path)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", record_timing=False, coalesce_streams=True
    )
    client.execute(cwd=str(FOLDER), env=os.environ | QUIET)
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i:02}"  # the same in each run
        cell.metadata = {}
    return notebook


@cache
def machine() -> str:
    """A digest of texts that notebooks read and of their vectors.

    Where it is the same, notebooks show the same. Other versions of scikit-learn and Python have
    other texts, and other processors give vectors that differ by rounding.
    """
    from pydoc_data.topics import topics

    from hierindex import load_embed_model
    from hierindex.demo import demo_documents

    texts = [topics["compound"], *(document.text for document in demo_documents())]
    vectors = load_embed_model().get_text_embedding_batch([text[:500] for text in texts])
    return sha256(repr([texts, vectors]).encode()).hexdigest()[:16]


def main(*names: str) -> None:
    """Execute notebooks and store them, by default all."""
    digest = machine()
    for path in [FOLDER / f"{name}.ipynb" for name in names] or NOTEBOOKS:
        notebook = executed(path)
        notebook.metadata = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            STORED_ON: digest,
        }
        text = nbformat.writes(notebook)
        path.write_text(text + "\n")
        sys.stdout.write(f"{path.name}: {len(text) / 1000:.0f} kB\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
