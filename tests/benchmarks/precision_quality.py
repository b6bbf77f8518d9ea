"""What bfloat16 changes in what is found on sets of questions.

For each set and way, the means of all measures of `ways.py` in each precision, in points
(hundredths of a measure's range), their difference, the largest difference of one measure, and the
points that one question counts for. Chunks are the same, trees may differ.

Usage: python tests/benchmarks/precision_quality.py DATA [FOLDER]   (evaluation data, and a folder
where indices are kept)
"""

import sys
import tempfile
from pathlib import Path
from statistics import fmean

from measures import further, read_labelled

from hierindex import load_embed_model
from hierindex.evaluate import evaluate

PRECISIONS = "float32", "bfloat16"
WAYS = "dense", "auto"


def found(data: Path, folder: Path) -> None:
    heads = "measures", "float32", "bfloat16", "apart", "largest", "a question"
    print(f"\n{'points, means over measures':<28}" + "".join(f"{head:>12}" for head in heads))
    for each in sorted(path.parent for path in data.glob("*/questions.jsonl")):
        float32, bfloat16 = (
            evaluate(
                read_labelled(each),
                ways=WAYS,
                measures=further,
                index=folder / precision,
                embed_model=load_embed_model(precision=precision),
            ).rows
            for precision in PRECISIONS
        )
        for way in WAYS:
            rows = [pair for pair in zip(float32, bfloat16, strict=True) if pair[0].way == way]
            assert all(one[:6] == other[:6] for one, other in rows)
            apart = [100 * (other.mean - one.mean) for one, other in rows]
            means = [100 * fmean(row.mean for row in column) for column in zip(*rows, strict=True)]
            least = 100 / max(one.questions for one, _ in rows)
            values = *means, fmean(apart), max(apart, key=abs), least
            cells = "".join(f"{value:>12.2f}" for value in values)
            print(f"{f'{each.name}, {way}':<28}{len(rows):>12}{cells}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/precision_quality.py DATA [FOLDER]")
    with tempfile.TemporaryDirectory() as made:
        found(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else made))
