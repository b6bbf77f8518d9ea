"""Sentence-transformers models on OpenVINO, without torch, and cross-encoders."""

import atexit
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from hierindex.core.identity import digest
from hierindex.text.characters import paired

if TYPE_CHECKING:
    from openvino import CompiledModel, Core
    from tokenizers import Tokenizer

Precision = Literal["bfloat16", "float32"]
HINTS = {"bfloat16": "bf16", "float32": "f32"}
_reading = Lock()
GRAPH, TOKENIZER, CARD = "model.xml", "tokenizer.json", "card.json"
INPUT, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
WIDTH = 16  # tokens; lengths that are no multiple of it take a fifth longer in bfloat16 with AMX


@cache
def openvino() -> "Core":
    """Return OpenVINO's `Core`; its telemetry package, which contacts Google, is not loaded."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # not importable
    from openvino import Core, Tensor

    with _reading:  # two threads that are the first to read a tensor wait for each other for ever
        assert Tensor(np.zeros(1)).data.shape == (1,)
    return Core()


@cache
def fastest_precision() -> Precision:
    """Return bfloat16 if the processor multiplies such matrices in hardware, else float32."""
    can = openvino().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return "bfloat16" if "BF16" in can else "float32"


_in_use: WeakSet["Exported"] = WeakSet()


@atexit.register
def _release() -> None:
    """Release graphs before the interpreter ends, as their threads may abort the process later."""
    for model in _in_use:
        vars(model).pop("_graph", None)
    openvino.cache_clear()


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Card:
    """Facts about an exported model that its graph and tokenizer do not contain.

    `source` is a digest of everything that determines the model's results. `window` is the maximum
    number of tokens that it reads, special ones included, and `padding` the padding token.
    `query_prompt` precedes a question and `text_prompt` a text. `precision` is the fastest
    precision that preserves the results.
    """

    source: str
    window: int
    padding: int
    query_prompt: str
    text_prompt: str
    precision: Precision

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the card in a folder."""
        return cls(**json.loads((folder / CARD).read_text("utf-8")))

    def write(self, folder: Path) -> None:
        """Write the card to a folder."""
        (folder / CARD).write_text(json.dumps(asdict(self), indent=1), "utf-8")

    def at_most(self, precision: Precision) -> Precision:
        """Return bfloat16 if requested and if it preserves the model's results, else float32."""
        return "float32" if precision == "float32" else self.precision


