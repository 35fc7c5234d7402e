"""The summary: each operation against its best peer, on each GPU that has results."""

from performance_tables.gcn import best
from performance_tables.results import OURS, grouped, least, mean, median, newest, read, table, time
from performance_tables.spmm import read_cases


def spmm(file, title, link, keep=lambda case: True):
    """A reader of the ratios of products by SpMM or SpMV."""

    def ratios(folder):
        cases = [case for case in read_cases(folder / file) if keep(case)]
        return [(case.to_cusparse(), case.results) for case in cases]

    return title, link, "cuSPARSE", "cusparse", ratios


def is_generated(case, *elements):
    return case.kind != "file" and case.element in elements


def gemm(folder):
    results = read(folder / "gemm_random.jsonl", "bench", "type", "impl", "rows", "k", "features")
    cases = grouped(results, "rows", "k", "features", "type").values()
    return [(quotient(least(case, "cublas"), time(case.get(OURS))), case) for case in cases]


def spgemm(folder):
    return [(quotient(least(case, "cusparse"), time(case.get(OURS))), case) for case in products(folder)]


def reuse(folder):
    """Later numeric phases of the same product, with other values."""
    pairs = [(case.get(OURS, {}), case.get("cusparse_reuse", {}), case) for case in products(folder)]
    return [(quotient(theirs.get("numeric_ms"), ours.get("numeric_ms")), case) for ours, theirs, case in pairs]


def products(folder):
    return grouped(read(folder / "spgemm.jsonl", "graph", "product", "impl"), "graph", "product").values()


def gcn(folder):
    results = [result for result in read(folder / "gcn.jsonl", "operator", "impl") if result["operator"] == "network"]
    cases = grouped([{**result, "key": str(result["widths"])} for result in results], "rows", "nnz", "key").values()
    return [(quotient(time(best(case)), time(case.get(OURS))), case) for case in cases]


def quotient(theirs, ours):
    return theirs / ours if theirs and ours else None


OPERATIONS = [
    spmm("spmm.jsonl", "SpMM, generated graphs, f32", "spmm", lambda case: is_generated(case, "f32")),
    spmm("spmm.jsonl", "SpMM, generated graphs, f64", "spmm", lambda case: is_generated(case, "f64")),
    spmm("spmm.jsonl", "SpMM, generated graphs, 16 bits", "spmm", lambda case: is_generated(case, "f16", "bf16")),
    spmm("spmm.jsonl", "SpMM, real matrices", "spmm-of-real-matrices", lambda case: case.kind == "file"),
    spmm("spmm_narrow.jsonl", "SpMM, 2 to 16 features", "few-features-and-spmv", lambda case: case.features > 1),
    spmm("spmv.jsonl", "SpMV", "few-features-and-spmv"),
    spmm("spmm_small.jsonl", "SpMM, small matrices", "small-matrices"),
    spmm("spmm_random.jsonl", "SpMM and SpMV, random products", "random-products"),
    ("XW, random shapes", "xw-of-random-shapes", "cuBLAS", "cublas", gemm),
    ("SpGEMM", "spgemm", "cuSPARSE", "cusparse", spgemm),
    ("SpGEMM, numeric phase again", "spgemm", "cuSPARSE", "cusparse", reuse),
    ("GCN inference", "inference-with-a-graph-convolutional-network", "PyTorch", "torch", gcn),
]


def summary(folder):
    """A row for each operation that has results in the folder, and each version of its peer."""
    rows = []
    for title, link, peer, key, ratios in OPERATIONS:
        try:
            found = [(ratio, case) for ratio, case in ratios(folder) if ratio]
        except FileNotFoundError:
            continue
        for version in sorted({newest(case, key) for _, case in found}, reverse=True):
            of_version = [(ratio, case) for ratio, case in found if newest(case, key) == version]
            rows.append([f"[{title}](#{link})", f"{peer} {version}", *figures(of_version)])
    if not rows:
        return "Not measured yet.\n"
    head = ["operation", "peer", "products", "mean", "median", "least", "slower", "measured"]
    return table(head, rows)


def figures(found):
    """The columns of these ratios."""
    ratios = [ratio for ratio, _ in found]
    dates = sorted(result["date"] for _, case in found for result in case.values())
    return [
        len(ratios),
        f"{mean(ratios):.2f}",
        f"{median(ratios):.2f}",
        f"{min(ratios):.2f}",
        sum(ratio < 1 for ratio in ratios),
        dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
    ]


SECTIONS = {"summary": summary}
