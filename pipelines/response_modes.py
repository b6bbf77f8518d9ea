"""Compare the cost and the answers of all response modes on the same five chunks.

Usage: python pipelines/response_modes.py FOLDER INDEX "QUESTION" [MODEL BASE_URL]

MODEL is served at an OpenAI-compatible BASE_URL; its key is read from HIERINDEX_LLM_API_KEY.
Without a model the answer is extractive.
"""

import os
import sys

from hierindex import HierarchicalIndex


def main(folder: str, uri: str, question: str, model: str = "", address: str = "") -> None:
    """Build or update an index and query it in each mode."""
    llm = None
    if model:
        from llama_index.llms.openai_like import OpenAILike  # of hierindex[llm]

        key = os.environ.get("HIERINDEX_LLM_API_KEY", "none")
        llm = OpenAILike(model=model, api_base=address, api_key=key, is_chat_model=True)
    index = HierarchicalIndex.build(folder, uri)
    comparison = index.compare(question, llm=llm, level=0, top_k=5, token_budget=None)

    print("All modes read these chunks:")
    for source in comparison.sources:
        print(f"  {source.score:.3f}  {source.citations[0].document}  {start_of(source.text)}")

    print(f"\n{'mode':<20}{'calls':>7}{'tokens':>9}{'seconds':>9}")
    for attempt in comparison.attempts:
        if attempt.answer is None:
            print(f"{attempt.mode:<20} failed")
            continue
        usage = attempt.answer.usage
        tokens = usage.prompt_tokens + usage.completion_tokens
        seconds = attempt.answer.seconds["respond"]
        print(f"{attempt.mode:<20}{usage.llm_calls:>7}{tokens:>9,}{seconds:>9.2f}")

    for attempt in comparison.attempts:
        print(f"\n{attempt.mode}\n{attempt.answer.answer if attempt.answer else attempt.error}")


def start_of(text: str) -> str:
    """Return the first 60 characters on one line."""
    return " ".join(text.split())[:60]


if __name__ == "__main__":
    if len(sys.argv) not in (4, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
