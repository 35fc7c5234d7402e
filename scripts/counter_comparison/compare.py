"""Compares both sides of each launch: what must agree does, has an entry in the explanations, or is wrong."""

import re
from dataclasses import dataclass, field

from counter_comparison.explanations import DIVERGING, EXPLANATIONS, Explanation, explanation
from counter_comparison.metrics import FIVE_PERCENT, METRICS, Metric

# The limits of the blocks of a multiprocessor. The least of them decides.
LIMITS = ("blocks_by_registers", "blocks_by_shared_memory", "blocks_by_warps", "blocks_by_hardware")


@dataclass
class Difference:
    """A value that should agree and does not, for which there is an entry in the explanations."""

    case: str
    launch: int
    kernel: str
    metric: Metric
    emulator: float
    gpu: float
    explanation: Explanation

    def __str__(self):
        place = f"{self.case} launch {self.launch} {self.kernel}: {self.metric.key}"
        return f"{place}: {sides(self.emulator, self.gpu)}: {self.explanation.text()}"


@dataclass
class Comparison:
    """What came of all that must agree."""

    exact: int = 0
    # Values that differ by no more than is allowed.
    near: int = 0
    differences: list = field(default_factory=list)
    # Lines of text, one for each metric of a launch: differences without an entry.
    wrong: list = field(default_factory=list)

    def values(self):
        """How many values were compared."""
        return self.exact + self.near + len(self.differences) + len(self.wrong)

    def explained(self):
        return [difference for difference in self.differences if difference.explanation.reason]

    def unexplained(self):
        return [difference for difference in self.differences if not difference.explanation.reason]


def tolerance(metric, case):
    if re.search(DIVERGING, case):
        return max(metric.tolerance, FIVE_PERCENT)
    return metric.tolerance


def decides(limit, side):
    """Whether one limit of the blocks is below all others."""
    return side[limit] < min(side[other] for other in LIMITS if other != limit)


def is_checked(metric, case, emulator, gpu):
    if metric.key == "blocks_by_shared_memory" and not any(
        all(limit in side for limit in LIMITS) and decides(metric.key, side) for side in (emulator, gpu)
    ):
        return False
    return metric.checked is not None and re.search(metric.checked, case) is not None


def agrees(metric, case, emulator, gpu):
    return abs(emulator - gpu) <= tolerance(metric, case) * abs(gpu) + 1e-9


def difference(emulator, gpu):
    """By how much the emulator's value is above the GPU's, in words."""
    if emulator == gpu:
        return "0 %"
    if gpu == 0:
        return "GPU: 0"
    percent = 100 * (emulator - gpu) / gpu
    return f"{percent:+.0f} %" if abs(percent) >= 100 else f"{percent:+.2g} %"


def sides(emulator, gpu):
    return f"emulator {emulator:.12g}, GPU {gpu:.12g}, {difference(emulator, gpu)}"


def compare(results):
    """Compares the results of all pairs."""
    comparison = Comparison()
    for result in results:
        case, kernel, emulator, gpu = result["case"], result["kernel"], result["emulator"], result["gpu"]
        place = f"{case} launch {result['launch']} {kernel}"
        for extent in ("grid", "block"):
            if emulator[extent] != gpu[extent]:
                comparison.wrong.append(f"{place}: {extent}: emulator {emulator[extent]}, GPU {gpu[extent]}")
        for metric in METRICS:
            values = emulator.get(metric.key), gpu.get(metric.key)
            if None in values or not is_checked(metric, case, emulator, gpu):
                continue
            if agrees(metric, case, *values):
                is_exact = values[0] == values[1]
                comparison.exact += is_exact
                comparison.near += not is_exact
                continue
            found = explanation(case, kernel, metric.key)
            if found is None:
                comparison.wrong.append(f"{place}: {metric.key}: {sides(*values)}")
            else:
                comparison.differences.append(Difference(case, result["launch"], kernel, metric, *values, found))
    return comparison


def unused(comparison):
    """Explanations that nothing needs, in words."""
    used = {id(difference.explanation) for difference in comparison.differences}
    left = [explained for explained in EXPLANATIONS if id(explained) not in used]
    return [f"nothing needs the entry of {of.metrics} for `{of.cases}` `{of.kernels}`: {of.text()}" for of in left]
