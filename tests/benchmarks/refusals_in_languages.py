"""Refusals in German and Chinese, without a language model, asked of translated manual pages.

As refusals.py, but questions are made from sentences of the pages: up to a dozen words around a
number, a name (an option, a file, a program, a variable) or, in German, a noun. They are put
beside the same with another number of as many digits, with a name of another language's pages
that this index holds nowhere, or with a noun of a question about something else. Only questions
count whose sentence stands in one of the five best passages, and only changes that stand in none.
`refusals_in_languages.json` has questions about something else.

Usage: python tests/benchmarks/refusals_in_languages.py INDEX_FOLDER de=PAGES zh=PAGES[:PAGES]
(folders of manual pages, which groff formats, such as /usr/share/man/de; at least two languages)
"""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import MetadataFilters
from refusals import area

from hierindex import HierarchicalIndex, HierarchyStore, load_embed_model
from hierindex.text.sentences import split_sentences

N_PAIRS, N_TRIES = 100, 5
LONGEST = 40_000  # characters of a page
GROFF = "groff -Kutf8 -t -man -Tutf8 -P-cbou -rLL=20000n -rHY=0 -dAD=l".split()
HAN = "\u3400-\u9fff"
LETTERS = "A-Za-z0-9_\u00c0-\u024f"
ENDS = "\uff0c\u3002\uff1b\uff1a\u3001\uff01\uff1f"  # clauses
PART = rf"(?<![!-~])[!-~]+(?![!-~])|[^{ENDS}!-~\n]"  # of a clause: a word in ASCII, a character
NUMBER = re.compile(r"(?<![A-Za-z0-9_./-])\d{2,5}(?![A-Za-z0-9_/-]|[.,:]\d)")
NAME = re.compile(
    rf"(?<![{LETTERS}/.-])(?:--[a-z][a-z-]{{3,}}|/[a-z]+(?:/[a-z0-9.-]*[a-z0-9])+|[A-Z]{{2,}}_?[A-Z_]{{2,}}"
    rf"|[A-Za-z][A-Za-z0-9.-]*(?=\(\d\))|[A-Z][a-z]+[A-Z][A-Za-z]+|[a-z]+(?:-[a-z]+)+)(?![{LETTERS}/-])"
)
NOUN = re.compile(
    r"(?<=[a-z\u00e4\u00f6\u00fc\u00df,] )[A-Z\u00c4\u00d6\u00dc][a-z\u00e4\u00f6\u00fc\u00df]{3,}"
)


class Language(NamedTuple):
    """How questions are made of a language's sentences."""

    is_sentence: re.Pattern[str]
    around: re.Pattern[str]
    template: str
    kinds: tuple[str, ...]


LANGUAGES = {
    "de": Language(
        re.compile(r".*\b(?:der|die|das|ist|wird|werden|und|ein|eine)\b", re.DOTALL),
        re.compile(r"(?:\S+\s+){0,6}\S*%s\S*(?:\s+\S+){0,5}"),
        "Was gilt f\u00fcr {}?",
        ("number", "name", "noun"),
    ),
    "zh": Language(
        re.compile(rf"(?:.*[{HAN}]){{6}}", re.DOTALL),
        re.compile(rf"(?:{PART}){{0,12}}%s(?:{PART}){{0,10}}"),
        "{}\uff0c\u662f\u4ec0\u4e48\uff1f",
        ("number", "name"),
    ),
}
FOUND = {"number": NUMBER, "name": NAME, "noun": NOUN}


def formatted(path: Path) -> str:
    """A manual page as Markdown, a line for each paragraph."""
    raw = path.read_bytes()
    roff = gzip.decompress(raw) if path.suffix == ".gz" else raw
    run = subprocess.run(GROFF, input=roff, capture_output=True, check=True, cwd=path.parents[1])
    lines = run.stdout.decode().strip().split("\n")[1:-1]  # without header and footer
    text = "\n\n".join(
        f"## {line.strip()}" if line[:1].strip() else " ".join(line.split())
        for line in lines
        if line.strip()
    )
    return re.sub(rf"(?<=[{HAN}{ENDS}]) (?=[{HAN}])", "", text)


