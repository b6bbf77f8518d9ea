"""Words by language: abbreviations that do not end a sentence, stop words and stems."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from Stemmer import Stemmer, algorithms

LANGUAGE = "language"  # metadata key of the code of a document's language

ABBREVIATIONS = {
    "de": "abt bzw ca dipl dr ebd evtl fr ggf gl hr hrsg inkl ing lt mio mrd nr prof st str"
    " tel tsd usw vgl zit zzgl",
    "nl": "afb art blz ca dhr dr drs evt ing ir jl jr mevr mej mr mrd m.n nl nr o.a p.j proc"
    " prof resp st tel vgl zgn d.w.z bijv enz n.a.v o.l.v t.a.v",
    "fr": "av bd boul chap ch dr fig mgr m mm mlle mme n no p pp prof st ste t vol env art éd",
    "es": "sr sra srta dr dra d da ee ud uds av avda c calle pág págs núm vol prof ing lic ej"
    " art cap",
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


def _by_word(words_of: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return the languages of each word, given the words of each language."""
    languages = defaultdict[str, set[str]](set)
    for language, words in words_of.items():
        for word in words:
            languages[word].add(language)
    return languages


ABBREVIATED_IN = _by_word({language: words.split() for language, words in ABBREVIATIONS.items()})
_names = """
    en English de German nl Dutch fr French es Spanish it Italian pt Portuguese pl Polish cs Czech
    ru Russian ja Japanese ko Korean zh Chinese th Thai el Greek ar Arabic he Hebrew hi Hindi
""".split()
LANGUAGE_NAMES: dict[str, str] = dict(zip(_names[::2], _names[1::2], strict=True))
"""English names of languages, by ISO 639 code."""
SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "zh": re.compile("[\u4e00-\u9fff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "hi": re.compile("[\u0900-\u097f]"),
}
OF_SCRIPT = 0.1  # least share of characters
MIN_SHARE = 0.2  # of function words; 41 Swedish pages have, in the median, 0.06 Dutch ones

