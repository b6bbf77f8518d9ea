"""Abbreviations that do not end a sentence, by language."""

import re
from collections import defaultdict

from hierindex.text.stop_words import language_of

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
LAST = re.compile(r"(?:^|[\s(\"'\u00ab\u201e\u2019/])([^\W\d_][\w.]*)\.$")
UNIT = re.compile(r"\d\s*\w+\.$")
AROUND = 500  # characters of which the language is found
LANGUAGES = defaultdict[str, set[str]](set)
for _language, _words in ABBREVIATIONS.items():
    for _word in _words.split():
        LANGUAGES[_word].add(_language)


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