def index_of(language: str, pages: list[Path], folder: Path) -> HierarchicalIndex:
    """The index of a language's pages, built if it is not found."""
    built, texts = folder / language, folder / f"{language}-pages"
    if not HierarchyStore(built).snapshot().exists:
        texts.mkdir(parents=True, exist_ok=True)
        for path in pages:
            name = path.name.removesuffix(".gz")
            if len(text := formatted(path)) <= LONGEST:
                (texts / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
        HierarchicalIndex.build([str(texts)], built)
    return HierarchicalIndex.open(built, load_embed_model())


class Asked(NamedTuple):
    question: str
    sentence: str
    changed: str


class Asker:
    """An index of a language, its sentences and names, and what it answers."""

    def __init__(self, language: str, pages: list[Path], folder: Path) -> None:
        self.language, self.how = language, LANGUAGES[language]
        self.index = index_of(language, pages, folder)
        self._told = dict[str, tuple[float, bool]]()
        nodes = self.index.store.get_nodes(
            filters=MetadataFilters.from_dict({"hierindex_level": 0})
        )
        texts = [node.get_content(MetadataMode.NONE) for node in nodes]
        self.text = "\n".join(texts)
        self.sentences = sorted({s.text for text in texts for s in split_sentences(text)})
        self.n_chunks = len(nodes)

    def score(self, question: str) -> tuple[float, bool]:
        if question not in self._told:
            answer = self.index.ask(question)
            self._told[question] = float(answer.score or 0), answer.refused
        return self._told[question]

    def five(self, question: str) -> list[str]:
        """The five best passages."""
        retriever = self.index.as_retriever(level=0, by="hybrid", top_k=5)
        found = retriever.retrieve(question)
        return [node.get_content(MetadataMode.NONE) for node in found]

    def made(
        self, kind: str, others: Callable[[str, np.random.Generator], list[str]]
    ) -> Iterator[Asked]:
        """Questions about sentences, each with its change."""
        rng = np.random.default_rng(0)
        for sentence in rng.permutation([s for s in self.sentences if 20 <= len(s) <= 400]):
            found = [*FOUND[kind].finditer(sentence)]
            if not found or not self.how.is_sentence.match(sentence):
                continue
            old = found[int(rng.integers(len(found)))][0]
            window = re.search(self.how.around.pattern % re.escape(old), sentence)
            if window is None:
                continue
            question = self.how.template.format(window[0].strip(" .,;:\"'"))
            five = self.five(question)
            if old not in question or not any(sentence in text for text in five):
                continue
            for new in others(old, rng)[:N_TRIES]:
                changed = question.replace(old, new, 1)
                if not any(new.lower() in text.lower() for text in self.five(changed)):
                    yield Asked(question, str(sentence), changed)
                    break


def another_number(old: str, rng: np.random.Generator) -> list[str]:
    n = len(old)
    drawn = rng.integers(10 ** (n - 1), 10**n, size=N_TRIES)
    return [str(new) for new in drawn if str(new) != old]


def alike(name: str) -> str:
    """The kind of a name: that of an option, a file, a variable, or a program."""
    return name[0] if name[0] in "-/" else "A" if name.isupper() else "a"


def main(folder: Path, pages: dict[str, list[Path]], data: dict[str, list[str]]) -> None:
    askers = {language: Asker(language, of, folder) for language, of in pages.items()}
    print("| | pairs | area | refused, as it is | changed |\n|---|---|---|---|---|")
    for language, asker in askers.items():
        print(f"{language}: {len(pages[language])} pages, {asker.n_chunks} chunks", file=sys.stderr)
        held = asker.text.lower()
        elsewhere = {
            name
            for other, of in askers.items()
            if other != language
            for name in NAME.findall(of.text)
        }
        names = sorted(name for name in elsewhere if name.lower() not in held)
        foreign = data[language]
        nouns = sorted({n for q in foreign for n in NOUN.findall(q) if n.lower() not in held})

        def another_name(old: str, rng: np.random.Generator, names: list[str] = names) -> list[str]:
            return [
                *map(str, rng.permutation([n for n in names if alike(n) == alike(old)])[:N_TRIES])
            ]

        def another_noun(old: str, rng: np.random.Generator, nouns: list[str] = nouns) -> list[str]:
            return [*map(str, rng.permutation(nouns)[:N_TRIES])]

        others = {"number": another_number, "name": another_name, "noun": another_noun}
        own = dict[str, None]()
        for kind in asker.how.kinds:
            pairs = [*islice(asker.made(kind, others[kind]), N_PAIRS)]
            own |= dict.fromkeys(pair.question for pair in pairs)
            show(
                f"{language} {kind}", asker, [p.question for p in pairs], [p.changed for p in pairs]
            )
        show(f"{language} foreign", asker, [*islice(own, len(foreign))], foreign)


def show(title: str, asker: Asker, own: list[str], other: list[str]) -> None:
    """Print a row."""
    n = min(len(own), len(other))
    (scores, refused), (scores_2, refused_2) = (
        np.transpose([asker.score(q) for q in each[:n]]) for each in (own, other)
    )
    shares = f"{refused.mean():.1%} | {refused_2.mean():.1%}"
    print(f"| {title} | {n} | {area(scores, scores_2)} | {shares} |", flush=True)


if __name__ == "__main__":
    given = dict(each.partition("=")[::2] for each in sys.argv[2:])
    if len(given) < 2 or not given.keys() <= LANGUAGES.keys():
        sys.exit(
            "Usage: python tests/benchmarks/refusals_in_languages.py INDEX_FOLDER "
            "de=PAGES zh=PAGES[:PAGES]"
        )
    PAGES = {
        language: sorted(
            {
                path.resolve()
                for each in folders.split(":")
                for path in Path(each).glob("man[158]/*")
            }
        )
        for language, folders in given.items()
    }
    DATA = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    main(Path(sys.argv[1]), PAGES, DATA)
