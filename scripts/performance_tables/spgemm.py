"""The tables of SpGEMM: spgemm.jsonl, the validation set and the counters."""

import math

from performance_tables.results import OURS, distinct, grouped, least, measured, profiled, prose, read, table, time

HEAD = [
    "matrix",
    "products",
    "entries of C",
    "ms",
    "GFLOP/s",
    "times as fast as cuSPARSE",
    "first numeric run, ms",
    "later numeric runs, ms",
    "`SpGEMMreuse`, ms",
    "peak memory, MB",
    "of cuSPARSE's",
]
REUSE = "cusparse_reuse"
DEFAULT = "cusparse_default"
# The kernels before the last changes, and of which day they are.
BEFORE = "warprow_before"
KERNELS_BEFORE = "2026-11-24"


def products(folder):
    results = read(folder / "spgemm.jsonl", "graph", "product", "impl")
    rows, ratios = [], []
    for (graph, product), case in grouped(results, "graph", "product").items():
        ours, peer, name = case.get(OURS), least(case, "cusparse"), f"{graph}, {product}"
        if time(ours) is None:
            count = f"{ours['products']:.2e}" if ours else ""
            rows.append([name, count, "", "not computed", *[""] * (len(HEAD) - 4)])
            continue
        if peer:
            ratios.append((peer / ours["ms"], name))
        rows.append(
            [
                name,
                f"{ours['products']:.2e}",
                f"{ours['entries']:.2e}",
                f"{ours['ms']:.2f}",
                f"{ours['gflops']:.0f}",
                f"{peer / ours['ms']:.2f}" if peer else "cuSPARSE computes none",
                *(f"{ours[key]:.2f}" if ours.get(key) else "" for key in ("numeric_first_ms", "numeric_ms")),
                *beside_cusparse(ours, case),
            ]
        )
    text = ""
    if ratios:
        slower = [name for ratio, name in ratios if ratio < 1]
        text = prose(
            f"warprow is slower than the best algorithm of cuSPARSE in {len(slower)} of {len(ratios)} products.",
            f"The smallest ratio is {min(ratios)[0]:.2f} ({min(ratios)[1]}).",
        )
    reused = [
        (case[REUSE]["numeric_ms"] / case[OURS]["numeric_ms"], f"{graph}, {product}")
        for (graph, product), case in grouped(results, "graph", "product").items()
        if time(case.get(OURS)) and time(case.get(REUSE)) and case[OURS].get("numeric_ms")
    ]
    if reused:
        slower = [name for ratio, name in sorted(reused) if ratio < 1]
        text += prose(
            f"Later numeric runs are slower than `SpGEMMreuse` in {len(slower)} of {len(reused)} products"
            + (f" ({'; '.join(slower)})." if slower else "."),
            f"The smallest ratio is {min(reused)[0]:.2f} ({min(reused)[1]}).",
        )
    text += "\n" + table(HEAD, rows)
    return text + prose(
        "Whole multiplications with the allocation of C, rows sorted.",
        "`SpGEMMreuse` of cuSPARSE computes values alone, as our later numeric runs do.",
        "The peak counts C and all scratch memory beside A and B; the last column divides it by that of cuSPARSE's",
        "default algorithm.",
        "Medians by the host's clock, verified against f64.",
        measured(results, ("cusparse", "cuSPARSE")),
    ) + "[Results]({folder}/spgemm.jsonl).\n"


def validation(folder):
    """The matrices to which nothing was tuned: the kernels before the last changes beside the present ones."""
    results = read(folder / "spgemm_validation.jsonl", "graph", "product", "impl")
    rows, gains = [], []
    for (graph, product), case in grouped(results, "graph", "product").items():
        ours, before, peer = case.get(OURS), case.get(BEFORE), least(case, "cusparse")
        if not time(ours) or not time(before):
            continue
        gains.append(before["ms"] / ours["ms"])
        rows.append(
            [
                f"{graph}, {product}",
                f"{ours['products']:.2e}",
                f"{ours['entries']:.2e}",
                f"{before['ms']:.2f}",
                f"{ours['ms']:.2f}",
                f"{gains[-1]:.2f}",
                f"{peer / ours['ms']:.2f}" if peer else "",
                *beside_cusparse(ours, case)[1:],
            ]
        )
    text = ""
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        text = prose(
            f"In the geometric mean of {len(gains)} products, kernels of {measured_at(results, OURS)} are",
            f"{mean:.2f} times as fast as those of {KERNELS_BEFORE},",
            f"which were measured on {measured_at(results, BEFORE)}.",
        )
    head = ["matrix", "products", "entries of C", f"ms, kernels of {KERNELS_BEFORE}", "ms", "times as fast as those"]
    text += "\n" + table([*head, "times as fast as cuSPARSE", *HEAD[-2:]], rows)
    return text + prose(measured(results, ("cusparse", "cuSPARSE"))) + "[Results]({folder}/spgemm_validation.jsonl).\n"


def measured_at(results, impl):
    """The dates of an implementation's results, and the checksums of its kernels."""
    found = [result for result in results if result["impl"] == impl]
    dates, kernels = (", ".join(sorted({str(result.get(key)) for result in found})) for key in ("date", "ptx"))
    return f"{dates} (PTX {kernels})"


def beside_cusparse(ours, case):
    """The values alone by SpGEMMreuse, our peak of device memory, and its ratio to that of cuSPARSE's default."""
    reuse, default = case.get(REUSE), case.get(DEFAULT)
    numeric = reuse.get("numeric_ms") if time(reuse) else None
    peak, theirs = ours.get("peak_bytes"), default.get("peak_bytes") if time(default) else None
    return [
        f"{numeric:.2f}" if numeric else "",
        f"{peak / 1e6:.0f}" if peak else "",
        f"{peak / theirs:.2f}" if peak and theirs else "",
    ]


def counters(folder):
    """The longest kernel of each product that was profiled."""
    results = read(folder / "spgemm_counters.jsonl", "graph", "kernel", "us")
    rows = []
    for graph in distinct(result["graph"] for result in results):
        longest = max((result for result in results if result["graph"] == graph), key=lambda result: result["us"])
        keys = ("shared_percent", "issue_percent", "dram_percent")
        percents = [f"{longest[key]:.0f}" if key in longest else "" for key in keys]
        rows.append([graph, f"`{longest['kernel']}`", f"{longest['us'] / 1e3:.2f}", *percents])
    text = table(["A x A of", "longest kernel", "ms", "shared memory, %", "issue slots, %", "memory, %"], rows)
    return text + profiled(results) + "\n[All counters]({folder}/spgemm_counters.jsonl).\n"


SECTIONS = {"spgemm": products, "spgemm_validation": validation, "spgemm_counters": counters}
