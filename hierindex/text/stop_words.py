"""Words that are not part of a title: function words, common verbs and adverbs, and fillers."""

ENGLISH = """
a able about above absolutely abstract acceptable according account across actual actually add
added adding additional adds after afterwards again against ago agree agreed ah aha ahead ain't
all allow allowed allows almost alone along already alright also alternatively although always am
among amount an and annoying another any anybody anymore anyone anything anyway anyways anywhere
apart apparently appear appears applied apply are aren't around as aside ask asked asking asks
assume assumed assumes assuming at available aw away awesome aww back bad based basic basically be
beat became because become becomes been before began begin begins behind being below beside
besides best better between beyond big bigger bit boring both bring broke broken brought builds
built bunch but buy by bye call called calling calls came can can't cannot cases cause caused
certain certainly change changed changes check clear clearly close closer collect come comes
coming common comparing completely compute computed consider considered considering contain
contained contains cool correct correspond corresponding costs could couldn't course crazy create
created creates currently cuz day days deal decide decided deeper def define defined defines
definite definitely depend depending depends describe described describes despite did didn't
different difficult directly disagree discuss discussed discusses do does doesn't doing don't done
down due during each earlier easier easily easy eh eight eighty either eleven elif else em end
ended ends enough entire entirely er especially essentially et etc even eventually ever every
everybody everyone everything everywhere exactly example examples excellent except exciting expect
expected extremely fact fairly familiar far faster feel fell felt few fifteen fifty fig figure
figures final finally find finds fine finish finished first fit five follow followed following
follows for forth forty found four from full fully fun further gave general generally get gets
getting give given gives giving glad go god goes going gone gonna good got gotta gotten great grew
guess guessing guy guys had hadn't half hand happen happened happening happens happy hard hardly
has hasn't have haven't having he he'd he'll he's heard held hello help hence her here here's hers
herself hey hi higher him himself his hit hm hmm hold hope hopefully how how's however huge huh
hundred hurt i i'd i'll i'm i've idea ideas if ignoring imagine immediately implement implemented
import important in include included includes including increase indeed instead interested
interesting into involved irrespective is isn't it it'd it'll it's its itself just keep keeps kept
kidding kind kinda kinds knew know known knows large largely larger last late later latter lay
lead leads learn learns least leave led left less let let's lets like liked likely listing
listings little long longer look looked looking looks lost lot lots love low lower made mainly
make makes making many matter maximum may maybe me mean means meant meanwhile mention mentioned
mentions merely met mhm might million mind mine minimum minute mm mm-hmm moment more moreover most
mostly move moved moving mr mrs much must my myself name named near nearly necessarily necessary
need needed needs neither never nevertheless next nice nine ninety no nobody nod noisy non none
nonetheless nope nor normally not note nothing notice now nowhere number o'clock observable obtain
obtained obvious obviously occur occurred occurs of off often oh ok okay old older on once one
ones only onto ooh oops open opposed or order other others otherwise ought our ours ourselves out
over overall own paid part particular particularly parts people perfect perfectly perhaps person
piece place play please plenty plus point points poor possible possibly pretty previous previously
prior probably problem proceeding properly provide provided provides pull purpose purposes push
put puts putting quite ran random rather re read ready real really reason recall recently
recommend recommended regard regarding relative relatively relevant remain remember respective
respectively rest result results return returned returns right rose roughly run running runs said
sake same sat saw say saying says second section see seeing seem seemed seems seen self send sense
sent separate set sets setting seven seventy several shall she she'd she'll she's should shouldn't
show showed showing shown shows side significant significantly similar similarly simple simpler
simplest simply since sits six sixty slightly slower small smaller so sold some somebody somehow
someone something sometime sometimes somewhat somewhere soon sorry sort sorta sorts speak specific
specifically spent stand stands start started starting starts stay stick still stood stop straight
struck stuff subsequent such suddenly suggest suggested suggests suppose supposed sure take taken
takes taking talk talked talking talks taught tell telling tells ten tend terms than thank thanks
that that'd that'll that's the thee their theirs them themselves then there there'd there'll
there's thereby therefore these they they'd they'll they're they've thing things think thinking
thinks third thirty this those though thought thoughts thousand three threw through throughout
thus til till time times tiny to today together told tomorrow too took top total totally toward
towards tried tries true truly try trying turn turned turning turns twelve twenty twice two
typically uh uh-huh ultimately um under underlying understand unfortunately unless unlike until
unto up upon us use used useful uses using usual usually various versus very via wait wanna want
wanted wanting wants was wasn't way ways we we'd we'll we're we've week weeks weird well went were
weren't what what'd what's whatever whatnot when whenever where where's whereas whereby wherein
wherever whether which whichever while who who'd who'll who's whoever whole whom whose why wider
will willing wins wish with within without won won't wonder wonderful word words work worked
working works worse worst worth would wouldn't wow write writes written wrong wrote yawning yeah
year years yep yes yesterday yet you you'd you'll you're you've your yours yourself yourselves yup
zero
"""
OTHERS = """
aan aber afin agli ai aient ainda ainsi al algo algunas algunos alla alle allem allen aller alles
allo alors als altijd anche ancora ander andere anderen ante antes ao aos après aquel aquela
aquele aquella así até au auch aucun aucune auf aunque aus aussi autre autres aux avait avant avec
avere aveva avoir bei beim bij bin bis bist cada car ce ceci cela celle celui ces cet cette ceux
chaque che chez chi ci coi col com comme como con contra cosa cual cuando cui cuya cuyo da daar
dabei dadurch dafür dagli dai dal dalla dalle damit dan dann dans das dass dat dazu de degli dei
dein del dela dele della delle dello dem den denn depois depuis der des desde deshalb deux deze di
dich die dies diese diesem diesen dieser dieses dir dit doch doen donc donde dont door dopo dort
dos dove du durante durch dus e ed een ein eine einem einen einer eines einige el ela elas ele
eles ella ellas elle elles ellos en encore entonces entre então era eran erano es esa esas ese eso
esos essa esse essere est esta estaba estas este esto estos está están etwa etwas eu euch eux fait
foi foram fra fu fue fueron für ge geen gegen gibt gli ha haben había han hanno hasta hatte hatten
hay heb hebben heeft hem het hier hij hinter ho hoe hun ich iets ihm ihn ihnen ihr ihre ihrem
ihren ik il ils im immer ins io isso ist isto ja je jede jedem jeden jeder jedes jedoch jusque já
kan kann kein keine keinen kon kunnen können könnte la laquelle las le lei lequel les lesquels
leur leurs lhe li lo loro lorsque los lui ma maar mais man mas mediante meer mehr mein mentre mes
mesmo meu mi mich mientras mij mijn minha mio mir mis mit moet moins molto mon mucho muchos muito
muss muy más même müssen na naar nach nada nas ne nei nein nel nella nelle nello nem ni nicht
nichts niet niets noch nog noi nos nosotros nossa nosso nostro notre nous nu nuestra nuestro num
numa nun nur não nós o oder ogni ohne om omdat onder ons ont ook op oppure os otra otras otro
otros ou où par para parce pas pela pelas pelo pelos pendant perché pero però peu peut peuvent più
poco poi por porque pour pourquoi prima pues puis qual quale quand quando quanto que quel quella
quelle quello quem questa queste questi questo qui quien quindi quoi reeds sa sans schon se sea
según sehr sein seine seinem seinen seiner seit seja selon sem sempre senza ser sera ses seu
seulement seus si sia siamo sich sie siempre sin sind sino sob sobre sogar soit soll sollte
sondern sono sont sopra sotto sous sowie sta stato su sua suas sue sugli sui sul sulla sulle suo
suoi sur sus são só ta también também tandis tanto te tegen tem tes tiene tienen toch todo todos
toen toi tot tous tout toute toutes tra tras très tu tudo tutta tutte tutti tutto têm u uit uma
umas un una unas und une uno unos uns unser unter usted uw van veel vers vi viel viele você voici
voilà vom von voor vor vos votre vous wann waren warum wat wegen weil weiter wel welche wenn werd
werde werden wezen wie wieder wil wir wird wirst wo worden wordt wurde wurden würde y ya zal ze
zei zelf zich zij zijn zo zonder zou zu zum zur zwar zwischen à às é él étaient était été être
über
"""
"""Of Dutch, French, German, Italian, Portuguese and Spanish, apart from English nouns."""

