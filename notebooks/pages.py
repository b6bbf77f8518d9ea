"""What completes the pages of the site: written sections, and links between pages."""

import re
from inspect import getdoc
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode
from typer.main import get_command

import hierindex
from hierindex.cli.app import app as program
from hierindex.export.pictures import colours

HERE = Path(__file__).parent
ROOT = HERE.parent
INCLUDED = {
    "CHANGELOG.md": "about/changelog.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "LICENSE": "about/licence.md",
    "tests/benchmarks/README.md": "about/figures.md",
    "tests/benchmarks/COST.md": "about/costs.md",
}
"""Files outside this folder that are pages."""

ACCENTS = "primary", "secondary", "accent", "link-higher-contrast"  # colours of the theme

PARAMETERS = re.compile(r'<dl>\s*<dd><em class="sig-param">.*?</dl>', re.DOTALL)
METHODS = re.compile(r"^% methods of (\w+)$", re.MULTILINE)  # a comment of Markdown
LINK = re.compile(r"\]\(([\w./-]+)(#[\w-]*)?\)")
LONG = re.compile(r"=(<[^>]*>|[A-Z]\w*\([^()]*\)|'[^']{30,}')")
UNLISTED = {"class_name", "model_post_init", "of"}  # methods that the reference leaves out
PUBLIC = re.compile(rf"({'|'.join(hierindex.__all__)})(\.\w+)?")


def commands() -> str:
    """Return what each command does, its arguments and its flags, each with an anchor."""
    parts = list[str]()
    for name, command in get_command(program).commands.items():
        parts += [f"## {name}", command.help, f"```{{eval-rst}}\n.. program:: hierindex {name}\n"]
        panel = None
        for given in sorted(command.params, key=lambda each: panel_of(each) or ""):
            if panel_of(given) != panel:
                panel = panel_of(given)
                parts.append(f".. rubric:: {panel}\n")
            flags = [*getattr(given, "secondary_opts", ()), *given.opts]
            names = flags if flags[0].startswith("-") else []
            metavar = "" if getattr(given, "is_flag", False) else f" {given.metavar or 'N'}"
            shown = ", ".join(f"{flag}{metavar}" for flag in names) or given.metavar
            is_shown = given.show_default and isinstance(given.default, str | float)
            default = f" Default: {given.default}." if is_shown and metavar else ""
            said = escaped(f"{given.help}{' Required.' if given.required else default}")
            parts.append(f".. option:: {shown}\n\n   {said}\n")
        parts.append("```\n")
    return "\n\n".join(parts)


def panel_of(given: Any) -> str | None:
    """Return the heading that a flag has in the help, if any."""
    return getattr(given, "rich_help_panel", None)


def escaped(text: str) -> str:
    """Return a text as reStructuredText that shows it as it is."""
    return re.sub(r"([*`|_\\])", r"\\\1", " ".join(text.split()))


def recipes() -> str:
    """Return every script of `pipelines`."""
    paths = sorted((ROOT / "pipelines").glob("*.py"))
    return "".join(f"\n## {path.stem}\n\n```python\n{path.read_text()}```\n" for path in paths)


WRITTEN = {
    "recipes": recipes,
    "reference/commands": commands,
}
"""What follows the text of a page."""


def table_of_methods(found: re.Match[str]) -> str:
    """Return a table of the documented methods of a class and what they do."""
    kind = getattr(hierindex, found[1])

    def whole(name: re.Match[str]) -> str:
        return f"`{kind.__name__}.{name[1]}`" if hasattr(kind, name[1]) else name[0]

    rows = [
        f"| `{kind.__name__}.{name}` | {re.sub('`([a-z_]+)`', whole, summary_of(kind, name))} |"
        for name in vars(kind)
        if not name.startswith("_") and name not in UNLISTED and callable(getattr(kind, name))
    ]
    return "\n".join(["| method | what it does |", "|---|---|", *rows])


