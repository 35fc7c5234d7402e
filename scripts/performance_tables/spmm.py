"""The tables of SpMM: spmm.jsonl, spmm_cuda_13_0.jsonl, and the counters."""

from math import ceil, inf

from performance_tables.results import OURS, distinct, mean, measured, median, profiled, prose, read, table, time

LIMIT = "gather_limit"
# The rows in the caller's order.
GIVEN = "given"
# The product's bytes over measured rates.
MEMORY_FLOOR, L2_FLOOR = "memory_floor", "l2_floor"
# The kind of matrices that were read from files.
FILE = "file"
# Widths whose counters are shown.
COUNTED = (32, 128)


class Case:
    """A product, and the results of all that computed it, by implementation."""

    def __init__(self, graph, kind, element, features):
        self.graph, self.kind, self.element, self.features = graph, kind, element, features
        self.results = {}

    def __str__(self):
        return f"{self.graph}, {self.kind}, {self.element}, {self.features}"

    def ours(self):
        return self.results.get(OURS, {})

    def time(self, *names):
        """The least time of these implementations; wrong results have none."""
        times = [time(self.results.get(name)) for name in names]
        return min((ms for ms in times if ms), default=None)

    def ratio(self, *names):
        """The least time of these implementations over ours, above 1 if ours is less."""
        theirs, ours = self.time(*names), self.time(OURS)
        return theirs / ours if theirs and ours else None

    def cusparse(self):
        """The names of cuSPARSE's algorithms."""
        return [name for name, result in self.results.items() if "cusparse" in result]

    def to_cusparse(self):
        return self.ratio(*self.cusparse())

    def flushed(self, *names):
        """The least time of these implementations after a flush of the L2 cache."""
        results = [self.results.get(name) for name in names]
        times = [result.get("flushed_ms") for result in results if time(result)]
        return min((ms for ms in times if ms), default=None)

    def to_cusparse_flushed(self):
        theirs, ours = self.flushed(*self.cusparse()), self.flushed(OURS)
        return theirs / ours if theirs and ours else None

    def to_memory_floor(self):
        """The memory floor over our time after a flush."""
        floor, ours = self.time(MEMORY_FLOOR), self.flushed(OURS)
        return floor / ours if floor and ours else None

    def to_l2_floor(self):
        return self.ratio(L2_FLOOR)

    def break_even(self, plan):
        """The least number of runs from which planning and runs take less time than those of cuSPARSE, with each of its
        algorithms; infinite if there is none. `plan` is the field that has the time of planning."""
        ours, ms = self.ours(), self.time(OURS)
        peers = [self.results[name] for name in self.cusparse() if self.time(name)]
        if not ms or not peers or any(plan not in result for result in (ours, *peers)):
            return None
        runs = 1
        for peer in peers:
            more = ours[plan] - peer[plan]
            if ms < peer["ms"]:
                runs = max(runs, ceil(more / (peer["ms"] - ms)))
            elif more >= 0:
                return inf
        return runs

    def to_limit(self):
        return self.ratio(LIMIT)

    def to_given_order(self):
        return self.ratio(GIVEN)

    def plan_in_runs(self, plan="plan_ms", order=True):
        """The time of planning in runs, with the search for a row order or without. `plan` is its field."""
        # In results without `upload_ms` the time of the plan includes the upload.
        ours, ms = self.ours(), self.time(OURS)
        if not ms or "upload_ms" not in ours or plan not in ours:
            return None
        return (ours[plan] - (0 if order else ours.get("order_ms", 0))) / ms

    def why_not_timed(self):
        ours = self.ours()
        if not ours:
            return "not run"
        if "skipped" in ours:
            return ours["skipped"]
        if not ours["ok"]:
            return "wrong"
        return "not timed" if ours["ms"] is None else None


def read_cases(path):
    """The cases, in the order of the file: of generated graphs and of files."""
    cases = {}
    for result in read(path, "graph", "kind", "type", "features", "impl"):
        key = tuple(result[name] for name in ("graph", "kind", "type", "features"))
        cases.setdefault(key, Case(*key)).results[result["impl"]] = result
    return list(cases.values())


