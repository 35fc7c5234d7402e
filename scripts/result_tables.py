"""Tables of the benches spgemm, gemm and gcn, of their results as JSON lines: what scripts/readme-tables writes beside SpMM's."""

import json
import sys

OURS = "warprow"


def read(path):
    """The results of a bench, in the order of the file."""
    results = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            results.append(json.loads(line))
        except ValueError as error:
            sys.exit(f"{path}:{number}: wanted a result in JSON, found {error}")
    if not results:
        sys.exit(f"{path}: wanted results, found none")
    return results


def grouped(results, *keys):
    """The results of each case by implementation; a later one for the same case counts."""
    cases = {}
    for result in results:
        cases.setdefault(tuple(result[key] for key in keys), {})[result["impl"]] = result
    return cases


def time(result):
    """Milliseconds; none of what is wrong or was skipped."""
    return result["ms"] if result and result.get("ms") and result.get("ok") is not False else None


def least(case, prefix):
    """The least time of the implementations whose names start so."""
    times = [time(result) for name, result in case.items() if name.startswith(prefix)]
    return min((ms for ms in times if ms), default=None)


def measured(results, *versions):
    """When, on what, and against which versions."""
    def listed(key):
        return ", ".join(sorted({result[key] for result in results if result.get(key)}))

    peers = "".join(f", {name} {listed(key)}" for key, name in versions if listed(key))
    return f"measured on {listed('date')}: {listed('device')}, driver for {listed('driver') or 'no GPU'}{peers}.\n"


def spgemm(results):
    text = "| matrix | products | entries | ms | GFLOP/s | times cuSPARSE's best | numeric alone, times the whole |\n"
    text += "|---|---|---|---|---|---|---|\n"
    slower = []
    for (graph, product), case in grouped(results, "graph", "product").items():
        ours, peer = case.get(OURS), least(case, "cusparse")
        if time(ours) is None:
            text += f"| {graph}, {product} | {ours['products'] if ours else ''} | | not computed | | | |\n"
            continue
        ratio = f"{peer / ours['ms']:.2f}" if peer else "it computes none"
        if peer and peer < ours["ms"]:
            slower.append(f"{graph}, {product}")
        reuse = f"{ours['ms'] / ours['numeric_ms']:.2f}" if ours.get("numeric_ms") else ""
        text += f"| {graph}, {product} | {ours['products']:.2e} | {ours['entries']:.2e} | {ours['ms']:.2f} "
        text += f"| {ours['gflops']:.0f} | {ratio} | {reuse} |\n"
    text += f"\nSlower than cuSPARSE: {'; '.join(slower) or 'none'}. Whole multiplications with the allocation of C, sorted,\n"
    return text + "medians by the host's clock, verified; " + measured(results, ("cusparse", "cuSPARSE"))


def gemm(results):
    types = list(dict.fromkeys(result["type"] for result in results))
    text = "In a cell: milliseconds, how many times as fast as the faster of cuBLAS's modes, and the part of the floor, the time of\n"
    text += "a copy of the bytes of X, W and Y.\n\n"
    products = grouped([r for r in results if r["bench"] == "gemm"], "rows", "k", "features", "type")
    text += "| rows, columns of X and W | " + " | ".join(types) + " |\n|---|" + "---|" * len(types) + "\n"
    for shape in dict.fromkeys(key[:3] for key in products):
        cells = [gemm_cell(products.get((*shape, element), {})) for element in types]
        text += f"| {shape[0]}, {shape[1]} to {shape[2]} | " + " | ".join(cells) + " |\n"
    softmax = grouped([r for r in results if r["bench"] == "log_softmax"], "rows", "features", "type")
    if softmax:
        text += "\n| LogSoftmax, rows, classes | " + " | ".join(types) + " |\n|---|" + "---|" * len(types) + "\n"
        for shape in dict.fromkeys(key[:2] for key in softmax):
            cells = [gemm_cell(softmax.get((*shape, element), {})) for element in types]
            text += f"| {shape[0]}, {shape[1]} | " + " | ".join(cells) + " |\n"
    return text + "\nMedians of the device's time, verified; " + measured(results, ("cublas", "cuBLAS"))


def gemm_cell(case):
    ours, peer, floor = time(case.get(OURS)), least(case, "cublas"), time(case.get("floor"))
    if ours is None:
        return ""
    parts = [f"{ours:.4f}"]
    if peer:
        parts.append(f"{peer / ours:.2f}")
    if floor:
        parts.append(f"({floor / ours:.2f})")
    return " ".join(parts)


def gcn(results):
    text = "| nodes, nonzeros, widths | ms | PyTorch, ms | times as fast | the floors of its operators, ms |\n|---|---|---|---|---|\n"
    networks = [result for result in results if result["operator"] == "network"]
    for (rows, nnz, widths), case in grouped(with_words(networks), "rows", "nnz", "words").items():
        ours, peer = case.get(OURS), least(case, "torch")
        if time(ours) is None:
            continue
        ratio = f"{peer / ours['ms']:.2f}" if peer else ""
        theirs = f"{peer:.3f}" if peer else ""
        text += f"| {rows}, {nnz}, {widths} | {ours['ms']:.3f} | {theirs} | {ratio} | {ours['floor_ms']:.3f} |\n"
    text += "\nOperator by operator, ours in microseconds and in brackets the part of the floor:\n\n"
    for (rows, _nnz), case in operators(results).items():
        cells = [
            f"{result['operator']} {result['layer']} {1e3 * result['ms']:.1f} ({result['floor_ms'] / result['ms']:.2f})"
            for result in case
        ]
        text += f"- {rows} nodes: " + ", ".join(cells) + "\n"
    return text + "\nInference in f32 with two layers, against `torch.sparse` in a CUDA graph; medians of the device's time, verified;\n" + measured(
        results, ("torch", "PyTorch")
    )


def with_words(networks):
    return [{**result, "words": "-".join(map(str, result["widths"]))} for result in networks]


def operators(results):
    """Our operators of each network, in their order."""
    cases = {}
    for result in results:
        if result["impl"] == OURS and result["operator"] not in ("network", "launches"):
            cases.setdefault((result["rows"], result["nnz"]), []).append(result)
    return cases


SECTIONS = {"spgemm": spgemm, "gemm": gemm, "gcn": gcn}
