"""The files from which the documents of an index were read."""

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from hierindex.index import HierarchicalIndex
from hierindex.read.files import file_in
from hierindex.store.filters import of_documents
from hierindex.store.snapshot import Snapshot
from hierindex.threads import in_daemon_thread

SANDBOX = {"Content-Security-Policy": "default-src 'none'; sandbox"}
BEGINNING = 8192  # bytes


def file_of(snapshot: Snapshot, document: str) -> Path | None:
    """Return the file that a document, or the mailbox or e-mail around it, was read from.

    None if the index does not know the file, or it no longer exists, or it is outside its source.
    """
    where = snapshot.of_each_document & of_documents([document])
    rows = snapshot.select("documents", "read_from", where=where).to_pylist()
    known = (row["read_from"] for row in rows if row["documents"] == [document])
    source = next(filter(None, known), "")
    return file_in(source, document) if source else None


async def opened(index: HierarchicalIndex, request: Request) -> Response:
    """Return the file of a document; the browser shows a PDF, and any text as plain text.

    Other files are downloaded. Nothing in a file is executed.
    """
    document = request.query_params.get("document", "")
    path = await in_daemon_thread(lambda: file_of(index.table.snapshot(), document))
    if path is None:
        raise HTTPException(404, f"The index knows no file of {document!r}")
    if path.suffix.lower() == ".pdf":  # which browsers show in no sandbox
        return FileResponse(path, media_type="application/pdf")
    with path.open("rb") as file:
        is_text = b"\0" not in file.read(BEGINNING)
    if is_text:
        return FileResponse(path, media_type="text/plain", headers=SANDBOX)
    return FileResponse(
        path, media_type="application/octet-stream", headers=SANDBOX, filename=path.name
    )
