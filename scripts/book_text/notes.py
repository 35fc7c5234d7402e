"""Notes: paragraphs of docs/notes, which the chapter quotes as they are.

    <!-- note: docs/notes/spmm.md#Split rows finished by the last block -->

After this mark comes the paragraph that begins with `**Split rows finished by the last block.**`, as a quotation, and a
link to its file.
"""

import os
import re
import textwrap

from .fault import Fault

MARK = re.compile(r"^<!-- note: (?P<path>[^#\s]+)#(?P<title>[^\n]*?) -->\n(?:> [^\n]*\n)*", re.MULTILINE)

# Columns of a quoted line.
WIDTH = 118


def renewed(root, chapter, text):
    """The text with the paragraphs of its marks."""

    def note(match):
        path = root / match["path"]
        if not path.is_file():
            raise Fault(f"wanted a file for a note, found none at {match['path']}")
        start = f"**{match['title']}.**"
        paragraphs = [part for part in path.read_text().split("\n\n") if part.startswith(start)]
        if len(paragraphs) != 1:
            raise Fault(f"wanted one paragraph {start} in {match['path']}, found {len(paragraphs)}")
        lines = textwrap.wrap(paragraphs[0], WIDTH, break_on_hyphens=False, break_long_words=False)
        lines.append(f"([{match['path']}]({os.path.relpath(path, chapter.parent)}))")
        mark = match[0].split("\n", 1)[0]
        return mark + "\n" + "".join(f"> {line}\n" for line in lines)

    return MARK.sub(note, text)
