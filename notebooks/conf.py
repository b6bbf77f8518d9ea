"""Settings of the site that `make docs` builds: guides, notebooks and the reference."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

import hierindex

sys.path.append(str(Path(__file__).parent))

LEFT_OUT = """
    object tuple BaseException Exception HierindexError InputError Hierarchy BaseModel BaseReader
    BaseRetriever BasePydanticVectorStore BaseEmbedding BaseSynthesizer NodeWithScore
""".split()
"""Classes whose members are not repeated where they are inherited."""

project = "hierindex"
author = project_copyright = "The hierindex authors"
version = release = hierindex.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]

# Markdown and notebooks
exclude_patterns = ["**.ipynb_checkpoints"]
nb_execution_mode = "off"  # the outputs are stored; tests run the notebooks
nb_ipywidgets_js = {}  # it would be fetched from elsewhere
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

# Docstrings
smartquotes_action = "D"  # dashes; what is in quotes may be copied
default_role = "py:obj"
add_module_names = False
maximum_signature_line_length = 80  # a longer one has a line for each parameter
autodoc_typehints = "none"  # docstrings have the types
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "inherited-members": ",".join(LEFT_OUT),
    "exclude-members": "model_config,model_post_init,class_name,get_prompts,update_prompts",
}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "hierindex"
copybutton_prompt_text = "$ "  # without it, and without what a command prints
html_static_path = ["style"]
html_css_files = ["site.css", "colours.css"]
html_favicon = "style/icon.svg"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}


def setup(app: Sphinx) -> None:
    """Connect what completes pages."""
    import pages
    from sections import Sections

    sections = Sections()
    app.connect("html-page-context", sections.collect)
    app.connect("build-finished", sections.write)
    app.connect("build-finished", pages.write_colours)
    app.connect("source-read", pages.complete)
    app.connect("include-read", pages.complete_included)
    app.connect("doctree-read", pages.link_names)
    app.connect("missing-reference", pages.find_short_name)
    app.connect("autodoc-process-signature", pages.shorten_signature)
    app.connect("autodoc-skip-member", pages.skip_field)
    app.connect("html-page-context", pages.mend_for_screen_readers)
