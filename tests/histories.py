"""Sets of documents, and what happens to them: edits that an index has to follow."""

import random
from collections.abc import Callable

from llama_index.core.schema import Document

from hierindex.node import HEADINGS, PAGE_BREAK, PAGE_LABEL, PAGE_LABELS, PAGES
from hierindex.read.markdown import headings_and_tables

WORDS = (
    "anchor bell boat crew dough flour gate grain harbour island keel keeper lamp letter market "
    "mast mill oven pier rope rudder sail salt school snow storm tide tower wind winter yeast"
).split()

Texts = dict[str, str]
"""Documents by id."""


def paragraph(draw: random.Random) -> str:
    """One to three sentences, now and then one that is said elsewhere too."""
    sentences = [
        "The {} met the {} by the {} of day {}.".format(*draw.sample(WORDS, 3), draw.randrange(40))
        for _ in range(draw.randint(1, 3))
    ]
    if draw.random() < 0.2:
        sentences.append("Nobody at the gate knew why.")
    return " ".join(sentences)


def heading(draw: random.Random) -> str:
    return f"{'#' * draw.randint(1, 3)} The {draw.choice(WORDS)}"


def text(draw: random.Random) -> str:
    parts = []
    for _ in range(draw.randint(3, 9)):
        parts += [heading(draw)] * (draw.random() < 0.4) + [paragraph(draw)]
    return "\n\n".join(parts)


def insert_at_the_top(draw: random.Random, texts: Texts) -> None:
    name = draw.choice(list(texts))
    texts[name] = f"{paragraph(draw)}\n\n{texts[name]}"


def insert(draw: random.Random, texts: Texts) -> None:
    name, parts = _parts(draw, texts)
    parts.insert(draw.randrange(len(parts) + 1), paragraph(draw))
    texts[name] = "\n\n".join(parts)


def insert_blanks(draw: random.Random, texts: Texts) -> None:
    name, parts = _parts(draw, texts)
    parts[0] = parts[0].replace(". ", ".  ")
    texts[name] = "\n\n\n".join(parts)


def delete(draw: random.Random, texts: Texts) -> None:
    name, parts = _parts(draw, texts)
    if len(parts) > 1:
        del parts[draw.randrange(len(parts))]
    texts[name] = "\n\n".join(parts)


def repeat(draw: random.Random, texts: Texts) -> None:
    name, parts = _parts(draw, texts)
    texts[name] = "\n\n".join([*parts, draw.choice(parts)])


def reorder(draw: random.Random, texts: Texts) -> None:
    name, parts = _parts(draw, texts)
    draw.shuffle(parts)
    texts[name] = "\n\n".join(parts)


def put_a_heading(draw: random.Random, texts: Texts) -> None:
    """In the place of another one, if there is one."""
    name, parts = _parts(draw, texts)
    old = [i for i, part in enumerate(parts) if part.startswith("#")]
    at = draw.choice(old) if old else 0
    parts[at : at + bool(old)] = [heading(draw)]
    texts[name] = "\n\n".join(parts)


def break_pages(draw: random.Random, texts: Texts) -> None:
    """A page ends after one of the sentences."""
    name = draw.choice(list(texts))
    sentences = texts[name].split(". ")
    i = draw.randrange(len(sentences))
    sentences[i] += "." + PAGE_BREAK if i + 1 < len(sentences) else PAGE_BREAK
    texts[name] = ". ".join(sentences)


def rename(draw: random.Random, texts: Texts) -> None:
    texts[_new_name(draw, texts)] = texts.pop(draw.choice(list(texts)))


def duplicate(draw: random.Random, texts: Texts) -> None:
    texts[_new_name(draw, texts)] = texts[draw.choice(list(texts))]


def swap(draw: random.Random, texts: Texts) -> None:
    one, other = draw.choices(list(texts), k=2)
    texts[one], texts[other] = texts[other], texts[one]


def remove(draw: random.Random, texts: Texts) -> None:
    if len(texts) > 1:
        del texts[draw.choice(list(texts))]


def add(draw: random.Random, texts: Texts) -> None:
    texts[_new_name(draw, texts)] = text(draw)


EDITS: tuple[Callable[[random.Random, Texts], None], ...] = (
    insert_at_the_top,
    insert,
    insert_blanks,
    delete,
    repeat,
    reorder,
    put_a_heading,
    break_pages,
    rename,
    duplicate,
    swap,
    remove,
    add,
)


def history(seed: int, n_edits: int) -> list[Texts]:
    """A set of documents as it was after each of its edits, the first state included."""
    draw = random.Random(seed)
    texts = {f"{name}.txt": text(draw) for name in draw.sample(WORDS, draw.randint(1, 4))}
    states = [dict(texts)]
    for _ in range(n_edits):
        draw.choice(EDITS)(draw, texts)
        states.append(dict(sorted(texts.items())))
    return states


def documents(texts: Texts) -> list[Document]:
    """Of each kind: with pages, a page itself, with a title, and half of them with headings.

    A text's kind follows its name.
    """
    made = []
    for name, text in texts.items():
        labels = ["cover", *map(str, range(1, 1 + text.count(PAGE_BREAK)))]
        paged = {PAGES: len(labels), PAGE_LABELS: labels}
        kinds = [paged, {PAGE_LABEL: "7"}, {"title": "The log"}, {}]
        structured, kind = divmod(sum(map(ord, name)) % (2 * len(kinds)), len(kinds))
        found = headings_and_tables(text)[0] if structured else ()
        headings = [[*each[:3], each.title.lower()] for each in found]
        metadata = kinds[kind] | ({HEADINGS: headings} if headings else {})
        hidden = [HEADINGS, PAGE_LABELS]
        made.append(
            Document(
                id_=name,
                text=text,
                metadata=metadata,
                excluded_embed_metadata_keys=hidden,
                excluded_llm_metadata_keys=hidden,
            )
        )
    return made


def _parts(draw: random.Random, texts: Texts) -> tuple[str, list[str]]:
    name = draw.choice(list(texts))
    return name, texts[name].split("\n\n")


def _new_name(draw: random.Random, texts: Texts) -> str:
    return draw.choice([f"{word}.txt" for word in WORDS if f"{word}.txt" not in texts])
