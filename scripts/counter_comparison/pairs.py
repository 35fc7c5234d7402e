"""Pairs the launches of the emulator with those of a GPU."""

from difflib import SequenceMatcher

from counter_comparison.metrics import METRICS


class Unpaired(Exception):
    """Launches without a counterpart."""


def by_case(lines):
    """The emulator's lines of each case, in their order. Cases that were skipped have none."""
    cases = {}
    for line in lines:
        launches = cases.setdefault(line["case"], [])
        if "skipped" not in line:
            launches.append(line)
    return cases


def pair(emulated, ran, launches):
    """A result for each pair of launches, and the launches that have no counterpart, in words.

    `emulated` are the emulator's lines, `ran` the GPU's lines of cases, and `launches` those that ncu has counted.
    """
    wanted = sum(case.get("launches", 0) for case in ran)
    if wanted != len(launches):
        raise Unpaired(f"the bench made {wanted} launches, ncu counted {len(launches)}")
    of_emulator = by_case(emulated)
    results, alone, first = [], [], 0
    for case in ran:
        name, count = case["case"], case.get("launches", 0)
        of_gpu = launches[first : first + count]
        first += count
        of_case = of_emulator.get(name, [])
        kernels = ([line["kernel"] for line in of_case], [launch["kernel"] for launch in of_gpu])
        for tag, a, a_end, b, b_end in SequenceMatcher(None, *kernels, autojunk=False).get_opcodes():
            if tag == "equal":
                results += [result(name, *both) for both in zip(of_case[a:a_end], of_gpu[b:b_end])]
            else:
                alone += [f"{name}: {kernel} on the emulator alone" for kernel in kernels[0][a:a_end]]
                alone += [f"{name}: {kernel} on the GPU alone" for kernel in kernels[1][b:b_end]]
    return results, alone


def renewed(results, emulated):
    """The results with the emulator's side as `emulated` has it, and the launches without a counterpart, in words."""
    launches = {place(line): line for line in emulated if "skipped" not in line}
    renewed, alone = [], []
    for old in results:
        line = launches.pop(place(old), None)
        if line is None:
            alone.append("{}: launch {}, {} on the GPU alone".format(*place(old)))
        else:
            renewed.append({**old, "emulator": side(line)})
    alone += ["{}: launch {}, {} on the emulator alone".format(*found) for found in launches]
    return renewed, alone


def place(line):
    """The case, the number of the launch in it, and the kernel."""
    return line["case"], line["launch"], line["kernel"]


def side(line):
    """What the emulator has counted in a launch."""
    emulator = {metric.key: metric.emulated(line) for metric in METRICS}
    counted = {key: value for key, value in emulator.items() if value is not None}
    return {"grid": line["grid"], "block": line["block"], **counted}


def result(case, line, launch):
    """Both sides of a launch."""
    return {
        "bench": "emulator_counters",
        "case": case,
        "launch": line["launch"],
        "kernel": line["kernel"],
        "emulator": side(line),
        "gpu": {"grid": launch["grid"], "block": launch["block"], **launch["values"]},
    }
