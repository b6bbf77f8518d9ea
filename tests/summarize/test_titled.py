import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.summarize.replies import MAX_TITLE, MIN_TEXT, split_title
from hierindex.summarize.summary import with_title

MARKS = "Title TITRE 标题 : \uff1a ** # Summary: “ A .".split()
PIECES = st.sampled_from([*MARKS, "# ", " ", "\n", "\n\n"])
ANSWERS = st.text() | st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join)
LONG = "word " * 60


@pytest.mark.parametrize(
    ("answer", "title", "text"),
    [
        ("Title: The ferry\n\nIt sank.", "The ferry", "It sank."),
        ("Title: The ferry\nIt sank.", "The ferry", "It sank."),
        ("\n title : the ferry.\r\n It sank.\n", "the ferry", "It sank."),
        ("**Title:** The ferry\n\nIt sank.", "The ferry", "It sank."),
        ('**Title**: "The ferry"\n\nIt sank.', "The ferry", "It sank."),
        ("**Title: The ferry**\n\nIt sank.", "The ferry", "It sank."),
        ("# Title: The *ferry*\nIt sank.", "The *ferry", "It sank."),
        ("## The ferry\n\nIt sank.", "The ferry", "It sank."),
        ("**The ferry**\n\nIt sank.", "The ferry", "It sank."),
        ("Titel: Die Fähre\n\nSie sank.", "Die Fähre", "Sie sank."),
        ("Titre : « Le bac »\n\nIl coula.", "Le bac", "Il coula."),
        ("标题\uff1a渡轮\n渡轮沉没了。", "渡轮", "渡轮沉没了。"),
        ("Title: The ferry\n\nSummary: It sank.", "The ferry", "It sank."),
        ("Title: The ferry\n\n**Summary:**\nIt sank.", "The ferry", "It sank."),
        ("Title: The ferry\n\n# It\nsank: so what", "The ferry", "# It\nsank: so what"),
        ("Title: The \ud800 ferry\nIt sank.", "The \ufffd ferry", "It sank."),
        ("Title:\n\nIt sank.", "", "It sank."),
        ("Title: ...\nTitle: The ferry\nIt sank.", "The ferry", "It sank."),
        ("Title:\n" * 2000 + "It sank.", "", "It sank."),
        ("Title: The ferry", "The ferry", ""),
        ("It sank.", "", "It sank."),
        ("Titles matter: it sank.", "", "Titles matter: it sank."),
        ("# The ferry", "", "# The ferry"),
        ("**Note** that it sank.\nTwice.", "", "**Note** that it sank.\nTwice."),
        ("", "", ""),
        (f"Title: {LONG}", "", LONG.strip()),
        (f"Title: {LONG}\n\nIt sank.", "", f"{LONG.strip()}\nIt sank."),
        (f"Title: {LONG[:150]}\n\nIt sank.", LONG[:100].strip(), "It sank."),
    ],
)
def test_a_title_is_taken_off(answer, title, text):
    assert split_title(answer) == (title, text)


@given(ANSWERS)
def test_an_answer_is_split_again_as_it_was(answer):
    """From the cache, which keeps both."""
    title, text = split_title(answer)
    assert split_title(with_title(title, text)) == (title, text)
    assert len(title) <= MAX_TITLE < MIN_TEXT
    assert title == " ".join(title.split())
    assert not title or any(map(str.isalnum, title))


@given(ANSWERS)
def test_nothing_is_made_up(answer):
    title, text = split_title(answer)
    assert text in answer or text.replace("\n", "") in answer.replace("\n", "")
    assert {*title} <= {*answer, " ", "\ufffd"}
