import csv
import json
from io import StringIO

import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from read.conftest import BETWEEN

from hierindex import read_documents, sentence_splitter
from hierindex.errors import SourceError

LONG = 2000  # characters of a value that is divided


@pytest.fixture(scope="session")
def csv_text(read_one):
    return lambda text: read_one("a.csv", text).text


@pytest.fixture(scope="session")
def json_text(read_one):
    return lambda text: read_one("a.json", text).text


TABLE = "name,born,note\nAda,1815,Wrote programs\nAlan,1912,\n"
PEOPLE = ["name: Ada; born: 1815; note: Wrote programs", "name: Alan; born: 1912"]


@pytest.mark.parametrize(
    ("table", "records"),
    [
        (TABLE, PEOPLE),
        (TABLE.replace(",", ";"), PEOPLE),
        (TABLE.replace(",", "\t"), PEOPLE),
        ("a;b\n1,5;2,5\n", ["a: 1,5; b: 2,5"]),
        (",2019,2020\nNorth,1,2\n", ["North; 2019: 1; 2020: 2"]),
        ('a,b\n"1\n2","x, ""y"""\n', ['a: 1\n2\nb: x, "y"']),
        ("a,b\n\n1,2\n,\n 3 ,4\n", ["a: 1; b: 2", "a: 3; b: 4"]),
        ("a,b\n" + "1,2\n" * 10 + "3,4,5\n", [*["a: 1; b: 2"] * 10, "a: 3; b: 4; 5"]),
        ("a,b,c\n1,2\n3,4\n", ["a: 1; b: 2", "a: 3; b: 4"]),
        ("\ufeffa,b\r\n1,2\r\n", ["a: 1; b: 2"]),
        (
            "Report of May,,\n\nname,born,note\nAda,1815,x\n",
            ["Report of May", "name: Ada; born: 1815; note: x"],
        ),
        (
            "Fares;;;\nFrom;To;Adult;Child\nA;B;40,50;20,25\nC;D;30;15\n",
            [
                "Fares",
                "From: A; To: B; Adult: 40,50; Child: 20,25",
                "From: C; To: D; Adult: 30; Child: 15",
            ],
        ),
        (
            "Run,7\nBy,Ada\nOn,Monday\nAt,noon\nDepth,Salt,Heat,Oxygen\n1,2,3,4\n5,6,7,8\n",
            [
                "Run, 7\nBy, Ada\nOn, Monday\nAt, noon",
                "Depth: 1; Salt: 2; Heat: 3; Oxygen: 4",
                "Depth: 5; Salt: 6; Heat: 7; Oxygen: 8",
            ],
        ),
        ("x,x\n1,2\n", ["x: 1; x (2): 2"]),
        ("sep=;\r\na;b\r\n1;2\r\n", ["a: 1; b: 2"]),
        (
            "Name, first;Born;Town, country\nDoe, Jane;1990;Oslo, Norway\nRoe, Al;1991;Rome, It\n",
            [
                "Name, first: Doe, Jane; Born: 1990; Town, country: Oslo, Norway",
                "Name, first: Roe, Al; Born: 1991; Town, country: Rome, It",
            ],
        ),
        (
            'id,tags;more,text\n1,a;b,"One; two, three"\n2,c,"Four|five"\n',
            [
                "id: 1; tags;more: a;b; text: One; two, three",
                "id: 2; tags;more: c; text: Four|five",
            ],
        ),
    ],
    ids="comma semicolon tab decimals years quoted blanks wider shorter bom title fares lines "
    "repeated separator commas semicolons".split(),
)
def test_rows_are_records_with_their_keys(csv_text, table, records):
    assert csv_text(table) == BETWEEN.join(records)


@pytest.mark.parametrize(
    "text",
    [
        "One line, of prose.\n",
        "a,b\n",
        "1,2\n3,4\n",
        "Ada,36\nBob,41\n",
        "a,b\n1\n2\n3\n",
        "yes,no\nyes,no\n",
        f"a,b\n1,{'x' * 200_000}\n",
        "a,b\n" + "1,2\n" * 30_000 + f"1,{'x' * 200_000}\n",
    ],
    ids="prose header numbers headless narrow recurring field late".split(),
)
def test_what_has_no_header_stays_as_it_is(csv_text, text):
    assert csv_text(text) == text


