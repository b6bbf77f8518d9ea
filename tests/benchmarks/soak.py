"""Whether an index survives writers that are killed at random moments.

Builds small indices one after the other, of each method, with and without a language model, edits
their documents and kills the writers, mostly while they write; a reader reads beside them. After
each kill the index is opened and verified, compared with what it held, and with a fresh build of
it, and most times the write is done again. Prints how many writers were killed and in which stage,
how many indices were lost, how many readings saw two states, how many results of models that were
in the cache were paid for again, and how the folder grew.

Usage: python tests/benchmarks/soak.py [KILLS] [SEED]
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from edited_index import KINDS, Tree
from kills import Figures, Soak

KILLS_OF_ONE = 25
TREES = [Tree(kind, rewritten) for rewritten in (True, False) for kind in KINDS]


def main(n_kills: int, seed: int) -> Figures:
    soak, start = Soak(seed), time.monotonic()
    print(f"{'kills':>6}{'s':>7}{'lost':>6}{'mixtures':>10}{'repeated':>10}  {'folder':<8}last")
    for n in range(-(-n_kills // KILLS_OF_ONE)):
        soak.of_one_index(TREES[n % len(TREES)], KILLS_OF_ONE)
        figures = soak.figures
        grown = figures.growth[-1] if figures.growth else None
        print(
            f"{figures.killed.total():>6}{time.monotonic() - start:>7.0f}{len(figures.lost):>6}"
            f"{n_mixtures(figures):>10}{figures.repeated:>10}  "
            + (f"{grown.most_bytes:<8.1f}{grown.last_bytes:.1f}" if grown else "-"),
            flush=True,
        )
    return soak.figures


def n_mixtures(figures: Figures) -> int:
    return sum(seen.n_mixtures for seen in figures.seen)


def described(figures: Figures) -> str:
    killed = ", ".join(f"{n} at {stage!r}" for stage, n in figures.killed.most_common())
    written = ", ".join(f"{n} {what}" for what, n in figures.written.most_common())
    lines = [
        f"killed: {figures.killed.total()} ({killed}), of which {figures.published} had published",
        f"done in full, and verified: {figures.written.total()} ({written})",
        f"indices lost: {len(figures.lost)}",
        f"readings: {sum(seen.n_readings for seen in figures.seen)}, of "
        f"{sum(len(seen.contents) for seen in figures.seen)} generations; mixtures: "
        f"{n_mixtures(figures)}; ended as their generation went: "
        f"{sum(seen.gone for seen in figures.seen)}",
        f"results of models: {figures.paid}; paid for again: {figures.repeated}",
        *figures.lost,
    ]
    if figures.growth:
        most = [max(each) for each in zip(*figures.growth, strict=True)]
        lines.append(
            f"folder, in fresh builds: at most {most[0]:.1f} by bytes and {most[1]:.1f} by files; "
            f"after a last build {most[2]:.1f} and {most[3]:.1f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    figures = main(*given, *(500, 0)[len(given) :])
    print(described(figures))
    sys.exit(bool(figures.lost or figures.repeated or n_mixtures(figures)))