WORD = re.compile(r"\w+")
STOP_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "en": """
            a about am an and any are as at be been but by can could did do does for from had has
            have how i if in into is it its many may me much my of on or should such tell than
            that the their then there these they this those to was we were what when where which
            who whom whose why will with would you your""",
        "de": """
            aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim
            bis da dabei dadurch dafür damit dann das dass dazu dem den denn der des deshalb dich
            die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen
            einer eines einige er es etwa etwas euch für gegen gelten gibt gilt haben hat hatte
            hatten hinter ich ihm ihn ihnen ihr ihre ihrem ihren im immer in ins ist ja je jede
            jedem jeden jeder jedes jedoch kann kein keine keinem keinen keiner keines können
            könnte man mehr mein mich mir mit muss müssen nach nein nicht nichts noch nun nur ob
            oder ohne schon sehr sein seine seinem seinen seiner seit sich sie sind sogar soll
            sollte sondern sowie um und uns unser unter viel viele vom von vor wann war waren
            warum was wegen weil weiter welche welchem welchen welcher welches wem wen wenn wer
            werde werden weshalb wie wieder wieso wir wird wirst wo wodurch wofür woher wohin
            womit worauf woraus worden wurde wurden würde zu zum zur zwar zwischen über""",
        "nl": """
            aan af al alle alles als altijd ander andere anderen bij daar dan dat de deze die
            dit doch doen door dus een en er geen had hadden heb hebben heeft hem het hier hij hoe
            hoeveel hun ik in is je kan kon kunnen maar me meer men met mij mijn moet na
            naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen tot
            u uit uw van veel voor waar waarom wanneer want waren was wat we wel welk welke werd
            wie wij wil worden wordt ze zei zelf zich zij zijn zo zonder zou""",
        "fr": """
            afin ai ainsi après au aucun aucune aussi autre autres aux avait avant avec avoir car
            ce ceci cela celle celui ces cet cette ceux chaque chez combien comme comment d dans
            de depuis des deux donc dont du elle elles en encore entre est et eux fait il ils je
            jusque la laquelle le lequel les lesquels leur leurs lorsque lui ma mais me moins mon
            même ne ni nos notre nous on ont ou où par parce pas pendant peu peut peuvent pour
            pourquoi puis qu quand que quel quelle quelles quels qui quoi sa sans se selon sera
            ses seulement si sont sous sur ta tandis te tes toi tous tout toute toutes très tu un
            une vers voici voilà vos votre vous y à étaient était été être""",
        "es": """
            a al algo algunas algunos ante antes aquel aquella así aunque cada como con contra
            cual cuando cuya cuyo cuál cuáles cuándo cuántas cuánto cuántos cómo de del desde
            donde durante dónde e el ella ellas ellos en entonces entre era eran es esa esas ese
            eso esos esta estaba estas este esto estos está están fue fueron ha había han hasta
            hay la las le les lo los me mi mientras mucho muchos muy más nada ni no nos nosotros
            nuestra nuestro o os otra otras otro otros para pero poco por porque pues que quien
            quién qué se sea según ser si siempre sin sino sobre su sus sí también tanto te tiene
            tienen todo todos tu un una unas uno unos usted y ya él""",
        "it": """
            a agli ai al alla alle allo anche ancora avere aveva c che chi ci col come con contro
            cosa cui da dagli dai dal dalla dalle degli dei del della delle dello di dopo dov dove
            e ed era erano essere fra gli ha hanno i il in io l la le lei li lo loro lui ma mentre
            mi mio molto ne nei nel nella nelle nello noi non nostro o ogni oppure per perché però
            più poco poi prima qual quale quali quando quante quanti quanto quella quelle quello
            questa queste questi questo qui quindi se sempre senza si sia siamo sono sopra sotto
            sta stato su sua sue sugli sui sul sulla sulle suo suoi tra tu tutta tutte tutti tutto
            un una uno è""",
        "pt": """
            a ainda algo ante ao aos após aquela aquele as até cada com como contra da das de dela
            dele depois desde do dos durante e ela elas ele eles em entre então era eram essa esse
            esta este está eu foi for foram há isso isto já la lhe lo mais mas me mesmo meu minha
            muito na nas nem no nos nossa nosso num numa não nós o onde os ou para pela pelas pelo
            pelos pois por porque porquê quais qual quando quantas quanto quantos que quem quê se
            seja sem sempre ser seu seus si sob sobre sua suas são só também tanto te tem tudo têm
            um uma umas uns você à às é""",
        "pl": """
            a aby albo ale bez bo by być był była było były ci co czy czym dla do gdy gdzie go i
            ich ile im jak jaka jaki jakie jako jego jej jest jeszcze jeśli już kiedy kto która
            które który których może mu na nad nie niż o od on ona oni oraz po pod ponieważ przed
            przez przy się są ta tak także tam te tego tej ten to tu tych tylko tym w we więc z za
            ze że żeby""",
        "cs": """
            a aby ale ani bez by byl byla bylo byly být co což do i jak jako jaké jaký je jeho
            jejich její jen jsem jsou k kde kdo kdy když ke kolik která které který ku mezi na nad
            ne nebo není než o od on ona oni po pod podle pro proto protože proč před při s se si
            ta tak také tam tato tedy ten tento to toho tom tu ty u už v ve více však z za ze či
            že""",
        "ru": """
            а без более бы был была были было быть в вас весь во вот все всего вы где да для до
            его ее если есть еще же за и из или им их к как какая какие какой когда которая
            которые который кто ли между мне мы на над не него нет ни но о об он она они от по под
            почему при с сколько со так также там то только тот ты у уже чем что чтобы эта эти это
            этот я""",
    }.items()
}
"""Function words, which nearly every text and question of a language has, by its code.

The English ones do not include "no" and "not", which mark a negated question.
"""
UNSEARCHED = frozenset(  # Lucene's list; without all of English, fewer facts are found
    """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
""".split()
)
QUESTION_WORDS = frozenset("what which who whom whose when where why how".split())
"""Question words. In texts where they are rare, such as papers, BM25 gives them high weights."""
ENGLISH_WORDS = frozenset(  # among those of other languages, which say something in English
    "allen car comment contra dan door dove era gilt hat hay hem man men nun per pod pour pro "
    "reeds sea sin sue tom van war".split()
)
TELLING = {"en": STOP_WORDS["en"]}
TELLING |= {code: words - ENGLISH_WORDS for code, words in STOP_WORDS.items() if code != "en"}
"""Words by which a language is told."""
LANGUAGES_OF = _by_word(TELLING)
EVERY_STOP_WORD = frozenset[str]().union(*TELLING.values())
FILLERS = frozenset(
    """
able above absolutely abstract acceptable according account across actual actually add added
adding additional adds after afterwards again against ago agree agreed ah aha ahead ain't all
allow allowed allows almost alone along already alright also alternatively although always among
amount annoying another anybody anymore anyone anything anyway anyways anywhere apart apparently
appear appears applied apply aren't around aside ask asked asking asks assume assumed assumes
assuming available aw away awesome aww back bad based basic basically beat became because become
becomes before began begin begins behind being below beside besides best better between beyond big
bigger bit boring both bring broke broken brought builds built bunch buy bye call called calling
calls came can't cannot cases cause caused certain certainly change changed changes check clear
clearly close closer collect come comes coming common comparing completely compute computed
consider considered considering contain contained contains cool correct correspond corresponding
costs couldn't course crazy create created creates currently cuz day days deal decide decided
deeper def define defined defines definite definitely depend depending depends describe described
describes despite didn't different difficult directly disagree discuss discussed discusses doesn't
doing don't done down due during each earlier easier easily easy eh eight eighty either eleven
elif else em end ended ends enough entire entirely er especially essentially et etc even
eventually ever every everybody everyone everything everywhere exactly example examples excellent
except exciting expect expected extremely fact fairly familiar far faster feel fell felt few
fifteen fifty fig figure figures final finally find finds fine finish finished first fit five
follow followed following follows forth forty found four full fully fun further gave general
generally get gets getting give given gives giving glad go god goes going gone gonna good got
gotta gotten great grew guess guessing guy guys hadn't half hand happen happened happening happens
happy hard hardly hasn't haven't having he he'd he'll he's heard held hello help hence her here
here's hers herself hey hi higher him himself his hit hm hmm hold hope hopefully how's however
huge huh hundred hurt i'd i'll i'm i've idea ideas ignoring imagine immediately implement
implemented import important include included includes including increase indeed instead
interested interesting involved irrespective isn't it'd it'll it's itself just keep keeps kept
kidding kind kinda kinds knew know known knows large largely larger last late later latter lay
lead leads learn learns least leave led left less let let's lets like liked likely listing
listings little long longer look looked looking looks lost lot lots love low lower made mainly
make makes making matter maximum maybe mean means meant meanwhile mention mentioned mentions
merely met mhm might million mind mine minimum minute mm mm-hmm moment more moreover most mostly
move moved moving mr mrs must myself name named near nearly necessarily necessary need needed
needs neither never nevertheless next nice nine ninety no nobody nod noisy non none nonetheless
nope nor normally not note nothing notice now nowhere number o'clock observable obtain obtained
obvious obviously occur occurred occurs off often oh ok okay old older once one ones only onto ooh
oops open opposed order other others otherwise ought our ours ourselves out over overall own paid
part particular particularly parts people perfect perfectly perhaps person piece place play please
plenty plus point points poor possible possibly pretty previous previously prior probably problem
proceeding properly provide provided provides pull purpose purposes push put puts putting quite
ran random rather re read ready real really reason recall recently recommend recommended regard
regarding relative relatively relevant remain remember respective respectively rest result results
return returned returns right rose roughly run running runs said sake same sat saw say saying says
second section see seeing seem seemed seems seen self send sense sent separate set sets setting
seven seventy several shall she she'd she'll she's shouldn't show showed showing shown shows side
significant significantly similar similarly simple simpler simplest simply since sits six sixty
slightly slower small smaller so sold some somebody somehow someone something sometime sometimes
somewhat somewhere soon sorry sort sorta sorts speak specific specifically spent stand stands
start started starting starts stay stick still stood stop straight struck stuff subsequent
suddenly suggest suggested suggests suppose supposed sure take taken takes taking talk talked
talking talks taught telling tells ten tend terms thank thanks that'd that'll that's thee theirs
them themselves there'd there'll there's thereby therefore they'd they'll they're they've thing
things think thinking thinks third thirty though thought thoughts thousand three threw through
throughout thus til till time times tiny today together told tomorrow too took top total totally
toward towards tried tries true truly try trying turn turned turning turns twelve twenty twice two
typically uh uh-huh ultimately um under underlying understand unfortunately unless unlike until
unto up upon us use used useful uses using usual usually various versus very via wait wanna want
wanted wanting wants wasn't way ways we'd we'll we're we've week weeks weird well went weren't
what'd what's whatever whatnot whenever where's whereas whereby wherein wherever whether whichever
while who'd who'll who's whoever whole wider willing wins wish within without won won't wonder
wonderful word words work worked working works worse worst worth wouldn't wow write writes written
wrong wrote yawning yeah year years yep yes yesterday yet you'd you'll you're you've yours
yourself yourselves yup zero
""".split()
)
"""Common verbs, adverbs and fillers of English, which are not part of a title."""
UNTITLED = EVERY_STOP_WORD | FILLERS
"""Words that are not part of a title."""
CHINESE_QUESTION_CHARACTERS = frozenset("什么麼怎哪谁誰何几幾吗嗎呢")
"""Characters of words that merely ask."""


