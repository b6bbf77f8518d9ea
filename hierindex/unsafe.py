"""Characters that are not shown, or change how what is beside them is shown."""

import re

# Control characters, bidirectional marks, line separators, lone surrogates and no characters.
UNSAFE = re.compile(
    "[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
