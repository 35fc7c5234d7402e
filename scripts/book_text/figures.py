"""Figures that were measured on a GPU, from the files in bench/results/h200, or computed from these by a model. Nobody
types them.

    <!-- figure: NAME ARGUMENT .. -->text<!-- end figure -->

The text between the marks is what the function NAME of this module makes of the results: a table, or words inside a
sentence. Words do not begin a line: Markdown would end the paragraph before the mark.
"""

import json
import re
import shlex

from .fault import Fault

RESULTS = "bench/results/h200"

# Tables that scripts/distributed-model has computed.
MODEL = "docs/distributed.md"
MARK = re.compile(r"<!-- figure: (?P<call>[^\n]*?) -->(?P<text>.*?)<!-- end figure -->", re.DOTALL)


def renewed(root, chapter, text):
    """The text with the figures of its marks."""

    def figure(match):
        name, *arguments = shlex.split(match["call"])
        if name not in FIGURES:
            raise Fault(f"wanted a figure of {', '.join(sorted(FIGURES))}, found {name}")
        found = FIGURES[name](root / RESULTS, *arguments)
        begins_line = match.start() == 0 or text[match.start() - 1] == "\n"
        if begins_line and not found.startswith("\n"):
            raise Fault(f"wanted text before the figure {match['call']} on its line, found none")
        return f"<!-- figure: {match['call']} -->{found}<!-- end figure -->"

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


def computed(folder, family, case):
    """The records of the rungs of a case, by the name of the rung; without those that the kernel cannot compute."""
    found = records(folder, "ladder.jsonl", family=family, case=case)
    return {record["rung"]: record for record in found if "ms" in record}


def milliseconds(folder, family, case, rung):
    """The time of a rung in milliseconds."""
    found = computed(folder, family, case)
    if rung not in found:
        raise Fault(f"wanted the time of {rung} in ladder.jsonl for {case}, found {', '.join(found)}")
    return found[rung]["ms"]


def time(folder, family, case, rung):
    """The time of a rung: `26.1 us`, `1.01 ms`."""
    return in_words(milliseconds(folder, family, case, rung))


def in_words(ms):
    if ms < 1:
        return f"{ms * 1000:.1f} us"
    return f"{ms:.2f} ms" if ms < 100 else f"{ms:.0f} ms"


def speedup(folder, family, case, rung, other):
    """How many times as fast a rung is as another one: `1.6`."""
    ratio = milliseconds(folder, family, case, other) / milliseconds(folder, family, case, rung)
    return f"{ratio:.1f}" if ratio >= 1.05 else f"{ratio:.2f}"


def ladder_cases(folder, family, *cases):
    """A table of the times of all rungs of a family, a column for each case."""
    columns = [computed(folder, family, case) for case in cases]
    device = next(iter(columns[0].values()))
    lines = ["\n| rung | continues | " + " | ".join(f"`{case}`" for case in cases) + " |"]
    lines.append("|---|---|" + "---|" * len(cases))
    rungs = {rung: record["parent"] for column in columns for rung, record in column.items()}
    for rung, parent in rungs.items():
        times = [in_words(column[rung]["ms"]) if rung in column else "-" for column in columns]
        lines.append(f"| `{rung}` | {f'`{parent}`' if parent else '-'} | " + " | ".join(times) + " |")
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


def gemm(folder, rows, depth, cols, element, implementation):
    """The time of XW by an implementation: warprow's plan, a copy of the operands (`floor`) or cuBLAS."""
    wanted = {"rows": int(rows), "k": int(depth), "features": int(cols), "type": element, "impl": implementation}
    return in_words(records(folder, "gemm.jsonl", **wanted)[-1]["ms"])


def gcn(folder, graph):
    """A table of the times of a network's operators: warprow, PyTorch, and a copy of the bytes."""
    found = records(folder, "gcn.jsonl", graph=graph)
    ours = [record for record in found if record["impl"] == "warprow"]
    theirs = {(r["operator"], r["layer"]): r["ms"] for r in found if r["impl"].startswith("torch")}
    lines = ["\n| operator | layer | warprow | PyTorch | a copy of the bytes |", "|---|---|---|---|---|"]
    for record in ours:
        key = (record["operator"], record["layer"])
        torch = in_words(theirs[key]) if key in theirs else "-"
        cells = [f"`{record['operator']}`", str(record["layer"] or "all"), in_words(record["ms"]), torch]
        lines.append("| " + " | ".join([*cells, in_words(record["floor_ms"])]) + " |")
    widths = " to ".join(str(width) for width in ours[0]["widths"])
    size = f"{ours[0]['rows']} nodes, {ours[0]['nnz']} edges, widths {widths}"
    return "\n".join(lines) + f"\n\n{size}. Medians, {ours[0]['device']}, {ours[0]['date']}.\n"


def bounds(folder, *cases):
    """A table of what limits SpMM, from hardware counters: a case is `graph,kind,features,type`."""
    lines = ["\n| case | memory | L2 to multiprocessors | instructions issued | resident warps |", "|---|---|---|---|---|"]
    for case in cases:
        graph, kind, features, element = case.split(",")
        wanted = {"graph": graph, "kind": kind, "features": int(features), "type": element, "impl": "warprow"}
        found = records(folder, "spmm_counters.jsonl", **wanted)[-1]
        names = ["dram_percent", "l2_to_sm_percent", "issue_percent", "warps_percent"]
        cells = " | ".join(f"{found[name]:.0f} %" for name in names)
        lines.append(f"| {graph}, {kind}, {features} features, {element} | {cells} |")
    return "\n".join(lines) + "\n\nPercent of what an NVIDIA H200 can sustain, by Nsight Compute.\n"


def model(folder, table, *graphs):
    """Lines of a table of several GPUs' times, as the model has computed them."""
    text = (folder / "../../.." / MODEL).read_text()
    found = re.search(rf"<!-- begin: {re.escape(table)} -->\n(.*?)<!-- end: ", text, re.DOTALL)
    if not found:
        raise Fault(f"wanted a table {table} in {MODEL}, found none")
    lines = {line.split("|")[1].strip(): line for line in found[1].splitlines()}
    missing = [graph for graph in graphs if graph not in lines]
    if missing:
        raise Fault(f"wanted the graphs {', '.join(missing)} in the table {table}, found {', '.join(lines)}")
    return "\n" + "\n".join([lines["graph"], lines["---"], *(lines[graph] for graph in graphs)]) + "\n"


FIGURES = {
    "book": book,
    "bounds": bounds,
    "gcn": gcn,
    "gemm": gemm,
    "ladder": ladder,
    "ladder_cases": ladder_cases,
    "model": model,
    "speedup": speedup,
    "time": time,
}
