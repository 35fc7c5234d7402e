"""Tests of the script on small examples: which launches are pairs, and what must agree."""

from counter_comparison import document
from counter_comparison.compare import compare
from counter_comparison.metrics import METRICS, names
from counter_comparison.ncu import launches
from counter_comparison.pairs import Unpaired, pair

COLUMNS = ("ID", "Kernel Name", "Block Size", "Grid Size", "Metric Name", "Metric Unit", "Metric Value")
LOADS = {"loads_requests": "requests.sum", "shared_loads_wavefronts": "wavefronts.sum"}
LOADS["shared_loads_conflicts"] = "conflicts.sum"
GLOBAL = ("global_loads", "global_stores", "global_atomics", "global_reductions", "async_copies")
SHARED = ("shared_loads", "shared_stores", "shared_atomics")
TOGETHER = ("shuffles", "votes", "matrix_products", "warp_barriers", "block_barriers")


def csv_of(kernels):
    """What `ncu --csv` prints for launches, each a kernel with its metrics, after what the program prints."""
    rows = [COLUMNS]
    for number, (kernel, values) in enumerate(kernels):
        for name, value in values.items():
            rows.append((number, kernel, "(32, 1, 1)", "(2, 1, 1)", name, "inst", value))
    text = "".join(",".join(f'"{field}"' for field in row) + "\n" for row in rows)
    return "device: GPU\n==PROF== Connected\n" + text


def line(case, kernel, launch=0, **loads):
    """A line of the emulator, all of whose other counters are zero."""
    counters = {kind: {"requests": 0, "sectors": 0, "bytes": 0, "lanes": 0} for kind in GLOBAL}
    counters |= {kind: {"requests": 0, "wavefronts": 0, "bank_conflicts": 0, "lanes": 0} for kind in SHARED}
    counters |= {kind: {"executed": 0, "lanes": 0} for kind in TOGETHER}
    counters["global_loads"] |= loads
    of_launch = {"grid": [2, 1, 1], "block": [32, 1, 1], "counters": counters}
    return {"case": case, "launch": launch, "kernel": kernel, **of_launch}


def launches_are_read_from_what_ncu_prints():
    metrics = {"requests.sum": "1,200", "wavefronts.sum": "30", "conflicts.sum": "4"}
    found = launches(csv_of([("fill(int)", metrics), ("add", {"requests.sum": "n/a"})]), LOADS)
    assert [launch["kernel"] for launch in found] == ["fill", "add"], found
    assert (found[0]["grid"], found[0]["block"]) == ([2, 1, 1], [32, 1, 1]), found
    wanted = {"loads_requests": 1200, "shared_loads_wavefronts": 30, "shared_loads_conflicts": 4}
    assert found[0]["values"] == {**wanted, "shared_loads_without_conflicts": 26}, found
    assert found[1]["values"] == {}, found


def launches_are_paired_in_their_order_within_a_case():
    counted = launches(csv_of([(kernel, {"requests.sum": of}) for kernel, of in zip("ababc", range(5))]), LOADS)
    emulated = [line("x", "a", 0), line("x", "b", 1), {"case": "skipped", "skipped": "too wide"}]
    emulated += [line("y", "a", 0), line("y", "d", 1), line("y", "c", 2)]
    ran = [{"case": "x", "launches": 2}, {"case": "skipped", "skipped": "too wide"}, {"case": "y", "launches": 3}]
    results, alone = pair(emulated, ran, counted)
    found = [(result["case"], result["kernel"], result["gpu"]["loads_requests"]) for result in results]
    assert found == [("x", "a", 0), ("x", "b", 1), ("y", "a", 2), ("y", "c", 4)], found
    assert alone == ["y: d on the emulator alone", "y: b on the GPU alone"], alone


def a_launch_that_ncu_has_not_counted_is_an_error():
    try:
        pair([line("x", "a")], [{"case": "x", "launches": 1}], [])
    except Unpaired as error:
        assert "1 launches, ncu counted 0" in str(error), error
    else:
        raise AssertionError("wanted an error")