def is_abbreviated(text: str, at: int) -> bool:
    """Return whether an abbreviation before an offset means that the sentence continues.

    After a number, an abbreviation may be a unit, which can end a sentence.

    >>> is_abbreviated("De brug is dicht, zei dhr. Jansen tegen de krant.", 27)
    True
    """
    before = text[max(0, at - 20) : at].rstrip()
    found = LAST.search(before)
    if found is None or UNIT.search(before):
        return False
    languages = ABBREVIATED_IN.get(found[1].lower())
    return (
        languages is not None and language_of(text[max(0, at - AROUND) : at + AROUND]) in languages
    )


def language_of(text: str) -> str:
    """Return the code of the most likely language of a text, or "en" by default.

    The most frequent function words decide. Without function words, the script decides if at least
    a tenth of the characters are in it.

    >>> language_of("De brug is dicht, zei dhr. Jansen gisteren tegen de krant.")
    'nl'
    >>> language_of("Price of van door?"), language_of("橋はいつ閉まりますか")
    ('en', 'ja')
    """
    return _identified(text)[0]


def known_language(text: str) -> str:
    """Return a text's language, or "" if neither function words nor script identify it.

    >>> known_language("Wann fährt das Schiff zur Insel?"), known_language("Los Angeles")
    ('de', '')
    """
    code, is_sure = _identified(text)
    return code if is_sure else ""


