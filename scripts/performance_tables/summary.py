"""The summary: each operation against its best peer, on each GPU that has results."""

from performance_tables.gcn import best
from performance_tables.results import OURS, distinct, grouped, least, mean, read, table, time
from performance_tables.spmm import read_cases

def spmm(file, title, link, keep=lambda case: True):
    """A reader of the ratios of products by SpMM or SpMV."""

    def ratios(folder):
        cases = [case for case in read_cases(folder / file) if keep(case) and case.to_cusparse() is not None]
        results = [result for case in cases for result in case.results.values()]
        return [case.to_cusparse() for case in cases], results

    return title, link, "cuSPARSE", "cusparse", ratios


def gemm(folder):
    results = read(folder / "gemm_random.jsonl", "bench", "type", "impl", "rows", "k", "features")
    cases = grouped(results, "rows", "k", "features", "type").values()
    pairs = [(least(case, "cublas"), time(case.get(OURS))) for case in cases]
    return [theirs / ours for theirs, ours in pairs if theirs and ours], results


def spgemm(folder):
    results = read(folder / "spgemm.jsonl", "graph", "product", "impl")
    cases = grouped(results, "graph", "product").values()
    pairs = [(least(case, "cusparse"), time(case.get(OURS))) for case in cases]
    return [theirs / ours for theirs, ours in pairs if theirs and ours], results


def gcn(folder):
    results = [result for result in read(folder / "gcn.jsonl", "operator", "impl") if result["operator"] == "network"]
    cases = grouped([{**result, "key": str(result["widths"])} for result in results], "rows", "nnz", "key").values()
    pairs = [(time(best(case)), time(case.get(OURS))) for case in cases]
    return [theirs / ours for theirs, ours in pairs if theirs and ours], results


OPERATIONS = [
    spmm("spmm.jsonl", "SpMM, generated graphs", "spmm", lambda case: case.kind != "file"),
    spmm("spmm.jsonl", "SpMM, real matrices", "spmm-of-real-matrices", lambda case: case.kind == "file"),
    spmm("spmm_narrow.jsonl", "SpMM, 2 to 16 features", "few-features-and-spmv", lambda case: case.features > 1),
    spmm("spmv.jsonl", "SpMV", "few-features-and-spmv"),
    spmm("spmm_small.jsonl", "SpMM, small matrices", "small-matrices"),
    ("XW, random shapes", "xw-of-random-shapes", "cuBLAS", "cublas", gemm),
    ("SpGEMM", "spgemm", "cuSPARSE", "cusparse", spgemm),
    ("GCN inference", "inference-with-a-graph-convolutional-network", "PyTorch", "torch", gcn),
]


def summary(folder):
    """A row for each operation that has results in the folder."""
    rows = []
    for title, link, peer, key, ratios in OPERATIONS:
        try:
            found, results = ratios(folder)
        except FileNotFoundError:
            continue
        if not found:
            continue
        versions = ", ".join(sorted(distinct(result[key] for result in results if result.get(key))))
        dates = sorted(result["date"] for result in results)
        rows.append(
            [
                f"[{title}](#{link})",
                f"{peer} {versions}",
                len(found),
                f"{mean(found):.2f}",
                f"{min(found):.2f}",
                sum(ratio < 1 for ratio in found),
                dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
            ]
        )
    if not rows:
        return "Not measured yet.\n"
    return table(["operation", "peer", "products", "mean", "least", "slower", "measured"], rows)


SECTIONS = {"summary": summary}