def summary_of(kind: type, name: str) -> str:
    """Return the first paragraph of a method's docstring on one line."""
    return " ".join((getdoc(getattr(kind, name)) or "").partition("\n\n")[0].split())


def complete(app: Sphinx, page: str, source: list[str]) -> None:
    """Add what is written for a page, and have its links lead to pages."""
    path = app.env.doc2path(page)
    if page in WRITTEN:
        source[0] += WRITTEN[page]()
    source[0] = METHODS.sub(table_of_methods, source[0])
    source[0] = linked(source[0], path.parent)


def complete_included(app: Sphinx, path: Path, page: str, source: list[str]) -> None:
    """Have the links of an included file lead to pages."""
    source[0] = linked(source[0], (HERE / path).parent)


def linked(text: str, folder: Path) -> str:
    """Return Markdown whose links to files lead to pages, or to copies."""

    def link(found: re.Match[str]) -> str:
        path = (folder / found[1]).resolve()
        if not path.is_file():
            return found[0]
        inside = path.is_relative_to(HERE)
        name = path.relative_to(HERE if inside else ROOT).as_posix()
        page = name if inside else INCLUDED.get(name, f"../{name}")
        return f"](/{page}{found[2] or ''})"

    return LINK.sub(link, text)


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Link public names in the code of sentences to the reference."""
    for code in [*doctree.findall(nodes.literal)]:
        name = code.astext().removesuffix("()").removeprefix("hierindex.")
        if PUBLIC.fullmatch(name) and not is_linked(code):
            link = pending_xref(
                "", refdomain="py", reftype="obj", reftarget=f"hierindex.{name}", refexplicit=True
            )
            code.replace_self(link)
            link += code


def is_linked(node: nodes.Node) -> bool:
    """Whether a node is within a link."""
    while (node := node.parent) is not None:
        if isinstance(node, nodes.reference | pending_xref):
            return True
    return False


def find_short_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.reference | None:
    """Return a link for a class, its member or a function without its module, if there is one."""
    name = node.get("reftarget", "").removeprefix("hierindex.")
    if node.get("refdomain") != "py":
        return None
    known = env.domains.python_domain.objects
    full = {
        (found.docname, found.node_id): each
        for each, found in known.items()  # some of them twice, where they are and where defined
        if each.endswith(f".{name}") and (name[:1].isupper() or found.objtype == "function")
    }
    if len(full) != 1:
        return None
    ((page, anchor), title), *_ = full.items()
    return make_refnode(app.builder, node["refdoc"], page, anchor, content, title)


def shorten_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, given: str | None, returned: Any
) -> tuple[str, Any] | None:
    """Leave out the signature of a protocol, which is not called, and long defaults."""
    if getattr(obj, "_is_protocol", False):
        return "", None
    return (LONG.sub("=...", given), returned) if given else None


def skip_field(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out the fields of named tuples, which the class's docstring describes."""
    return str(getattr(obj, "__doc__", "")).startswith("Alias for field number") or None


def mend_for_screen_readers(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Replace the markup that screen readers announce wrongly: empty headers, parameters."""
    if "body" in context:
        body = context["body"].replace('<th class="head"><p></p></th>', "<td></td>")
        context["body"] = PARAMETERS.sub(
            lambda found: re.sub("<(/?)d[ld]>", r"<\1span>", found[0]).replace(
                '<span><em class="sig-param">', '<span class="line"><em class="sig-param">'
            ),
            body,
        )


def write_colours(app: Sphinx, error: Exception | None) -> None:
    """Write a style sheet that gives links and marks the accents of the explorer's page."""
    if error is None:
        rules = ""
        for scheme in ("light", "dark"):
            accent = colours(scheme)["accent"]
            accents = "".join(f"--pst-color-{name}:{accent};" for name in ACCENTS)
            rules += f'html[data-theme="{scheme}"]{{{accents}}}\n'
        Path(app.outdir, "_static", "colours.css").write_text(rules)
