"""Compares both sides of each launch: what must agree does, has an explanation, or is wrong."""

import re
from dataclasses import dataclass, field

from counter_comparison.explanations import DIVERGING, EXPLANATIONS, explanation
from counter_comparison.metrics import FIVE_PERCENT, METRICS


@dataclass
class Comparison:
    """What came of all that must agree."""

    agree: int = 0
    # Lines of text, one for each metric of a launch.
    explained: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    used: set = field(default_factory=set)


def tolerance(metric, case):
    if re.search(DIVERGING, case):
        return max(metric.tolerance, FIVE_PERCENT)
    return metric.tolerance


def is_checked(metric, case):
    return metric.checked is not None and re.search(metric.checked, case) is not None


def agrees(metric, case, emulator, gpu):
    return abs(emulator - gpu) <= tolerance(metric, case) * abs(gpu) + 1e-9


def difference(emulator, gpu):
    """By how much the emulator's value is above the GPU's, in words."""
    if emulator == gpu:
        return "0 %"
    if gpu == 0:
        return "GPU: 0"
    return f"{100 * (emulator - gpu) / gpu:+.2g} %"


def compare(results):
    """Compares the results of all pairs."""
    comparison = Comparison()
    for result in results:
        case, emulator, gpu = result["case"], result["emulator"], result["gpu"]
        place = f"{case} launch {result['launch']} {result['kernel']}"
        for extent in ("grid", "block"):
            if emulator[extent] != gpu[extent]:
                comparison.wrong.append(f"{place}: {extent}: emulator {emulator[extent]}, GPU {gpu[extent]}")
        for metric in METRICS:
            values = emulator.get(metric.key), gpu.get(metric.key)
            if None in values or not is_checked(metric, case):
                continue
            if agrees(metric, case, *values):
                comparison.agree += 1
                continue
            line = f"{place}: {metric.key}: emulator {values[0]:.12g}, GPU {values[1]:.12g}, {difference(*values)}"
            explained = explanation(case, metric.key)
            if explained is None:
                comparison.wrong.append(line)
            else:
                comparison.used.add(explained)
                comparison.explained.append(f"{line}: {explained.reason}")
    return comparison


def unused(comparison):
    """Explanations that nothing needs, in words."""
    left = [explained for explained in EXPLANATIONS if explained not in comparison.used]
    return [f"nothing needs the explanation of {of.metrics} for `{of.cases}`: {of.reason}" for of in left]
