//! The constants of the cost model. `scripts/fit-spmm-plan` has fitted them to bench/results/*/spmm_sweep.jsonl, and
//! writes this file.

/// The constants.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    /// The part of the memory's peak rate that a product reaches.
    pub memory_efficiency: f64,
    /// Bytes that a multiprocessor gets from the L2 cache in a cycle.
    pub l2_bytes_per_cycle: f64,
    /// The part of the L2 cache that holds rows of X.
    pub l2_share: f64,
    /// The part of the L1 cache that holds rows of X.
    pub l1_share: f64,
    /// Cycles of a multiprocessor's L1 cache for each cache line that a load of a sub-warp of `vector` or `in_step`
    /// touches.
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
    /// Cycles for a chunk of `narrow`.
    pub cycles_per_chunk: f64,
    /// Cycles for a step of a task.
    pub cycles_per_step: f64,
    /// Nonzeros after which a sub-warp still finds a row of X in the L1 cache.
    pub l1_reuse_nonzeros: f64,
    /// Seconds of the search for a row order: of its launches, for each row, for each nonzero, and for each nonzero of
    /// a matrix that is not square.
    pub search: [f64; 4],
    /// Seconds to divide a matrix into blocks of columns: of the launches, for each row, for each nonzero.
    pub division: [f64; 3],
}

/// As fitted.
pub const FITTED: Constants = Constants {
    memory_efficiency: 1.0,
    l2_bytes_per_cycle: 38.1,
    l2_share: 0.4972,
    l1_share: 0.5348,
    l1_cycles_per_line: 1.621,
    overlap: 1.871,
    instructions_per_nonzero: 6.021,
    instructions_per_load: 3.038,
    instructions_per_element: 2.723,
    divergence: 0.1167,
    instructions_per_row_end: 58.12,
    row_lookup: 14.83,
    cycles_per_row_in_step: 3465.0,
    cycles_per_nonzero_in_step: 35.57,
    cycles_per_chunk: 9535.0,
    cycles_per_step: 99.42,
    l1_reuse_nonzeros: 10.31,
    search: [0.0001784, 1.381e-09, 2.888e-11, 1.634e-10],
    division: [0.0005081, 8.729e-10, 8.023e-12],
};
