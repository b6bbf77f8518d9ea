import json

import pytest
import torch
from summarize.groups import Kept
from tiny_models import SENTENCES, save_tiny_bart, save_tiny_bert, save_tiny_t5

from hierindex import Usage
from hierindex.errors import ModelError
from hierindex.summarize import Resources, Rewrite, Seq2SeqRewriter, seq2seq
from hierindex.summarize.seq2seq import DEFAULT_SEQ2SEQ_MODEL

WINDOW = 64
SAVE = {"bart": save_tiny_bart, "t5": save_tiny_t5}
PREFIX = "summarize: "
LONG = " ".join(SENTENCES * 5)
ENDLESS = "salt " * 300 + "ice"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    found = {name: tmp_path_factory.mktemp(name) for name in SAVE}
    for name, folder in found.items():
        SAVE[name](folder, WINDOW)
    return {name: str(folder) for name, folder in found.items()}


@pytest.fixture(scope="module")
def folder(folders):
    return folders["t5"]


@pytest.fixture(params=SAVE)
def each_folder(request, folders):
    return folders[request.param]


@pytest.fixture(scope="module")
def rewriter(folder):
    return Seq2SeqRewriter(folder, num_beams=2, batch_size=8, device="cpu")


@pytest.fixture
def given(rewriter, monkeypatch):
    """Token ids of each text that the model is given."""
    rows, generate = [], rewriter._model.generate

    def recorded(input_ids, attention_mask, **settings):
        for ids, mask in zip(input_ids, attention_mask, strict=True):
            rows.append(ids[mask.bool()].tolist())
        return generate(input_ids, attention_mask=attention_mask, **settings)

    monkeypatch.setattr(rewriter._model, "generate", recorded)
    return rows


def texts_of(rewrites):
    return [rewrite.text for rewrite in rewrites]


def letters(text):
    return "".join(text.lower().replace(".", "").split())


@pytest.mark.spread
@pytest.mark.parametrize("batch_size", [2, 8])
def test_a_rewrite_for_each_text_in_order(each_folder, batch_size):
    texts = [*SENTENCES, LONG, SENTENCES[0]]
    batched = Seq2SeqRewriter(each_folder, num_beams=1, batch_size=batch_size, device="cpu")
    rewrites = texts_of(batched.rewrite(texts, max_tokens=8))
    alone = [batched.rewrite([text], max_tokens=8)[0].text for text in texts]
    assert rewrites == alone
    assert all(rewrites)
    assert len(set(rewrites[: len(SENTENCES)])) == len(SENTENCES)


@pytest.mark.parametrize(
    "text", [LONG, ENDLESS, "salt," * 200], ids=["long", "endless", "no blank"]
)
def test_a_text_over_the_window_is_split_not_cut(rewriter, given, text):
    rewriter.rewrite([text], max_tokens=12)
    assert max(map(len, given)) <= rewriter.window == WINDOW
    parts = rewriter._parts(text)
    assert letters("".join(parts)) == letters(text)
    assert all(rewriter._tokenizer(rewriter.prefix + part)["input_ids"] in given for part in parts)


def test_the_prefix_of_a_model_is_part_of_its_window(folders):
    rewriters = {name: Seq2SeqRewriter(each, device="cpu") for name, each in folders.items()}
    assert {name: made.prefix for name, made in rewriters.items()} == {"bart": "", "t5": PREFIX}
    n_prefix = len(rewriters["t5"]._tokenizer(PREFIX, add_special_tokens=False)["input_ids"])
    fits = " ".join(["salt"] * (WINDOW - n_prefix - 1))
    assert rewriters["t5"]._parts(fits) == [fits]
    assert len(rewriters["t5"]._parts(f"{fits} salt")) == 2


@pytest.mark.spread
@pytest.mark.parametrize("max_tokens", [4, 12, 1000])
@pytest.mark.parametrize("text", [SENTENCES[0], LONG])
def test_a_rewrite_is_of_at_most_so_many_tokens(rewriter, max_tokens, text):
    (rewrite,) = rewriter.rewrite([text], max_tokens=max_tokens)
    tokens = rewriter._tokenizer(rewrite.text, add_special_tokens=False)["input_ids"]
    assert 0 < len(tokens) <= max_tokens