def cell(ratios, graphs):
    """Geometric mean and least ratio; how many there are if not one for each graph."""
    ratios = [ratio for ratio in ratios if ratio is not None]
    if not ratios:
        return ""
    count = f", {len(ratios)}" if len(ratios) != graphs else ""
    return f"{mean(ratios):.2f} ({min(ratios):.2f}{count})"


def means(cases, ratio):
    """The means by kind and width; nothing if there are none."""
    if all(ratio(case) is None for case in cases):
        return ""
    widths = sorted(distinct(case.features for case in cases))
    graphs = len(distinct(case.graph for case in cases))
    rows = []
    for kind in distinct(case.kind for case in cases):
        of_kind = [case for case in cases if case.kind == kind]
        cells = [cell([ratio(case) for case in of_kind if case.features == width], graphs) for width in widths]
        if any(cells):
            rows.append([kind, *cells])
    return table([f"{cases[0].element}, features", *widths], rows)


def by_type(cases, title, sentences, ratio):
    """A table of means for each element type, under a title and a paragraph; nothing if there are no ratios."""
    tables = ""
    for element in distinct(case.element for case in cases):
        tables += means([case for case in cases if case.element == element], ratio)
    return prose(f"**{title}.**", *sentences) + "\n" + tables if tables else ""


def speed(folder, name="spmm"):
    """Against cuSPARSE, the gather limit, the floors and the given order; how many cases there are."""
    cases = [case for case in read_cases(folder / f"{name}.jsonl") if case.kind != FILE]
    if not cases:
        return "Not measured yet.\n"
    results = [result for case in cases for result in case.results.values()]
    sizes = distinct(
        f"`{case.graph}` ({case.ours()['rows']:,}, {case.ours()['nnz']:,})" for case in cases if case.ours()
    )
    text = prose(
        f"Graphs of the sizes of data sets, in brackets rows and nonzeros: {', '.join(sizes)}.",
        "A cell has the geometric mean over the graphs and, in brackets, the smallest ratio.",
        "A second number in the brackets says how many graphs the cell has, where it lacks some.",
    )
    against = [case for case in cases if case.to_cusparse() is not None]
    sentences = []
    if against:
        slower = sum(case.to_cusparse() < 1 for case in against)
        worst = min(against, key=Case.to_cusparse)
        sentences = [
            f"warprow is slower than cuSPARSE in {slower} of {len(against)} cases.",
            f"The smallest ratio is {worst.to_cusparse():.2f} ({worst}).",
        ]
    text += "\n" + by_type(cases, "Times as fast as the best algorithm of cuSPARSE", sentences, Case.to_cusparse)
    flushed = [case for case in cases if case.to_cusparse_flushed() is not None]
    if flushed:
        slower = sum(case.to_cusparse_flushed() < 1 for case in flushed)
        worst = min(flushed, key=Case.to_cusparse_flushed)
        sentences = [
            "Between launches the L2 cache was flushed, so all operands come from memory.",
            f"warprow is slower than cuSPARSE in {slower} of {len(flushed)} cases.",
            f"The smallest ratio is {worst.to_cusparse_flushed():.2f} ({worst}).",
        ]
        title = "Times as fast as cuSPARSE with a flushed L2 cache"
        text += by_type(cases, title, sentences, Case.to_cusparse_flushed)
    limited = [case for case in cases if case.to_limit() is not None]
    above = sum(case.to_limit() > 1 for case in limited)
    sentences = [
        "The limit is a baseline that loads rows of X and computes nothing.",
        f"warprow reuses rows of X in the caches, and is faster than the limit in {above} of {len(limited)} cases.",
    ]
    text += by_type(cases, "Speed relative to the gather limit", sentences, Case.to_limit)
    sentences = [
        "The floor reads A and the used rows of X and writes Y, each once, at the rate of a copy of a GiB",
        f"({rates(results, MEMORY_FLOOR)}). The time is that with a flushed L2 cache.",
    ]
    text += by_type(cases, "Speed relative to the memory floor", sentences, Case.to_memory_floor)
    sentences = [
        "The floor reads a row of X for each nonzero at the measured rate of random rows from L2",
        f"({rates(results, L2_FLOOR)}). Rows of X that are found in the L1 caches make a product faster than it.",
    ]
    text += by_type(cases, "Speed relative to the L2 floor", sentences, Case.to_l2_floor)
    ordered = [case for case in cases if case.to_given_order() is not None]
    slower = sum(case.to_given_order() < 1 for case in ordered)
    sentences = [
        "The plan may change the order of the rows. The time of the search is not part of these ratios.",
        f"The plan's order is slower than the given one in {slower} of {len(ordered)} cases.",
    ]
    text += by_type(cases, "Times as fast as in the given order of the rows", sentences, Case.to_given_order)
    counts = [f"{len(cases)} cases, {len(against)} of them timed against cuSPARSE."]
    if not limited:
        counts.append("The gather limit was not measured.")
    for reason in distinct(reason for case in cases if (reason := case.why_not_timed())):
        count = sum(case.why_not_timed() == reason for case in cases)
        counts.append(f"Without a time: {count} ({reason}).")
    counts += spread(cases)
    rounded = [result for result in results if result.get("rounds_sums")]
    if rounded:
        worst = max(result["max_rel_err"] for result in rounded)
        counts.append(
            f"{len(rounded)} products of cuSPARSE in 16 bits are less exact than one rounding of each sum explains, with "
            f"errors up to {worst:.1e} relative to |A||X|. Their times count."
        )
    counts.append("Medians of the device's time, verified against f64.")
    picture = f"{name}.svg"
    chart = f", [chart of all cases]({{folder}}/{picture})" if (folder / picture).exists() else ""
    text += prose(*counts, measured(results, ("cusparse", "cuSPARSE")))
    return text + f"[Results]({{folder}}/{name}.jsonl){chart}.\n"


