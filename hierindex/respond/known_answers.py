"""Known questions and answers, on which an embedding model's similarities are calibrated."""

from hierindex.summarize.known import KnownPairs

ABOUT_THE_WHOLE = (
    "What is this about?",
    "What are the main points?",
    "Give an overview.",
    "Summarize this.",
)
"""Questions that are similar to no sentence and can be answered from any text."""

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
    beside=ABOUT_THE_WHOLE,
)
"""Each on its own topic, so that no answer fits another question."""
