"""The tables of inference with graph convolutional networks: gcn.jsonl."""

from performance_tables.results import OURS, grouped, item, least, measured, prose, read, table, time


def networks(folder):
    results = read(folder / "gcn.jsonl", "operator", "impl")
    whole = [result for result in results if result["operator"] == "network"]
    whole = [{**result, "words": "-".join(map(str, result["widths"]))} for result in whole]
    rows = []
    for (nodes, nnz, widths), case in grouped(whole, "rows", "nnz", "words").items():
        ours, peer = case.get(OURS), least(case, "torch")
        if time(ours) is None:
            continue
        theirs = [f"{peer:.3f}", f"{peer / ours['ms']:.2f}"] if peer else ["", ""]
        rows.append([nodes, nnz, widths, f"{ours['ms']:.3f}", *theirs, f"{ours['floor_ms']:.3f}"])
    text = prose(
        "Two layers in f32, against `torch.sparse` in a CUDA graph.",
        "The floor copies the bytes of every operator once. Products with the graph cannot reach it,",
        "since they read rows of X many times.",
    )
    head = ["nodes", "nonzeros", "widths", "ms", "PyTorch, ms", "times as fast", "floor, ms"]
    text += "\n" + table(head, rows)
    text += prose("Each operator, in microseconds and, in brackets, its speed relative to the floor:") + "\n"
    for nodes, operators in of_each(results).items():
        cells = [f"{r['operator']} {r['layer']} {1e3 * r['ms']:.1f} ({r['floor_ms'] / r['ms']:.2f})" for r in operators]
        text += item(f"{nodes} nodes: " + ", ".join(cells))
    return text + "\n" + prose(
        "Medians of the device's time, verified against f64.",
        measured(results, ("torch", "PyTorch")),
    ) + "[Results]({folder}/gcn.jsonl).\n"


def of_each(results):
    """Our operators of each network, in their order."""
    cases = {}
    for result in results:
        if result["impl"] == OURS and result["operator"] not in ("network", "launches"):
            cases.setdefault(result["rows"], []).append(result)
    return cases


SECTIONS = {"gcn": networks}
