"""Source code, whose classes and functions are headings."""

from io import BytesIO
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.read.documents import READERS, read_documents
from hierindex.read.source import DEEPEST, MAX_PARSED, SUFFIXES
from hierindex.read.split import PlacedSentenceSplitter, split_documents
from hierindex.record import SECTION

STORE = '''\
"""Stores of texts.

They are small.
"""

import os

MOST = 9


# The only one.
@final
class Store(Base):
    """Holds texts."""

    n: int = 0

    def query(self, text):
        def inner():
            return text

        return inner()

    class Row:
        # One.
        @property
        async def text(self):
            class Deep:
                def too(self): ...

    n_rows = 3


def load(path):
    return Store(path)

if __name__ == "__main__":
    load(".")
    load("..")
'''


def read(suffix, text):
    return READERS[suffix](BytesIO(text.encode()))


def headings(suffix, text):
    """Level, title and first line of each."""
    reading = read(suffix, text)
    assert reading.text == text
    return [(h.level, h.title, text[h.start :].split("\n")[0]) for h in reading.headings]


def test_definitions_of_python_are_headings():
    assert headings(".py", STORE) == [
        (1, "class Store", "# The only one."),
        (2, "query", "    def query(self, text):"),
        (2, "class Row", "    class Row:"),
        (3, "text", "        # One."),
        (1, "load", "def load(path):"),
        (1, "", 'if __name__ == "__main__":'),
    ]
    assert read(".py", STORE).metadata == {"title": "Stores of texts."}


def test_comments_of_python_belong_to_what_follows_them():
    """Those that are indented deeper belong to the definition before."""
    text = dedent(
        """\
        NAMES = \"\"\"
        # one\"\"\"
        # About f.

        def f(): ...
            # Within f.

        # Helpers
        # -------

        @cache  # all
        # of them
        def g(): ...
        class A:
        \t# The first.
        \tdef h(self): ...

        \t# The second.

        \tdef i(self): ...
        # Run.
        f()
        """
    )
    assert headings(".py", text) == [
        (1, "f", "# About f."),
        (1, "g", "# Helpers"),
        (1, "class A", "class A:"),
        (2, "h", "\t# The first."),
        (2, "i", "\t# The second."),
        (1, "", "# Run."),
    ]


@pytest.mark.parametrize(
    "text", ["def f(x):\n    print x\n\n\nclass A:\n    pass\n", "\\d\n\ndef f(x):\n\n\nclass A:\n"]
)
def test_python_of_another_version_is_read_by_its_lines(text):
    assert [title for _, title, _ in headings(".py", text)] == ["f", "class A"]


