import json

import numpy as np
import pytest
from tiny_models import SENTENCES, save_tiny_bert, save_tiny_nli

from hierindex.errors import InputError, ModelError
from hierindex.summarize.grounding import support_by_words
from hierindex.summarize.nli import NliGrounding

WINDOW = 64
LONG = " ".join(SENTENCES * 5)
PAIRS = [
    ([SENTENCES[0], "The lamp went out."], [*SENTENCES]),
    (["Snow and ice.", "The committee won.", "Salt!"], [SENTENCES[3], LONG]),
    ([SENTENCES[4]], ["Grain."]),
    (["The water is high in the bay.", SENTENCES[1]], [*SENTENCES[::-1]]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nli")
    save_tiny_nli(folder, WINDOW)
    return str(folder)


@pytest.fixture
def given(folder, monkeypatch):
    """A grounding, and the token ids of each premise and each hypothesis that its model gets."""
    grounding, rows = NliGrounding(folder, device="cpu"), []
    forward, end = grounding._model.forward, grounding._tokenizer.sep_token_id

    def recorded(input_ids, attention_mask, **settings):
        for ids, mask in zip(input_ids, attention_mask, strict=True):
            told = ids[mask.bool()].tolist()
            middle = told.index(end)
            rows.append((told[1:middle], told[middle + 1 : -1]))
        return forward(input_ids=input_ids, attention_mask=attention_mask, **settings)

    monkeypatch.setattr(grounding._model, "forward", recorded)
    return grounding, rows


def tokens(grounding, text):
    return grounding._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]


def probabilities(folder, pairs):
    """Of each sentence by itself, with its premise."""
    grounding = NliGrounding(folder, batch_size=1, device="cpu")
    return [
        float(grounding._probabilities([(" ".join(sources[j] for j in sorted(rows)), sentence)])[0])
        for (sentences, sources), support in zip(pairs, support_by_words(pairs), strict=True)
        for sentence, rows in zip(sentences, support.sources, strict=True)
    ]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 32])
