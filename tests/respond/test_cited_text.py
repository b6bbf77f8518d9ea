"""Citations in a text are found, and what is shown of a stream stays."""

import pytest

from hierindex.respond.cited_text import Cited, cited_parts, settled, written

KNOWN = {1, 2, 3, 4, 12, 1990}
TEXTS = {  # what is read of each: numbers in the text where there is a citation
    "One [1].": ("One[1].", 0),
    "One[1][2] and [3].": ("One[1][2] and[3].", 0),
    "One [1, 2; 12].": ("One[1,2,12].", 0),
    "One [1-3], [ 2 \u2013 3 ].": ("One[1,2,3],[2,3].", 0),
    "One [2-2, 2].": ("One[2].", 0),
    "One [passage 3], [Source 4], [^1], [#2].": ("One[3],[4],[1],[2].", 0),
    "One [1, 99].": ("One[1].", 1),
    "One (3) [4].": ("One (3)[4].", 0),
    "One (12) (2).": ("One (12)[2].", 0),
    "One [99], [5-9], [3-1].": ("One,,.", 3),
    "One [0], [n], [1.5], [1?], [-1], [3a], [1,], [source].": (None, 0),
    "In May [1990], not [1989].": ("In May[1990], not [1989].", 0),
    "He said [sic] so [...] and [see below], [] [ ] [10 %] [3 kg].": (None, 0),
    "Cut off [1": (None, 0),
    "Cut off [1, \nand so on [1].": ("Cut off [1, \nand so on[1].", 0),
    "Use `a[1]` and ``b[`2`]`` [2].": ("Use `a[1]` and ``b[`2`]``[2].", 0),
    "```\na[1] = b[99]\n``` [1]": ("```\na[1] = b[99]\n```[1]", 0),
    "A ` alone [1].\nNext [2].": ("A ` alone [1].\nNext[2].", 0),
    "In 1815[1], at Ligny[passage 2], at dawn[12][99].": (
        "In 1815[1], at Ligny[2], at dawn[12].",
        1,
    ),
    "So a[1] = x[2, 3] + y[99], not b [1].": ("So a[1] = x[2, 3] + y[99], not b[1].", 0),
    "Of args[-1], list[0], row[n] and x[1:].": (None, 0),
    "\u6cf5\u574f\u4e86[1].": ("\u6cf5\u574f\u4e86[1].", 0),
    "Nested [[1]].": ("Nested [[1]].", 0),
    "One \u30101\u3011. Two\u30102\u2020source\u3011, \u3010sic\u3011.": (
        "One[1]. Two[2], \u3010sic\u3011.",
        0,
    ),
    "One [Passage 1, Passage 2], [1 and 3], [sources 1 & 2].": ("One[1,2],[1,3],[1,2].", 0),
    "One (1). Two. (2)": ("One[1]. Two.[2]", 0),
    "One (passage 1), (Sources 2, 3), (passage 99), (see passage 1).": (
        "One[1],[2,3], (passage 99), (see passage 1).",
        0,
    ),
    "One (99). In May (1990). Of f(1).": (None, 0),
    "(1) One.\n(2) Two. (3) Three (1) of (2) all.": (None, 0),
    "As in equation (1). See step (2). Of (1), (2) or (3).": (None, 0),
    "One\u30101\u3011\u3002": ("One[1]\u3002", 0),
    "": ("", 0),
}


def labelled(parts):
    return "".join(
        f"[{','.join(map(str, part.numbers))}]" if isinstance(part, Cited) else part
        for part in parts
    )


@pytest.mark.parametrize(("text", "expected"), TEXTS.items(), ids=TEXTS)
def test_citations_are_found_and_those_of_no_passage_removed(text, expected):
    parts, n_removed = cited_parts(text, KNOWN)
    shown, n = expected
    assert (labelled(parts), n_removed) == (text if shown is None else shown, n)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_shown_of_a_stream_stays(text):
    whole = written(cited_parts(text, KNOWN)[0])
    for n in range(len(text)):
        assert whole.startswith(written(cited_parts(settled(text[:n]), KNOWN, is_whole=False)[0]))