@pytest.mark.parametrize(
    ("factor", "is_written"), [(0.5, True), (0.9, True), (1, False), (2, False)]
)
def test_a_model_that_hardly_shortens_is_asked_a_bounded_number_of_times(
    folder, monkeypatch, factor, is_written
):
    rewriter, calls = Seq2SeqRewriter(folder, num_beams=1, device="cpu"), []

    def wordy(texts, max_tokens):
        calls.append(len(texts))
        return [" ".join(["salt"] * int(factor * len(text.split()))) for text in texts]

    monkeypatch.setattr(rewriter, "_generate", wordy)
    (rewrite,) = rewriter.rewrite([ENDLESS], max_tokens=12)
    assert bool(rewrite.text) == is_written
    assert len(calls) < 60


@pytest.mark.parametrize("text", [SENTENCES[0], LONG])
def test_a_model_that_writes_nothing(rewriter, monkeypatch, text):
    asked, kept = [], Kept()

    def mute(texts, max_tokens):
        asked.extend(text for text in texts if text)
        return [""] * len(texts)

    monkeypatch.setattr(rewriter, "_generate", mute)
    (rewrite,) = rewriter.rewrite([text], max_tokens=12, resources=Resources(completions=kept))
    assert rewrite == Rewrite(None, reason="it wrote nothing")
    assert len(asked) == len(rewriter._parts(text))
    assert kept == {}


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_model_is_not_asked_about_a_blank_text(rewriter, given, blank):
    assert texts_of(rewriter.rewrite([blank], max_tokens=12)) == [None]
    assert given == []


def test_progress_counts_texts(rewriter):
    told = []
    resources = Resources(progress=lambda *at: told.append(at))
    rewriter.rewrite([*SENTENCES, LONG], max_tokens=12, resources=resources)
    assert told == [("summarize", 0, 6), ("summarize", 6, 6)]


@pytest.mark.parametrize("text", [SENTENCES[0], LONG])
def test_what_was_written_is_recalled(rewriter, given, text):
    resources = Resources(completions=Kept())
    first = rewriter.rewrite([text], max_tokens=12, resources=resources)
    n_given = len(given)
    again = rewriter.rewrite([text], max_tokens=12, resources=resources)
    assert len(given) == n_given
    assert [first[0].usage, again[0].usage] == [Usage(), Usage(cached_summaries=1)]
    assert texts_of(again) == texts_of(first)


@pytest.mark.parametrize(
    ("settings", "max_tokens"),
    [({"num_beams": 1}, 12), ({}, 11)],
    ids=["num_beams", "max_tokens"],
)
def test_what_was_written_otherwise_is_not_recalled(folder, settings, max_tokens):
    resources = Resources(completions=Kept())
    made = Seq2SeqRewriter(folder, device="cpu", num_beams=2)
    made.rewrite(SENTENCES, max_tokens=12, resources=resources)
    other = Seq2SeqRewriter(folder, device="cpu", **{"num_beams": 2, **settings})
    rewrites = other.rewrite(SENTENCES, max_tokens=max_tokens, resources=resources)
    assert {rewrite.usage for rewrite in rewrites} == {Usage()}
    assert len(resources.completions) == 10


def test_a_build_killed_half_way_pays_only_for_what_was_in_flight(folder, given, rewriter):
    rewriter.batch_size = 2
    kept = Kept()

    def killed(stage, done, total):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rewriter.rewrite(SENTENCES, max_tokens=12, resources=Resources(killed, kept))
    assert len(kept) == len(given) == 4
    rewrites = rewriter.rewrite(SENTENCES, max_tokens=12, resources=Resources(completions=kept))
    assert len(given) == 5
    assert sum(rewrite.usage.cached_summaries for rewrite in rewrites) == 4
    assert texts_of(rewrites) == texts_of(rewriter.rewrite(SENTENCES, max_tokens=12))


