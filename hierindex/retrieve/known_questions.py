"""Known questions and answers, on which an embedding model's similarities are calibrated."""

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d
from hierindex.core.calibration import Scale
from hierindex.models.embedder import unit_vectors
from hierindex.models.model import EmbedModel
from hierindex.models.openvino import encoder_of
from hierindex.summarize.grounding import KnownPairs
from hierindex.text.sentences import tokens
from hierindex.text.words import STOP_WORDS, known_language, stemmer_of

ABOUT_THE_WHOLE = (
    "What is this about?",
    "What are the main points?",
    "Give an overview.",
    "Summarize this.",
    "Summarize the whole text.",
    "Give a summary of the documents.",
    "What are the key takeaways?",
    "Which topics are covered?",
    "What was discussed in general?",
    "What is the overall conclusion?",
    "What are the main themes?",
    "What does this collection contain?",
    "What is the purpose of this document?",
    "Describe the content in a few sentences.",
    "What is the gist of it?",
    "What happened overall?",
    "What is in here?",
    "What can be learned from this?",
    "What should a reader know about this?",
    "What does it say, in brief?",
    "Tell me about these files.",
    "What did they find out in the end?",
    "What kind of documents are these?",
    "What do all of these texts tell us?",
    "Give the short version.",
    "What are the big ideas?",
    "tl;dr",
)
"""Questions that are similar to no sentence and can be answered from any text."""

ABOUT_A_PART = (
    "What is in the box?",
    "What is this function for?",
    "What is the main entrance?",
    "How are the documents kept?",
    "Which documents does a visa need?",
    "Which folder has the logs?",
    "What did they find in the drawer?",
    "How do I list the files of a folder?",
    "How many items does the collection of the museum have?",
    "Which features and data are used?",
    "Which version is the newest?",
    "What does the word mean?",
    "Who is the author of the book?",
)
"""Questions with words of those about the whole."""

WORDS_OF_THE_WHOLE = {
    "de": """
        artikel aussagen behandelt bericht beschrieben besprochen bitte buch datei dient dokumente
        ergebnisse erkläre fasse ganze gebe geht gib handbuch handeln handelt hauptaussage
        hauptthemen hier inhalt insgesamt kannst kernaussage kommen kurzen kurzfassung könntest
        lernen mach punkte sag sammlung schlussfolgerungen steht text thema themen wesentlichen
        wichtigsten wissen worum wovon wozu zentralen zusammen zusammenfassen zusammenfassung zweck
        überblick übersicht""",
    "es": """
        aparecen aprender aquí archivos artículo breve brevemente clave colección conclusión
        contenido contiene dame dime documentos explica favor general hablan haz hazme idea
        importantes informe libro manual objetivo principales propósito puedes puedo puntos resumen
        resumir saber sirve son temas textos trata visión""",
    "zh": "一下个中大说主么书了于些什介从以件体全关内册到包及可含告哪学容帮心思总想意我手报括摘文"
    "料是有本材核档概涉点用的目章简篇绍结给要观讨讲论话请资这述部里重题",
}
"""Words of questions about the whole, besides stop words; all-MiniLM-L6-v2 knows few of them."""

TELLING = re.compile(
    "worum|wovon|wozu|steht|inhalt|zusammen|überblick|übersicht|them|hauptaus|kernaus|kurzfass"
    "|punkte|aussagen|schlussf|zweck|lernen|wissen|beschr|behand|bespr|handeln"
    r"|trata|hablan|resum|tema|puntos|visión|ideas? pr|conclusion\w* pr|explica|propós|objetivo"
    "|contien|contenid|aprend|sirve"
    "|[概总摘]|大意|要点|重点|主题|话题|主要|中心|核心|内容|讲|关于|目的|结论|学到|包含|涉及|讨论|介绍"
)
"""What one of them must have."""

OF_A_PART = frozenset("wo wer wem wann dónde quién quiénes cuándo".split())
"""Words that such a question has not."""

THRESHOLD = 0.9  # of the score of `about_the_whole`; chosen on two thirds of the evaluation data

