import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.core.titles import (
    MAX_TITLE,
    first_words,
    group_names,
    listed,
    topic_names,
    without_markup,
    without_shared_prefix,
)

TOWNS = "Delft", "Gouda", "Leiden", "Utrecht"
PARTS = "axle", "brake", "canvas", "gears", "stones"
WORDS = st.sampled_from("mill Mills sails The of 7 data: Delft-Gouda, (crane) 帆船 x_y".split())
TITLES = st.lists(WORDS, min_size=1, max_size=9).map(" ".join) | st.text().map(
    lambda text: " ".join(text.split()) or "mill"
)
GROUPS = st.lists(st.lists(TITLES, max_size=9), max_size=4)


def numbered(title, n=12):
    return [title % i for i in range(n)]


@given(GROUPS, st.randoms())
def test_a_group_has_one_short_name_wherever_it_stands_among_its_siblings(groups, random):
    names = group_names(groups)
    for titles, name in zip(groups, names, strict=True):
        assert len(name) <= MAX_TITLE
        assert bool(name) == bool(titles)
        assert name == " ".join(name.split())
        assert {*name} <= {*"".join(titles), *", "}
    order = random.sample(range(len(groups)), len(groups))
    assert group_names([groups[i] for i in order]) == [names[i] for i in order]


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        pytest.param([], [], id="no groups"),
        pytest.param([[], ["The mill"]], ["", "The mill"], id="no titles"),
        pytest.param([["The mill", "Sails", "The mill"]], ["The mill, Sails"], id="few titles"),
        pytest.param([["log-old-mill", "log-sails"]], ["old mill, sails"], id="few files"),
        pytest.param(
            [numbered("Wind mills: Delft %d"), numbered("Sails: Delft %d")],
            ["Wind mills", "Sails"],
            id="what the siblings have, too, is left out",
        ),
        pytest.param(
            [[*numbered("%d mills of Delft"), "A mill", "The mill of Delft"]],
            ["mills of Delft"],
            id="plural",
        ),
        pytest.param(
            [numbered("delft_mill_%03d_wind_sail")], ["wind sail, delft mill"], id="files"
        ),
        pytest.param([numbered("%03d-wind--mill--delft")], ["mill, wind, delft"], id="long dashes"),
        pytest.param(
            [numbered("Test data: tools of Delft, %d")],
            ["tools of Delft"],
            id="generic words name nothing",
        ),
        pytest.param(
            [[*numbered("Creating a mill, the %dth page"), *numbered("Ropes at the pier %d", 2)]],
            ["Creating a mill, Ropes at the pier"],
            id="titles that the name does not cover, and no end of a part without its words",
        ),
        pytest.param(
            [
                [f"{i}.1. wind_{part} \u2014 The Mills of Delft" for i, part in enumerate(PARTS)],
                [f"IV. Cranes of the {part} \u2014 The Mills of Delft" for part in PARTS],
            ],
            [
                "wind_axle, wind_brake, wind_gears, wind_canvas, wind_stones",
                "Cranes",
            ],
            id="names of programs, numbers and a site",
        ),
        pytest.param(
            [[f"The sails that {town} made for its Self-Raising mills" for town in TOWNS]],
            ["Self-Raising mills, sails"],
            id="words between stop words",
        ),
        pytest.param(
            [["Internationalization, Telecommunications", "Constitutionalizations: ropes"]],
            ["ropes, Internationalization, Telecommunications"],
            id="a phrase that does not fit",
        ),
        pytest.param(
            [[*numbered("ES%d"), *numbered("School day %d", 2)]],
            ["School day, ES0, ES1, ES2, ES3, ES4, ES5, ES6, ES7, ES8, ES9"],
            id="numbers",
        ),
        pytest.param(
            [[f"{thing} of {'x' * 61}" for thing in ("Sail", "Mill")]],
            ["Sail of"],
            id="only phrases that are too long",
        ),
        pytest.param([["of the " * 20]], [("of the " * 8 + "of")], id="no words of its own"),
        pytest.param([["y" * 99]], ["y" * MAX_TITLE], id="a long word"),
    ],
)
def test_names_of_groups(groups, names):
    assert group_names(groups) == names


