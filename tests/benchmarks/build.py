"""A flat LlamaIndex pipeline beside each of our methods: seconds, ratio, peak memory.

Same documents, same splitter, same embedding model, vectors to LanceDB. Each runs in a fresh
process, and only its pipeline is timed, not its imports or the loading of the model; the
imports of umap and its compiling are timed where a method needs them.

Usage: python tests/benchmarks/build.py FOLDER
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

METHODS = ("flat", "semantic", "document", "raptor")


def measure(method: str, folder: str) -> dict[str, float]:
    from llama_index.core.ingestion import IngestionPipeline

    import hierindex
    from hierindex.read import read_sources

    embed_model = hierindex.load_embed_model()
    embed_model.get_text_embedding("warm")
    splitter = hierindex.sentence_splitter(embed_model)
    documents, _ = read_sources([folder])
    with tempfile.TemporaryDirectory() as uri:
        steps, store = [splitter, embed_model], None
        if method == "flat":
            from llama_index.vector_stores.lancedb import LanceDBVectorStore

            store = LanceDBVectorStore(uri=uri)
        else:
            store = hierindex.HierarchyStore(uri)
            kind = {
                "semantic": hierindex.SemanticHierarchy,
                "raptor": hierindex.RaptorHierarchy,
                "document": hierindex.DocumentHierarchy,
            }[method]
            steps.append(kind(embed_model=embed_model))
        start = time.perf_counter()
        pipeline = IngestionPipeline(transformations=steps, vector_store=store, disable_cache=True)
        nodes = pipeline.run(documents=documents)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # of kibibytes: GiB
    return {"seconds": seconds, "nodes": len(nodes), "peak": peak}


def main(folder: str) -> None:
    flat = 0.0
    print(f"{folder}\n{'method':<10}{'seconds':>9}{'ratio':>8}{'nodes':>8}{'peak GiB':>10}")
    for method in METHODS:
        command = [sys.executable, __file__, folder, method]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        figures = json.loads(run.stdout.splitlines()[-1])
        flat = flat or figures["seconds"]
        print(
            f"{method:<10}{figures['seconds']:9.1f}{figures['seconds'] / flat:8.2f}"
            f"{figures['nodes']:8}{figures['peak']:10.2f}",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[2], sys.argv[1])))
    elif len(sys.argv) == 2 and Path(sys.argv[1]).is_dir():
        main(sys.argv[1])
    else:
        sys.exit("Usage: python tests/benchmarks/build.py FOLDER")
