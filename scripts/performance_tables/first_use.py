"""The table of first uses in a process: first_use.jsonl."""

from performance_tables.results import measured, prose, read, table

NAMES = {
    "spmm": "SpMM, 32 features: upload, plan, one product",
    "spgemm": "SpGEMM, A x A: upload, one product",
    "spgemm-phases": "SpGEMM in two phases",
}


def first_uses(folder):
    results = read(folder / "first_use.jsonl", "operation", "cache", "ms", "modules_ms")
    found = {(result["operation"], result["cache"]): result for result in results if result["ok"] and result["ms"]}
    rows = []
    for operation, name in NAMES.items():
        cold, warm = found.get((operation, "empty")), found.get((operation, "filled"))
        if cold and warm:
            cells = [f"{result[key]:.0f}" for result in (cold, warm) for key in ("ms", "modules_ms")]
            rows.append([name, *cells])
    text = prose(
        "The first operation of a new process, on `packages`, from an open device to the result on the host. A *cold*",
        "start compiles the kernels' PTX; a *warm* one finds them compiled in the driver's cache on disk.",
    )
    head = ["operation", "cold, ms", "of it kernels, ms", "warm, ms", "of it kernels, ms"]
    text += "\n" + table(head, rows)
    return text + prose("Medians of the host's time.", measured(results)) + "[Results]({folder}/first_use.jsonl).\n"


SECTIONS = {"first_use": first_uses}
