//! What the benches share: options, timing, peers' libraries, and the file of results.

pub mod by_rows;
pub mod cuda_library;
pub mod cusparse;
pub mod driver_release;
pub mod element_type;
pub mod exit_code;
pub mod floor;
pub mod flushed;
pub mod host_clock;
pub mod json_lines;
pub mod matrix_file;
pub mod measure;
pub mod named;
pub mod row_sums;
pub mod run_options;
