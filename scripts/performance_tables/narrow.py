"""The tables of few features, SpMV among them, and of small matrices: spmm_narrow.jsonl and spmm_small.jsonl."""

from performance_tables.results import OURS, distinct, mean, measured, newest, prose, table
from performance_tables.spmm import cell, read_cases

# The copy of the bytes of A, X and Y.
COPY = "copy_limit"
# The kernel for many features, which is not made for few.
MANY = "vector"
# The kind whose products can be as fast as a copy.
BANDED = "banded"


def few_features(folder):
    """Products with few features, more than one."""
    return ratios(folder, "spmm_narrow.jsonl", lambda case: case.features > 1)


def small(folder):
    """Products of small matrices."""
    return ratios(folder, "spmm_small.jsonl")


def ratios(folder, file, keep=lambda case: True):
    """Against cuSPARSE, the kernel for many features, and a copy."""
    cases = [case for case in read_cases(folder / file) if keep(case)]
    results = [result for case in cases for result in case.results.values()]
    text = prose("A cell has the geometric mean over the graphs and, in brackets, the smallest ratio.")
    for element in distinct(case.element for case in cases):
        of_type = [case for case in cases if case.element == element]
        compared = [case for case in of_type if case.to_cusparse() is not None]
        for version in sorted({newest(case.results, "cusparse") for case in compared}, reverse=True):
            text += against([case for case in compared if newest(case.results, "cusparse") == version], version)
        if any(case.ratio(MANY) for case in of_type):
            text += "\n" + prose(f"**Times as fast as the kernel `{MANY}`**, which is for many features.")
            text += "\n" + by_kind(of_type, lambda case: case.ratio(MANY))
    copied = [case for case in cases if case.kind == BANDED and case.ratio(COPY)]
    if copied:
        best = {width: [c.ratio(COPY) for c in copied if c.features == width] for width in widths_of(copied)}
        parts = ", ".join(f"{mean(ratios):.2f} with {width}" for width, ratios in best.items())
        text += "\n" + prose(
            "**Speed relative to a copy of the bytes of A, X and Y**, on banded matrices, by the number of features:",
            f"{parts}.",
        )
    return text + "\n" + prose(measured(results, ("cusparse", "cuSPARSE"))) + f"[Results]({{folder}}/{file}).\n"


def against(cases, version):
    """The ratios to a version of cuSPARSE."""
    slower = sum(case.to_cusparse() < 1 for case in cases)
    worst = min(cases, key=lambda case: case.to_cusparse())
    graphs = ", ".join(f"`{graph}`" for graph in distinct(case.graph for case in cases))
    text = prose(
        f"**Times as fast as the best algorithm of cuSPARSE {version}**, on {graphs}.",
        f"warprow is slower in {slower} of {len(cases)} cases.",
        f"The smallest ratio is {worst.to_cusparse():.2f} ({worst}).",
    )
    return "\n" + text + "\n" + by_kind(cases, lambda case: case.to_cusparse())


def widths_of(cases):
    return sorted(distinct(case.features for case in cases))


def by_kind(cases, ratio):
    """The means by kind and number of features."""
    graphs = len(distinct(case.graph for case in cases))
    rows = []
    for kind in distinct(case.kind for case in cases):
        of_kind = [case for case in cases if case.kind == kind]
        cells = [cell([ratio(c) for c in of_kind if c.features == w], graphs) for w in widths_of(cases)]
        if any(cells):
            rows.append([kind, *cells])
    return table([f"{cases[0].element}, features", *widths_of(cases)], rows)


SECTIONS = {"spmm_narrow": few_features, "spmm_small": small}