def compared(case, emulator, gpu):
    """How many values agree, are explained and are wrong, with these requests on both sides."""
    counted = launches(csv_of([("k", {"requests.sum": gpu})]), LOADS)
    results, _ = pair([line(case, "k", requests=emulator)], [{"case": case, "launches": 1}], counted)
    found = compare(results)
    return found.agree, len(found.explained), len(found.wrong)


def requests_agree_exactly_but_where_lanes_diverge():
    assert compared("spmm/packages/f32/32/vector", 100, 100) == (1, 0, 0)
    assert compared("spmm/packages/f32/32/vector", 101, 100) == (0, 0, 1)
    assert compared("spmm/packages/f32/32/in_step", 104, 100) == (1, 0, 0)
    assert compared("spmm/packages/f32/32/in_step", 106, 100) == (0, 0, 1)
    assert compared("spmm/packages/f32/32/vector", 0, 0) == (1, 0, 0)
    assert compared("spmm/packages/f32/32/vector", 1, 0) == (0, 0, 1)


def what_differs_for_a_known_reason_is_explained():
    result = {"case": "spmm/packages/f32/32/warp_per_row_cached", "launch": 0, "kernel": "k"}
    sides = {"emulator": {"grid": [], "block": []}, "gpu": {"grid": [], "block": []}}
    sides["emulator"]["shared_loads_without_conflicts"] = 20
    sides["gpu"]["shared_loads_without_conflicts"] = 10
    found = compare([{**result, **sides}])
    assert (found.agree, len(found.explained), found.wrong) == (0, 1, []), found
    found = compare([{**result, **sides, "case": "spmm/packages/f32/32/vector"}])
    assert (found.agree, len(found.explained), len(found.wrong)) == (0, 0, 1), found


def another_grid_is_wrong():
    result = {"case": "xw/1", "launch": 0, "kernel": "k"}
    sides = {"emulator": {"grid": [2, 1, 1], "block": []}, "gpu": {"grid": [3, 1, 1], "block": []}}
    assert len(compare([{**result, **sides}]).wrong) == 1


def optional_metrics_are_asked_for_if_they_are_known():
    always = names(METRICS, None)
    assert "loads_requests" in always and "async_copies_requests" not in always, always
    known = names(METRICS, {"smsp__inst_executed_op_ldgsts"})
    assert known["async_copies_requests"] == "smsp__inst_executed_op_ldgsts.sum", known


def the_document_has_both_sides_where_they_differ():
    counted = launches(csv_of([("k", {"requests.sum": 200})] * 2), LOADS)
    cases = ["micro/load_4/consecutive", "spmm/packages/f32/32/vector"]
    emulated = [line(case, "k", requests=100, sectors=7) for case in cases]
    results, _ = pair(emulated, [{"case": case, "launches": 1} for case in cases], counted)
    results = [{**result, "device": "GPU", "date": "2026-01-01"} for result in results]
    for result in results:
        result["gpu"] |= {"loads_sectors": 8, "nanoseconds": 10}
    marks = "".join(f"<!-- begin: {name} -->\noutdated\n<!-- end: {name} -->\n" for name in document.SECTIONS)
    found = document.written(marks, "counters.md", results)
    assert "outdated" not in found
    assert "100 / 200 (-50 %)" in found, found
    assert "sectors of 32 bytes that these touch | 7 | 8 | differs" in found, found
    assert "Not measured yet." in document.written(marks, "counters.md", [])


def run():
    """Runs all tests of this file."""
    tests = [
        launches_are_read_from_what_ncu_prints,
        launches_are_paired_in_their_order_within_a_case,
        a_launch_that_ncu_has_not_counted_is_an_error,
        requests_agree_exactly_but_where_lanes_diverge,
        what_differs_for_a_known_reason_is_explained,
        another_grid_is_wrong,
        optional_metrics_are_asked_for_if_they_are_known,
        the_document_has_both_sides_where_they_differ,
    ]
    for test in tests:
        test()
    print(f"{len(tests)} tests of the script passed")