class Exported:
    """An exported model; its graph, tokenizer and card are read on first use.

    Each text runs on one thread, padded to a multiple of 16 tokens, and as many texts run at once
    as there are cores. So equal texts get bit-identical results at the same precision. On two
    cores this is as fast as batches.

    Parameters
    ----------
    folder : Path
        Contains the exported graph, the tokenizer, and their settings.
    precision : {"bfloat16", "float32"}
    """

    def __init__(self, folder: Path, precision: Precision) -> None:
        self.folder = folder
        self.precision = precision
        _in_use.add(self)

    def results(self, texts: Sequence[str], question: str | None = None) -> list[list[float]]:
        """Return the result of each text, or of each pair of a question and a text."""
        from openvino import AsyncInferQueue

        rows: dict[int, list[float]] = {}

        def keep(run: Any, i: int) -> None:
            rows[i] = run.get_output_tensor().data[0].tolist()

        runs = AsyncInferQueue(self._graph)
        runs.set_callback(keep)
        for i, text in enumerate(texts):
            runs.start_async(self._inputs(question, text), i)
        runs.wait_all()
        return [rows[i] for i in range(len(rows))]

    def _inputs(self, question: str | None, text: str) -> dict[str, NDArray[np.int64]]:
        text = paired(text)
        pair = (text, None) if question is None else (paired(question), text)
        encoding = self._cutting_tokenizer.encode(*pair)
        length = -(-len(encoding) // WIDTH) * WIDTH
        encoding.pad(min(length, self.card.window), pad_id=self.card.padding)
        features = {
            INPUT: encoding.ids,
            MASK: encoding.attention_mask,
            TYPES: encoding.type_ids,
        }
        names = [each.any_name for each in self._graph.inputs]
        return {name: np.array([features[name]], dtype=np.int64) for name in names}

    @cached_property
    def card(self) -> Card:
        """The model's card."""
        return Card.read(self.folder)

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer, without truncation."""
        return whole_tokenizer((self.folder / TOKENIZER).read_text("utf-8"))

    @cached_property
    def _cutting_tokenizer(self) -> "Tokenizer":
        """The model's tokenizer, with truncation to the window."""
        tokenizer = whole_tokenizer(self.tokenizer.to_str())
        tokenizer.enable_truncation(self.card.window)
        return tokenizer

    @cached_property
    def _graph(self) -> "CompiledModel":
        """The compiled graph, which runs on as many texts at once as there are cores.

        Each has one thread. With several threads per text, numbers are added in another order, and
        results would depend on the number of threads.
        """
        settings = {
            "INFERENCE_PRECISION_HINT": HINTS[self.precision],
            "INFERENCE_NUM_THREADS": n_cores(),
            "NUM_STREAMS": n_cores(),
            "ENABLE_CPU_PINNING": False,  # two processes would share the first cores
        }
        return openvino().compile_model(self.folder / GRAPH, "CPU", settings)


class OpenVinoEncoder(Exported):
    """An exported sentence-transformers model that implements `EmbedModel`.

    Equal texts get bit-identical vectors at the same precision.

    Parameters
    ----------
    folder : Path
        Contains the exported graph, the tokenizer, and their settings.
    precision : {"bfloat16", "float32"}
    model_name : str
        Name under which the model was loaded.
    """

    def __init__(self, folder: Path, precision: Precision, model_name: str) -> None:
        super().__init__(folder, precision)
        self.model_name = model_name

    @property
    def max_length(self) -> int:
        """Maximum number of tokens that the model reads, special ones included."""
        return self.card.window

    @property
    def fingerprint(self) -> str:
        """Digest of everything that determines the vectors, followed by the precision."""
        return f"{self.card.source} {self.precision}"

    def get_query_embedding(self, query: str) -> list[float]:
        """Return the vector of a question."""
        return self.results([self.card.query_prompt + query])[0]

    def get_text_embedding_batch(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        return self.results([self.card.text_prompt + text for text in texts])

    def kept_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of fixed texts that every process needs, (n_texts, n_dims).

        They are stored in a file beside the export, which saves a quarter of a second per question.
        """
        name = digest(self.precision, *texts)[:16]
        path = self.folder / f"vectors-{name}.npy"
        if path.exists():
            return np.asarray(np.load(path))
        X = np.array(self.get_text_embedding_batch(texts), np.float32)
        with suppress(OSError), TemporaryDirectory(dir=self.folder) as made:  # if it can be written
            np.save(Path(made, path.name), X)
            Path(made, path.name).replace(path)
        return X


def encoder_of(model: object) -> OpenVinoEncoder | None:
    """Return the OpenVINO encoder of a model, also of one wrapped for LlamaIndex, or None."""
    encoder = getattr(model, "encoder", model)
    return encoder if isinstance(encoder, OpenVinoEncoder) else None


def whole_tokenizer(content: str) -> "Tokenizer":
    """Load a tokenizer from the text of a tokenizer.json, without truncation or padding."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class Reranker(Protocol):
    """Protocol for rerankers, which score texts for a question."""

    def rank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a finite score for each text, on any scale; higher is better."""
        ...


class OpenVinoCrossEncoder(Exported):
    """An exported cross-encoder, as returned by `load_reranker`; scores are logits.

    Parameters
    ----------
    folder : Path
        Contains the exported graph, the tokenizer, and their settings.
    precision : {"bfloat16", "float32"}
    """

    def rank(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker`."""
        return [score for (score,) in self.results(texts, question)]


class TorchCrossEncoder:
    """A cross-encoder on torch; scores are logits.

    Parameters
    ----------
    model : CrossEncoder
    model_name : str
        Name under which the model was loaded.
    """

    def __init__(self, model: Any, model_name: str) -> None:
        self._model = model
        self.model_name = model_name
        self.max_length: int = model.max_seq_length

    def rank(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker`."""
        import torch

        pairs = [(paired(question), paired(text)) for text in texts]
        logits = torch.nn.Identity()
        scores = self._model.predict(pairs, activation_fn=logits, show_progress_bar=False)
        return [float(score) for score in scores]
