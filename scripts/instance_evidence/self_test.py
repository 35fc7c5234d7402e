"""Tests of the script on small examples: what must count as evidence, and what must not."""

import json
import tempfile
from pathlib import Path

from instance_evidence import gemm, spgemm
from instance_evidence.attributes import names_of
from instance_evidence.evidence import Run, evidence, reason


def names_are_those_of_the_attribute():
    assert names_of('name = "a", T = [f32, f64], N = [1]; T = [f16], N = [2, 4], registers = 72') == [
        "a_f32_1",
        "a_f64_1",
        "a_f16_2",
        "a_f16_4",
    ]
    assert names_of('name = "b", target = sm_90a') == ["b"]


def a_gain_is_the_best_time_without_over_the_best_time_with():
    runs = [Run(2.0, {"a"}), Run(3.0, {"a", "b"}), Run(3.0, {"c"}), Run(9.0, {"c"}, {"a", "c"})]
    found = evidence([(("case",), runs)], {"a", "b", "c", "d"})
    gains = {name: (of_name.cases, of_name.gain) for name, of_name in found.items()}
    assert gains == {"a": (1, 1.5), "b": (1, 2 / 3), "c": (1, 2 / 3), "d": (0, 0.0)}, gains


def an_instance_without_an_alternative_has_no_evidence():
    found = evidence([(("case",), [Run(2.0, {"a"}), Run(3.0, {"a"})])], {"a"})
    assert (found["a"].cases, found["a"].gain) == (1, 0.0)


def the_first_pattern_that_matches_is_the_reason():
    assert reason("a_f64_1", {"a_f32_*": "", "*_f64_*": "", "a_*": ""}) == "*_f64_*"
    assert reason("b", {"a": ""}) is None


def xw_is_compared_within_what_a_plan_may_choose():
    def result(name, ms, ok=True):
        case = {"bench": "gemm", "rows": 9, "k": 8, "features": 7, "type": "f32"}
        return {**case, "impl": name, "variant": name, "ms": ms, "ok": ok}

    staged, rounded = "gemm_staged_f32_Wide", "gemm_warp_fragments_f32_Columns48"
    split, halves = "gemm_split_fragments_Columns48", "gemm_warpgroup_halves_Columns128"
    results = [
        result(staged, 8.0),
        result("gemm_staged_f32_Narrow", 9.0),
        result(split, 4.0),
        result(rounded, 3.0),
        result(halves, 2.0),
        result("gemm_warpgroup_split_Columns64", 1.0, ok=False),
    ]
    names = {result["variant"] for result in results}
    found = of_results(gemm, results, names)
    gains = {name: of_name.gain for name, of_name in found.items()}
    # Among the kernels for any GPU and any W, for splittable W, and with tf32.
    assert gains[staged] == 9.0 / 8.0
    assert gains[split] == 8.0 / 4.0
    assert gains[halves] == 4.0 / 2.0
    assert gains[rounded] == 8.0 / 3.0
    assert gains["gemm_warpgroup_split_Columns64"] == 0.0


def each_time_of_a_product_counts_for_what_ran_in_it():
    def result(name, ms, numeric_ms, numeric):
        case = {"graph": "g", "product": "A x A", "type": "f32", "impl": name, "ok": True}
        return {**case, "ms": ms, "entry_points": ["a"], "numeric_ms": numeric_ms, "numeric_entry_points": numeric}

    results = [result("warprow", 3.0, 1.0, ["a", "b"]), result("no_b", 3.0, 1.5, ["a", "c"])]
    found = of_results(spgemm, results, {"a", "b", "c"})
    assert (found["b"].gain, found["b"].where) == (1.5, ("g", "A x A", "f32", "numeric_ms"))
    assert found["a"].gain == 0.0 and found["c"].gain < 1.0


def of_results(family, results, names):
    """The evidence of a family's results from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        path.write_text("".join(json.dumps(result) + "\n" for result in results))
        return evidence(family.cases(path, names), names)


TESTS = [
    names_are_those_of_the_attribute,
    a_gain_is_the_best_time_without_over_the_best_time_with,
    an_instance_without_an_alternative_has_no_evidence,
    the_first_pattern_that_matches_is_the_reason,
    xw_is_compared_within_what_a_plan_may_choose,
    each_time_of_a_product_counts_for_what_ran_in_it,
]


def run():
    for test in TESTS:
        test()
    print(f"{len(TESTS)} tests passed")
