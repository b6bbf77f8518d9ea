"""Abbreviations that do not end a sentence, by language, and the language of a text."""

import re
from collections import defaultdict

FUNCTION_WORDS = {
    "en": "the of and to in is that was for it with as on by",
    "de": "der die und das ist den von mit nicht ein eine auf dem zu im des",
    "nl": "de het een van en niet op te dat zijn voor met bij aan",
    "fr": "le la les des et est une dans que pour pas du sur au",
    "es": "el la los de las y en que un una por con para se",
    "pt": "o a os de do da e em que um uma para com não",
    "it": "il la di che è e un una per del della con non gli",
    "pl": "i w na się nie jest z do przy że za od jak po",
    "cs": "a je na se v že byl do si ve pro s od jako",
    "ru": "и в на не что с по это как из к для у за",
}
ABBREVIATIONS = {
    "de": "abt bzw ca dipl dr ebd evtl fr ggf gl hr hrsg inkl ing lt mio mrd nr prof st str"
    " tel tsd usw vgl zit zzgl",
    "nl": "afb art blz ca dhr dr drs evt ing ir jl jr mevr mej mr mrd m.n nl nr o.a p.j proc"
    " prof resp st tel vgl zgn d.w.z bijv enz n.a.v o.l.v t.a.v",
    "fr": "av bd boul chap ch dr fig mgr m mm mlle mme n no p pp prof st ste t vol env art éd",
    "es": "sr sra srta dr dra d da ud uds av avda c calle pág págs núm vol prof ing lic ej art cap",
    "pt": "sr sra dr dra d av r pág págs prof profa eng art cap n núm vol ex lda",
    "it": "sig sigg sig.ra sig.na dott dott.ssa prof prof.ssa avv ing arch geom rag on sen"
    " uff ca art bin cap es fig ecc n nn p pag pagg p.zza tel vol v.le s ss mons",
    "pl": "al art br dr doc dyr fot gen godz hab im inż ks kpt lek m.in mgr mjr np nr ok os p"
    " pl płk por prof przew red rozdz rtm rys s sp św ś tab tj tzw ul ur wg woj zob str",
    "cs": "bc č čl čís doc dr gen hod ing judr kap kpt mgr mil mld mudr nám např obr odst okr"
    " p pan ph phdr plk pp prof r resp s st str stol sv tab tel tj tzn tzv ul zn",
    "ru": "акад б бул вып г гг гл гр д др доц ед зав зам им ин инж исп кв км корп мин млн"
    " млрд напр наб о обл оз оф п пер пл пом пос пр просп проф р рис род рук с св сек см"
    " соч ст стр табл т тел тов тыс ул ум ф ч чел шк эт",
}
WORD = re.compile(r"\w+")
LAST = re.compile(r"(?:^|[\s(\"'\u00ab\u201e\u2019/])([^\W\d_][\w.]*)\.$")
UNIT = re.compile(r"\d\s*\w+\.$")
AROUND = 500  # characters of which the language is found
SPOKEN = {language: frozenset(words.split()) for language, words in FUNCTION_WORDS.items()}
LANGUAGES = defaultdict[str, set[str]](set)
for language, words in ABBREVIATIONS.items():
    for word in words.split():
        LANGUAGES[word].add(language)


def language_of(text: str) -> str:
    """Return the language whose most frequent words a text has most often, or "en".

    >>> language_of("De brug is dicht, zei dhr. Jansen gisteren tegen de krant.")
    'nl'
    """
    if " the " in text:
        return "en"
    words = WORD.findall(text.lower())
    counts = {language: sum(map(known.__contains__, words)) for language, known in SPOKEN.items()}
    return max(counts, key=lambda language: counts[language])


def is_abbreviated(text: str, at: int) -> bool:
    """Return whether before a place is an abbreviation after which a sentence goes on.

    After a number, it may be a unit, which ends sentences, too.

    >>> is_abbreviated("De brug is dicht, zei dhr. Jansen tegen de krant.", 27)
    True
    """
    before = text[max(0, at - 20) : at].rstrip()
    found = LAST.search(before)
    if found is None or UNIT.search(before):
        return False
    languages = LANGUAGES.get(found[1].lower())
    return (
        languages is not None and language_of(text[max(0, at - AROUND) : at + AROUND]) in languages
    )
