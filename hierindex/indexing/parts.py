"""Parts of a collection of documents that fit in memory."""

from collections.abc import Iterator, Mapping


def parted(sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Yield documents in parts of at least one document and at most a size, in order.

    >>> [*parted({"a": 2, "b": 3, "c": 9, "d": 1}, 5)]
    [['a', 'b'], ['c'], ['d']]
    """
    part, total = list[str](), 0
    for document, size in sizes.items():
        if part and total + size > most:
            yield part
            part, total = [], 0
        part.append(document)
        total += size
    if part:
        yield part