def test_batches_do_not_change_the_verdicts_nor_their_order(folder, batch_size):
    alone = probabilities(folder, PAIRS)
    threshold = float(np.mean(sorted(alone)[len(alone) // 2 - 1 : len(alone) // 2 + 1]))
    grounding = NliGrounding(folder, threshold=threshold, batch_size=batch_size, device="cpu")
    supports = grounding.support(PAIRS, None)
    assert [len(s.carried) for s in supports] == [len(sentences) for sentences, _ in PAIRS]
    carried = [bool(c) for support in supports for c in support.carried]
    assert carried == [p >= threshold for p in alone]
    assert set(carried) == {True, False}
    assert [s.sources for s in supports] == [s.sources for s in support_by_words(PAIRS)]


def test_the_threshold_is_inclusive(folder):
    pairs = PAIRS[2:3]
    (probability,) = probabilities(folder, pairs)
    for threshold, carried in [(probability, True), (np.nextafter(probability, 1), False)]:
        grounding = NliGrounding(folder, threshold=float(threshold), device="cpu")
        (support,) = grounding.support(pairs, None)
        assert support.carried.tolist() == [carried]


def test_the_probability_is_that_of_the_label_wherever_it_stands(tmp_path):
    total = np.zeros(sum(len(sentences) for sentences, _ in PAIRS))
    for at in range(3):
        labels = ["neutral", "contradiction"]
        labels.insert(at, "ENTAILMENT" if at else "entailment")
        save_tiny_nli(tmp_path / f"{at}", WINDOW, labels)
        total += probabilities(str(tmp_path / f"{at}"), PAIRS)
    assert total == pytest.approx(np.ones(len(total)), abs=1e-5)


def test_the_model_sees_premise_and_hypothesis(given):
    grounding, rows = given
    grounding.support([([SENTENCES[0]], ["Salt and grain.", SENTENCES[1]])], None)
    assert len(rows) == 1
    premise, hypothesis = rows[0]
    assert premise == tokens(grounding, SENTENCES[1])
    assert hypothesis == tokens(grounding, SENTENCES[0])


def test_sources_follow_each_other_as_in_the_text(given):
    grounding, rows = given
    sources = [f"Salt. {SENTENCES[0]}", SENTENCES[0]]
    (support,) = grounding.support([(SENTENCES[:1], sources)], None)
    assert support.sources == [[1, 0]]
    assert rows[0][0] == tokens(grounding, " ".join(sources))


@pytest.mark.parametrize("hypothesis", [SENTENCES[0], LONG[:200]])
def test_a_long_premise_is_cut_and_not_the_hypothesis(given, hypothesis):
    grounding, rows = given
    grounding.support([([hypothesis], [LONG])], None)
    premise, told = rows[0]
    assert told == tokens(grounding, hypothesis)
    assert len(premise) + len(told) + 3 == WINDOW
    assert premise == tokens(grounding, LONG)[: len(premise)]


@pytest.mark.parametrize("n_over", [0, 1, 300])
def test_a_sentence_that_fills_the_window_is_not_entailed(given, n_over):
    grounding, rows = given
    sentence = " ".join(["salt"] * (WINDOW - 3 + n_over))
    grounding.threshold = 1e-9
    (support,) = grounding.support([([SENTENCES[0], sentence, "Ice."], [LONG])], None)
    assert support.carried.tolist() == [True, False, True]
    assert len(rows) == 2


def test_the_window_is_the_models_where_its_tokenizer_has_none(tmp_path):
    save_tiny_nli(tmp_path, WINDOW)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    del config["model_max_length"]
    path.write_text(json.dumps(config))
    grounding = NliGrounding(str(tmp_path), device="cpu")
    (support,) = grounding.support([([SENTENCES[0]], [LONG])], None)
    assert support.carried.shape == (1,)


@pytest.mark.parametrize("pairs", [[], [([], ["Salt."])]])
def test_nothing_to_judge(given, pairs):
    grounding, rows = given
    supports = grounding.support(pairs, None)
    assert [len(s.carried) for s in supports] == [0] * len(pairs)
    assert rows == []


def test_nothing_is_logged(folder, transformers_log, capfd):
    grounding = NliGrounding(folder, device="cpu")
    grounding.support([([SENTENCES[0], LONG], [LONG])], None)
    assert not transformers_log.records
    assert capfd.readouterr() == ("", "")


def test_to_dict_has_what_shapes_a_verdict(folder):
    data = NliGrounding(folder, threshold=0.7, batch_size=2, device="cpu").to_dict()
    assert data == {"type": "nli", "model": folder, "threshold": 0.7}
    assert json.loads(json.dumps(data)) == data


@pytest.mark.parametrize("threshold", [0, 1, -1, float("nan"), "0.5"])
def test_a_threshold_is_a_probability(folder, threshold):
    with pytest.raises(InputError, match="threshold must be between 0 and 1, got"):
        NliGrounding(folder, threshold=threshold)


@pytest.mark.parametrize("batch_size", [0, -1, 1.5])
def test_a_batch_has_at_least_one(folder, batch_size):
    with pytest.raises(InputError, match="batch_size must be an integer of at least 1, got"):
        NliGrounding(folder, batch_size=batch_size)


@pytest.mark.parametrize(
    "labels", [("a", "b", "c"), ("LABEL_0", "LABEL_1"), ("not_entailment",) * 2]
)
def test_a_model_without_the_label_is_refused(tmp_path, labels):
    save_tiny_nli(tmp_path, WINDOW, labels)
    with pytest.raises(ModelError, match="must have a label 'entailment', got"):
        NliGrounding(str(tmp_path), device="cpu")


def broken(folder, what):
    match what:
        case "no folder":
            return folder / "nowhere"
        case "an empty folder":
            pass
        case "a broken configuration":
            save_tiny_nli(folder)
            (folder / "config.json").write_text("{")
        case "broken weights":
            save_tiny_nli(folder)
            (folder / "model.safetensors").write_bytes(b"nonsense")
    return folder


@pytest.mark.parametrize(
    "what", ["no folder", "an empty folder", "a broken configuration", "broken weights"]
)
def test_a_model_that_cannot_be_loaded(no_hub, tmp_path, what):
    folder = str(broken(tmp_path, what))
    with pytest.raises(ModelError) as caught:
        NliGrounding(folder, device="cpu")
    assert repr(folder) in str(caught.value)
    assert str(caught.value).endswith(".")


def test_an_encoder_without_a_head_is_no_judge(no_hub, tmp_path):
    save_tiny_bert(tmp_path)
    with pytest.raises(ModelError):
        NliGrounding(str(tmp_path), device="cpu")


def test_code_that_comes_with_a_model_is_not_run(no_hub, tmp_path):
    trace = tmp_path / "trace"
    (tmp_path / "code.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    maps = {"AutoConfig": "code.Config", "AutoModelForSequenceClassification": "code.Model"}
    config = {"model_type": "of-its-own", "auto_map": maps}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError):
        NliGrounding(str(tmp_path), device="cpu")
    assert not trace.exists()
