"""The command that writes a file of settings."""

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from hierindex.cli.flags import GROUPS
from hierindex.cli.output import print_note
from hierindex.errors import InputError

HEAD = """\
# Settings of the hierindex commands that are run in this folder. To change one, remove the # at the
# start of its line, which has the default, or an example where there is no fixed default. Flags
# (--top-k 5) take precedence over variables (HIERINDEX_TOP_K=5), and these over this file.
"""


def init() -> None:
    """Write hierindex.toml, a file of all settings with their defaults, commented out.

    Commands that are run in this folder follow its lines. An existing file is left as it is.
    """
    from hierindex.settings import TOML_FILE

    try:
        with Path(TOML_FILE).open("x", encoding="utf-8") as file:
            file.write(HEAD + "".join(_lines()))
    except FileExistsError:
        raise InputError(f"{TOML_FILE} exists already; edit it, or remove it first.") from None
    except OSError as error:
        raise InputError(f"{TOML_FILE} cannot be written: {error}.") from None
    print_note(f"note: Wrote {TOML_FILE}; remove the # before a setting to change it.")


def _lines() -> Iterator[str]:
    """Yield the title of each group, and of each setting its help and its line."""
    from hierindex.settings import Settings

    for title, group in GROUPS.items():
        yield f"\n# {title.upper()}\n"
        for name, flag in group.items():
            default = Settings.model_fields[name].default
            about = wrap(flag.help, 98, break_on_hyphens=False)
            value = json.dumps(flag.example if default is None else default)
            yield "\n".join(["", *(f"# {line}" for line in about), f"#{name} = {value}", ""])
