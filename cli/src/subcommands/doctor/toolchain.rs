//! The compilers that kernels of one's own need.

use super::checks::Check;
use crate::commands::Global;
use cuda_builder::{Ptxas, Toolchain};

/// The compiler that makes PTX, and NVIDIA's assembler, which tests use.
pub fn all(_: &Global, checks: &mut Vec<Check>) {
    checks.push(match Toolchain::find() {
        Ok(toolchain) => Check::ok(
            "device compiler",
            format!("{}, {}", toolchain.compiler(), toolchain.rustc().display()),
        ),
        Err(error) => Check::missing(
            "device compiler",
            error.to_string(),
            "only kernels of your own need it: rustup component add rust-src, or on Debian \
             apt-get install rustc-web cargo-web rust-web-src",
        ),
    });
    checks.push(match Ptxas::find() {
        Ok(ptxas) => Check::ok(
            "ptxas",
            format!("{}, {}", ptxas.version(), ptxas.path().display()),
        ),
        Err(error) => Check::missing(
            "ptxas",
            error.to_string(),
            "only tests of PTX need it: pip install 'nvidia-cuda-nvcc==13.0.*', and set PTXAS to its path",
        ),
    });
}
