"""A stored tree whose documents can be updated and deleted."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError, SourceError
from hierindex.respond.answering_tree import AnsweringTree

if TYPE_CHECKING:
    from pathlib import Path

    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms import LLM
    from llama_index.core.node_parser import NodeParser

    from hierindex.jobs.estimate import Estimate
    from hierindex.jobs.report import BuildReport
    from hierindex.jobs.revisions import Source
    from hierindex.jobs.settings import Settings
    from hierindex.jobs.update import Revise
    from hierindex.jobs.watch import Failed
    from hierindex.progress import Progress
    from hierindex.store.table import Table
    from hierindex.store.vector_store import HierarchyStore
    from hierindex.tree.hierarchy import Hierarchy


class RevisableTree(AnsweringTree):
    """A stored tree that is grown again when documents change, at the cost of the changes.

    Parameters
    ----------
    store : HierarchyStore or Table
    embed_model : BaseEmbedding, optional
        The model that the tree was built with; by default loaded by the name stored in the tree.
    last_build : BuildReport, optional
        Of the build that made it; later updates replace it.
    """

    def __init__(
        self,
        store: "HierarchyStore | Table",
        embed_model: "BaseEmbedding | None" = None,
        *,
        last_build: "BuildReport | None" = None,
    ) -> None:
        super().__init__(store, embed_model)
        self.last_build = last_build

    @property
    def settings(self) -> "Settings":
        """The settings of the build that made the index: its hierarchy, models and chunk size."""
        from hierindex.jobs.update import settings_held

        return settings_held(self.table.snapshot())

    def update(
        self,
        sources: "Source | Sequence[Source] | None" = None,
        *,
        hierarchy: "Hierarchy | None" = None,
        llm: "LLM | None" = None,
        splitter: "NodeParser | None" = None,
        purge: bool = False,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "BuildReport":
        """Read sources again, or new ones, and publish the tree of what the index then holds.

        Documents are found to be added, changed, removed, renamed or unchanged by their content.
        Those of other sources, and those with the same content, are kept as they are in the
        index. A document that was deleted with `delete` stays out until its file is named. A file
        that was touched but has the same content keeps its `last_modified_date`. If nothing has
        changed, no model is loaded and nothing is published. Groups above documents stay where they
        can: with `max_levels`, two roots may remain where a build, or `regrow`, makes one.

        Parameters
        ----------
        sources : str, Path or Document, or a sequence of them, optional
            By default all files and folders that the index was built from. A path within one of
            them stands for that part of it, and the new path of one that was moved stands for
            that source. A document replaces the one with its id.
        hierarchy : Hierarchy, optional
            By default the one that the index was built with. Another one is refused.
        llm : LLM, optional
            The language model that wrote the summaries, if one did.
        splitter : NodeParser, optional
            The one that the index was built with, if it was not the default one.
        purge : bool
            Whether to remove earlier generations, so that no file contains what was changed or
            removed. By default they are kept as those of builds are.
        progress : Progress, optional
        **llm_options
            `concurrency`, `timeout`, `deadline`, `token_limit` and `record` of `LLMRewriter`, and
            `strict` of `TwoStageSummarizer`.

        Returns
        -------
        BuildReport
            It is also set as `last_build`.

        Raises
        ------
        SourceError
            If a source cannot be found, or a document has the id of one of another source.
        InputError
            If an argument contradicts what the index was built with, or a model has to be passed.
        """
        from hierindex.jobs.revisions import updated

        return self._revise(
            "update",
            partial(updated, sources),
            hierarchy=hierarchy,
            llm=llm,
            splitter=splitter,
            progress=progress,
            llm_options=llm_options,
            purge=purge,
        )

    def watch(
        self,
        sources: "str | Path | Sequence[str | Path] | None" = None,
        *,
        failed: "Failed | None" = None,
        hierarchy: "Hierarchy | None" = None,
        llm: "LLM | None" = None,
        splitter: "NodeParser | None" = None,
        purge: bool = False,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "Iterator[BuildReport]":
        """Update the index now and whenever files change, and yield the report of each update.

        Changes that follow one another within a quarter of a second are one update. Hidden files,
        and data that is not text, are ignored as `update` ignores them. The models are loaded once.

        Parameters
        ----------
        sources : str or Path, or a sequence of them, optional
            As in `update`. If one disappears, updates fail until it is back.
        failed : callable, optional
            Called with the error of an update that failed, such as that of a language model that
            does not answer. The update is then tried again with the next change, or after half a
            minute. By default the error is raised.
        hierarchy, llm, splitter, purge, progress, **llm_options
            As in `update`.

        Raises
        ------
        SourceError
            If a source cannot be found, or there is none to watch.
        InputError
            If an argument contradicts what the index was built with, a model has to be passed, or
            the system cannot watch the sources.
        """
        from hierindex.jobs.changes import Remembered
        from hierindex.jobs.revisions import checked
        from hierindex.jobs.update import Given
        from hierindex.jobs.watch import reports

        read = None if sources is None else checked(sources)
        places = Remembered.of(self.table.snapshot()).sources if read is None else [*map(str, read)]
        if not places:
            raise SourceError("The index was built from no files; name the sources to watch.")
        given = Given(hierarchy, self._embed_model, llm, llm_options=llm_options)
        update = partial(
            self.update,
            read,
            hierarchy=given.checked_hierarchy(self.settings),
            splitter=splitter,
            purge=purge,
            progress=progress,
        )
        return reports(update, places, failed)

    def delete(
        self,
        *documents: str,
        hierarchy: "Hierarchy | None" = None,
        llm: "LLM | None" = None,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "BuildReport":
        """Delete documents, and grow the tree without them.

        Earlier generations are removed, so that no file of the index contains their text.

        Parameters
        ----------
        *documents : str
            Ids. A mailbox stands for all its e-mails, and an e-mail for its attachments. These
            documents are left out of later updates, until their files are named.
        hierarchy, llm, progress, **llm_options
            As in `update`.

        Returns
        -------
        BuildReport
            It is also set as `last_build`.

        Raises
        ------
        InputError
            If the index does not hold a document, or holds no other.
        """
        from hierindex.jobs.revisions import without

        if not documents:
            raise InputError("Name the documents to delete.")
        return self._revise(
            "delete",
            partial(without, documents),
            hierarchy=hierarchy,
            llm=llm,
            progress=progress,
            llm_options=llm_options,
            purge=True,
        )

    def regrow(
        self,
        hierarchy: "Hierarchy | None" = None,
        *,
        llm: "LLM | None" = None,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "BuildReport":
        """Grow the tree again over the chunks that the index holds.

        So an index that an `IngestionPipeline` has updated gets one tree without stale nodes.

        Parameters
        ----------
        hierarchy : Hierarchy, optional
            By default the one that the nodes were made by, as far as they tell. It may be another
            one with the same embedding model.
        llm, progress, **llm_options
            As in `update`.
        """
        from hierindex.jobs.revisions import without

        return self._revise(
            "regrow",
            partial(without, ()),
            hierarchy=hierarchy,
            llm=llm,
            progress=progress,
            llm_options=llm_options,
            may_differ=True,
        )

    def estimate_update(
        self,
        sources: "Source | Sequence[Source] | None" = None,
        *,
        delete: Sequence[str] = (),
        hierarchy: "Hierarchy | None" = None,
        llm: "LLM | None" = None,
        splitter: "NodeParser | None" = None,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "Estimate":
        """Estimate what `update`, or with `delete` the deletion of documents, would cost.

        As in `estimate`, only the embedding model is run, and its vectors are cached.
        """
        from hierindex.jobs.estimate import costs_nothing, estimated
        from hierindex.jobs.revisions import updated, without
        from hierindex.jobs.update import Given, revise

        given = Given(
            hierarchy=hierarchy,
            embed_model=self._embed_model,
            llm=llm,
            splitter=splitter,
            progress=progress,
            llm_options=llm_options,
        )
        change = partial(without, delete) if delete else partial(updated, sources)
        return revise(self.table, change, given, then=estimated, unchanged=costs_nothing)

    def _revise(self, what: str, change: "Revise", **given: Any) -> "BuildReport":
        """Publish a revision of the index; `given` are the fields of `Given`."""
        from hierindex.jobs.build import check_writable, publish_moved
        from hierindex.jobs.job import Job
        from hierindex.jobs.update import Given, revise

        check_writable(self.table.uri)
        self.table.snapshot().require()
        by = Given(embed_model=self._embed_model, **given)
        with self.table.writing(what):
            report = revise(self.table, change, by, then=Job.publish, unchanged=publish_moved)
        self.last_build = report
        return report
