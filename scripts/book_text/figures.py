"""Figures that were measured on a GPU, from the files in bench/results/h200. Nobody types them.

    <!-- figure: NAME ARGUMENT .. -->text<!-- end figure -->

The text between the marks is what the function NAME of this module makes of the results: a sentence or a table.
"""

import json
import re

from .fault import Fault

RESULTS = "bench/results/h200"
MARK = re.compile(r"<!-- figure: (?P<call>[^\n]*?) -->(?P<text>.*?)<!-- end figure -->", re.DOTALL)


def renewed(root, chapter, text):
    """The text with the figures of its marks."""

    def figure(match):
        name, *arguments = match["call"].split()
        if name not in FIGURES:
            raise Fault(f"wanted a figure of {', '.join(sorted(FIGURES))}, found {name}")
        return f"<!-- figure: {match['call']} -->{FIGURES[name](root / RESULTS, *arguments)}<!-- end figure -->"

    return MARK.sub(figure, text)


def records(folder, file, **wanted):
    """The records of a file with these fields. Of several for the same case the last one counts."""
    lines = (folder / file).read_text().splitlines()
    found = [json.loads(line) for line in lines if line.strip()]
    found = [record for record in found if all(record.get(key) == value for key, value in wanted.items())]
    if not found:
        raise Fault(f"wanted a record of {wanted} in {file}, found none")
    return found


def ladder(folder, family, case, *rungs):
    """A table of the times of a ladder's rungs, in milliseconds."""
    found = {record["rung"]: record for record in records(folder, "ladder.jsonl", family=family, case=case)}
    missing = [rung for rung in rungs if rung not in found]
    if missing:
        raise Fault(f"wanted the rungs {', '.join(missing)} in ladder.jsonl for {case}, found {', '.join(found)}")
    lines = ["\n| rung | us |", "|---|---|"]
    lines += [f"| `{rung}` | {found[rung]['ms'] * 1000:.1f} |" for rung in rungs or found]
    device = found[next(iter(found))]
    return "\n".join(lines) + f"\n\nMedians, {device['device']}, {device['date']}.\n"


def book(folder, *cases):
    """A table of the times of the book's experiments; a `_` in a case stands for a space."""
    cases = [case.replace("_", " ") for case in cases]
    try:
        found = {record["case"].replace("_", " "): record for record in records(folder, "book.jsonl", bench="book")}
    except FileNotFoundError:
        return "\nNot measured yet.\n"
    missing = [case for case in cases if case not in found]
    if missing:
        raise Fault(f"wanted the cases {', '.join(missing)} in book.jsonl, found {', '.join(found)}")
    lines = ["\n| kernel | us | GB/s |", "|---|---|---|"]
    for case in cases:
        record = found[case]
        lines.append(f"| {case} | {record['ms'] * 1e3:.1f} | {record['bytes'] / record['ms'] / 1e6:.0f} |")
    record = found[cases[0]]
    return "\n".join(lines) + f"\n\nMedians, {record['device']}, {record['date']}.\n"


FIGURES = {"book": book, "ladder": ladder}
