from dataclasses import asdict

import pytest

from hierindex.errors import InputError
from hierindex.settings import (
    NAMES,
    TOML_FILE,
    Settings,
    load_settings,
    misnamed_variables,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        monkeypatch.delenv(f"HIERINDEX_{name.upper()}", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("flag", "environment", "file", "expected"),
    [
        (None, None, None, None),
        (None, None, 4, 4),
        (None, 3, None, 3),
        (None, 3, 4, 3),
        (2, None, 4, 2),
        (2, 3, None, 2),
        (2, 3, 4, 2),
    ],
)
def test_flags_over_environment_over_file_over_defaults(
    folder, monkeypatch, flag, environment, file, expected
):
    if environment is not None:
        monkeypatch.setenv("HIERINDEX_TOP_K", str(environment))
    if file is not None:
        (folder / TOML_FILE).write_text(f"top_k = {file}\nseed = 8\n")
    settings = load_settings(top_k=flag)
    assert settings.top_k == expected
    assert settings.seed == (0 if file is None else 8)


def test_false_and_zero_are_given(monkeypatch):
    monkeypatch.setenv("HIERINDEX_STRICT", "true")
    monkeypatch.setenv("HIERINDEX_SEED", "5")
    assert (load_settings().strict, load_settings().seed) == (True, 5)
    given = load_settings(strict=False, seed=0, level=0)
    assert (given.strict, given.seed, given.level) == (False, 0, 0)


@pytest.mark.parametrize(
    ("given", "level"),
    [("top", "top"), ("2", 2), (None, [0, 1]), (None, ["chunks", 2])],
)
def test_levels_are_numbers_and_words(folder, monkeypatch, given, level):
    (folder / TOML_FILE).write_text(f"level = {level!r}\n")
    assert load_settings().level == level
    if given:
        monkeypatch.setenv("HIERINDEX_LEVEL", given)
        assert load_settings().level == level
    words = [str(each) for each in (level if isinstance(level, list) else [level])]
    assert load_settings(level=words).level == (level if isinstance(level, list) else [level])
    with pytest.raises(InputError, match="level is invalid: it must be a whole number, top"):
        load_settings(level=["deep"])


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("metod", "'metod', which is not a setting; the nearest is method."),
        ("Method", "'Method', which is not a setting; the nearest is method."),
        ("x", "'x', which is not a setting."),
    ],
)
def test_an_unknown_key_in_the_file_is_named_with_the_nearest(folder, key, sentence):
    (folder / TOML_FILE).write_text(f"{key} = 'raptor'\n")
    with pytest.raises(InputError, match=f"{sentence}$"):
        load_settings()


def test_a_flag_sets_its_rival_aside(folder, monkeypatch):
    (folder / TOML_FILE).write_text("level = 1\nsummarizer = 's'\n")
    monkeypatch.setenv("HIERINDEX_LLM", "l")
    settings = load_settings()
    assert (settings.level, settings.summarizer, settings.llm) == (1, "s", "l")
    settings = load_settings(mode="level", summarizer="t")
    assert (settings.level, settings.summarizer, settings.llm) == (None, "t", None)
    settings = load_settings(mode="level", level=2, summarizer="t", llm="m")
    assert (settings.level, settings.summarizer, settings.llm) == (2, "t", "m")


@pytest.mark.parametrize(
    "text", [b"method = raptor", b"[method", b"seed = 1\nseed = 2", b'llm = "\xfc"']
)
def test_a_file_that_is_no_toml_is_named(folder, text):
    (folder / TOML_FILE).write_bytes(text)
    with pytest.raises(InputError, match=f"{TOML_FILE} cannot be read"):
        load_settings()


@pytest.mark.parametrize("name", ["llm_api_key", "openai_api_key"])
def test_a_key_in_the_file_is_refused_and_not_shown(folder, name):
    (folder / TOML_FILE).write_text(f"{name} = 'sk-secret'\n")
    with pytest.raises(InputError, match=name) as caught:
        load_settings()
    assert "sk-secret" not in str(caught.value)


def test_other_variables_are_none_of_ours(monkeypatch):
    monkeypatch.setenv("HIERINDEX_LLM_API_KEY", "sk-secret")
    monkeypatch.setenv("HIERINDEX_HOME", "/nowhere")
    monkeypatch.setenv("HIERINDEX_METOD", "raptor")
    monkeypatch.setenv("METHOD", "raptor")
    assert [*misnamed_variables()] == [
        "The variable HIERINDEX_HOME is unknown.",
        "The variable HIERINDEX_METOD is unknown; the nearest is HIERINDEX_METHOD.",
    ]
    settings = load_settings()
    assert settings == Settings()
    assert "sk-secret" not in repr(settings)


def test_every_field_can_be_set_everywhere(folder, monkeypatch):
    values = {
        "method": "raptor",
        "precision": "float32",
        "embed_model": "m",
        "summarizer": "s",
        "chunk_size": 16,
        "max_levels": 1,
        "seed": 7,
        "llm": "l",
        "llm_base_url": "http://localhost/v1",
        "llm_concurrency": 1,
        "llm_timeout": 1.5,
        "llm_completion_tokens": 1,
        "llm_record": "r",
        "max_llm_tokens": 1,
        "prompt": "questions",
        "unsupported": "drop",
        "strict": True,
        "mode": "level",
        "level": 1,
        "top_k": 1,
        "token_budget": 1,
        "by": "hybrid",
        "rerank": "c",
        "response_mode": "tree",
        "min_score": 0.5,
    }
    assert values.keys() == NAMES.keys()
    by_flags = load_settings(**values)
    assert asdict(by_flags) == values
    lines = (f"{k} = {str(v).lower() if v is True else repr(v)}\n" for k, v in values.items())
    (folder / TOML_FILE).write_text("".join(lines))
    assert load_settings() == by_flags
    (folder / TOML_FILE).unlink()
    for name, value in values.items():
        monkeypatch.setenv(f"HIERINDEX_{name.upper()}", str(value))
    assert load_settings() == by_flags