ANSWERS = KnownPairs(
    """
When does the train to the coast leave?
    The last service to the seaside departs shortly before noon.
How do bees carry pollen?
    Bees carry pollen from flower to flower on their hind legs.
Who pays for repairs to the roof?
    The landlord bears the cost of mending the roof.
Why did the home team lose?
    They were beaten because their goalkeeper had been sent off.
What goes into the dough?
    Flour, water, yeast and a little salt are kneaded together.
What did the court decide about the contract?
    The judge held that the agreement was void.
How far away is the nearest star?
    The closest star is a little over four light years from us.
How is the printer restarted?
    Hold the power button for ten seconds and the printer starts again.
What did her grandmother keep in the drawer?
    In the drawer lay the letters that her grandmother had kept.
What do people think of the new bridge?
    Most residents said that the bridge had made their journey shorter.
How does the drug work?
    The medicine lowers blood pressure by widening the vessels.
Summarize the discussion about the price.
    They agreed that it should cost no more than a dozen euros.
""",
    beside=(*ABOUT_THE_WHOLE, *ABOUT_A_PART),
)
"""Each on its own topic, so that no answer fits another question."""


def known_vectors(model: EmbedModel) -> list[Floats2d]:
    """Return the vectors of the known questions, of their answers, and of those without answers.

    They are embedded as texts, in one batch instead of a request each, once for each model.
    """
    encoder = encoder_of(model)

    def embed(texts: Sequence[str]) -> Floats2d:
        if encoder is not None:
            return unit_vectors(encoder.kept_vectors(texts))
        return unit_vectors(model.get_text_embedding_batch(list(texts)))

    return [X.astype(np.float64) for X in ANSWERS.vectors(encoder or model, embed)]


class AboutTheWhole(NamedTuple):
    """Whether a question is about the whole, and its score.

    The score is the similarity to the nearest question about the whole, on a scale where 0 is
    that of a question about a detail and 1 that of another question about the whole; it is at
    most 0 if a question of `ABOUT_A_PART` is nearer. It is NaN if the model does not tell them
    apart: if their means are not as far apart as their standard deviations.
    """

    decided: bool
    score: float


@cache
def _stems_of_the_whole(language: str) -> frozenset[str]:
    stem = stemmer_of(language).stemWord
    return frozenset(stem(word) for word in tokens(WORDS_OF_THE_WHOLE[language]))


def _only_of_the_whole(question: str) -> bool:
    """Return whether a question has no words but those about the whole and stop words.

    >>> [_only_of_the_whole(text) for text in ("Worum geht es?", "Worum geht es in Kapitel 3?")]
    [True, False]
    """
    question = re.sub(r"\bit\b", "", question.lower())  # which stands for a document's name
    known, words = known_language(question), {*tokens(question)}
    if len(words) < 2 or words & OF_A_PART or not TELLING.search(question):
        return False
    for language in WORDS_OF_THE_WHOLE.keys() & ({known} if known else WORDS_OF_THE_WHOLE.keys()):
        stem = stemmer_of(language).stemWord
        asked = {stem(word) for word in words - STOP_WORDS.get(language, frozenset())}
        if asked <= _stems_of_the_whole(language):
            return True
    return False


def about_the_whole(text: str, question: Floats1d, model: EmbedModel) -> AboutTheWhole:
    """Decide whether a question is about the whole: whether its score is at least 0.9.

    A question that has no other words than `WORDS_OF_THE_WHOLE` and stop words is, too.

    Parameters
    ----------
    text : str
    question : (n_dims,) floats
        A unit vector.
    model : EmbedModel
        The model of the vector.
    """
    if _only_of_the_whole(text):
        return AboutTheWhole(True, 1.0)
    details, _, beside = known_vectors(model)
    whole, part = np.split(beside, [len(ABOUT_THE_WHOLE)])
    others = whole @ whole.T - 2 * np.eye(len(whole))  # no question is its own nearest
    chance, pairs = (details @ whole.T).max(axis=1), others.max(axis=1)
    if pairs.mean() - pairs.std() < chance.mean() + chance.std():
        return AboutTheWhole(False, math.nan)
    scale = Scale(chance.mean(), pairs.mean())
    nearest = (whole @ question).max(keepdims=True)
    score = float(scale.shares(nearest)[0])
    if (part @ question).max() > nearest[0]:
        score = min(score, 0.0)
    return AboutTheWhole(score >= THRESHOLD, score)
