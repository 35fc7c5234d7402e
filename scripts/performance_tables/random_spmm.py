"""The table of random products by SpMM and SpMV: spmm_random.jsonl."""

from performance_tables.results import OURS, distinct, mean, measured, prose, table
from performance_tables.spmm import read_cases

# The products that are listed one by one.
WORST = 10


def random_products(folder):
    """The ratios to cuSPARSE by kind of matrix, and the products with the lowest ones."""
    cases = [case for case in read_cases(folder / "spmm_random.jsonl") if case.to_cusparse() is not None]
    kinds = sorted(distinct(case.kind for case in cases))
    rows = [[f"`{kind}`", *figures([case for case in cases if case.kind == kind])] for kind in kinds]
    text = table(["kind", "products", "mean", "least", "slower"], [*rows, ["all", *figures(cases)]])
    text += "The products with the lowest speed relative to cuSPARSE:\n\n"
    worst = sorted(cases, key=lambda case: case.to_cusparse())[:WORST]
    text += table(["kind", "A", "nonzeros", "features", "relative to cuSPARSE", "entry point"], map(product, worst))
    results = [result for case in cases for result in case.results.values()]
    return text + prose(
        "Medians of the device's time, verified against f64.",
        measured(results, ("cusparse", "cuSPARSE")),
    ) + "[Results]({folder}/spmm_random.jsonl).\n"


def figures(cases):
    """How many there are, their geometric mean, the least ratio, and how many are slower."""
    ratios = [case.to_cusparse() for case in cases]
    return [len(ratios), f"{mean(ratios):.2f}", f"{min(ratios):.2f}", sum(ratio < 1 for ratio in ratios)]


def product(case):
    ours = case.results[OURS]
    shape = f"{ours['rows']} x {ours['cols']}"
    ratio = f"{case.to_cusparse():.2f}"
    return [f"`{case.kind}`", shape, ours["nnz"], case.features, ratio, f"`{ours['variant']}`"]


SECTIONS = {"spmm_random": random_products}
