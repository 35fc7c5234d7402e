"""The instances of SpGEMM's phases. The bench times each product also under limits that replace a kernel by others."""

from instance_evidence.attributes import entry_points
from instance_evidence.evidence import Run, read

SOURCES = "kernels-gpu/spgemm/src"
RESULTS = "spgemm_choices.jsonl"
BENCH = (
    "spgemm -- --matrix packages,arxiv,uniform,banded,blocks,stencil,communities,rmat57_100k,long_row_200k "
    "--sweep --no-cusparse --samples 5"
)

# The times of a result, each with the entry points that ran in it.
TIMES = {
    "ms": "entry_points",
    "symbolic_ms": "symbolic_entry_points",
    "numeric_first_ms": "numeric_first_entry_points",
    "numeric_ms": "numeric_entry_points",
}

# Why instances exist that no measured case is faster with.
REASONS = {
    "spgemm_*_f64": "f64: the only instance for the type",
    "spgemm_sort_products_f64_*": "f64: the sizes of f32, which are measured",
    "spgemm_merge_*": "near rows of few nonzeros of A, few in these matrices: docs/notes/spgemm.md has times of grids",
    # A step of every product.
    "spgemm_row_extents": "a step of every product: where the rows of B begin and end, and their columns",
    "spgemm_row_work": "a step of every product: the products and the symbolic bin of each row",
    "spgemm_long_row_work": "the same for rows of A of more than 512 nonzeros",
    "spgemm_fill_row_lists": "a step of every product: the list of the rows of each bin",
    "spgemm_numeric_bins": "a step of every product: row pointers and numeric bins",
    "spgemm_copy_columns": "a step of the symbolic phase: the staged columns become those of C",
    "spgemm_copy_rows_f32": "a step of a multiplication that stages values: columns and values become those of C",
    "spgemm_copy_products_f32": "rows of one nonzero of A: no other kernel takes them",
    "spgemm_narrow_rows": "symbolic: rows of few columns; docs/notes/spgemm.md has times of band_400k_30",
    "spgemm_bitmap_rows_0": "symbolic: no other kernel takes rows of any number of products",
    "spgemm_ordered_chunks_f32": "deterministic products: no other kernel adds long rows in a fixed order",
    "spgemm_count_nonzeros_*": "products without zeros",
    "spgemm_keep_nonzeros_*": "products without zeros",
    # Steps of the product map, without which `mapped_chunks` and `mapped_entries` cannot run.
    "spgemm_count_products": "a step of the product map, which `mapped_entries` reads",
    "spgemm_place_products": "a step of the product map, which `mapped_entries` reads",
    "spgemm_count_segments": "a step of the product map, which `mapped_chunks` reads",
    "spgemm_write_segments": "a step of the product map, which `mapped_chunks` reads",
    "spgemm_rank_by_bitmap": "a step of the product map, which `mapped_chunks` reads",
    "spgemm_rank_by_search": "a step of the product map: chunks of any span",
}


def instances(root):
    ladder = entry_points(root / SOURCES / "ladder")
    return entry_points(root / SOURCES) - ladder


def cases(path, names):
    """Each product, once for each of its times."""
    for key, case in read(path, "graph", "product", "type").items():
        for time, entry_points_of in TIMES.items():
            results = [result for result in case.values() if result.get(time) and entry_points_of in result]
            yield (*key, time), [Run(result[time], set(result[entry_points_of]) & names) for result in results]
