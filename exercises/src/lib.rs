//! Exercises in writing GPU kernels: what runs an attempt on the emulator and judges it.
//!
//! `README.md` of this package says how to solve an exercise, and how to write one. The program `exercises` compiles
//! an attempt together with the exercise's `case.rs` and this library, and runs it: [`attempt_main`].
//!
//! | module | content |
//! |---|---|
//! | [`description`] | `exercise.toml`: sizes, bounds, hints, what the delivered file shows |
//! | [`gpu`] | the device of a case: buffers, launches, and comparison with the reference |
//! | [`inputs`] | numbers and sparse matrices for cases |
//! | [`check`](mod@check) | runs a case with all sizes, schedules and bounds |
//! | `cuda` | the same on a GPU, with the feature `cuda` |
//! | `recorded` | the recorded times of our solutions, with the feature `cuda` |
//! | [`verdict`] | what went wrong, as text |

pub mod bounds;
pub mod check;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod description;
mod emulated;
pub mod gpu;
pub mod inputs;
pub mod list;
mod picture;
#[cfg(feature = "cuda")]
pub mod recorded;
pub mod verdict;

pub use check::{Case, attempt_main};

/// What a `case.rs` imports.
pub mod prelude {
    pub use crate::gpu::{Buffer, Gpu, expect_equal};
    pub use crate::inputs;
    pub use crate::verdict::Failure;
    pub use cuda_std::prelude::*;
}

/// The attempts, for rust-analyzer alone: it helps only with files that belong to a crate.
#[cfg(rust_analyzer)]
mod attempts {
    include!(concat!(env!("OUT_DIR"), "/attempts.rs"));
}
