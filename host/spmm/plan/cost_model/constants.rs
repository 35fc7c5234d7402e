//! The constants of the cost model. `scripts/fit-spmm-plan` has fitted them to bench/results/*/spmm_sweep*.jsonl, what
//! planning costs to spmm_sweep.jsonl of the H200 alone, and writes this file.

/// The constants.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    /// The part of the memory's peak rate that a product reaches.
    pub memory_efficiency: f64,
    /// Bytes that a multiprocessor gets from the L2 cache in a cycle.
    pub l2_bytes_per_cycle: f64,
    /// The part of each partition of the L2 cache that holds rows of X.
    pub l2_share: f64,
    /// The part of the L1 cache that holds rows of X.
    pub l1_share: f64,
    /// Cycles of a multiprocessor's L1 cache for each cache line that a load touches: of X, and of Y and of the items
    /// of rows in bins. A line of columns or values costs a part of it.
    pub l1_cycles_per_line: f64,
    /// The power of the mean that joins the times of the resources: infinite if they overlap completely, 1 if they
    /// follow one another.
    pub overlap: f64,
    /// Instructions of a warp for a nonzero and a tile.
    pub instructions_per_nonzero: f64,
    /// The same for each load of a lane.
    pub instructions_per_load: f64,
    /// The same for each element of a lane.
    pub instructions_per_element: f64,
    /// The instructions of an element of f64 over those of an element of f32.
    pub instructions_of_f64_element: f64,
    /// The same of an element of 16 bits, which lanes convert.
    pub instructions_of_16_bit_element: f64,
    /// The part of the instructions of a warp's other lanes that a sub-warp of `vector` issues as well, because its
    /// loads and row ends come at other times than theirs.
    pub divergence: f64,
    /// Instructions of a warp for the end of a row in a tile. Sub-warps end their rows one after the other.
    pub instructions_per_row_end: f64,
    /// The same to look up which row of Y it is.
    pub row_lookup: f64,
    /// Cycles for a row of `in_step`.
    pub cycles_per_row_in_step: f64,
    /// Cycles for a nonzero of a row of `in_step`, for a warp whose lanes all have the same nonzero.
    pub cycles_per_nonzero_in_step: f64,
    /// Instructions of a warp of `row_groups` or `row_bins` for its rows, beside those for their nonzeros.
    pub instructions_per_group: f64,
    /// Cycles of a group of `row_groups` for a row.
    pub cycles_per_group: f64,
    /// Cycles of a group for each batch of nonzeros that it loads together.
    pub cycles_per_batch: f64,
    /// Cycles of a group of `row_groups` for each batch of the longest row, when few other groups still run, and all
    /// rows of X come from the L2 cache (no hits in the L1 cache).
    pub cycles_per_last_batch: f64,
    /// Cycles of a warp of `row_bins` for its rows, beside those for their batches.
    pub cycles_per_binned_row: f64,
    /// Cycles for a step of a task.
    pub cycles_per_step: f64,
    /// Cycles for a row of each further block of columns, which waits for the sum so far.
    pub cycles_per_added_row: f64,
    /// Nonzeros after which a sub-warp still finds a row of X in the L1 cache.
    pub l1_reuse_nonzeros: f64,
    /// Seconds of the search for a row order: of its launches, for each row, for each nonzero, and for each nonzero of
    /// a matrix that is not square.
    pub search: [f64; 4],
    /// Seconds to divide a matrix into blocks of columns: of the launches, for each row, for each nonzero.
    pub division: [f64; 3],
    /// Seconds to make the items of `vector`, more than for the rows of `row_groups`: of the launches, for each row,
    /// for each nonzero.
    pub items_of_vector: [f64; 3],
    /// The same of `in_step`.
    pub items_of_in_step: [f64; 3],
    /// The same of `row_bins`.
    pub items_of_row_bins: [f64; 3],
}

/// As fitted.
pub const FITTED: Constants = Constants {
    memory_efficiency: 1.0,
    l2_bytes_per_cycle: 39.1,
    l2_share: 0.7616,
    l1_share: 0.561,
    l1_cycles_per_line: 1.26,
    overlap: 2.219,
    instructions_per_nonzero: 3.298,
    instructions_per_load: 4.113,
    instructions_per_element: 2.364,
    instructions_of_f64_element: 2.172,
    instructions_of_16_bit_element: 1.207,
    divergence: 0.2118,
    instructions_per_row_end: 82.98,
    row_lookup: 10.07,
    cycles_per_row_in_step: 3638.0,
    cycles_per_nonzero_in_step: 67.11,
    instructions_per_group: 185.1,
    cycles_per_group: 250.0,
    cycles_per_batch: 270.1,
    cycles_per_last_batch: 1000.0,
    cycles_per_binned_row: 1423.0,
    cycles_per_step: 138.8,
    cycles_per_added_row: 1599.0,
    l1_reuse_nonzeros: 13.33,
    search: [0.000168, 5.77e-10, 1.721e-11, 1.108e-10],
    division: [0.0002239, 5.03e-10, 1.22e-11],
    items_of_vector: [5.997e-05, 0.0, 0.0],
    items_of_in_step: [0.0001259, 8.758e-11, 2.806e-12],
    items_of_row_bins: [7.958e-05, 3.367e-11, 2.721e-13],
};
