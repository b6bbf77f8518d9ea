import pytest


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:04,000\n<i>The boat</i>\nis late.\n\n"
            "2\n00:01:05,500 --> 00:01:07,000\n{\\an8}No.\n\n"
            "3\n00:01:08,000 --> 00:01:09,000\nNo.\n",
            "00:00:01 The boat is late.\n00:01:05 No.\n00:01:08 No.",
        ),
        (
            "a.vtt",
            "WEBVTT - A talk\n\nSTYLE\n::cue { color: red }\n\nNOTE by hand\n\n"
            "intro\n00:01.000 --> 00:04.000 line:0\n<v.loud Ada>Tom &amp; <b>I</b> say 2 < 3\n\n"
            "01:00:04.500 --> 01:00:07.000\n<v Bo Li>Yes.</v>\n",
            "00:01 Ada: Tom & I say 2 < 3\n01:00:04 Bo Li: Yes.",
        ),
        (
            "a.vtt",
            "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n \nso<00:00:01.500><c> we</c>\n\n"
            "00:00:02.000 --> 00:00:03.000\nso we\nbegin<00:00:02.500><c> now</c>\n\n"
            "00:00:03.000 --> 00:00:03.100\nbegin now\n",
            "00:00:01 so we\n00:00:02 begin now",
        ),
        ("a.srt", "\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\nÇa va?\r\n", "00:00:01 Ça va?"),
        ("a.srt", "No cue at all.\n", "No cue at all.\n"),
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,000\n\nThe boat\n \nNOTE it\n\nis late.\n\n\n"
            "2\n00:00:03,000 --> 00:00:04,000\n12\n",
            "00:00:01 The boat NOTE it is late.\n00:00:03 12",
        ),
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,000\nOne.\n2\n00:00:03,000 --> 00:00:04,000\n\nTwo.\n"
            "00:00:05,000 --> 00:00:06,000\nAt 00:00:01,000 --> it.\n\nIn\n"
            "00:00:07,000 --> 00:00:08,000\nall.",
            "00:00:01 One.\n00:00:03 Two.\n00:00:05 At 00:00:01,000 --> it. In\n00:00:07 all.",
        ),
        (
            "a.vtt",
            "WEBVTT\n\n1\n00:01.000 --> 00:02.000\nOne.\n2\n00:03.000 --> 00:04.000\nTwo,\n\n"
            "three.\n\n00:05.000 --> 00:06.000\nFour.\n\nlast\n00:07.000 --> 00:08.000\nFive.\n",
            "00:01 One.\n00:03 Two, three.\n00:05 Four.\n00:07 Five.",
        ),
    ],
    ids="srt vtt growing crlf none blank near web".split(),
)
def test_what_is_said_has_its_time(read_one, name, data, text):
    assert read_one(name, data).text == text


def test_notes_are_told(read_one):
    cue = "00:0{}.000 --> 00:09.000\nOne\n\n"
    note = "NOTE by\nhand\n00:01.000 --> 00:02.000\n\n"
    document = read_one("a.vtt", f"WEBVTT\n\n{note}{cue.format(1)}NOTE\n\n{cue.format(3)}{note}")
    assert document.text == "00:01 One\n00:03 One"
    assert document.metadata["left_out"] == ["3 notes"]
