"""The instances of SpMM's kernels that plans choose from, and of `combine`."""

import re
from math import log

from instance_evidence.attributes import entry_points
from instance_evidence.evidence import Run, read

SOURCES = "kernels-gpu/spmm/src"
RESULTS = "spmm_choices.jsonl"
BENCH = "spmm -- --graph all --kind rmat57,rmat35 --features 32,64,128,256,512,33,100 --sweep --no-cusparse"

# The kernels whose instances are checked; each rung of the ladder is one kernel.
CHECKED = re.compile(r"spmm_(vector|in_step|row_groups|row_bins|spmv|combine(?!_slices))")

# Why instances exist that no measured case is faster with.
REASONS = {
    "spmm_vector_scaled_*": "any alpha and beta, means, and what a type has no other instance for",
    "spmm_vector_max_*": "maxima and minima",
    "spmm_row_bins_max_*": "maxima and minima with few features",
    "spmm_row_bins_shared_x_*": "X in shared memory: up to 2.2 times as fast on long rows (docs/notes/spmm.md)",
    "spmm_row_bins_f64_*": "f64: single elements, and loads of two",
    "spmm_row_bins_*f16_*": "16 bits: single elements, and loads of four",
    "spmm_row_bins_f32_*": "up to 2.4 times as fast as cuSPARSE on R-MAT .57 (docs/notes/spmm.md)",
    "spmm_row_groups_f32_*": "uniform rows: up to 1.2 times as fast as rows in bins (docs/notes/spmm.md)",
    "spmm_row_groups_f64_*": "f64: single elements, and loads of two",
    "spmm_row_groups_*f16_*": "16 bits: single elements, and loads of four",
    "spmm_spmv_*": "one feature, of each type; a plan that is told so has no other kernel (docs/notes/spmm.md)",
    "spmm_combine_*": "split rows, of each type and reduction",
    "spmm_vector_f32_8_1_2": "up to 16 features that 4 does not divide: 16 lanes have tiles of 48",
    "spmm_vector_*16_1_3": "odd widths of a type; f16 was 1.19 to 1.36 times as fast with it (docs/notes/spmm.md)",
    "spmm_vector_any_order_f32_8_1_2": "1.38 times as fast with it at 15 features (docs/notes/spmm.md)",
    "spmm_vector_f32_16_1_2": "1.1 to 1.2 times as fast with it at 17 and 23 features (docs/notes/spmm.md)",
    "spmm_vector_*f32_32_1_2": "33 to 64 features that 2 does not divide, and 129 to 192 (docs/notes/spmm.md)",
    "spmm_vector_*f32_32_1_4": "1.06 to 1.2 times as fast with it at 101 and 253 features (docs/notes/spmm.md)",
    "spmm_vector_*f32_32_2_2": "1.1 to 1.4 times as fast with it at 74 to 602 features (docs/notes/spmm.md)",
    "spmm_vector_*f32_32_2_1": "1.04 to 1.85 times as fast with it at 34 to 602 features (docs/notes/spmm.md)",
    "spmm_in_step_f32_32_2_1": "1.38 to 1.54 times as fast with it at 50 features (docs/notes/spmm.md)",
    "spmm_in_step_f32_4_4_1": "16 features: 1.3 to 2.4 times as fast as 8 lanes were (docs/notes/spmm.md)",
    "spmm_vector_f64_*": "f64: a row of X of up to 256 bytes, and wider ones",
    "spmm_vector_*f16_*_8_1": "16 bits: as many bytes of X as f32 with the same lanes, which is measured",
    "spmm_vector_*f16_*_4_1": "16 bits: up to 32 features, or a number that 4 divides and 8 does not",
    "spmm_in_step_f64_*": "f64: single elements, and loads of four",
    "spmm_in_step_*f16_*": "16 bits: f16 took 0.92 to 1 times as long as with `vector` (docs/notes/spmm.md)",
}


def instances(root):
    return {name for name in entry_points(root / SOURCES) if CHECKED.match(name)}


def cases(path, names):
    """The cases, with the runs of instances that still exist."""
    for key, case in read(path, "graph", "kind", "type", "features").items():
        yield key, [run for run in runs(case) if run.certain <= names]


def runs(case):
    """The runs of a case, by its results."""
    for name, result in case.items():
        if "variant" in result:
            used = {result["variant"], result.get("further_variant", result["variant"])}
            yield Run(result["ms"], used, used)
        elif (used := derived(name, result, case)) is not None:
            yield Run(result["ms"], *used)


# --- Results from before the bench recorded `variant`: the instances are derived from the other fields.


def derived(name, result, case):
    """The instances that a line ran for certain, and those that it may have run; `None` if that cannot be told.

    The kernel, the order of the rows and the number of features decide all but the lanes and the blocks of columns. The
    lanes are known for the lines `lanes_8`, `lanes_16` and `lanes_32`. A plan's blocks are those of the line
    `column_blocks_N` whose time is nearest."""
    element, features = result["type"], result["features"]
    if element != "f32":
        return None
    if result["kernel"] == "in_step":
        used = {derived_in_step(features)}
        return used, used
    if result["kernel"] != "vector":
        return None
    width = 4 if features % 4 == 0 else 2 if features % 2 == 0 and features > 32 else 1
    lanes = [int(name.removeprefix("lanes_"))] if name.startswith("lanes_") else [8, 16, 32]
    endings = ["any_order_" if result.get("order") else ""]
    if derived_blocks(name, case) > 1:
        endings.append("added_")
    used = {
        f"spmm_vector_{ending}{element}_{of_lanes(count, width)}" for ending in endings for count in lanes
    }
    return (used if len(lanes) == 1 else set()), used


def of_lanes(lanes, width):
    """The end of an instance's name."""
    loads = 1 if width > 1 else 3 if lanes == 16 else 2
    return f"{lanes}_{width}_{loads}"


def derived_in_step(features):
    """The instance of `in_step` for f32."""
    if features % 4:
        return "spmm_in_step_f32_16_1_3"
    if features <= 64:
        return "spmm_in_step_f32_8_4_1"
    return f"spmm_in_step_f32_{16 if features % 32 == 0 else 32}_4_1"


def derived_blocks(name, case):
    if name.startswith("column_blocks_"):
        return int(name.removeprefix("column_blocks_"))
    times = {
        int(other.removeprefix("column_blocks_")): result["ms"]
        for other, result in case.items()
        if other.startswith("column_blocks_")
    }
    planned = case.get("vector")
    if planned is None or not times:
        return 1
    return min(times, key=lambda blocks: abs(log(times[blocks] / planned["ms"])))
