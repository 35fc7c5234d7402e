"""Links: those of a chapter lead to files and headings that exist, and so do those of the HTML that is made of it."""

import os
import re

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HREF = re.compile(r'(href|src)="([^"#][^"]*)"')


def is_external(target):
    return re.match(r"[a-z]+:", target) is not None


def heading_anchors(text):
    """The anchors of a Markdown file's headings, as GitHub makes them."""
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchors.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return anchors


def faults(chapter):
    """What is wrong with the links of a Markdown file."""
    found = []
    text = chapter.read_text()
    for target in LINK.findall(FENCE.sub("", text)):
        if is_external(target):
            continue
        path, _, anchor = target.partition("#")
        file = (chapter.parent / path) if path else chapter
        if not file.exists():
            found.append(f"the link to {target} leads to no file")
        elif anchor and file.suffix == ".md" and anchor not in heading_anchors(file.read_text()):
            found.append(f"the link to {target} leads to no heading")
    return found


def repair_html(chapters, folder):
    """Returns the broken links of the HTML in `folder` that mdBook has made of `chapters`, after a repair: links to
    other files of the repository are relative to the chapters, and mdBook takes every `.md` for a chapter."""
    found = []
    for page in sorted(folder.glob("*.html")):

        def repaired(match):
            attribute, target = match.groups()
            path, hash_mark, anchor = target.partition("#")
            if is_external(target) or target.startswith("/") or (page.parent / path).exists():
                return match[0]
            source = chapters / path
            if not source.exists():
                source = source.with_suffix(".md")
            if source == chapters / "README.md":
                path = "index.html"
            elif source.exists():
                path = os.path.relpath(source, page.parent)
            else:
                found.append(f"{page.name}: the link to {target} leads to no file")
            return f'{attribute}="{path}{hash_mark}{anchor}"'

        text = page.read_text()
        page.write_text(HREF.sub(repaired, text))
    if not list(folder.glob("*.html")):
        found.append(f"wanted pages in {folder}, found none")
    return found
