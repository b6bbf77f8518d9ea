"""What a question asks for: a person, a time or a number."""

import re

NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve hundred thousand million half "
    "third quarter dozen ein eine zwei drei vier f\u00fcnf sechs sieben acht neun zehn elf "
    "zw\u00f6lf hundert tausend"
)
MONTHS = (
    "January February March April May June July August September October November December "
    "Januar Februar M\u00e4rz Mai Juni Juli Oktober Dezember"
)
ASKED = {
    "number": re.compile(
        r"\bhow (?:many|much|far|long|old|fast|tall|large|big|high|often|deep|wide|heavy)\b"
        r"|\bpercentage\b|\bnumber of\b|\bwie ?(?:viele?|weit|lange|alt|schnell|gro\u00df|hoch)\b"
        r"|[\u51e0\u5e7e]|\u591a\u5c11",
        re.IGNORECASE,
    ),
    "time": re.compile(
        r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century)\b|\bwann\b"
        r"|\bwelche[mnrs]? (?:Jahr|Tag|Monat)\b|\u4f55\u65f6|\u4ec0\u4e48\u65f6\u5019|\u54ea\u5e74",
        re.IGNORECASE,
    ),
    "person": re.compile(r"\bwho(?:se|m)?\b|\bwe(?:r|m|n|ssen)\b|\u8c01|\u8ab0", re.IGNORECASE),
}
HAS = {
    "number": re.compile(rf"\d|\b(?:{NUMBERS.replace(' ', '|')})\b", re.IGNORECASE),
    "time": re.compile(
        rf"\d{{4}}|\d\d?[.:]\d\d|\d0s\b|\bcentury\b|\b(?:{MONTHS.replace(' ', '|')})\b"
    ),
    "person": re.compile(r"(?<=[\w,;'\u2019\")] )[A-Z]\w+|\b[A-Z]\w+ [A-Z]\w+"),
}


def has_what_is_asked_for(question: str, text: str) -> bool:
    """Return whether a text has a number, a time or a name, if the question asks for one.

    A name in the question does not count. English and German are read, and Chinese questions.

    Examples
    --------
    >>> has_what_is_asked_for("How many pumps failed?", "Two pumps failed.")
    True
    >>> has_what_is_asked_for("Who won, Ada?", "The prize went to Ada.")
    False
    """
    asked = next((kind for kind, words in ASKED.items() if words.search(question)), None)
    if asked is None:
        return False
    if asked != "person":
        return HAS[asked].search(text) is not None
    known = set(re.findall(r"\w+", question.lower()))
    names = HAS[asked].findall(text)
    return any(word.lower() not in known for name in names for word in name.split())
