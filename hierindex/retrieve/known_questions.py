"""Questions with known answers, used to calibrate the similarities of an embedding model."""

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from hierindex.core.arguments import Floats2d
from hierindex.core.ranking import Scale
from hierindex.models.embedder import EmbedModel, named_errors, unit_vectors
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
    "Please give a detailed summary.",
    "Write a short summary of everything.",
    "What are the main arguments?",
    "Give me the highlights.",
    "Describe this collection.",
    "Which subjects are dealt with?",
    "Can I get a rough idea of what is in these files?",
    "What is the big picture?",
    "Recap everything.",
    "Explain all of this simply.",
)
"""Questions that are similar to no sentence and can be answered from any text."""

ABOUT_A_PART = (
    "What is in the box?",
    "What is this function for?",
    "What is the main entrance?",
    "What does git add do?",
    "What does section 2 say?",
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
    "What is the type of a file?",
    "What is the purpose of the configuration file?",
    "Which file formats are supported?",
    "Where are the files stored?",
    "How long is a document?",
    "Who wrote it?",
    "When was the file deleted?",
    "What is the title of the document?",
    "What does the table of contents show?",
    "What is the theme of the party?",
    "What was the conclusion of the experiment?",
    "Which topics does the exam cover?",
    "What do the notes say about the painter?",
    "What does the note say about Anna?",
    "What is the setting of the story?",
    "What happens to the boy in the story?",
    "What is the key to the door?",
    "What is the purpose of the visit?",
    "Summarize the discussion about the design.",
    "What topics are in the debate data?",
)
"""Questions with words of those about the whole."""

PART = re.compile(  # what parts with numbers are called, as in "clause 3.2"
    r"\b(?:article|chapter|clause|paragraph|section|artikel|abschnitt|kapitel|ziffer)s?\s+(?=\d)",
    re.IGNORECASE,
)
WORDS_OF_THE_WHOLE = {
    "de": """
        aussagen behandelt beschrieben besprochen handeln handelt hauptaussage hauptthemen inhalt
        kernaussage kurzfassung lernen punkte schlussfolgerungen steht thema themen worum wovon wozu
        zusammen zusammenfassen zusammenfassung zweck überblick übersicht / artikel bericht bitte
        buch datei dient dokumente ergebnisse erkläre fasse ganze gebe geht gib handbuch hier
        insgesamt kannst kommen kurzen könntest mach sag sammlung text wesentlichen wichtigsten
        wissen zentralen""",
    "es": """
        aprender contenido contiene explica hablan objetivo propósito puntos resumen resumir sirve
        temas trata visión / aparecen aquí archivos artículo breve brevemente clave colección
        conclusión dame dime documentos favor general haz hazme idea importantes informe libro
        manual principales puedes puedo saber son textos""",
    "zh": """讲概总摘意点题介涉述绍讨论容关含目 / 一下个中大说主么书了于些什从以件体全内册到包及可告
        哪学帮心思想我手报括文料是有本材核档用的章简篇结给要观话请资这部里重""",
}
"""Words of questions about the whole, of which each has one of the first, besides stop words.

all-MiniLM-L6-v2 knows few of them.
"""

OF_A_PART = frozenset("wo wer wem wann dónde quién quiénes cuándo".split())
"""Words that do not occur in such a question."""

THRESHOLD = 0.7  # in `about_the_whole`

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
    """Return the vectors of the known questions, their answers, and questions without answers.

    They are embedded as texts, which takes one batch instead of a request for each, once per model.
    """
    encoder = encoder_of(model)

    def embed(texts: Sequence[str]) -> Floats2d:
        if encoder is not None:
            return unit_vectors(encoder.kept_vectors(texts))
        with named_errors(model):
            return unit_vectors(model.get_text_embedding_batch(list(texts)))

    return [X.astype(np.float64) for X in ANSWERS.vectors(encoder or model, embed)]


@cache
def _stems_of_the_whole(language: str) -> tuple[frozenset[str], frozenset[str]]:
    stem = stemmer_of(language).stemWord
    both = WORDS_OF_THE_WHOLE[language].split("/")
    telling, others = (frozenset(map(stem, tokens(words))) for words in both)
    return telling, telling | others


def _only_of_the_whole(question: str) -> bool:
    """Return whether a question has no words but those about the whole and stop words.

    >>> [_only_of_the_whole(text) for text in ("Worum geht es?", "Worum geht es in Kapitel 3?")]
    [True, False]
    """
    question = re.sub(r"\bit\b", "", question.lower())  # which stands for a document's name
    known, words = known_language(question), {*tokens(question)}
    if len(words) < 2 or words & OF_A_PART:
        return False
    for language in WORDS_OF_THE_WHOLE.keys() & ({known} if known else WORDS_OF_THE_WHOLE.keys()):
        telling, every = _stems_of_the_whole(language)
        asked = {*map(stemmer_of(language).stemWord, words - STOP_WORDS.get(language, frozenset()))}
        if telling & asked and asked <= every:
            return True
    return False


def about_the_whole(text: str, embedding: Sequence[float], model: EmbedModel) -> bool:
    """Decide whether a question is about the whole index or document.

    It is if it consists of `WORDS_OF_THE_WHOLE` and stop words, or if it is similar to a known
    question about the whole: at least 0.7 on a scale where 0 is the similarity of a question about
    a detail, and 1 that of another question about the whole. It is not if it names a part by its
    number, if a question of `ABOUT_A_PART` is nearer, or if the model cannot distinguish the two
    kinds: if their means are closer than their standard deviations.

    Parameters
    ----------
    text : str
    embedding : (n_dims,) floats
    model : EmbedModel
        The model that made the vector.
    """
    if _only_of_the_whole(text):
        return True
    if PART.search(text):
        return False
    question = unit_vectors([embedding])[0].astype(np.float64)
    details, _, beside = known_vectors(model)
    whole, part = np.split(beside, [len(ABOUT_THE_WHOLE)])
    others = whole @ whole.T - 2 * np.eye(len(whole))  # no question is its own nearest
    chance, pairs = (details @ whole.T).max(axis=1), others.max(axis=1)
    if pairs.mean() - pairs.std() < chance.mean() + chance.std():
        return False
    nearest = (whole @ question).max(keepdims=True)
    share = float(Scale(chance.mean(), pairs.mean()).shares(nearest)[0])
    return share >= THRESHOLD and bool((part @ question).max() <= nearest[0])
