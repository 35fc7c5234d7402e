"""The tables of inference with graph convolutional networks: gcn.jsonl."""

from performance_tables.results import OURS, grouped, item, measured, prose, read, table, time


# Ways in which PyTorch runs a network; each also as a CUDA graph.
WAYS = {
    "torch": "`torch.sparse`",
    "pyg": "`GCNConv`, edges",
    "pyg_compiled": "`GCNConv`, edges, `torch.compile`",
    "pyg_csr": "`GCNConv`, CSR",
    "pyg_csr_compiled": "`GCNConv`, CSR, `torch.compile`",
    "pyg_sparse_tensor": "`GCNConv`, `SparseTensor`",
}


def networks(folder):
    results = read(folder / "gcn.jsonl", "operator", "impl")
    whole = [result for result in results if result["operator"] == "network"]
    whole = [{**result, "words": "-".join(map(str, result["widths"]))} for result in whole]
    cases = grouped(whole, "rows", "nnz", "words")
    rows = []
    for (nodes, nnz, widths), case in cases.items():
        ours, peer = case.get(OURS), best(case)
        if time(ours) is None:
            continue
        theirs = [f"{time(peer):.3f}", f"{time(peer) / ours['ms']:.2f}"] if peer else ["", ""]
        rows.append([nodes, nnz, widths, f"{ours['ms']:.3f}", *theirs, f"{ours['floor_ms']:.3f}"])
    text = prose(
        "Two layers in f32, against the fastest way of PyTorch and PyTorch Geometric.",
        "The floor copies the bytes of every operator once. Products with the graph cannot reach it,",
        "since they read rows of X many times.",
    )
    head = ["nodes", "nonzeros", "widths", "ms", "PyTorch, ms", "times as fast", "floor, ms"]
    text += "\n" + table(head, rows)
    ways = []
    for way, words in WAYS.items():
        for name, how in [(way, ""), (f"{way}_graph", ", CUDA graph")]:
            if any(name in case for case in cases.values()):
                ways.append([words + how, *(of_way(case.get(name)) for case in cases.values())])
    text += prose(
        "The ways of PyTorch, in milliseconds, with the normalised matrix computed before. A result that differs from",
        "ours by more than 1e-4, relative to the greater of 1 and its magnitude, has its error in brackets and is not",
        "compared; - was not measured.",
    ) + "\n"
    text += table(["way", *(f"{nodes} nodes" for nodes, *_ in cases)], ways)
    text += prose("Each operator, in microseconds and, in brackets, its speed relative to the floor:") + "\n"
    for nodes, operators in of_each(results).items():
        cells = [f"{r['operator']} {r['layer']} {1e3 * r['ms']:.1f} ({r['floor_ms'] / r['ms']:.2f})" for r in operators]
        text += item(f"{nodes} nodes: " + ", ".join(cells))
    return text + "\n" + prose(
        "Medians of the device's time, verified against f64.",
        measured(results, ("torch", "PyTorch"), ("pyg", "PyTorch Geometric")),
    ) + "[Results]({folder}/gcn.jsonl).\n"


def of_way(result):
    if result is None:
        return "-"
    error = "" if time(result) else f" ({result['max_rel_err']:.1e})"
    return f"{result['ms']:.3f}{error}"


def best(case):
    """The fastest result of another implementation; none if there is none."""
    others = [result for name, result in case.items() if name != OURS and time(result)]
    return min(others, key=time, default=None)


def of_each(results):
    """Our operators of each network, in their order."""
    cases = {}
    for result in results:
        if result["impl"] == OURS and result["operator"] not in ("network", "launches"):
            cases.setdefault(result["rows"], []).append(result)
    return cases


SECTIONS = {"gcn": networks}
