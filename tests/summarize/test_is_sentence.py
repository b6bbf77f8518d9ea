"""What can be quoted as an answer: sentences of any language, and nothing else."""

import pytest

from hierindex.summarize.whole_sentences import is_sentence

SENTENCES = (
    "The pump failed.",
    "The pump failed at 10.30, as `valve.close()` was never called.",
    "Why did the pump fail?",
    "“It failed,” he said, “because of us.”",
    "He left the bay.[2]",
    "(It had been repaired.)",
    "He said that it had been repaired (Vol. V, p. 561).",
    "(b) The keeper shall write a log.",
    "3. Open the valve.",
    "Repairs cost 1,250,000 euros.",
    "a) The pump must be stopped first.",
    "- make the log shorter.",
    "Fig. 3: The pump is on the left.",
    "Q. Did you see the keeper that night?",
    "Speculation.--The keeper was asleep.",
    "Note: The pump needs version 3.11.2.",
    "*name* is the name of the pump.",
    "`pump` closes the valve.",
    "--all, -a lists the closed valves too.",
    ".NET is needed for it.",
    "open(file, mode='r') opens a file.",
    "pump-control is a small program.",
    "iptables is old.",
    "See the [manual](https://a.b/c) for the pump's hours.",
    "The pump\nfailed in the\nnight.",
    "Either a) the pump or b) the valve failed.",
    "Die Pumpe fiel um 3 Uhr aus.",
    "»Wo ist der Wärter?«, fragte sie.",
    "Über die Ursache ist nichts bekannt (siehe oben).",
    "水泵坏了。",
    "如果设置了 $PUMP,则使用 /etc/pump.conf 中的值。",
    "pump 是一个小程序。",
    "-a, --all\n    schließt alle Ventile der Pumpe.",
    "他說\uff1a「走吧。」",
    "ポンプが故障した。",
    "La pompe est en panne !",
    "¿Por qué falló la bomba?",
    "Вчера ночью был дождь.",
    "Πού πας τώρα;",
    "पंप खराब हो गया।",
    "تعطلت المضخة أمس.",
    "ปั๊มเสียเมื่อคืนนี้",
)

OTHERS = (
    "",
    "...",
    "Introduction",
    "# Is the pump closed?",
    "The pump\n========",
    "1.2 Scope 14",
    "1.2 Scope of this manual",
    "Introduction ..... 3",
    "The valves of the pump .......",
    "The valves of the pump . . . . . .",
    "REPAIRS OF THE PUMP.",
    "See also:",
    "The following valves are open:",
    "Figure 3.",
    "Table 2: Pumps.",
    "Home | Valves | Pumps of all kinds.",
    "[Home](/) [The pumps](/p) [About us](/a).",
    "https://a.b/the/pump.html.",
    "| pump | It failed. |",
    "pump\tIt failed in the night.",
    "Smith, Harbour Office, Port Arthur.",
    "VII, p. 474.",
    "Keeper, Ada B. Head of the harbour Vol. V, p. 561.",
    "2, a completely different location.",
    "Office of the Harbour in Port Arthur.",
    "Ada and Mrs.",
    "failed in the night.",
    "Office and the valve) were closed.",
    "The valve (and the pump",
    "The pump, which was closed",
    ">>> pump.close()",
    "$ pump close the valve.",
    "x = valve.open()\nIt is open.",
    "def close(valve):\n    It is closed.",
    "for (;;) {\n  the pump runs.",
    "import valve\nThe valve is open.",
    "close(valve, force=True)\nIt is closed now.",
    ".. note:: the valve",
    "水泵",
    "第一章 水泵的使用",
    "Die Pumpe und ihre Ventile",
)


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text):
    assert is_sentence(text)
    assert is_sentence(f" {text}\n")


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_sentence(text):
    assert not is_sentence(text)


@pytest.mark.parametrize("unit", ["(", "a.", "- ", "-", "a(", "1.", " .", "=", "Fig.1.", "a b c "])
def test_a_long_text_is_answered_at_once(unit):
    assert not is_sentence(unit * (50_000 // len(unit)) + "\n")
