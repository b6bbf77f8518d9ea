"""The explorer's page, also as a single file."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "page"
STYLE = re.compile(r'<link rel="stylesheet" href="assets/([^"]+)">')
SCRIPT = re.compile(r'<script type="module" src="assets/([^"]+)"></script>')
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)
BODY = '<body data-pane="overview" data-left="overview" data-right="index">\n'
CHARSET = '<meta charset="utf-8">'


def json_in_html(value: Any) -> str:
    r"""Return JSON for a script element: it contains no `<`.

    >>> json_in_html("</script>")
    '"\\u003c/script>"'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def inlined(data: str, front: str = "") -> str:
    """Return the page as one file, with `data` from `json_in_html` in a script element.

    `front` is HTML shown before the page.

    A content security policy allows only the page's own script and styles, by their digests.
    """
    page = _text("index.html")
    styles = {name: _text(name) for name in STYLE.findall(page)}
    (script,) = SCRIPT.findall(page)
    code = modules(script)
    policy = (
        f"default-src 'none'; script-src {_digest(code)}; "
        f"style-src {' '.join(map(_digest, styles.values()))}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'{CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    block = f'<script type="application/json" id="data">{data}</script>'
    page = page.replace(CHARSET, meta).replace(BODY, BODY + front)
    page = STYLE.sub(lambda found: f"<style>{styles[found[1]]}</style>", page)
    return SCRIPT.sub(lambda _: f'{block}\n<script type="module">{code}</script>', page)


def modules(main: str) -> str:
    """Bundle a JavaScript module with its imports; each becomes a function of its exports."""
    parts = dict[str, str]()

    def add(name: str) -> None:
        if name in parts:
            return
        text = _text(name)
        for _, imported in IMPORT.findall(text):
            add(imported)
        exported = ", ".join(EXPORT.findall(text))
        text = IMPORT.sub(r'const {\1} = modules["\2"];\n', text)
        text = EXPORT.sub(lambda found: found[0].removeprefix("export "), text)
        parts[name] = f'modules["{name}"] = (() => {{\n{text}\nreturn {{ {exported} }};\n}})();\n'

    add(main)
    return "const modules = {};\n" + "".join(parts.values())


def _text(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the digest of a text for a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
