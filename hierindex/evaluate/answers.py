"""Answers of a language model from what ways to retrieve return."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from llama_index.core.llms import LLM
from llama_index.core.prompts.default_prompts import DEFAULT_TEXT_QA_PROMPT

from hierindex.evaluate.datasets import Question
from hierindex.evaluate.measures import Passage, plain_words, rouge
from hierindex.llm.served import served
from hierindex.progress import Progress
from hierindex.threads import run_apart


def answered(
    llm: LLM, tasks: Sequence[tuple[Question, Sequence[Passage]]], progress: Progress, stage: str
) -> list[str]:
    """Return answers to LlamaIndex's prompt, several asked for at once."""
    model, done = served(llm), iter(range(1, len(tasks) + 1))

    async def one(question: Question, passages: Sequence[Passage]) -> str:
        query = question.text
        if question.choices:
            query = "\n".join([query, "Answer with one of these only:", *question.choices])
        context = "\n\n".join(passage.text for passage in passages)
        answer = await model.apredict(DEFAULT_TEXT_QA_PROMPT, context_str=context, query_str=query)
        progress(stage, next(done), len(tasks))
        return answer

    async def every() -> list[str]:
        return await asyncio.gather(*(one(*task) for task in tasks))

    return run_apart(every())


def figures_of(question: Question, answer: str) -> dict[str, float]:
    """Return `choice`, or `token F1` and `ROUGE-L`, of an answer; nothing if none is known.

    The choice most similar to the answer by token F1 counts as chosen, none if several are or if
    no word is shared; of several right answers, the most similar one counts. Token F1 is that of
    SQuAD, Rajpurkar et al. (EMNLP 2016).
    """
    right = question.answers or (question.reference,)
    if not any(right):
        return {}
    if question.choices:
        similar = {choice: _token_f1(choice, answer) for choice in question.choices}
        chosen = [choice for choice, f1 in similar.items() if f1 == max(similar.values()) > 0]
        return {"choice": float(len(chosen) == 1 and chosen[0] in right)}
    scores = [rouge("rougeL").score(each, answer)["rougeL"].fmeasure for each in right]
    return {"token F1": max(_token_f1(each, answer) for each in right), "ROUGE-L": max(scores)}


def _token_f1(reference: str, answer: str) -> float:
    of = [[w for w in plain_words(t) if w not in ("a", "an", "the")] for t in (reference, answer)]
    return 2 * (Counter(of[0]) & Counter(of[1])).total() / max(1, sum(map(len, of)))
