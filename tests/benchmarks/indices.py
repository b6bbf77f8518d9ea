"""When an index of the store pays: medians with and without it, by the number of rows.

    python tests/benchmarks/indices.py 1000 10000 50000 100000

Vectors are drawn around 1,000 centres, 384 dimensions; 85% of the rows are leaves. Prints
milliseconds a query and, for vectors, the share of the exact top 10 that was found.
"""

import asyncio
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
from lancedb.index import FTS, Bitmap, BTree, IvfSq, LabelList
from lancedb.query import MatchQuery

from hierindex.store.prefilter import has_any, hash_entry
from hierindex.store.search import REFINE_FACTOR

N_DIMS, N_WORDS, ROUNDS = 384, 60, 15
rng = np.random.default_rng(0)
centres = rng.normal(size=(1000, N_DIMS)).astype(np.float32)


def rows(n_rows: int) -> pa.Table:
    X = centres[rng.integers(0, len(centres), n_rows)]
    X = X + 0.8 * rng.normal(size=X.shape).astype(np.float32)
    share = np.arange(n_rows) / n_rows
    level = np.searchsorted([0.85, 0.975, 0.996], share, side="right").astype(np.int32)
    words = rng.zipf(1.3, size=(n_rows, N_WORDS)) % 20_000
    values = [("shelf", i % 1000) for i in range(n_rows)]
    return pa.table(
        {
            "id": [f"{i * 2654435761 % 2**64:016x}" for i in range(n_rows)],
            "level": level,
            "text": [" ".join(f"w{word}" for word in row) for row in words],
            "digests": [
                [hash_entry("is", *value), hash_entry("is", "page", str(value))] for value in values
            ],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), N_DIMS),
        }
    )


async def median(ask) -> float:
    spent = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        await ask()
        spent.append(1000 * (time.perf_counter() - started))
    return sorted(spent)[ROUNDS // 2]


async def measure(n_rows: int) -> None:
    import lancedb

    with tempfile.TemporaryDirectory() as folder:
        table = await (await lancedb.connect_async(folder)).create_table("t", rows(n_rows))
        ids = (await table.query().select(["id"]).limit(20).to_arrow())["id"].to_pylist()
        Q = [centres[i] + 0.5 * rng.normal(size=N_DIMS) for i in range(ROUNDS)]
        asked = iter(Q * 100)

        def nearest(q=None):
            query = table.query().nearest_to(next(asked) if q is None else q)
            return query.distance_type("cosine")

        def of(query):
            return query.select(["id", "text", "_distance"]).limit(10).to_arrow()

        shelf = has_any([hash_entry("is", "shelf", 7)]).sql
        by_ids = " OR ".join(f"id = '{i}'" for i in ids)
        cases = {
            "level": (Bitmap(), lambda: of(nearest().where("level = 2"))),
            "digests": (LabelList(), lambda: of(nearest().where(shelf))),
            "id": (BTree(), lambda: table.query().where(by_ids).to_arrow()),
            "text": (
                FTS(base_tokenizer="icu/split"),
                lambda: (
                    table.query()
                    .nearest_to_text(MatchQuery("w2 w30 w400 w5000", "text"))
                    .select(["id", "_score"])
                    .limit(10)
                    .to_arrow()
                ),
            ),
            "vector": (
                IvfSq(distance_type="cosine"),
                lambda: of(nearest().refine_factor(REFINE_FACTOR)),
            ),
        }
        exact = [(await of(nearest(q)))["id"].to_pylist() for q in Q]
        for column, (config, ask) in cases.items():
            before = await median(ask)
            started = time.perf_counter()
            await table.create_index(column, config=config)
            made = time.perf_counter() - started
            await ask()
            print(
                f"{n_rows:>9} rows  {column:8} {before:8.1f} ms  -> {await median(ask):6.1f} ms"
                f"  made in {made:6.2f} s",
                flush=True,
            )
        found = [(await of(nearest(q).refine_factor(REFINE_FACTOR)))["id"].to_pylist() for q in Q]
        recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact, found, strict=True)])
        print(f"{n_rows:>9} rows  recall at 10 of the vector index {recall:.2f}", flush=True)


for argument in sys.argv[1:]:
    asyncio.run(measure(int(argument)))