STOP_WORDS = frozenset(f"{ENGLISH} {OTHERS}".split())
BEFORE_VERBS = frozenset(
    """
can can't cannot could couldn't didn't doesn't don't he i i'd i'll it it'll let's may might must
never not shall she should shouldn't they they'd they'll to we we'd we'll who will won't would
wouldn't you you'd you'll
""".split()
)
"""English pronouns and auxiliaries, after which a word in lower case is a verb."""

GERMAN_QUESTION_WORDS = frozenset(
    """
alle als am an auch auf aus bei beim bis das dass dem den der des die dies diese diesem diesen
dieser dieses durch ein eine einem einen einer eines es für gelten gibt gilt haben hat hatte ich
ihr ihre im in ist kann kein keine keinem keinen keiner keines man mit nach nicht oder sein seine
seinem seinen seiner sich sie sind um und vom von vor wann war waren warum was welche welchem
welchen welcher welches wem wen wenn wer werden weshalb wie viel viele wieso wird wo wodurch wofür
woher wohin womit worauf woraus wurde wurden zu zum zur über
""".split()
)
ENGLISH_QUESTION_WORDS = frozenset(
    """
a about am an and any are as at be been by can could did do does for from had has have how i in
into is it its many may me much my of on or should tell than that the their there these they this
those to was we were what when where which who whom whose why will with would you your
""".split()
)
"""Words that merely ask, or that nearly every question has."""

CHINESE_QUESTION_CHARACTERS = frozenset("什么麼怎哪谁誰何几幾吗嗎呢")
"""Characters of words that merely ask."""