def speed_cuda_13_0(folder):
    """The same with the cuSPARSE of CUDA 13.0: f32 alone is compared, with more numbers of features."""
    return speed(folder, "spmm_cuda_13_0")


def rates(results, floor):
    """The measured rates of a floor, from the least to the greatest of all runs of the bench."""
    found = [result["gb_per_s"] / 1e3 for result in results if result["impl"] == floor]
    if not found:
        return ""
    least, most = (f"{rate:.2f}" for rate in (min(found), max(found)))
    return f"{least} TB/s" if least == most else f"{least} to {most} TB/s"


def files(folder):
    """The matrices of files, a line for each width."""
    cases = [case for case in read_cases(folder / "spmm.jsonl") if case.kind == FILE and case.time(OURS)]
    if not cases:
        return "Not measured yet.\n"
    results = [result for case in cases for result in case.results.values()]
    head = [
        "matrix", "type", "features", "ms", "to cuSPARSE", "flushed, ms", "to cuSPARSE, flushed", "to memory floor",
        "to L2 floor", "second plan, ms", "break-even runs",
    ]
    rows = [
        [
            f"`{case.graph}`",
            case.element,
            case.features,
            f"{case.time(OURS):.4f}",
            number(case.to_cusparse()),
            number(case.flushed(OURS), 4),
            number(case.to_cusparse_flushed()),
            number(case.to_memory_floor()),
            number(case.to_l2_floor()),
            number(case.ours().get("plan_ms")),
            runs(case.break_even("plan_ms")),
        ]
        for case in cases
    ]
    sizes = distinct(
        f"`{case.graph}` ({case.ours()['rows']:,} x {case.ours()['cols']:,}, {case.ours()['nnz']:,} nonzeros)"
        for case in cases
    )
    against = [case for case in cases if case.to_cusparse() is not None]
    slower = [str(case).replace(f", {FILE}", "") for case in against if case.to_cusparse() < 1]
    text = prose(
        f"{'; '.join(sizes)}.",
        f"warprow is slower than the best algorithm of cuSPARSE in {len(slower)} of {len(against)} cases"
        + (f" ({'; '.join(slower)})." if slower else "."),
        "A ratio above 1 says that warprow is faster. The floors are those of the generated graphs.",
    )
    return text + "\n" + table(head, rows) + prose(measured(results, ("cusparse", "cuSPARSE"))) + (
        "[Results]({folder}/spmm.jsonl).\n"
    )


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def runs(count):
    return "" if count is None else "never" if count == inf else str(count)