def test_a_name_says_what_the_siblings_do_not():
    """Whatever the towns that all write about are."""
    titles = [
        [f"How {thing} were made in {town}" for town in TOWNS] for thing in ("sails", "ropes")
    ]
    for name, thing in zip(group_names(titles), ("sails", "ropes"), strict=True):
        assert name.startswith(thing)


@given(st.lists(TITLES, max_size=9))
def test_only_a_beginning_is_cut_off_and_no_name_is_empty(names):
    cut = without_shared_prefix(names)
    for name, rest in zip(names, cut, strict=True):
        assert rest
        assert rest in (name[-len(rest) :], re.sub("[-_]+", " ", name)[-len(rest) :])


@pytest.mark.parametrize("prefix", ["book: ", "book_ch-", "a/b.", "Of mills, "])
def test_a_beginning_that_all_names_have_is_cut_off(prefix):
    names = ["mill", "sails of Delft" if " " in prefix else "sails", "帆船"]
    assert without_shared_prefix([prefix + name for name in names]) == names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], []),
        (["book-mill"], ["book-mill"]),
        (["book-mill"] * 2, ["book-mill"] * 2),
        (["book-mill", "book-sail_cloth", "book-2"], ["mill", "sail cloth", "2"]),
        (["book-", "book-mill"], ["book-", "mill"]),
        (["Delft:", "Delft: sails"], ["Delft:", "sails"]),
        (["Mills of Delft", "Mills of Gouda"], ["Mills of Delft", "Mills of Gouda"]),
        (["Delft: the mill", "Delft: the sails"], ["the mill", "the sails"]),
        (["mill", "sail-cloth"], ["mill", "sail cloth"]),
    ],
)
def test_without_shared_prefix(names, expected):
    assert without_shared_prefix(names) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["", "a", "", "a"], "a"),
        (["a", "b", "cc"], "a, b"),
        (["a", "bbbb", "c"], "a"),
        (["aaaaaaaa", "b"], "aaaaa"),
        (["aaa bbbb", "b"], "aaa"),
    ],
)
def test_listed(names, expected):
    assert listed(names, 5) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("a  b\n c", "a b c"),
        ("abcd efgh", "abcd"),
        ("abcdefgh", "abcde"),
        ("abcde f", "abcde"),
    ],
)
def test_first_words(text, words):
    assert first_words(text, 5) == words


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("## A `mill`\n> * of **Delft**", "A mill\nof Delft"),
        ("| a | b |\n===", "a  b \n"),
        ("well-known at 3 > 2", "well-known at 3 > 2"),
    ],
)
def test_without_markup(text, plain):
    assert without_markup(text) == plain


@given(st.lists(TITLES, max_size=9), st.data())
def test_a_part_is_named_by_phrases_that_it_repeats(texts, data):
    position = st.integers(0, len(texts) - 1) if texts else st.nothing()
    parts = data.draw(st.lists(st.lists(position, unique=True), max_size=4))
    for part, name in zip(parts, topic_names(texts, parts), strict=True):
        assert len(name) <= MAX_TITLE
        said = "\n".join(texts[i] for i in part)
        assert all(said.count(phrase) > 1 for phrase in filter(None, name.split(", ")))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A solar cell. Solar cells! A solar cell.", "solar cell"),
        ("We don't know. We don't know. The Finch-Saunders talk, the Finch-Saunders talk.", ""),
        ("solar solar, solar solar, 12 cranes, 12 cranes", ""),
        ("gr\u00fcne Kr\u00e4ne und gr\u00fcne Kr\u00e4ne", "gr\u00fcne Kr\u00e4ne"),
        ("town clock, " * 2 + "solar cell, " * 3 + "solar panel, " * 2, "solar cell, town clock"),
    ],
)
def test_names_of_texts(text, name):
    other = "The hall of the town is old, and a clock hangs there."
    assert topic_names([text], [[0]]) == [name]
    assert topic_names([text, other], [[0], [1]]) == [name, ""]


def test_a_part_is_named_by_what_the_others_do_not_repeat():
    texts = [
        "a town clock, a town clock, a town clock, a solar cell, a solar cell",
        "a town clock. " * 4,
    ]
    assert topic_names(texts, [[0]]) == ["solar cell"]
