"""HTML files are read for their main content, with headings and anchors."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.errors import SourceError
from hierindex.node import HEADINGS, Heading
from hierindex.read.documents import FILE_NAME, read_documents
from hierindex.read.html_tables import MAX_ROW
from hierindex.read.records import BETWEEN
from hierindex.read.text import MAX_TITLE


@pytest.fixture
def read(tmp_path):
    def read(html, name="a.html"):
        (tmp_path / name).write_bytes(html.encode() if isinstance(html, str) else html)
        (document,), skipped = read_documents(tmp_path / name)
        assert not skipped
        assert document.metadata[FILE_NAME] == name
        return document

    return read


def headings(document):
    found = [Heading(*values) for values in document.metadata.get(HEADINGS, [])]
    assert found == sorted(found, key=lambda heading: heading.start)
    for heading in found:
        assert document.text.startswith(heading.title, heading.start)
        assert heading.start == 0 or document.text[heading.start - 1] == "\n"
    return [(heading.level, heading.title, heading.anchor) for heading in found]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One</p><p>Two</p>", "One\nTwo"),
        ("<p>un<b>believ</b>able</p>", "unbelievable"),
        ("<div>Hello<p>World</p>again</div>", "Hello\nWorld\nagain"),
        ("<h1>Head</h1>text<ul><li>a<li>b</ul>", "Head\ntext\na\nb"),
        ("<li>outer<ul><li>inner</li></ul></li>", "outer\ninner"),
        ("<td>a</td><td>b</td>", "a\nb"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<p>A <i>b</i>\n  c</p>", "A b\nc"),
        ("<script>x</script><style>y</style><p>z</p><template>t</template>", "z"),
        ("<!-- gone --><p>&lt;kept&gt; &amp; &eacute;</p>", "<kept> & é"),
        ("<p>never closed", "never closed"),
        ("no tag at all", "no tag at all"),
        ("index.html", "index.html"),
        ("<?xml version='1.0'?><rss><item>News</item></rss>", "News"),
        ("<pre>\ndef f():\n    if x:\n\n\treturn  1\n</pre>", "def f():\n    if x:\n\n\treturn  1"),
        ("a  b<pre>  <b>c</b>  d</pre>e  f", "a b\n  c  d\ne f"),
        ("<pre>  a<br>  b</pre>", "  a\n  b"),
        ("<pre>  never  closed", "  never  closed"),
        ("</pre><p>a  b", "a b"),
        ("<p>a<script>b</script>c", "ac"),
        ("<script/>a", "a"),
        ("1 < 2 &#xD800; &#" + "9" * 5000 + ";", "1 < 2 \ufffd \ufffd"),
    ],
)
def test_html_is_read_as_the_text_of_its_elements(read, html, text):
    assert read(html, "A.HTM").text == text


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>The  Title\n</title><p>x</p>", "The  Title"),
        ("<title></title><p>x</p>", None),
        ("<title>One</title><p>x<svg><title>Two</title></svg></p>", "One"),
        (f"<title>{'long ' * 100_000}</title><p>x</p>", "long " * (MAX_TITLE // 5)),
        ("<p>x</p>", None),
    ],
)
def test_an_html_title_is_metadata_not_text(read, html, title):
    document = read(html)
    assert document.text == "x"
    assert document.metadata.get("title") == title


def test_html_says_its_encoding(read):
    html = "<meta charset='koi8-r'><p>Привет, мир</p>".encode("koi8-r")
    document = read(html)
    assert document.text == "Привет, мир"
    assert document.metadata["encoding"] == "koi8_r"


@pytest.mark.parametrize("markup", ["<p>x", "<i></i>", "<!--", "<a b='", "&#1", "<a ", "</i>"])
def test_html_is_read_however_often_it_repeats_itself(read, markup):
    """A quadratic parser would take minutes."""
    html = "text" + markup * 30_000
    assert read(html).text.startswith("text")


@pytest.mark.parametrize("tag", ["div", "b", "pre", "ul><li", "table><tr><td"])
def test_html_is_nested_to_some_depth(read, tag):
    assert read(f"<{tag}>" * 600 + "text" + "</div>" * 600).text == "text"
    with pytest.raises(SourceError, match="nested more than 2,048 deep"):
        read(f"<{tag}>" * 30_000 + "text" + "</q>" * 30_000)


def test_html_is_read_however_many_attributes_an_element_has(read):
    html = f"<p {' '.join(f'a{i}' for i in range(30_000))}>text"
    assert read(html).text == "text"


SPHINX = """
<html><head><title>Logging HOWTO</title></head><body>
<div class="related" role="navigation"><h3>Navigation</h3>
<ul><li>3.11.2 Documentation &#187;</ul></div>
<div class="document"><div class="body" role="main">
<section id="logging-howto"><span id="old-label"></span>
<h1>Logging HOWTO<a class="headerlink" href="#logging-howto" title="Link">¶</a></h1>
<div class="contents topic"><p>Contents</p><ul><li><a href="#basic">Basic</a></ul></div>
<p>Logging is a means.</p>
<section id="basic"><h2>Basic <em>Tutorial</em>
 here<a class="headerlink" href="#basic">¶</a></h2>