def _identified(text: str) -> tuple[str, bool]:
    """Return the most likely language of a text, and whether it is sure."""
    words = WORD.findall(text.lower())
    function_words = [(word, LANGUAGES_OF[word]) for word in words if word in LANGUAGES_OF]
    n = Counter(code for _, codes in function_words for code in codes)
    code = max(TELLING, key=lambda code: n[code])
    n_distinct = len({word for word, codes in function_words if code in codes})
    if n_distinct >= 2 and n[code] >= MIN_SHARE * len(words):
        return code, True
    if not text.isascii():
        for of_script, script in SCRIPTS.items():
            if len(script.findall(text)) > OF_SCRIPT * len(text):
                return of_script, True
    return code, False


def is_foreign(metadata: Mapping[str, Any], language: str) -> bool:
    """Return whether a node's language is another one; False if either language is unknown.

    >>> is_foreign({"language": "de-AT"}, "en"), is_foreign({"language": ["de", "en"]}, "en")
    (True, False)
    >>> is_foreign({"language": "java"}, "en"), is_foreign({"language": "de"}, "")
    (False, False)
    """
    given = metadata.get(LANGUAGE) or []
    codes = map(str, given if isinstance(given, list) else [given])
    known = {re.split("[-_]", code.lower())[0] for code in codes} & LANGUAGE_NAMES.keys()
    if "ja" in known:
        known |= {"zh"}  # as a question without kana is taken for
    return bool(language and known) and language not in known


def stemmer_of(language: str) -> Stemmer:
    """Return Snowball's stemmer for a language, or the English one by default."""
    name = LANGUAGE_NAMES.get(language, "").lower()
    return Stemmer(name if name in algorithms() else "english")


def without_question_words(text: str) -> str:
    """Remove "what", "how" and the like, unless a text has no other words to search for.

    Words in capitals or quotation marks stay, because they may be names.

    >>> without_question_words("What does the WHO advise?"), without_question_words("Who is it?")
    ('does the WHO advise?', 'Who is it?')
    """
    kept = " ".join(
        word
        for place, word in enumerate(text.split())
        if word.strip("?!.,:;").lower() not in QUESTION_WORDS
        or not (word.islower() or (place == 0 and word.istitle()))
    )
    return text if UNSEARCHED.issuperset(WORD.findall(kept.lower())) else kept
