"""HTML files are read for their content, with headings and anchors."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from read.conftest import BETWEEN, placed_headings

from hierindex import read_documents
from hierindex.errors import SourceError
from hierindex.node import LEFT_OUT


@pytest.fixture
def read(read_one):
    return lambda html, name="a.html": read_one(name, html)


def headings(document):
    return [(heading.level, heading.title, heading.anchor) for heading in placed_headings(document)]


@pytest.mark.parametrize("tag", ["div", "b", "pre", "ul><li", "table><tr><td"])
def test_html_is_nested_to_some_depth(read, tag):
    assert read(f"<{tag}>" * 600 + "text" + "</div>" * 600).text == "text"
    with pytest.raises(SourceError, match="nested too deep, or is damaged"):
        read(f"<{tag}>" * 30_000 + "text" + "</q>" * 30_000)


def test_formulas_are_nested_to_any_depth(read):
    html = "<div>" * 190 + "<math>" + "<mrow>" * 400 + "<mi>x</mi>" + "</mrow>" * 400
    assert read(f"{html}</math>").text == "x"


def test_tags_are_read_without_their_prefixes(read):
    html = (
        "<x:title>Log</x:title><x:h2><x:a name=tea>Tea</x:a></x:h2><p>x<x:sup>2</x:sup>"
        "<x:ol><x:li>one</x:ol><x:>y<x:1a>z"
    )
    document = read(html)
    assert document.text == "Tea\nx^2\n1. one\nyz"
    assert document.metadata["title"] == "Log"
    assert headings(document) == [(2, "Tea", "tea")]


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
        ("<h1>A</h1><div class=note><h3>Note</h3>Oil it.</div>", [(1, "A", "")]),
        ("<h1>never closed <p>x<h2>B", [(1, "never closed", ""), (2, "B", "")]),
        ("<nav><h2>Menu</h2></nav><h1>A</h1>", [(1, "A", "")]),
        (f"<h1>{'long ' * 1000}</h1>", [(1, ("long " * 1000)[:1000], "")]),
    ],
)
def test_headings_have_levels_and_anchors(read, html, found):
    assert headings(read(html)) == found


def about(document):
    return {key: document.metadata.get(key) for key in ("title", "author", "date")}


BODY = "<p>The pier at Lier was built by the town in May.</p>"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (f"<div class=note>{BODY}</div>" + "<article>So say I, too.</article>" * 9, BODY[3:-4]),
        (f"{BODY}<aside class=warning>Do not swim here.</aside>", "Do not swim here."),
        (f"<main>{BODY}</main><aside><p>Beware:</p>It is deep.</aside>", "It is deep."),
        (f"<main>{BODY * 3}</main><aside class='box warning'>Thin ice</aside>", "Thin ice"),
        (f"<article>{BODY * 3}</article><div role=note>Thin ice</div>", "Thin ice"),
        (f"<main>{BODY * 3}</main><footer><p><sup>1</sup> In May</p></footer>", "[1] In May"),
        (f"<main>{BODY * 3}</main><footer><p>By phone</p><p>It is deep.</p></footer>",
         "It is deep."),
        (f"<main>{BODY}</main><aside><b>Danger!</b></aside>", "Danger!"),
        (f"<header><h1>Pier closed</h1>By Ada</header>{BODY}", "Pier closed\nBy Ada"),
        (f"<header><h1>Pier closed</h1></header><main>{BODY}</main>", "Pier closed"),
        (f"{BODY}<footer><ol><li>Not in winter.</ol></footer>", "1. Not in winter."),
        (f"<main>{BODY}</main><div id=footer><p>* Not in winter.</p></div>", "* Not in winter."),
        (f"<main>{BODY}</main><footer><a href=http://x.y>By Ada</a> <a href='#r'>↩</a></footer>",
         "By Ada"),
        ("<article><h1>A</h1>B.<footer>1. Not in winter</footer></article>", "1. Not in winter"),
        (f"<nav><h1>Never closed</h1>{BODY}{BODY}{BODY}", BODY[3:-4]),
        (f"<p>a</p><div style='display: none'>{BODY}{BODY}</div>", BODY[3:-4]),
        (f"<noscript>{BODY}</noscript>", BODY[3:-4]),
        (f"{BODY}<section id=cookie-law>On cookies</section>", "On cookies"),
    ],
)  # fmt: skip
def test_text_is_read_wherever_it_stands(read, html, text):
    assert f"\n{text}\n" in f"\n{read(html).text}\n"


@pytest.mark.parametrize(
    ("html", "left_out"),
    [
        ("<nav>To all pages</nav>", "3 words in menus, headers and footers"),
        ("<header><a href=/>The coast</a></header>", "2 words in menus, headers and footers"),
        ("<footer><p>© 2024 by us</p></footer>", "4 words in menus, headers and footers"),
        ("<footer>© 2024 by us<br>This page is licensed under the BSD License.<br>"
         "See <a href=/l>History and License</a> for more information.<br>We are a charity.<br>"
         "<a href=/m>Please donate.</a><br><a href=/b>Found a bug</a>?</footer>",
         "28 words in menus, headers and footers"),
        ("<div id=banner><a href=/get>Download the ebook</a></div>"
         "<ul class=docnav><li>The handbook</ul>", "5 words in menus, headers and footers"),
        ("<div class='box cookie-banner'>We use cookies</div>",
         "3 words in menus, headers and footers"),
        ("<div id=onetrust-consent-sdk><p>We use cookies</p><p>" + "and so on " * 50 + "</div>",
         "153 words in menus, headers and footers"),
        ("<button>Log in</button>", "2 words in menus, headers and footers"),
        ("<p hidden>Not now</p>", "2 words not displayed"),
        ("<p>A<span style='display:none'> b</span></p>", "1 word not displayed"),
        ("<p>A<s> 40</s></p>", "1 word struck out"),
        ("<p>A<select><option>red rope<option>none</select></p>", "3 words not displayed"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_said(read, html, left_out):
    document = read(html + BODY)
    assert document.text.removeprefix("A\n") == BODY[3:-4]
    assert document.metadata[LEFT_OUT] == [left_out]


TEX = "<annotation encoding='application/x-tex'>x^{2}</annotation>"
POWER = "<msup><mi>x</mi>\n<mn>2</mn></msup>"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (f"<math>{POWER}</math>", "x^2"),
        (f"<math><semantics>{POWER}{TEX}</semantics></math>", "x^{2}"),
        (f"<math alttext='x²'><semantics>{POWER}{TEX}</semantics></math>", "x²"),
        ("<math><mi>x</mi><annotation-xml><ci>x</ci></annotation-xml></math>", "x"),
        ("<math><mi>x</mi><annotation encoding=StarMath>x</annotation></math>", "x"),
        ("<m:math><m:mfrac><m:mrow><m:mi>a</m:mi><m:mo>+</m:mo><m:mn>1</m:mn></m:mrow>"
         "<m:mrow><m:mn>2</m:mn></m:mrow></m:mfrac></m:math>", "(a+1)/2"),
        ("<math><msubsup><mi>a</mi><mi>i</mi><mn>2</mn></msubsup></math>", "a_i^2"),
        ("<math><msqrt><mn>2</mn></msqrt></math>", "√(2)"),
        (f"<span>{'<math><mi>x</mi></math>'}</span><span aria-hidden=true>x</span>", "x"),
    ],
)  # fmt: skip
def test_a_formula_is_read_once(read, html, text):
    assert read(f"<p>So {html} holds.</p>").text == f"So {text} holds."


def test_a_heading_in_a_list_has_its_number(read):
    document = read("<ol reversed><li><h2 id=a>One</h2>x<li><h2>Two</h2>y</ol>")
    assert headings(document) == [(2, "2. One", "a"), (2, "1. Two", "a")]


PAGES = {  # HTML and the text that is read of it, by what it is about, and what is around it
    ("elements", "{}"): [
        ("<p>One</p><p>Two</p>", "One\nTwo"),
        ("<p>un<b>believ</b>able</p>", "unbelievable"),
        ("<div>Hello<p>World</p>again</div>", "Hello\nWorld\nagain"),
        ("<h1>Head</h1>text<ul><li>a<li>b</ul>", "Head\ntext\na\nb"),
        ("<li>outer<ul><li>inner</li></ul></li>", "outer\ninner"),
        ("<td>a</td><td>b</td>", "a\nb"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<p>A <i>b</i>\n  c</p>", "A b c"),
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
    ("around the content", "{}"): [
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
        ("<dt id=p><a href='#p'>--prefix</a><dd>x", "--prefix: x"),
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
    ("looks like navigation", "{}"): [
        ("<p>A.</p><p><a rel=next href=x><img></a></p><p>B.</p>", "A.\nB."),
        ("<a rel=home href=/><img></a><h1>Manual</h1><p>B.</p>", "Manual\nB."),
        ("<h3><button>How?</button></h3><p>So.</p><button>Send</button>", "How?\nSo."),
        ("<h2><span id=footer>footer</span></h2><p>B.</p>", "footer\nB."),
        ("<dl><dt id=nav>nav</dt><dd>B.</dd></dl><div id=footer>Late.</div>", "nav: B."),
    ],
    ("unfolds", "{}"): [
        ("<button>Is it deep?</button><p>Yes.", "Is it deep?\nYes."),
        ("<button class=accordion>Depth</button><div class=panel>Ten metres.</div>",
         "Depth\nTen metres."),
        ("<button aria-controls=a>Depth</button><div id=a hidden>Ten.</div>", "Depth\nTen."),
        ("<button data-x>Depth of water</button><div>Ten.</div>", "Depth of water\nTen."),
        ("<dl><div><dt><button><span>Deep</span></button><dd hidden>Yes.</div></dl>",
         "Deep: Yes."),
        ("<details><summary>Deep<p>or not</summary>Yes.</details>", "Deep\nor not\nYes."),
        ("<details><summary><button>Deep</button></summary>Yes.</details>", "Deep\nYes."),
        ("<div role=tabpanel style='display:none'>Ten.</div><p>x", "Ten.\nx"),
    ],
    ("lists", "{}"): [
        ("<dl><dt>-q,\n <b>--quiet</b><dd><p>x</p><p>y</p><dt>-v:<dd>z</dl>w",
         "-q, --quiet: x\ny\n\n-v: z\n\nw"),
        ("<p>-q<p>--quiet</p><div class=Bd-indent>x\n<p>y</div>"
         "<p>-v</p><div class='Bd Bd-indent'><b>w</b></div>"
         "<p>As in:</p><div class=Bd-indent><pre> z</pre></div>",
         "-q\n\n--quiet: x\ny\n\n-v: w\n\nAs in:\n z"),
        ("x<dl><dt>-q<dt>--quiet,<dd>y<dt>f();<dd>z<dt>-w</dl>v",
         "x\n\n-q, --quiet: y\n\nf(): z\n\n-w\nv"),
        ("<dl><dt>How?<dd>So.<dt>f()<dd><pre>  x</pre></dl>", "How?\nSo.\n\nf()\n  x"),
        ("<dl><dt>x<dd><ol><li>y<li>z</ol><dt>w<dd><table><tr><td>1<td>2</table></dl>",
         "x\n1. y\n2. z\n\nw\n1 | 2"),
        ("<dl><dt>x<dd><dl><dt>-y<dd>(It) z</dl></dl>", "x\n\n-y: (It) z"),
        ("<ol><li>x<li>y</ol>", "1. x\n2. y"),
        ("<ol start=14><li>x<li value=20>y<li>z</ol>", "14. x\n20. y\n21. z"),
        ("<ol type=a start=26><li>x<li>y</ol>", "z. x\naa. y"),
        ("<ol type=I start=4><li>x<li type=A>y</ol>", "IV. x\nE. y"),
        ("<ol reversed><li>x<li>y<li>z</ol>", "3. x\n2. y\n1. z"),
        ("<ol reversed type=i start=9><li>x<li>y</ol>", "ix. x\nviii. y"),
        ("<ol><li>x<ol type=a><li><p>y</p><p>z</p></ol><li>w</ol>", "1. x\na. y\nz\n2. w"),
        ("<ol><li hidden>x<li>y<li><li>z</ol>", "1. y\n3. z"),
        ("<ol class='upperroman simple'><li>x</ol>", "I. x"),
        ("<ol style='list-style: lower-alpha inside'><li>x</ol>", "a. x"),
        ("<ol style='list-style-type:none'><li>x</ol><ul><li>y</ul>", "x\ny"),
        ("<ol start=0 type=i><li>x</ol><ol start=x><li>z</ol>", "0. x\n1. z"),
        ("<ol><li><pre>  x\n y</pre></ol>", "1.\n  x\n y"),
    ],
    ("inline markup", "<p>{}</p>"): [
        ("10<sup>6</sup> and 10<sup>-3</sup>", "10^6 and 10^-3"),
        ("e<sup>x + 1</sup>", "e^(x + 1)"),
        ("10<sup>3</sup>kg of <sup>14</sup>C", "10^3 kg of ^14 C"),
        ("the 1<sup>st</sup>, 2<sup>e</sup>, n<sup>o</sup> 3", "the 1st, 2e, nº 3"),
        ("in 1990<sup><a href='#n'>2</a></sup>", "in 1990[2]"),
        ("in 1990<a href='#n'><sup>2</sup></a>", "in 1990[2]"),
        ("in 1990<a href='#n' role=doc-noteref>2</a>", "in 1990[2]"),
        ("see <a href='#n'>2</a>", "see 2"),
        ("in 1990.<sup>2</sup> So", "in 1990.[2] So"),
        ("wood<sup>2,3</sup>", "wood[2,3]"),
        ("wood<sup>[2]</sup> wood<sup>*</sup> TM<sup>®</sup>", "wood[2] wood* TM®"),
        ("<sup>2</sup>Of wood", "[2] Of wood"),
        (" <sup>2</sup> Of wood", "[2] Of wood"),
        ("<sup>1</sup>/<sub>2</sub>", "1/2"),
        ("H<sub>2</sub>O, CO<sub>2</sub>e, SO<sub>4</sub><sup>2\u2212</sup>",
         "H2O, CO2e, SO4^2\u2212"),
        ("10<sub>2</sub>, x<sub>i</sub>, log<sub>10</sub>100", "10_2, x_i, log10 100"),
        ("a<sup></sup>b<sup> </sup>c", "ab c"),
        ("<ruby>虐待<rp>(</rp><rt>ぎゃくたい</rt><rp>)</rp></ruby>する", "虐待する"),
        ("<del>40</del><ins>50</ins>", "50"),
        ("4<strike>0</strike>5<span style='text-decoration: line-through'>0</span>", "45"),
        ("<a href=/a>Ropes</a><a href=/b>Oars</a> are here.", "Ropes Oars are here."),
        ("<a href=/a>rope</a>s and <b>o</b><i>ars</i>", "ropes and oars"),
    ],
    ("rows", "<table>{}</table>"): [
        ("<tr><th>Name<th>Age<tr><td>Ada<td>36", "Name | Age\nAda | 36"),
        ("<tr><td>a<td><td>c<td>", "a |  | c"),
        ("<tr><td><p>One<p>two<td>x", "One two | x"),
        ("<tr><td>only one", "only one"),
        ("<tr><td>1<td><pre>  x\n  y</pre>", "1\n  x\n  y"),
        ("<tr><td>1<td><h2>Two</h2>", "1\nTwo"),
        ("<tr><td>1<td><table><tr><td>2<td>3</table>", "1\n2 | 3"),
        (f"<tr><td>1<td>{'x' * 4000}", "1\n" + "x" * 4000),
        ("<tr><td><a href='#a'>+</a><td>Adds", "+ | Adds"),
    ],
    ("cells below heads", "<table>{}</table>"): [
        ("<tr><td>a<td rowspan=2>b<td>c<tr><td>d<td>e", "a | b | c\nd | b | e"),
        ("<tr><td rowspan=3>a<td>b<tr><td>c<tr><td>d", "a | b\na | c\na | d"),
        ("<tr><th>Day<th>Sat<th>Sun<tr><td>May<td colspan=2>shut",
         "Day | Sat | Sun\nMay | shut | shut"),
        ("<tr><td colspan=3>All<tr><td>a<td>b<td>c", "All\na | b | c"),
        ("<thead><tr><th rowspan=2>Day<th colspan=2>Fee<tr><th>Low<th>High</thead>"
         "<tr><td>1<td>2<td>3",
         "Day | Fee Low | Fee High\n1 | 2 | 3"),
        ("<tr><th><th colspan=2>Fee<tr><th>Day<th>Low<th>High<tr><td>1<td>2<td>3",
         "Day | Fee Low | Fee High\n1 | 2 | 3"),
        ("<tr><th>a<th>b<tr><th>c<th>d", "a | b\nc | d"),
        ("<tr><td>a<td>b<td rowspan=2>c<tr><td>d", "a | b | c\nd |  | c"),
        ("<tr><td rowspan=0>a<td colspan=x>b<tr><td colspan=-2>c<td>d", "a | b\nc | d"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("around", "html", "text"),
    [
        pytest.param(around, *page, id=f"{about} {i}")
        for (about, around), pages in PAGES.items()
        for i, page in enumerate(pages)
    ],
)
def test_a_page_is_read_as_the_text_of_its_content(read, around, html, text):
    assert read(around.format(html)).text == text


@pytest.mark.parametrize(
    "rows",
    [
        ("<tr><td colspan=1000>x<td rowspan=60000>" + "y" * 90) * 9000,
        f"<tr><td colspan=1000 rowspan=65000>{'x' * 2000}" + "<tr><td>y<td>z" * 900,
        "<tr>" + "<td colspan=1000>" * 100 + "<td rowspan=1000>x" + "<tr><td>y" * 1000,
    ],
)
def test_spans_do_not_multiply_a_page(read, rows):
    assert len(read(f"<table>{rows}</table>").text) < 30_000_000


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("<title>Pier - Coast</title><meta property=og:title content=Pier>",
         {"title": "Pier - Coast"}),
        ("<meta property=og:title content='The  Pier'>", {"title": "The Pier"}),
        ("<title>Untitled</title><meta property=og:title content=Pier>", {"title": "Pier"}),
        ("<title>Home</title><h1>Pier</h1>x<h2>Fees</h2>", {"title": "Pier"}),
        ("<h1>Pier</h1>x<h1>Fees</h1>", {"title": "a.html"}),
        ("<p>Much text</p><h2>Fees</h2>x<h3>In May</h3>", {"title": "a.html"}),
        ("<meta name=Author content=Ada><meta name=dc.creator content=Ada><meta name=author "
         "content=Bo><meta property=article:author content=https://x.y/>", {"author": "Ada, Bo"}),
        ("<meta property=article:published_time content=2024-05-14T10:00:00Z>"
         "<time datetime=2020-01-01>x</time>", {"date": "2024-05-14"}),
        ("<meta name=date content=2024-99-99><meta name=date content=1970-01-01>"
         "<meta name=date content='2024-05-14 by Ada'>", {"date": "2024-05-14"}),
        ("<meta name=date content='last May'><article><header><time datetime=2024-05-14>May"
         "</time></header></article>", {"date": "2024-05-14"}),
        ("<p>x<p>y<p>On <time datetime=2024-05-14>14 May</time> it closed.", {}),
        ("<p>x<p>y<p><time itemprop=datePublished datetime=2024-05-14>May</time>",
         {"date": "2024-05-14"}),
    ],
)  # fmt: skip
def test_a_page_has_a_title_authors_and_a_date(read, head, found):
    assert about(read(head + BODY)) == {"title": None, "author": None, "date": None} | found


PICTURE = "data:image/png;base64," + "iVBORw0K" * 200_000


def test_a_page_with_a_large_picture_is_read(read):
    text = read(f"<p>One<img src='{PICTURE}'><pre>url({PICTURE})</pre><p>Two").text
    assert text == "One\nurl()\nTwo"


XHTML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "xhtml1-strict.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Pier</title><script src="x"/></head>
<body><h1>The pier</h1><a id="x"/><p>It&apos;s<br/>red.</p></body></html>"""


