"""What a sentence says that its sources do not."""

import pytest

from hierindex.summarize.facts import Facts

SOURCE = (
    "On 2026-04-04, Anna-Maria Berg of the Liquid Crystal Display group met the P.M. in Germany. "
    "They want to make it for twelve fifty, and sell 1.2 thousand of it over the T_V_ for \u20ac40."
    " The Boyars have spent sixty years on it. \u201cA rare case,\u201d said Mr. Cole. "
    "5 km away, it rained."
)


@pytest.mark.parametrize(
    "sentence",
    [
        "The LCD group's Berg met the PM in April.",
        "It costs 12.50 and 1,200 of it are sold for 40 euros.",
        "The TV sells it for 40 EUR, 5 kilometres from the German town.",
        "Cole\u2019s words were \u201crare cases\u201d.",
        "The Boyar spent 60 years.",
        "However, nobody in the group was sure. Additionally, it rained.",
        "1. It rained [3].",
        "twenty people came",
        "",
    ],
)
def test_other_forms_of_a_fact_are_known(sentence):
    assert Facts(SOURCE).lack(sentence) == {}


@pytest.mark.parametrize(
    ("sentence", "lacking"),
    [
        ("In May, Berg met Dole.", {"names": ["May", "Dole"]}),
        ("The BBC sells it.", {"names": ["BBC"]}),
        ("Old Mill Road was shut.", {"names": ["Mill", "Road"]}),
        ("It costs 12.60.", {"numbers": ["12.60"]}),
        ("They sell 1.3 thousand.", {"numbers": ["1.3"]}),
        ("It is 5 miles away.", {"units": ["mile"]}),
        ("The Boyars have spent 60 dollars.", {"units": ["$"]}),
        ("They met on 2026-04-07.", {"numbers": ["07"]}),
        ("He called it \u201ca common case\u201d.", {"quotes": ["a common case"]}),
    ],
)
def test_facts_that_the_sources_lack(sentence, lacking):
    assert Facts(SOURCE).lack(sentence) == lacking


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("It opened on 5 April 2026.", "It opened on 2026-04-05."),
        ("An hour later, one day before Easter.", "One hour later, it rained."),
        ("Der Vertrag ist da.", "Die Bank hat der Firma einen Kredit gegeben."),  # capitals
        ("\u0130zmir has 12 ships and 40 km of coast.", "There are 12 ships and 40 km."),
    ],
)
def test_no_fact_is_lacking(source, said):
    assert Facts(source).lack(said) == {}
