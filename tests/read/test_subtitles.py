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
            "00:00:02 so we begin now",
        ),
        ("a.srt", "\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\nÇa va?\r\n", "00:00:01 Ça va?"),
        ("a.srt", "No cue at all.\n", "No cue at all.\n"),
    ],
    ids="srt vtt growing crlf none".split(),
)
def test_what_is_said_has_its_time(read_one, name, data, text):
    assert read_one(name, data).text == text