@pytest.mark.parametrize("name", ["A.HTM", "a.xhtml", "a.xml", "a.txt", "a", "a.aspx", "a.xls"])
def test_xhtml_is_read_as_html_whatever_its_name(read, name):
    document = read(XHTML, name)
    assert document.text == "The pier\nIt's\nred."
    assert document.metadata["title"] == "Pier"


@pytest.mark.parametrize("text", ["<rss><p>x</p></rss>", "See <html> and <p>.", "<p>x</p>"])
def test_other_markup_is_not_taken_for_html(read, text):
    assert read(text, "a.txt").text == text


def test_anchors_are_not_those_of_buttons(read):
    page = "<h2 id=ropes>Ropes</h2><p>Wet.</p><button id=close>x</button><h2>Oars</h2><p>Dry.</p>"
    assert [heading[3] for heading in read(page).metadata["headings"]] == ["ropes", "ropes"]


TAGS = (
    "<main> </main> <nav> <h1> </h1> <table> </table> <th> <tr> <td> <pre> </pre> </a> <br> "
    "<thead> <article> <footer> </footer> <button> </button> <sup> </sup> <sub> <del> <math> "
    "<msup> <mrow> </math> <ol> <li> </ol> <noscript> </noscript>".split()
)
PARTS = ["<td rowspan=3>", "<th colspan=2>", "<ol reversed>", "<div hidden>", "</div>"]
PARTS += [*TAGS, "<a href='#a'>", "<p id=a>", "text ", "\n"]


