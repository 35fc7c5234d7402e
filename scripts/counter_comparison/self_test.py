"""Tests of the script on small examples: which launches are pairs, and what must agree."""

import tempfile
from pathlib import Path

from counter_comparison import document
from counter_comparison.compare import LIMITS, compare
from counter_comparison.metrics import METRICS, names
from counter_comparison.ncu import launches, recorded
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
    return numbers(compare(results))


def numbers(found):
    """How many values agree, are explained and are wrong."""
    return found.exact + found.near, len(found.explained()), len(found.wrong)


def sides(case, emulator, gpu, kernel="k"):
    """The result of a launch that has counted these."""
    extents = {"grid": [], "block": []}
    both = {"emulator": {**extents, **emulator}, "gpu": {**extents, **gpu}}
    return {"case": case, "launch": 0, "kernel": kernel, **both}


def requests_agree_exactly_but_where_lanes_diverge():
    assert compared("spmm/packages/f32/32/vector", 100, 100) == (1, 0, 0)
    assert compared("spmm/packages/f32/32/vector", 101, 100) == (0, 0, 1)
    assert compared("spmm/packages/f32/32/in_step", 104, 100) == (1, 0, 0)
    assert compared("spmm/packages/f32/32/in_step", 106, 100) == (0, 0, 1)
    assert compared("spmm/packages/f32/32/vector", 0, 0) == (1, 0, 0)
    assert compared("spmm/packages/f32/32/vector", 1, 0) == (0, 0, 1)


def what_differs_for_a_known_reason_is_explained():
    values = [{"shared_loads_without_conflicts": number} for number in (20, 10)]
    assert numbers(compare([sides("spmm/packages/f32/32/warp_per_row_cached", *values)])) == (0, 1, 0)
    assert numbers(compare([sides("spmm/packages/f32/32/vector", *values)])) == (0, 0, 1)


def an_entry_without_a_reason_explains_nothing():
    values = [{"shared_loads_without_conflicts": number} for number in (20, 10)]
    found = compare([sides("spgemm/rmat_3001/f32/default", *values, kernel="spgemm_sort_rows_512")])
    assert (found.values(), len(found.explained()), len(found.unexplained()), found.wrong) == (1, 0, 1, []), found
    assert "Not explained" in str(found.unexplained()[0])


def copies_are_loads_and_reductions_are_atomics():
    emulated = line("xw/1", "k", requests=1)
    emulated["counters"]["async_copies"]["requests"] = 2
    emulated["counters"]["global_atomics"]["requests"] = 5
    metrics = LOADS | {"atomics_requests": "atom.sum", "reductions_requests": "red.sum"}
    counted = launches(csv_of([("k", {"requests.sum": 3, "atom.sum": 1, "red.sum": 4})]), metrics)
    results, _ = pair([emulated], [{"case": "xw/1", "launches": 1}], counted)
    found = compare(results)
    assert (found.exact, found.values()) == (2, 2), found
    assert len(compare([{**results[0], "case": "micro/red"}]).wrong) == 2


def shared_memory_limits_are_compared_where_they_decide():
    limits = dict.fromkeys(LIMITS, 32)
    of_shared = [{**limits, "blocks_by_shared_memory": number} for number in (228, 32, 9, 8)]
    assert numbers(compare([sides("xw/1", of_shared[0], of_shared[1])])) == (3, 0, 0)
    assert numbers(compare([sides("xw/1", of_shared[2], of_shared[2])])) == (4, 0, 0)
    assert numbers(compare([sides("xw/1", of_shared[2], of_shared[3])])) == (3, 0, 1)
    assert numbers(compare([sides("xw/1", of_shared[0], of_shared[3])])) == (3, 0, 1)


def a_folder_of_an_earlier_run_has_its_launches():
    name = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ncu_command.txt").write_text(f"ncu --csv --metrics {name} bench\n")
        (Path(folder) / "ncu.csv").write_text(csv_of([("k", {name: 7})]))
        assert [launch["values"] for launch in recorded(Path(folder))] == [{"loads_requests": 7}]


def another_grid_is_wrong():
    assert len(compare([sides("xw/1", {"grid": [2, 1, 1]}, {"grid": [3, 1, 1]})]).wrong) == 1


def optional_metrics_are_asked_for_if_they_are_known():
    assert "atomics_and_reductions_requests" not in names(METRICS, None), "sums are not asked for"
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
        an_entry_without_a_reason_explains_nothing,
        copies_are_loads_and_reductions_are_atomics,
        shared_memory_limits_are_compared_where_they_decide,
        a_folder_of_an_earlier_run_has_its_launches,
        another_grid_is_wrong,
        optional_metrics_are_asked_for_if_they_are_known,
        the_document_has_both_sides_where_they_differ,
    ]
    for test in tests:
        test()
    print(f"{len(tests)} tests of the script passed")