<div class="highlight"><pre>def f():
    return 1
</pre></div></section></section></div></div>
<div class="sphinxsidebar"><h3>Table of Contents</h3><p>Logging HOWTO</p></div>
<footer>Copyright</footer></body></html>
"""


def test_a_page_of_sphinx(read):
    document = read(SPHINX)
    assert document.text == (
        "Logging HOWTO\nLogging is a means.\nBasic Tutorial here\ndef f():\n    return 1"
    )
    assert document.metadata["title"] == "Logging HOWTO"
    assert headings(document) == [
        (1, "Logging HOWTO", "logging-howto"),
        (2, "Basic Tutorial here", "basic"),
    ]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<nav>Menu</nav><p>x", "x"),
        ("<div role=navigation>Menu</div><p>x", "x"),
        ("<header>Site</header><p>x", "x"),
        ("<article><header>Head</header>x</article>", "Head\nx"),
        ("<section><header>Head</header>x</section>", "Head\nx"),
        ("<aside>Other</aside><p>x", "x"),
        ("<main><aside>Note</aside>x</main>", "Note\nx"),
        ("<main>x</main><p>y", "x"),
        ("<div role=main>x</div><p>y", "x"),
        ("<article>x</article><p>y", "x"),
        (f"<main>x</main><p>{'y' * 99}", "x\n" + "y" * 99),
        ("<main></main><p>y", "y"),
        ("<nav>Only a menu</nav>", "Only a menu"),
        ("<div class='sect toc'>1</div><p>x", "x"),
        ("<body class=toc><p>x", "x"),
        ("<section id=toc>About tables</section>", "About tables"),
        ("<div class=section id=footer>About feet</div>", "About feet"),
        ("<div id=footer>Foot</div>x", "x"),
        ("f(x)<span class='viewcode-link'>[source]</span>", "f(x)"),
        ("<p>See <a href='#a'>¶</a>this <a href='#b'>#</a></p>", "See this"),
        ("<p>See <a href='#a'>part 2</a>.<p><a href='#b'>there</a>", "See part 2."),
        ("<ul><li><a href='#a'>One</a><li>2. <a href='#b'>Two</a></ul>x", "2. Two\nx"),
        ("<dt id=p><a href='#p'>--prefix</a><dd>x", "--prefix\nx"),
        ("<p>x<table><tr><td><a accesskey=p href=a>Prev</a><td>Up<td>Next</table>", "x"),
        ("<p><a rel=next href=b>Next page</a><p>x", "x"),
        ("<h1>fn it<button id=copy-path>Copy path</button></h1><p>B.</p>", "fn it\nB."),  # rustdoc
        ("<DIV CLASS=TOC><DL><DT><B>Contents</B><DT><A HREF=#b>B</A></DL></DIV><p>B.</p>", "B."),
        ("<DIV CLASS=NAVHEADER><TABLE><TR><TD>Prev<TD>Next</TABLE></DIV><p>B.</p>", "B."),
        ("<button>Copy</button>x<noscript>No script</noscript>", "x"),
        (
            "<div class=fragment><div class=line><span class=lineno> 1</span>  if x:</div></div>",
            "  if x:",
        ),
    ],
)
def test_what_is_around_the_content_is_left_out(read, html, text):
    assert read(html).text == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<tr><th>Name<th>Age<tr><td>Ada<td>36", "Name | Age\nAda | 36"),
        ("<tr><td>a<td><td>c<td>", "a |  | c"),
        ("<tr><td><p>One<p>two<td>x", "One two | x"),
        ("<tr><td>only one", "only one"),
        ("<tr><td>1<td><pre>  x\n  y</pre>", "1\n  x\n  y"),
        ("<tr><td>1<td><h2>Two</h2>", "1\nTwo"),
        ("<tr><td>1<td><table><tr><td>2<td>3</table>", "1\n2 | 3"),
        (f"<tr><td>1<td>{'x' * MAX_ROW}", "1\n" + "x" * MAX_ROW),
        ("<tr><td><a href='#a'>+</a><td>Adds", "+ | Adds"),
    ],
)
def test_a_table_row_is_a_line(read, html, text):
    assert read(f"<table>{html}</table>").text == text


LONG = [f"It is said of {name} that it is so, and that it was so before." for name in "abcd" * 6]
HEAD = "<tr><th>Name<th>Note"
ROWS = "".join(f"<tr><td>{i}<td>{note}" for i, note in enumerate(LONG))


def test_rows_of_a_long_table_carry_their_header(read):
    html = f"<p>Before.</p><table>{HEAD}{ROWS}</table><p>After.</p><h2>End</h2>"
    document = read(html)
    records = [f"Name: {i}; Note: {note}" for i, note in enumerate(LONG)]
    assert document.text == BETWEEN.join(["Before.", *records, "After.\nEnd"])
    assert headings(document) == [(2, "End", "")]


@pytest.mark.parametrize(
    "table",
    [
        HEAD + "<tr><td>1<td>x" * 9,
        "<tr><td>Name<td>Note" + ROWS,
        HEAD + "<tr><td>1<td><pre>x</pre>" + ROWS,
        "<tr><th>N<th>" + "long " * 99 + "<tr><td>1<td>x" * 500,
    ],
    ids="short headless code repetitive".split(),
)
def test_other_tables_keep_their_lines(read, table):
    assert BETWEEN not in read(f"<table>{table}</table>").text


RECORDS = [f"Name: {i}; Note: {note}" for i, note in enumerate(LONG)]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (HEAD + ROWS + "<tr><td>only one", [*RECORDS, "only one"]),
        (f"<caption>Notes</caption>{HEAD}{ROWS}<tr><td><td>", ["Notes", *RECORDS]),
        (f"<tr><th colspan=2>Of all{HEAD}{ROWS}", ["Of all", *RECORDS]),
        (f"<thead><tr><td>Name<td>Note</thead>{ROWS}", RECORDS),
        (f"{HEAD}<tr><td>x<td colspan=9>y{ROWS}", ["Name: x; Note: y" + "; y" * 8, *RECORDS]),
        ("<tr><th rowspan=2>Name<th>Of<tr><th>it" + ROWS,
         [r.replace("Note:", "Of it:") for r in RECORDS]),
        (f"{HEAD}{ROWS}<tr><th>No<th>Why{ROWS}",
         [*RECORDS, *(r.replace("Name:", "No:").replace("Note:", "Why:") for r in RECORDS)]),
    ],
    ids="narrow blank title thead wide two-rows two-heads".split(),
)  # fmt: skip
def test_long_tables_with_other_rows_carry_their_header(read, table, text):
    assert read(f"<table>{table}</table>").text.strip("\n").split(BETWEEN) == text


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<h1 id=a>One</h1>x<h3>Two</h3>", [(1, "One", "a"), (3, "Two", "a")]),
        ("<h2>A<br>B<div>C</div></h2>", [(2, "A B C", "")]),
        ("<a name=a></a><h2>A</h2>", [(2, "A", "a")]),
        ("<h2>A <a id=a href='#a'>#</a></h2>", [(2, "A", "a")]),
        ("<h2 id=a>A<a id=b></a></h2>", [(2, "A", "a")]),
        ("<p id=a>x<p>y<h2>A</h2>", [(2, "A", "")]),
        ("<h1></h1>x", []),
        ("<h1>never closed <p>x<h2>B", [(1, "never closed", ""), (2, "B", "")]),
        ("<nav><h2>Menu</h2></nav><h1>A</h1>", [(1, "A", "")]),
        (f"<h1>{'long ' * 1000}</h1>", [(1, ("long " * 1000)[:MAX_TITLE], "")]),
    ],
)
def test_headings_have_levels_and_anchors(read, html, found):
    assert headings(read(html)) == found


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>A.</p><p><a rel=next href=x><img></a></p><p>B.</p>", "A.\nB."),
        ("<a rel=home href=/><img></a><h1>Manual</h1><p>B.</p>", "Manual\nB."),
        ("<h3><button>How?</button></h3><p>So.</p><button>Send</button>", "How?\nSo."),
        ("<h2><span id=footer>footer</span></h2><p>B.</p>", "footer\nB."),
        ("<dl><dt id=nav>nav</dt><dd>B.</dd></dl><div id=footer>Late.</div>", "nav\nB."),
    ],
)
def test_what_only_looks_like_navigation_is_read(read, html, text):
    assert read(html).text == text


TAGS = (
    "<main> </main> <nav> <h1> </h1> <table> </table> <th> <tr> <td> <pre> </pre> </a> <br>".split()
)
PARTS = [*TAGS, "<a href='#a'>", "<p id=a>", "text ", "\n"]


@given(st.lists(st.sampled_from(PARTS), max_size=30))
def test_whatever_is_written_is_read(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("html") / "a.html"
    path.write_text("x" + "".join(parts))
    (document,), _ = read_documents(path)
    headings(document)
    assert set(re.findall(r"\w+", document.text)) <= {"x", "text", "xtext"}


@pytest.mark.parametrize("part", ["<h1>x</h1>", "<tr><td>x", "<a href='#a'>x", "<p id=a>"])
def test_large_pages_are_read(read, part):
    assert read("x" + part * 20_000).text.startswith("x")


def test_a_megabyte_of_one_element(read):
    assert len(read("<p>" + "some words\n" * 90_000).text) == 90_000 * 11 - 1
