"""Listings: items of source files, which the chapter shows as they are.

    <!-- listing: book/kernels/src/hello.rs#hello,axpy -->

After this mark come a link to the file and a fenced block with the items `hello` and `axpy`, documentation and
attributes included; with ` nodoc` after the names, without documentation. Without names, the whole file. An item is a
function, struct, enum, trait, constant or macro of Rust, or an `impl` by its whole head: `#impl Foo for Bar`. Markers
inside the sources are not needed, so they are read as they were written.
"""

import os
import re

from .fault import Fault

MARK = re.compile(
    r"^<!-- listing: (?P<path>[^#\s]+)(?:#(?P<items>.*?))?(?P<nodoc> nodoc)? -->\n"
    r"(?:\[`[^\n]*\n\n```[^\n]*\n.*?^```\n)?",
    re.MULTILINE | re.DOTALL,
)
LANGUAGES = {".rs": "rust", ".toml": "toml", ".py": "python", ".ptx": "text"}


def renewed(root, chapter, text):
    """The text with the listings of its marks."""

    def listing(match):
        path = root / match["path"]
        if not path.is_file():
            raise Fault(f"wanted a file for a listing, found none at {match['path']}")
        source = path.read_text()
        names = [name.strip() for name in (match["items"] or "").split(",") if name.strip()]
        parts = [item(source, name, match["path"], bool(match["nodoc"])) for name in names] or [source.strip()]
        mark = match[0].split("\n", 1)[0]
        link = os.path.relpath(path, chapter.parent)
        language = LANGUAGES.get(path.suffix, "text")
        return f"{mark}\n[`{match['path']}`]({link})\n\n```{language}\n" + "\n\n".join(parts) + "\n```\n"

    return MARK.sub(listing, text)


def item(source, name, path, nodoc):
    """The lines of an item: documentation, attributes, and all until its closing brace or semicolon."""
    kind = re.escape(name)
    if not name.startswith("impl"):
        kind = rf"(?:(?:const |unsafe )*fn|struct|enum|trait|const|static|type|macro_rules!) {kind}\b"
    head = re.compile(r"^(\s*)(?:pub(?:\([a-z]+\))? )?" + kind)
    lines = source.splitlines()
    starts = [number for number, line in enumerate(lines) if head.match(line)]
    if len(starts) != 1:
        raise Fault(f"wanted one item `{name}` in {path}, found {len(starts)}")
    start = starts[0]
    indent = head.match(lines[start])[1]
    end = start
    # What rustfmt closes at the item's own indentation; a short item ends on its first line.
    while not re.match(rf"{indent}[^\s].*;$|{indent}[}})\]]+;?$|{indent}[^\s].*{{.*}}$", lines[end]):
        end += 1
    while start > 0 and lines[start - 1].startswith((f"{indent}///", f"{indent}#[", f"{indent}// ")):
        start -= 1
    found = [line.removeprefix(indent) for line in lines[start : end + 1]]
    if nodoc:
        found = [line for line in found if not line.startswith("///")]
    return "\n".join(found)
