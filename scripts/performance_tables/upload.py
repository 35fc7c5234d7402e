"""The table of uploads: upload.jsonl."""

from performance_tables.results import measured, prose, read, table


def uploads(folder):
    results = read(folder / "upload.jsonl", "operation", "rows", "nnz")
    rows = []
    for result in results:
        if not result["ok"] or result["ms"] is None:
            continue
        gigabytes = result["bytes"] / result["ms"] / 1e6
        # A difference that is not above zero is lost in the spread of the two times.
        measurable = result["check_ms"] > 0
        check = f"{1e3 * result['check_ms']:.0f} ({100 * result['check_part']:.1f})" if measurable else "not measurable"
        rows.append([result["nnz"], result["rows"], f"{result['ms']:.2f}", f"{gigabytes:.1f}", check])
    text = prose(
        "An upload copies the three lists of a matrix of f32 from the host's pageable memory, and checks its structure.",
        "The check's time is the median difference to an upload of the lists alone; in brackets, its percentage.",
    )
    text += "\n" + table(["nonzeros", "rows", "ms", "GB/s", "check, us (%)"], rows)
    return text + prose("Medians of the host's time.", measured(results)) + "[Results]({folder}/upload.jsonl).\n"


SECTIONS = {"upload": uploads}