def spread(cases):
    """How much the slowest sample differs from the median, in a sentence if it is known."""
    ratios = [
        (case.ours()["ms_max"] / case.time(OURS), str(case))
        for case in cases
        if case.time(OURS) and case.ours().get("ms_max")
    ]
    if not ratios:
        return []
    ratio, case = max(ratios)
    return [f"The slowest sample of a case takes at most {ratio:.2f} times its median ({case})."]


def sixteen_bit(folder):
    """How much faster elements of 16 bits are than f32."""
    times = {}
    for case in read_cases(folder / "spmm_cuda_13_0.jsonl"):
        if case.kind != FILE and case.time(OURS):
            times[case.element, case.kind, case.features, case.graph] = case.time(OURS)
    ratios = {}
    for (element, kind, features, graph), ms in times.items():
        in_f32 = times.get(("f32", kind, features, graph))
        if element in ("f16", "bf16") and in_f32:
            ratios.setdefault((element, kind), {}).setdefault(features, []).append(in_f32 / ms)
    if not ratios:
        return "Not measured yet.\n"
    widths = sorted({width for by_width in ratios.values() for width in by_width})
    graphs = max(len(found) for by_width in ratios.values() for found in by_width.values())
    rows = [
        [f"{element}, {kind}", *(cell(by_width.get(width, []), graphs) for width in widths)]
        for (element, kind), by_width in ratios.items()
    ]
    return table(["times as fast as f32, features", *widths], rows)


def counters(folder):
    """How much of the machine a product uses, by a profiler."""
    results = read(folder / "spmm_counters.jsonl", "graph", "kind", "impl", "type")
    results = [result for result in results if result["type"] == "f32"]
    names = {OURS: "warprow", "warprow_further_block": "warprow, later column blocks", LIMIT: "gather limit"}
    rows = []
    for kind, graph in distinct((result["kind"], result["graph"]) for result in results):
        for impl, name in names.items():
            of_case = [r for r in results if (r["kind"], r["graph"], r["impl"]) == (kind, graph, impl)]
            found = {result["features"]: result for result in of_case}
            if any(width in found for width in COUNTED):
                rows.append([f"{graph}, {kind}", name, *(percents(found.get(width)) for width in COUNTED)])
    sentences = ["A cell has the used part of memory bandwidth, L2-to-SM bandwidth and issue slots, in percent."]
    busier = [
        max(result["dram_percent"], result["l2_to_sm_percent"])
        for result in results
        if (result["impl"], result["features"], result["kind"]) == (OURS, COUNTED[0], "rmat35")
    ]
    if busier:
        sentences += [
            f"Without hubs (rmat35) and with {COUNTED[0]} features, the busier of the two bandwidths is used",
            f"{median(busier):.0f} % in the median, from {min(busier):.0f} to {max(busier):.0f} %.",
        ]
    head = ["graph", "kernel", *(f"{width} features" for width in COUNTED)]
    text = prose(*sentences) + "\n" + table(head, rows)
    return text + profiled(results) + "\n[All counters]({folder}/spmm_counters.jsonl).\n"


def percents(result):
    if result is None:
        return ""
    return " / ".join(f"{result[key]:.0f}" for key in ("dram_percent", "l2_to_sm_percent", "issue_percent"))


SECTIONS = {
    "spmm": speed,
    "spmm_cuda_13_0": speed_cuda_13_0,
    "spmm_files": files,
    "spmm_16_bit": sixteen_bit,
    "spmm_counters": counters,
}
