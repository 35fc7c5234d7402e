"""Writes the results into docs/counters.md, between <!-- begin: NAME --> and <!-- end: NAME -->."""

import sys
import textwrap

from counter_comparison.compare import compare, difference
from counter_comparison.metrics import FIVE_PERCENT, METRICS
from performance_tables.results import item, prose, table

# The counter that a micro-kernel is about, by the start of its name.
SUBJECTS = {
    "load": "loads_sectors",
    "store": "stores_sectors",
    "red": "reductions_sectors",
    "atom": "atomics_sectors",
    "shared_load": "shared_loads_wavefronts",
    "shared_store": "shared_stores_wavefronts",
    "shared_atom": "shared_atomics_wavefronts",
    "cp_async": "loads_sectors",
    "collectives": "shuffles",
    "occupancy": "warps_percent",
    "partial_stores": "stores_sectors",
}

# Columns of the table of kernels.
COLUMNS = {
    "loads_requests": "load requests",
    "loads_sectors": "load sectors",
    "stores_sectors": "store sectors",
    "atomics_and_reductions_sectors": "atomic and red sectors",
    "shared_loads_without_conflicts": "shared load wavefronts",
    "shared_stores_without_conflicts": "shared store wavefronts",
    "memory_read_bytes": "bytes from memory",
}

# Launches that take less than this part of their case's time are not in the table.
SMALL = 0.05


def whole(value):
    return "" if value is None else f"{value:,.10g}"


def cell(emulator, gpu):
    """Both values, or one if they are equal."""
    if emulator is None or gpu is None:
        return f"{whole(emulator)} / {whole(gpu)}" if emulator != gpu else ""
    if emulator == gpu:
        return whole(gpu)
    return f"{whole(emulator)} / {whole(gpu)} ({difference(emulator, gpu)})"


def metrics(_):
    def rule(metric):
        if metric.checked is None:
            return "shown only"
        if metric.key == "blocks_by_shared_memory":
            return "exactly, where it is the least limit"
        where = {"": "", r"^micro/": " (micro-kernels)", r"^(spmm|xw)/": " (SpMM, XW)"}[metric.checked]
        return ("exactly" if metric.tolerance < 0.01 else f"to {100 * metric.tolerance:.0f} %") + where

    rows = [(metric.meaning, f"`{'` or `'.join(metric.ncu)}`", rule(metric)) for metric in METRICS]
    return table(("counter", "Nsight Compute", "must agree"), rows)


def micro(results):
    rows = []
    for result in results:
        family, _, name = result["case"].partition("/")
        if family != "micro":
            continue
        kernel = name.split("/")[0]
        starts = [start for start in SUBJECTS if kernel.startswith(start)]
        key = SUBJECTS[max(starts, key=len)]
        meaning = next(metric.meaning for metric in METRICS if metric.key == key)
        emulator, gpu = result["emulator"].get(key), result["gpu"].get(key)
        verdict = "not measured" if gpu is None else "" if emulator == gpu else "differs"
        rows.append((f"`{name}`", meaning, whole(emulator), whole(gpu), verdict))
    return table(("micro-kernel", "counter", "emulator", "H200", ""), rows)


def kernels(results):
    times = {}
    for result in results:
        times[result["case"]] = times.get(result["case"], 0) + result["gpu"].get("nanoseconds", 0)
    rows = []
    for result in results:
        case, emulator, gpu = result["case"], result["emulator"], result["gpu"]
        if case.startswith("micro/") or gpu.get("nanoseconds", 0) < SMALL * times[case]:
            continue
        cells = [cell(emulator.get(key), gpu.get(key)) for key in COLUMNS]
        rows.append((f"`{case}`", f"`{result['kernel']}`", *cells))
    return table(("case", "kernel", *COLUMNS.values()), rows)


def agreement(results):
    """How many values agree, for the introduction."""
    comparison = compare(results)
    dates = ", ".join(sorted({result["date"] for result in results}))
    devices = ", ".join(sorted({result["device"] for result in results}))
    rows = [
        ("agree exactly", comparison.exact),
        ("agree to the percentage that is allowed", comparison.near),
        ("differ for a known reason", len(comparison.explained())),
        ("differ, not explained", len(comparison.unexplained()) + len(comparison.wrong)),
    ]
    text = prose(
        f"Measured on {dates}: {devices}.",
        f"Of {comparison.values():,} compared values in {len(results)} launches, {comparison.exact:,} agree exactly.",
    )
    return text + "\n" + table(("values", "number"), [(what, f"{number:,}") for what, number in rows])


def numbered(number, text):
    """A line of a numbered list, wrapped."""
    start = f"{number}. "
    return textwrap.fill(start + text, 120, subsequent_indent=" " * len(start), break_on_hyphens=False) + "\n"


def differences(results):
    """A line for each counter of a case and kernel that differs, over these launches; then the reasons."""
    comparison = compare(results)
    groups = {}
    for found in comparison.differences:
        groups.setdefault((found.case, found.kernel, found.metric.key), []).append(found)
    reasons, rows = {}, []
    for (case, kernel, key), group in groups.items():
        emulator, gpu = (sum(getattr(found, side) for found in group) for side in ("emulator", "gpu"))
        explanation = group[0].explanation
        number = reasons.setdefault(explanation.text(), len(reasons) + 1)
        reason = f"{number}" if explanation.reason else f"not explained ({number})"
        sides = (whole(emulator), whole(gpu), difference(emulator, gpu))
        rows.append((f"`{case}`", f"`{kernel}`", f"`{key}`", len(group), *sides, reason))
    text = table(("case", "kernel", "counter", "launches", "emulator", "H200", "difference", "reason"), rows)
    text += "".join(numbered(number, reason) for reason, number in reasons.items())
    return text + "".join(["\n", *(item(line) for line in comparison.wrong)] if comparison.wrong else [])


SECTIONS = {"agreement": agreement, "metrics": metrics, "differences": differences, "micro": micro, "kernels": kernels}


def written(document, path, results):
    """The document with the sections of these results; without results they say that nothing was measured yet."""
    for name, section in SECTIONS.items():
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
        if document.count(begin) != 1 or document.count(end) != 1:
            sys.exit(f"{path}: wanted one line {begin.strip()} and after it one line {end}")
        text = section(results) if results or name == "metrics" else "Not measured yet.\n"
        before, rest = document.split(begin)
        document = before + begin + text + end + rest.split(end)[1]
    return document