@pytest.mark.spread
@pytest.mark.parametrize("num_beams", [1, 2])
def test_a_rewrite_may_be_short_whatever_the_model_s_settings_ask_for(
    each_folder, num_beams, monkeypatch
):
    rewriter = Seq2SeqRewriter(each_folder, num_beams=num_beams, device="cpu")
    generate, lengths = rewriter._model.generate, []

    def ending(*inputs, **settings):
        """As if the model would rather end than say anything."""
        end = rewriter._tokenizer.eos_token_id
        ids = generate(*inputs, sequence_bias={(end,): 100.0}, **settings)
        lengths.extend(1 + (ids[:, 1:] == end).int().argmax(dim=1))
        return ids

    monkeypatch.setattr(rewriter._model, "generate", ending)
    rewriter.rewrite(SENTENCES, max_tokens=20)
    assert max(lengths) < 4


def test_a_model_in_bfloat16(each_folder, monkeypatch):
    asked = []
    monkeypatch.setattr(seq2seq, "accelerator", lambda: "cpu")
    monkeypatch.setattr(seq2seq, "fastest_dtype", lambda on: asked.append(on) or torch.bfloat16)
    rewriter = Seq2SeqRewriter(each_folder, num_beams=2)
    assert asked == ["cpu"]
    assert rewriter._model.dtype == torch.bfloat16
    assert all(texts_of(rewriter.rewrite([*SENTENCES, LONG], max_tokens=12)))
    monkeypatch.undo()
    assert rewriter.to_dict() == Seq2SeqRewriter(each_folder, num_beams=2, device="cpu").to_dict()


def test_a_model_is_in_float32_on_a_cpu_however_it_was_saved(folder, tmp_path):
    half = Seq2SeqRewriter(folder, device="cpu")
    half._model.half().save_pretrained(tmp_path)
    half._tokenizer.save_pretrained(tmp_path)
    assert Seq2SeqRewriter(str(tmp_path), device="cpu")._model.dtype == torch.float32


@pytest.mark.spread
@pytest.mark.parametrize("num_beams", [1, 4])
def test_nothing_is_logged_or_shown(each_folder, transformers_log, capfd, num_beams):
    rewriter = Seq2SeqRewriter(each_folder, num_beams=num_beams, device="cpu")
    rewriter.rewrite([*SENTENCES, LONG, ENDLESS], max_tokens=6)
    assert not transformers_log.records
    assert capfd.readouterr() == ("", "")


def test_without_a_name_it_is_bart_and_without_a_hub_there_is_none(no_hub):
    with pytest.raises(ModelError, match=repr(DEFAULT_SEQ2SEQ_MODEL)):
        Seq2SeqRewriter()


def broken(folder, what):
    match what:
        case "no folder":
            return folder / "nowhere"
        case "no sequence-to-sequence model":
            save_tiny_bert(folder)
        case "broken weights":
            save_tiny_bart(folder)
            (folder / "model.safetensors").write_bytes(b"nonsense")
    return folder


@pytest.mark.parametrize(
    "what",
    [
        "no folder",
        "no sequence-to-sequence model",
        "broken weights",
    ],
)
def test_a_model_that_cannot_be_loaded(no_hub, tmp_path, what):
    folder = str(broken(tmp_path, what))
    with pytest.raises(ModelError) as caught:
        Seq2SeqRewriter(folder, device="cpu")
    assert repr(folder) in str(caught.value)
    assert str(caught.value).endswith(".")


def test_code_that_comes_with_a_model_is_not_run(no_hub, tmp_path):
    trace = tmp_path / "trace"
    (tmp_path / "code.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    maps = {"AutoConfig": "code.Config", "AutoModelForSeq2SeqLM": "code.Model"}
    config = {"model_type": "of-its-own", "auto_map": maps}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError):
        Seq2SeqRewriter(str(tmp_path), device="cpu")
    assert not trace.exists()
