"""The tables of XW and LogSoftmax: gemm.jsonl, gemm_random.jsonl and the counters."""

from performance_tables.results import OURS, distinct, grouped, least, measured, profiled, prose, read, table, time

COUNTERS = {
    "dram_percent": "memory, %",
    "l2_percent": "L2, %",
    "tensor_percent": "tensor cores, %",
    "issue_percent": "issue slots, %",
}

# The part of the floor that a product should reach where bytes are the limit.
NEAR_FLOOR = 0.7


def of_bench(folder, bench):
    results = read(folder / "gemm.jsonl", "bench", "type", "impl")
    return [result for result in results if result["bench"] == bench]


def cell(case):
    """Milliseconds, the ratio to the peer, and in brackets that to the floor."""
    ours, peer, floor = time(case.get(OURS)), least(case, "cublas"), time(case.get("floor"))
    if ours is None:
        return ""
    parts = [f"{ours:.4f}"]
    if peer:
        parts.append(f"{peer / ours:.2f}")
    if floor:
        parts.append(f"({floor / ours:.2f})")
    return " ".join(parts)


def cells(results, head, *keys):
    """A row for each shape, a column for each element type."""
    types = distinct(result["type"] for result in results)
    cases = grouped(results, *keys, "type")
    rows = []
    for shape in distinct(key[:-1] for key in cases):
        name = f"{shape[0]}, {' to '.join(map(str, shape[1:]))}"
        rows.append([name, *(cell(cases.get((*shape, element), {})) for element in types)])
    return table([head, *types], rows)


def products(folder):
    results = of_bench(folder, "gemm")
    cases = grouped(results, "rows", "k", "features", "type")
    ratios = [
        (least(case, "cublas") / time(case[OURS]), f"{rows}, {k} to {features}, {element}")
        for (rows, k, features, element), case in cases.items()
        if time(case.get(OURS)) and least(case, "cublas")
    ]
    sentences = [
        "A cell has milliseconds, how many times as fast as the faster mode of cuBLAS, and, in brackets, the speed",
        "relative to the floor, a copy of the bytes of X, W and Y.",
    ]
    if ratios:
        slower = [f"{name}: {ratio:.3f}" for ratio, name in sorted(ratios) if ratio < 1]
        sentences.append(f"warprow is slower than cuBLAS in {len(slower)} of {len(ratios)} products")
        sentences[-1] += f" ({'; '.join(slower)})." if slower else "."
        sentences.append(f"The smallest ratio is {min(ratios)[0]:.2f} ({min(ratios)[1]}).")
    text = prose(*sentences) + "\n" + cells(results, "rows, columns of X and W", "rows", "k", "features")
    return text + prose(
        "Medians of the device's time, verified against f64.",
        measured(results, ("cublas", "cuBLAS")),
    ) + "[Results]({folder}/gemm.jsonl).\n"


def random_products(folder):
    """How many products of random shapes are as fast as cuBLAS, and near the floor; the worst ones."""
    results = read(folder / "gemm_random.jsonl", "bench", "type", "impl", "rows", "k", "features")
    cases = grouped(results, "rows", "k", "features", "type")
    rows, found = [], []
    for key, case in cases.items():
        ours, peer, floor = time(case.get(OURS)), least(case, "cublas"), time(case.get("floor"))
        if ours and peer and floor:
            found.append((peer / ours, floor / ours, key, case[OURS]["variant"]))
    for element in [*distinct(key[3] for *_, key, _ in found), "all"]:
        of_type = [entry for entry in found if element in (entry[2][3], "all")]
        # Rounded down, so that 100 % are all of them.
        share = lambda holds: f"{100 * sum(map(holds, of_type)) // len(of_type)} %"
        rows.append(
            [
                element,
                len(of_type),
                share(lambda entry: entry[0] >= 1),
                share(lambda entry: entry[1] >= NEAR_FLOOR),
                share(lambda entry: entry[0] >= 1 or entry[1] >= NEAR_FLOOR),
            ]
        )
    head = ["type", "products", "as fast as cuBLAS", f"{NEAR_FLOOR} of the floor", "either"]
    text = table(head, rows)
    text += "The products with the lowest speed relative to cuBLAS:\n\n"
    worst = [
        [f"{m}, {k} to {n}", element, f"{to_peer:.2f}", f"{to_floor:.2f}", f"`{variant}`"]
        for to_peer, to_floor, (m, k, n, element), variant in sorted(found)[:10]
    ]
    text += table(["rows, columns of X and W", "type", "relative to cuBLAS", "to the floor", "entry point"], worst)
    return text + prose(
        "Medians of the device's time; the first and the last rows are verified against f64.",
        measured(results, ("cublas", "cuBLAS")),
    ) + "[Results]({folder}/gemm_random.jsonl).\n"


def log_softmax(folder):
    results = of_bench(folder, "log_softmax")
    if not results:
        return "Not measured yet.\n"
    text = prose(
        "A cell has milliseconds and, in brackets, the speed relative to the floor, a copy of the same bytes.",
        "There is no peer.",
    )
    text += "\n" + cells(results, "rows, classes", "rows", "features")
    return text + prose("Medians of the device's time, verified against f64.", measured(results))


def counters(folder):
    results = read(folder / "gemm_counters.jsonl", "kernel", "us")
    rows = []
    for result in results:
        name = f"{result['rows']}, {result['k']} to {result['features']}, {result['type']}"
        rows.append([name, f"`{result['kernel']}`", *(f"{result[key]:.0f}" for key in COUNTERS)])
    text = table(["product", "kernel", *COUNTERS.values()], rows)
    return text + profiled(results) + "\n[All counters]({folder}/gemm_counters.jsonl).\n"


SECTIONS = {"gemm": products, "gemm_random": random_products, "log_softmax": log_softmax, "gemm_counters": counters}