@given(st.lists(st.sampled_from(PARTS), max_size=30))
def test_whatever_is_written_is_read(read_one, parts):
    document = read_one("a.html", "x" + "".join(parts))
    headings(document)
    words = set(re.findall(r"[a-z]+", document.text))
    assert words <= {"x", "text", "xtext", "texttext", "xtexttext"}


PIECES = "<h1>x</h1>|<tr><td>x|<a href='#a'>x|<p id=a>|x<sup>1</sup>|x<a href='#a'>1</a>|<li>x"
PIECES += (
    "|<ol reversed><li>x</ol>|<button>Is it?</button>|<math><msup>x</msup></math>|<time>x</time>"
    "|<p>x|<i></i>|<!--|<a b='|&#1|<a |</i>"
)


@pytest.mark.parametrize("part", PIECES.split("|"))
def test_large_pages_are_read(read, part):
    assert read("x" + part * 10_000).text.startswith("x")


@pytest.mark.parametrize(
    ("html", "left_out"),
    [
        ("<p>Text<img src=a alt='A map'><img src=b alt='Fares by year' width=640>", ["2 pictures"]),
        ("<figure><img src=a alt='A map' width=100%><figcaption>Map</figure>", ["1 picture"]),
        ("<p>Text <a href='/a/map.JPG?x=1'><img src=a alt='A map'></a>", ["1 picture"]),
        (
            "<p>Ada<img src=a alt=Ada><p>Ben<img src=b alt=Ben><p>Ada<img src=a alt=Ada>",
            ["2 pictures"],
        ),
        ("<p>Text<img src=a><img src=b alt=''><img src=c alt=' :-)'>", None),
        ("<p>Text <a href=/map><img src=a alt='A map'></a>", None),
        ("<nav><img src=a alt='Logo of us'></nav><p>Text", None),
        ("<p>Text<footer><img src=a alt='Logo of us'></footer>", None),
        ("<p>Text<img src=a alt='Not seen' style='display:none'>", None),
    ],
)
def test_pictures_of_the_content_are_counted(read, html, left_out):
    assert read(html).metadata.get(LEFT_OUT) == left_out


def test_a_page_of_a_picture_says_so(written):
    with pytest.raises(SourceError, match=r"a.html has no text, but 1 picture"):
        read_documents(written({"a.html": "<p><img src=a alt='A map'>"}))