@pytest.mark.parametrize(
    "text",
    ["no json", '{"a": 1', '{"a": 1}\nno json\n', "[" * 100_000, '{"a": ' * 100_000, "{'a': 1}"],
)
def test_what_is_no_json_stays_as_it_is(json_text, text):
    assert json_text(text) == text


@given(
    st.lists(
        st.lists(
            st.text(st.characters(codec="latin-1", exclude_characters="\0\xad")),
            min_size=3,
            max_size=3,
        ),
        max_size=20,
    )
)
def test_all_values_of_a_table_are_read(csv_text, rows):
    out = StringIO()
    csv.writer(out).writerows([["first", "second", "third"], *rows])
    text = csv_text(out.getvalue())
    for row in rows:
        for value in row:
            assert value.replace("\r\n", "\n").replace("\r", "\n").strip() in text


@pytest.mark.spread
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.json", "a.jsonl", "a.ipynb", "a.eml"])
@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"a,b\n1,\0\n", b'{"a": "\0"}'])
def test_binary_files_are_no_text(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match="is not text"):
        read_documents(tmp_path)


@pytest.mark.parametrize(
    ("value", "records"),
    [
        (
            [{"a": 1, "b": {"c": [1, 2.50, "x"]}}, {"a": None, "b": True}],
            ["a: 1; b.c: 1, 2.5, x", "b: true"],
        ),
        (
            {"name": "x", "n": 2, "deps": {"a": ">1", "b": "<2"}},
            ["name: x; n: 2", "deps.a: >1; deps.b: <2"],
        ),
        ({"rows": [{"a": 1}, {"a": 2}], "end": "x"}, ["rows.a: 1; rows.a: 2", "end: x"]),
        (
            {"rows": [{"a": i, "b": "x" * 99} for i in range(40)]},
            [f"rows.a: {i}; rows.b: {'x' * 99}" for i in range(40)],
        ),
        (
            {"deep": {"er": [{"a": "x" * LONG, "b": [{"c": 1}]}]}},
            [f"deep.er.a: {'x' * LONG}", "deep.er.b.c: 1"],
        ),
        ([["x", "y"], ["z"]], ["x, y", "z"]),
        (["x", 3, False], ["x", "3", "false"]),
        ("text", ["text"]),
        ([{"id": 1, "body": "One.\nTwo."}], ["id: 1\nbody: One.\nTwo."]),
    ],
    ids="list object few many deep lists values text lines".split(),
)
def test_objects_are_records_with_their_keys(json_text, value, records):
    assert json_text(json.dumps(value)) == BETWEEN.join(records)
    assert json_text(json.dumps(value, indent=1)) == BETWEEN.join(records)


def test_numbers_are_as_in_the_file(json_text):
    assert json_text('{"a": ' + "9" * 5000 + "}") == "a: " + "9" * 5000
    assert json_text('{"a": 1.50, "b": 1e5, "c": NaN, "d": -0}') == "a: 1.50; b: 1e5; c: NaN; d: -0"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_lines_of_json_are_records(json_text, end):
    lines = ['{"a": 1}', '{"a": "x\u2028y"}', '{"a": 3}']
    assert json_text(end.join(lines)) == BETWEEN.join(["a: 1", "a: x\u2028y", "a: 3"])


@pytest.mark.parametrize("file", ["a.csv", "a.json"])
def test_a_record_is_cut_only_if_it_does_not_fit_a_chunk(tmp_path, file):
    """Even where sentences end within it."""
    rows = [{"id": f"n{i}", "note": "It was so. It was not." * (1 + i % 4)} for i in range(40)]
    out = StringIO()
    if file == "a.csv":
        writer = csv.DictWriter(out, ["id", "note"])
        writer.writeheader()
        writer.writerows(rows)
    else:
        json.dump(rows, out)
    (tmp_path / file).write_text(out.getvalue())
    (document,), _ = read_documents(tmp_path)
    chunks = sentence_splitter(HashingEmbedding(), 100)([document])
    assert len(chunks) > 5
    records = [record for chunk in chunks for record in chunk.text.split(BETWEEN)]
    assert records == document.text.strip().split(BETWEEN)
