import asyncio
import json
import logging

import pytest
from tiny_models import SENTENCES, save_tiny_bart, save_tiny_bert, save_tiny_t5

from hierindex.errors import ModelError
from hierindex.summarize.seq2seq import Seq2SeqRewriter

WINDOW = 64
SAVE = {"bart": save_tiny_bart, "t5": save_tiny_t5}
LONG = " ".join(SENTENCES * 5)
ENDLESS = "salt " * 300 + "ice"


@pytest.fixture(scope="module", params=SAVE)
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    SAVE[request.param](folder, WINDOW)
    return str(folder)


@pytest.fixture
def rewriter(folder):
    return Seq2SeqRewriter(folder, num_beams=2, device="cpu")


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


@pytest.fixture
def transformers_log(caplog):
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


def texts_of(rewrites):
    return [rewrite.text for rewrite in rewrites]


def words_of(rewriter, ids):
    return rewriter._tokenizer.decode(ids, skip_special_tokens=True).replace(".", "").split()


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_a_rewrite_for_each_text_in_order(folder, batch_size):
    texts = [*SENTENCES, LONG, SENTENCES[0]]
    batched = Seq2SeqRewriter(folder, num_beams=1, batch_size=batch_size, device="cpu")
    rewrites = texts_of(batched.rewrite(texts, max_tokens=16))
    alone = [batched.rewrite([text], max_tokens=16)[0].text for text in texts]
    assert rewrites == alone
    assert all(rewrites)
    assert len(set(rewrites[: len(SENTENCES)])) == len(SENTENCES)


def test_batches_are_as_large_as_asked_and_sorted_by_length(folder, monkeypatch):
    rewriter, shapes = Seq2SeqRewriter(folder, num_beams=1, batch_size=3, device="cpu"), []
    generate = rewriter._model.generate

    def recorded(input_ids, **settings):
        shapes.append(tuple(input_ids.shape))
        return generate(input_ids, **settings)

    monkeypatch.setattr(rewriter._model, "generate", recorded)
    rewriter.rewrite(["salt"] * 3 + [SENTENCES[0]] * 4, max_tokens=8)
    assert [n for n, _ in shapes] == [3, 3, 1]
    assert shapes[-1][1] < shapes[0][1]


@pytest.mark.parametrize(
    "text", [LONG, ENDLESS, "salt," * 200], ids=["long", "endless", "no blank"]
)
def test_a_text_over_the_window_is_split_not_cut(rewriter, given, text):
    rewriter.rewrite([text], max_tokens=12)
    assert max(map(len, given)) <= rewriter.window == WINDOW
    first_round = [word for ids in sorted_as_in(rewriter, text, given) for word in ids]
    assert "".join(first_round) == "".join(text.lower().replace(".", "").split())


def sorted_as_in(rewriter, text, given):
    """Words of the parts of the text, in its order; parts come to the model longest first."""
    left, parts = "".join(text.lower().replace(".", "").split()), []
    pool = [words_of(rewriter, ids) for ids in given]
    while left and (fits := [p for p in pool if p and left.startswith("".join(p))]):
        part = max(fits, key=lambda p: len("".join(p)))
        pool.remove(part)
        parts.append(part)
        left = left[len("".join(part)) :]
    return parts


def test_a_text_within_the_window_is_given_whole_and_once(rewriter, given):
    rewriter.rewrite(SENTENCES, max_tokens=12)
    expected = [rewriter._tokenizer(text)["input_ids"] for text in SENTENCES]
    assert sorted(given) == sorted(expected)


@pytest.mark.parametrize("max_tokens", [4, 12, 1000])
@pytest.mark.parametrize("text", [SENTENCES[0], LONG])
def test_a_rewrite_is_of_at_most_so_many_tokens(rewriter, max_tokens, text):
    (rewrite,) = rewriter.rewrite([text], max_tokens=max_tokens)
    tokens = rewriter._tokenizer(rewrite.text, add_special_tokens=False)["input_ids"]
    assert 0 < len(tokens) <= max_tokens


@pytest.mark.parametrize("factor", [0.9, 1, 2])
def test_a_model_that_hardly_shortens_is_asked_a_bounded_number_of_times(
    folder, monkeypatch, factor
):
    rewriter, calls = Seq2SeqRewriter(folder, num_beams=1, device="cpu"), []

    def wordy(texts, max_tokens, progress=None):
        calls.append(len(texts))
        return [" ".join(["salt"] * max(1, int(factor * len(text.split())))) for text in texts]

    monkeypatch.setattr(rewriter, "_generate", wordy)
    (rewrite,) = rewriter.rewrite([ENDLESS], max_tokens=12)
    assert rewrite.text
    assert len(calls) < 60


def test_no_texts(rewriter, given):
    assert rewriter.rewrite([], max_tokens=12) == []
    assert asyncio.run(rewriter.arewrite([], max_tokens=12)) == []
    assert given == []


def test_an_empty_rewrite_is_none(rewriter, monkeypatch):
    monkeypatch.setattr(rewriter, "_generate", lambda texts, *_: [""] * len(texts))
    assert texts_of(rewriter.rewrite([SENTENCES[0]], max_tokens=12)) == [None]


def test_async_equals_sync(rewriter):
    texts, told = [*SENTENCES, LONG], []
    rewrites = rewriter.rewrite(texts, max_tokens=12, progress=lambda *at: told.append(at))
    assert asyncio.run(rewriter.arewrite(texts, max_tokens=12)) == rewrites
    assert told[-1] == ("summarize", 6, 6)


def test_nothing_is_logged(folder, transformers_log):
    Seq2SeqRewriter(folder, device="cpu").rewrite([*SENTENCES, LONG, ENDLESS], max_tokens=12)
    assert not transformers_log.records


def test_loading_shows_no_bar(folder, capfd):
    Seq2SeqRewriter(folder, device="cpu")
    assert capfd.readouterr() == ("", "")


def test_name_and_to_dict(rewriter, folder):
    assert rewriter.name == folder
    assert rewriter.to_dict() == {"seq2seq": folder, "num_beams": 2}


def broken(folder, what):
    match what:
        case "no folder":
            return folder / "nowhere"
        case "an empty folder":
            pass
        case "no sequence-to-sequence model":
            save_tiny_bert(folder)
        case "a broken configuration":
            save_tiny_bart(folder)
            (folder / "config.json").write_text("{")
        case "broken weights":
            save_tiny_bart(folder)
            (folder / "model.safetensors").write_bytes(b"nonsense")
    return folder


@pytest.mark.parametrize(
    "what",
    [
        "no folder",
        "an empty folder",
        "no sequence-to-sequence model",
        "a broken configuration",
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
