"""What all tests share."""

import asyncio
import gc
import logging
import os
import signal
import sys
import warnings
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # before huggingface_hub reads it: no test waits for a hub
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import certifi
import huggingface_hub.constants
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from tenacity import wait_none

import hierindex.index
from hierindex.models.export import _digest
from hierindex.models.openvino import OpenVinoEncoder

# Shells ignore Ctrl-C for what they start in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

# New objects until garbage is collected: a tenth of the time.
gc.set_threshold(100_000)

# Everybody has the same examples, every time; `make search` looks for others.
settings.register_profile(
    "quick",
    max_examples=8,
    derandomize=True,
    database=None,
    deadline=None,  # on a busy machine, the first text takes seconds to draw
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=200)
settings.register_profile(
    "search", settings.get_profile("thorough"), derandomize=False, print_blob=True
)
settings.load_profile("quick")

CORPORA = Path(
    os.environ.get("HIERINDEX_CORPORA", Path(__file__).parents[2] / "shared" / "corpora")
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave combinations of parameters to `make test-slow`, where a test is marked `spread`."""
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("spread") and not item.get_closest_marker("slow"):
            values = [(name, repr(value)) for name, value in item.callspec.params.items()]
            tests[item.nodeid.partition("[")[0]].append((item, values))
    for cases in tests.values():
        met = Counter()
        while cases:
            least = [sorted(met[value] for value in values) for _, values in cases]
            if min(least)[0]:
                break
            met.update(cases.pop(least.index(min(least)))[1])
        for item, _ in cases:
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """No later collection of garbage looks at what was imported."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_variables_of_this_machine() -> None:
    """No test meets a setting, or a variable of tests, from outside."""
    for name in [name for name in os.environ if name.startswith("HIERINDEX_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def of_all_workers(tmp_path_factory):
    """A folder that the workers of pytest-xdist have in common."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory):
    """No test meets TLS, and each HTTP client would read all certificates for 0.05 s."""
    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text().partition(end)[0] + end
    file = tmp_path_factory.mktemp("authorities") / "one.pem"
    file.write_text(first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(autouse=True)
def closed_event_loop():
    """LlamaIndex's sync methods open the thread's event loop and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


@pytest.fixture(scope="module", autouse=True)
def collected_clients(request):
    """LlamaIndex's clients are never closed; what is left of them goes with its module.

    Else they may be collected where hypothesis takes every warning for an error.
    """
    yield
    if "LoopbackServer" in vars(request.module):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture(scope="session")
def embed_model():
    """The bundled model, loaded once."""
    return hierindex.load_embed_model()


@pytest.fixture(autouse=True)
def models_read_once(monkeypatch):
    """Models that were exported are read, and their texts embedded, once for all tests."""
    hierindex.index._loaded.cache_clear()
    monkeypatch.setattr("hierindex.models.load.OpenVinoEncoder", _read_once)
    monkeypatch.setattr("hierindex.models.export._digest", _digested_once)


@cache
def _read_once(*options):
    model, vectors = OpenVinoEncoder(*options), {}
    results = model.results

    def remembered(texts):
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        vectors.update(zip(new, np.float32(results(new)), strict=True))
        return [vectors[text].tolist() for text in texts]

    model.results = remembered
    return model


def _digested_once(source, use):
    return _digested(source, use, *(file.stat().st_mtime_ns for file in sorted(source.rglob("*"))))


@cache
def _digested(source, use, *changed):
    return _digest(source, use)


@pytest.fixture(scope="session")
def commands_made_once():
    """Typer makes its commands anew for each command line, in 0.01 s."""
    import typer.main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def run(monkeypatch, capsys, commands_made_once):
    """Runs a command line in this process; gives exit status, standard output and error."""

    from hierindex.cli.app import main

    def called(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hierindex", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), *capsys.readouterr()

    return called


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Makes standard output and error those of a terminal of so many columns."""

    def made(columns: int = 80) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True)

    return made


@pytest.fixture
def no_wait(monkeypatch):
    """What a language model's service fails at is tried again at once."""
    monkeypatch.setattr("hierindex.models.llm.WAIT", wait_none())


@pytest.fixture
def no_hub(monkeypatch):
    """Also for what has read the environment already."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


@pytest.fixture
def transformers_log(caplog):
    """Records of transformers, including messages that it logs only once."""
    from transformers.utils.logging import warning_once

    warning_once.cache_clear()
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


@pytest.fixture
def corpus():
    """Folder of a corpus of real texts by name; the test is skipped where it is absent."""

    def folder(name: str) -> Path:
        if not (CORPORA / name).is_dir():
            pytest.skip(f"no corpus {name!r} in {CORPORA}; set HIERINDEX_CORPORA")
        return CORPORA / name

    return folder


@pytest.fixture(autouse=True)
def notes_of_one_test():
    """The command line sets where the notes of its process go."""
    yield
    logger = logging.getLogger("hierindex")
    logger.handlers = []
    if logger.level:  # to set it takes time, as all loggers are told
        logger.setLevel(logging.NOTSET)
