"""Text files in any encoding."""

import codecs
from io import BytesIO, TextIOWrapper

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.node import LEFT_OUT

GERMAN = "Der Schlüssel für die Tür hängt an der Wand. Über das Café läuft ein müder Kater.\n"


QUOTED = (
    "\u201cThe café\u2019s elder owner\u201d, he said \u2026 and that once again, "
    "\u201cis late for his own déjeuner.\u201d\n"
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("plain", "plain"),
        (GERMAN, GERMAN),
        (codecs.BOM_UTF8 + GERMAN.encode(), GERMAN),
        (GERMAN.encode("utf-16"), GERMAN),
        (codecs.BOM_UTF16_BE + GERMAN.encode("utf-16-be"), GERMAN),
        (GERMAN.encode("latin-1"), GERMAN),
        (QUOTED.encode("cp1252"), QUOTED),
        ("café\n".encode("latin-1"), "café\n"),
        (GERMAN.replace("\n", "\r\n").encode("latin-1"), GERMAN),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("雪\u2028\x85\x0c\U0001f600", "雪\u2028\x85\x0c\U0001f600"),
        ("no end of line \n\n", "no end of line \n\n"),
        ("x" * 1_000_000, "x" * 1_000_000),
    ],
    ids="ascii utf-8 bom utf-16 utf-16-be latin-1 cp1252 short-latin-1 crlf line-ends odd blanks "
    "longest".split(),
)
def test_text_is_what_the_file_says(read_one, data, text):
    assert read_one("a.txt", data).text == text


WESTERN = [
    "The rent is £1,250 a month; of that, £90 is for water.\n",
    "Add ½ cup of milk, ¾ lb of flour and 2×3 eggs, ±10 %.\n",
    "Das Gerät wiegt 5 kg und ist für Öfen über 2 m² gedacht.\n",
    "Les élèves n’ont pas été prévenus : où est la clé ?\n",
    "São três lições; a mãe não está em casa.\n",
    "Færgen går på søndag fra øen.\n",
    "Señor Muñoz\n",
    "Não foi possível salvar; a configuração padrão já está em uso, e o botão não some.\n",
    "Il menù è così: caffè, tè, e Å come unità.\n",
    "Það er ekki vitað hvenær brúin verður opnuð á ný.\n",
    "A final é em caf\u00e9",
    "5 °C\n",
    "don’t\n",
]


@pytest.mark.parametrize("text", WESTERN)
def test_western_text_is_windows_1252(read_one, text):
    document = read_one("a.txt", text.encode("cp1252"))
    assert document.text == text
    assert document.metadata["encoding"] == "cp1252"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1250", "Źródła są zamknięte, a żółte łódki płyną później.\n"),
        ("cp1250", "Az őrök tűzoltók voltak, és később jöttek.\n"),
        ("iso8859-2", "Źródła są zamknięte, a żółte łódki płyną później.\n"),
        ("cp1250", "Začetek šole je jutri, žal, rekla je učiteljica.\n"),
        ("cp1250", "Děti šly domů a kůň stál u řeky, že.\n"),
        (
            "cp1250",
            "Podul este închis, iar oraşul aşteaptă staţia şi maşinile după sărbători.\n",
        ),
        ("cp1251", "Река замёрзла в ноябре, и лодки стоят на берегу.\n"),
        ("koi8-r", "Река замёрзла в ноябре, и лодки стоят на берегу.\n"),
        ("cp1253", "Το καράβι φεύγει νωρίς το πρωί από το λιμάνι.\n"),
        ("cp1254", "Çocuğun ağacı büyüdü ve gölgesi şimdi geniş.\n"),
        ("cp1254", "Şirket ağı"),
        ("cp1257", "Įmonė žiūri į ateitį"),
        ("cp932", "川は十一月に凍り、舟は岸にあります。\n"),
        ("cp932", "①番の舟は髙橋さんの舟です。\n"),
        ("gb18030", "河在十一月结冰，船停在岸边。\n"),
        ("iso2022_jp", "川は凍り、舟は岸にある。\n"),
        ("cp850", "Die Bäume für die größere Allee blühen spät.\n"),
    ],
)
def test_other_scripts_are_detected(read_one, encoding, text):
    assert read_one("a.txt", text.encode(encoding)).text == text


NOTES = "Die Fähre fährt – wie üblich – um acht über den Fluß, 30 € die Fahrt.\n" * 3


@pytest.mark.parametrize("at", [0, 1, len(NOTES.encode()) // 2, len(NOTES.encode())])
@pytest.mark.parametrize("bad", [b"\xff", b"\xe9", b"\xe2\x80"])
def test_a_bad_byte_does_not_change_the_encoding(read_one, at, bad):
    data = NOTES.encode()
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    document = read_one("a.txt", data[:at] + bad + data[at:])
    assert document.text.replace("\ufffd", "") == NOTES
    assert document.metadata["encoding"] == "utf_8"
    (said,) = document.metadata["left_out"]
    assert said == "1 byte sequence that is not UTF-8"


def test_a_replacement_character_in_a_file_is_no_bad_byte(read_one):
    assert LEFT_OUT not in read_one("a.txt", "caf\ufffd").metadata
    said = read_one("a.txt", "café \ufffd – ".encode() * 9 + b"\xff \xff\xff").metadata[LEFT_OUT]
    assert said == ["3 byte sequences that are not UTF-8"]


@pytest.mark.parametrize("text", [NOTES, "Straße der Würde", "Стоянка", "橋は三月"])
def test_a_text_that_was_cut_off_within_a_character_is_utf_8(read_one, text):
    data = (text + "é").encode()[:-1]
    assert read_one("a.txt", data).text == text + "\ufffd"


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [
        ("iso-8859-1", "cp1252", "“Ça – 5 €”"),
        ("us-ascii", "cp1252", "It’s"),
        ("ISO-8859-9", "cp1254", "Işık – ağaç €"),
        ("gb2312", "gb18030", "朱镕基"),
        ("shift_jis", "cp932", "①㈱"),
        ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("x-sjis", "cp932", "川"),
        ("windows-1250", "cp1250", "£ ł"),
        ("iso-2022-jp", "iso2022_jp", "川は"),
        ("no-such", "cp1252", "déjà"),
        ("punycode", "cp1252", "déjà"),
        ("utf-8", "cp1252", "déjà vu, £5"),
        ("iso-8859-1", "utf-8", "déjà"),
        ("utf-16", "utf-8", "déjà"),
    ],
)
def test_declared_encodings_are_taken_as_browsers_do(read_one, label, encoding, text):
    data = f"<meta charset={label}><p>{text}".encode(encoding, "replace")
    assert read_one("a.html", data).text == data.decode(encoding).partition("<p>")[2]


@given(st.lists(st.text(max_size=20), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_text_equals_what_open_reads(read_one, lines, end):
    data = f"x{end.join(lines)}".replace("\0", "").encode()
    assert read_one("a.txt", data).text == TextIOWrapper(BytesIO(data), "utf-8").read()