def test_long_python_is_not_parsed():
    data = "X = [\n" + "1,\n" * (MAX_PARSED // 3) + "]\n\n\ndef f():\n    pass\n"
    assert [title for _, title, _ in headings(".py", data)] == ["f"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["x = '\\d'\n", "", "x = (" * 500, "\tx\n  y", "1if 2else 3\n"])
def test_python_without_definitions_has_no_headings(text):
    assert headings(".py", text) == []


CODE = {
    ".js": (
        """\
        import x from "x";

        /** A store. */
        export default class Store extends Base {
          constructor(path) {
            if (path) {
            }

            while (1) {
            }
          }

          // All of it.
          async query(text = []) {

            helper(text, () => {
            });

            function inner() {
            }
          }
        }

        export const load = async (path) => {
        };

        api.save = function () {
        }

        describe("it", () => {
        });
        """,
        [
            (1, "class Store", "/** A store. */"),
            (2, "constructor", "  constructor(path) {"),
            (1, "load", "export const load = async (path) => {"),
            (1, "api.save", "api.save = function () {"),
            (1, "", 'describe("it", () => {'),
        ],
    ),
    ".go": (
        """\
        package store

        // Store holds texts.
        type Store struct {
            n int
        }

        func (s *Store) Query(text string) error {
            for i := range s.n {
            }

            return nil
        }
        """,
        [
            (1, "type Store", "// Store holds texts."),
            (1, "Query", "func (s *Store) Query(text string) error {"),
        ],
    ),
    ".rs": (
        """\
        //! Stores.

        pub(crate) enum Kind<T> { A, B }

        #[derive(Debug)]
        impl<T> Display for Store<T> where T: Copy {
            pub fn fmt(&self) -> String {
            }
        }

        mod tests;
        """,
        [
            (1, "enum Kind", "pub(crate) enum Kind<T> { A, B }"),
            (1, "impl Display for Store<T>", "#[derive(Debug)]"),
            (2, "fmt", "    pub fn fmt(&self) -> String {"),
            (1, "", "mod tests;"),
        ],
    ),
    ".c": (
        """\
        /* Of a licence.

        class of goods */
        #include <x.h>

        struct point;
        int declared(int x);

        struct point {
            int x;
        };

        static struct point *
        moved(struct point *p,
              int by)
        {
            if (by) {
            }

            while (by) {
            }
        }

        struct point moved_too(int by) {
        }

        int table[] = {
            1,
        };
        """,
        [
            (1, "struct point", "struct point {"),
            (1, "moved", "static struct point *"),
            (1, "moved_too", "struct point moved_too(int by) {"),
            (1, "", "int table[] = {"),
        ],
    ),
    ".java": (
        """\
        package x;

        public final class Store implements Base {
            private int n;

            /** The text. */
            @Override
            public String text(int at) throws Error {
                return "";
            }
        }
        """,
        [
            (1, "class Store", "public final class Store implements Base {"),
            (2, "text", "    /** The text. */"),
        ],
    ),
    ".rb": (
        """\
        module Stores
          class Store
            def empty?
              n == 0

            end

          end

        end

        Stores.load
        """,
        [
            (1, "module Stores", "module Stores"),
            (2, "class Store", "  class Store"),
            (3, "empty?", "    def empty?"),
            (1, "", "Stores.load"),
        ],
    ),
    ".sh": (
        """\
        #!/bin/sh
        set -e

        usage() {
            echo "x"
        }

        function main {
        }

        if true; then

        fi
        """,
        [(1, "usage", "usage() {"), (1, "main", "function main {"), (1, "", "if true; then")],
    ),
    ".pl": (
        """\
        =head1 NAME

        class of texts

        =cut

        sub query
        {
        }
        """,
        [(1, "query", "sub query")],
    ),
    ".hpp": (
        """\
        class API_EXPORT Store : public Base {
        public:

            ~Store() {
            }
        };
        """,
        [
            (1, "class Store", "class API_EXPORT Store : public Base {"),
            (2, "~Store", "    ~Store() {"),
        ],
    ),
}


@pytest.mark.parametrize(("suffix", "code", "found"), [(s, *c) for s, c in CODE.items()], ids=CODE)
def test_definitions_are_headings(suffix, code, found):
    assert headings(suffix, dedent(code)) == found


LINES = st.sampled_from(
    "|class A {|  class B:|def f(x):|  f(x) {|/* x|*/|=pod|=cut|}|# x".split("|")
) | st.text("{}(;=*&a <:", max_size=600)


@given(st.lists(LINES, max_size=20), st.sampled_from(SUFFIXES))
def test_any_code_has_headings_in_order(lines, suffix):
    text = "\n".join(lines)
    found = read(suffix, text).headings
    starts = [heading.start for heading in found]
    assert starts == sorted({*starts})
    assert all(at == 0 or text[at - 1] == "\n" for at in starts)
    assert {heading.level for heading in found} <= {*range(1, DEEPEST + 1)}


def test_a_file_of_code_is_titled_by_its_name_and_cut_at_definitions(tmp_path):
    (tmp_path / "store.py").write_text(STORE.replace('"""', "'''"))
    (tmp_path / "store.js").write_text(dedent(CODE[".js"][0]))
    (tmp_path / "empty.py").write_text("x = 1\n")
    documents, _ = read_documents(tmp_path)
    assert [document.metadata.get("title") for document in documents] == [
        *(None, "store.js", "Stores of texts.")
    ]
    splitter = PlacedSentenceSplitter(chunk_size=30, chunk_overlap=0, tokenizer=str.split)
    chunks = split_documents(documents[2:], splitter)
    assert [chunk.metadata.get(SECTION) for chunk in chunks] == [
        *(None, "class Store", "class Store › query", "class Store › class Row › text", None)
    ]
