"""What plans of SpMM cost, and how good their choices are: spmm.jsonl, and a sweep over what a plan can choose."""

from math import inf

from performance_tables.results import OURS, median, prose, table
from performance_tables.spmm import L2_FLOOR, LIMIT, MEMORY_FLOOR, read_cases, runs

NOT_CHOICES = {OURS, LIMIT, MEMORY_FLOOR, L2_FLOOR}
# A good choice has this part of the best one's speed.
GOOD = 0.95
# Rows of the table of the worst choices.
WORST = 5


def plan(folder):
    """What planning costs, in runs."""
    cases = [case for case in read_cases(folder / "spmm.jsonl") if case.plan_in_runs() is not None]
    if not cases:
        return "Not measured yet.\n"
    searched = [case for case in cases if "order_ms" in case.ours()]
    others = [case for case in cases if "order_ms" not in case.ours()]
    text = prose(
        f"Planning searches for a row order in {len(searched)} of {len(cases)} cases.",
        "The copy of A to the device is not included. Each plan was made twice in the process.",
        "The first one takes its memory from the driver, and may load kernels.",
    )
    rows = [
        planning("second plan, no search", others, lambda case: case.plan_in_runs()),
        planning("second plan, with its search", searched, lambda case: case.plan_in_runs()),
        planning("the same plans without the search", searched, lambda case: case.plan_in_runs(order=False)),
        planning("first plan", cases, lambda case: case.plan_in_runs("first_plan_ms")),
    ]
    text += "\n" + table(["planning", "cases", "runs, median", "runs, at most"], filter(None, rows))
    rows = []
    for name, field in (("first", "first_plan_ms"), ("second", "plan_ms")):
        found = sorted(count for case in cases if (count := case.break_even(field)) is not None)
        if found:
            places = [found[min(len(found) * part // 100, len(found) - 1)] for part in (50, 90)]
            rows.append([name, *map(runs, places), sum(count == inf for count in found), len(found)])
    if rows:
        text += prose(
            "*Break-even* is the number of runs from which planning and runs take less time than the preprocessing and",
            "the runs of cuSPARSE, with any of its algorithms.",
        )
        head = ["plan", "break-even runs, median", "in 90 % of the cases at most", "cases without", "cases"]
        text += "\n" + table(head, rows)
    return text


def planning(name, cases, in_runs):
    """A row of what planning costs in these cases."""
    found = [(runs, str(case)) for case in cases if (runs := in_runs(case)) is not None]
    if not found:
        return None
    worst, case = max(found)
    return [name, len(found), f"{median([runs for runs, _ in found]):.1f}", f"{worst:.1f} ({case})"]


def choices(folder):
    """How good the plan's choices are, by a run of the bench with --sweep."""
    ratios = []
    for case in read_cases(folder / "spmm_choices.jsonl"):
        others = [name for name in case.results if name not in NOT_CHOICES and "cusparse" not in name]
        timed = [name for name in others if case.time(name)]
        if case.time(OURS) and timed:
            best = min(timed, key=case.time)
            ratios.append((case.ratio(best), str(case), case.ours().get("kernel", ""), best))
    if not ratios:
        return "Not measured yet.\n"
    good = sum(ratio >= GOOD for ratio, *_ in ratios)
    text = prose(
        f"In {len(ratios)} cases the bench also timed each kernel, row order, number of lanes, number of column blocks",
        "and task size that the plan could have chosen.",
        f"The plan's choice is within {100 * (1 - GOOD):.0f} % of the best one in {good} cases. The worst choices:",
    )
    rows = [[case, kernel, best, f"{ratio:.2f}"] for ratio, case, kernel, best in sorted(ratios)[:WORST] if ratio < 1]
    text += "\n" + table(["case", "chosen kernel", "best choice", "its time over the chosen one's"], rows)
    return text + "[Results]({folder}/spmm_choices.jsonl).\n"


SECTIONS = {"spmm_plan": plan, "spmm_choices": choices}
