"""Configures Sphinx, which renders the pages as HTML: scripts/docs --html FOLDER."""
import pathlib
import posixpath
import re

import pygments.lexers

project = "attn"
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/*.md", "benchmark/*.md"]
root_doc = "README"
myst_heading_anchors = 4  # links may name headings, as on git hosts
nitpicky = True  # a broken link is a warning, and scripts/docs turns warnings into errors
smartquotes = False
html_copy_source = False
html_use_index = False
html_theme_options = {"fixed_sidebar": True, "page_width": "1100px", "body_max_width": "none"}


def add_contents(app, page, source):
    """Appends the contents of the sidebar to the README: the pages to which docs/index.md links, under its headings."""
    if page != "README":
        return
    contents = [("All pages", ["docs/index"])]
    for section in pathlib.Path(app.srcdir, "docs/index.md").read_text().split("\n## ")[1:]:
        links = re.findall(r"\]\(([^)]*)\.md\)", section)
        contents.append((section.splitlines()[0], [posixpath.normpath(f"docs/{link}") for link in links]))
    for caption, pages in contents:
        source[0] += "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


def setup(app):
    app.connect("source-read", add_contents)
    app.add_lexer("mlir", pygments.lexers.TextLexer)  # Pygments has no lexer for MLIR
