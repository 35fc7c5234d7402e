//! The same launches on the emulator, which counts them, and on a GPU, where `ncu` counts them.
//!
//! ```text
//! cargo bench -p warprow-benches --bench counters -- --device emulator --output emulated.jsonl
//! cargo bench -p warprow-benches --bench counters -- --list
//! ```
//!
//! Each case plans outside of the profiler's range, and launches its product once within it. So the launches of both
//! devices are the same, in the same order. The emulator plans as an H200 does and writes a JSON object for each
//! launch. On a GPU the bench writes a JSON object for each case, with the number of launches.
//! `scripts/counters-against-ncu` runs it on both and compares.

mod bench;
mod micro;
mod operations;
mod options;
mod patterns;
mod report;
#[cfg(test)]
mod tests;

use crate::harness::exit_code::exit_code;
use clap::Parser;
use std::process::ExitCode;

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    let ran = bench::run(&options::Options::parse());
    exit_code(ran.map(|()| true), "launches")
}
