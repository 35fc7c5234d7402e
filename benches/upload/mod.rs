//! The time that the upload of a sparse matrix takes, and the part of it for the check of the structure.
//!
//! ```text
//! cargo bench -p warprow-benches --bench upload -- --output upload.jsonl
//! ```
//!
//! A sample uploads a matrix twice: as a matrix, which is checked, and as three lists, which are not. The check's time
//! is the median of the differences. The samples alternate, so that a slow phase of the machine affects both. On the
//! emulator, which has no times, each matrix is uploaded once.

use crate::harness::exit_code::exit_code;
use crate::harness::json_lines::JsonLines;
use crate::harness::measure::summary;
use crate::harness::run_options::RunOptions;
use clap::Parser;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Instant;
use warprow::operand::OperandError;
use warprow::{CsrMatrix, Device, DeviceCsr};

#[cfg(test)]
mod tests;

/// Nonzeros of a row.
const ROW_LENGTH: u32 = 16;

/// The greatest part of an upload that the check may take.
const MAX_CHECK_PART: f64 = 0.05;

/// The upload of a sparse matrix.
#[derive(Clone, Debug, Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench upload --")]
pub(crate) struct Options {
    /// The device, the file of the results, the seed.
    #[command(flatten)]
    run: RunOptions,

    /// Nonzeros of the matrices [default: 1000000,10000000,100000000; on the emulator 10000]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(16..=1 << 30))]
    nonzeros: Option<Vec<u32>>,

    /// Pairs of uploads for each matrix
    #[arg(long, value_name = "N", default_value_t = 51, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
}

/// Runs the bench with the options of the command line.
pub fn main() -> ExitCode {
    exit_code(run(&Options::parse()), "results")
}

/// The upload of a matrix of f32. Times are medians in milliseconds; null on the emulator.
#[derive(Clone, Debug, Serialize)]
struct Results {
    operation: &'static str,
    rows: u32,
    nnz: u32,
    /// Bytes of the three lists.
    bytes: u64,
    /// The upload as a matrix.
    ms: Option<f64>,
    /// The upload of the lists alone.
    lists_ms: Option<f64>,
    /// The check: the difference, and half of the samples lie between the other two.
    check_ms: Option<f64>,
    check_ms_low: Option<f64>,
    check_ms_high: Option<f64>,
    /// The check's part of the upload.
    check_part: Option<f64>,
    samples: u32,
    /// Whether the matrix on the device is the one of the host.
    ok: bool,
}

fn run(options: &Options) -> anyhow::Result<bool> {
    let device = options.run.open_device()?;
    let on_emulator = device.is_emulator();
    let mut file = JsonLines::create(
        options.run.output.as_deref(),
        options.run.environment(&device),
    )?;
    let default: &[u32] = if on_emulator {
        &[10_000]
    } else {
        &[1_000_000, 10_000_000, 100_000_000]
    };
    let mut all_right = true;
    for &nonzeros in options.nonzeros.as_deref().unwrap_or(default) {
        let samples = if on_emulator { 0 } else { options.samples };
        let results = uploads(&device, nonzeros / ROW_LENGTH, samples)?;
        all_right &= results.ok;
        print(&results);
        file.write(&results)?;
    }
    Ok(all_right)
}

/// A square matrix whose rows have columns spread over all of it.
fn matrix(rows: u32) -> CsrMatrix<f32> {
    // A column lies in each of as many parts of a row as it has nonzeros.
    let part = rows / ROW_LENGTH;
    let columns = (0..rows).flat_map(|row| {
        let inside = row.wrapping_mul(2_654_435_761) % part.max(1);
        (0..ROW_LENGTH).map(move |k| k * part + inside)
    });
    CsrMatrix::new(
        (rows as usize, rows as usize),
        (0..=rows).map(|row| row * ROW_LENGTH).collect(),
        columns.collect(),
        vec![1.0; rows as usize * ROW_LENGTH as usize],
    )
}

fn uploads(device: &Device, rows: u32, samples: u32) -> anyhow::Result<Results> {
    let rows = rows.max(ROW_LENGTH);
    let a = matrix(rows);
    let row_ptr = a.indptr();
    let row_ptr = row_ptr.raw_storage();
    let ok = DeviceCsr::upload(device, a.view())?.download()? == a;
    let as_matrix = || DeviceCsr::upload(device, a.view()).map(drop);
    let as_lists = || {
        let _lists = (
            device.upload(row_ptr)?,
            device.upload(a.indices())?,
            device.upload(a.data())?,
        );
        Ok(())
    };
    let (mut checked, mut lists, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for sample in 0..samples {
        let (of_matrix, of_lists);
        if sample % 2 == 0 {
            of_matrix = milliseconds(device, as_matrix)?;
            of_lists = milliseconds(device, as_lists)?;
        } else {
            of_lists = milliseconds(device, as_lists)?;
            of_matrix = milliseconds(device, as_matrix)?;
        }
        checked.push(of_matrix);
        lists.push(of_lists);
        differences.push(of_matrix - of_lists);
    }
    differences.sort_unstable_by(f64::total_cmp);
    let quartile = |quarters: usize| differences.get(quarters * differences.len() / 4).copied();
    let [ms, lists_ms] = [checked, lists].map(|times| summary(times, 1).map(|times| times.median));
    Ok(Results {
        operation: "upload",
        rows,
        nnz: a.nnz() as u32,
        bytes: 4 * (u64::from(rows) + 1 + 2 * a.nnz() as u64),
        ms,
        lists_ms,
        check_ms: quartile(2),
        check_ms_low: quartile(1),
        check_ms_high: quartile(3),
        check_part: quartile(2).zip(ms).map(|(check, all)| check / all),
        samples,
        ok,
    })
}

/// The host's time until the device is done.
fn milliseconds(
    device: &Device,
    upload: impl FnOnce() -> Result<(), OperandError>,
) -> Result<f64, OperandError> {
    device.synchronize()?;
    let start = Instant::now();
    upload()?;
    device.synchronize()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn print(results: &Results) {
    let verdict = if results.ok { "right" } else { "WRONG" };
    print!("{} nonzeros, {} rows: ", results.nnz, results.rows);
    let times = (results.ms.zip(results.check_ms)).zip(results.check_part);
    let Some(((ms, check), part)) = times else {
        println!("emulated, no times: {verdict}");
        return;
    };
    let too_long = if part > MAX_CHECK_PART {
        ", MORE THAN IT MAY"
    } else {
        ""
    };
    println!(
        "{ms:.3} ms, {:.1} GB/s; the check {check:.3} ms, {:.1} %{too_long}: {verdict}",
        results.bytes as f64 / ms / 1e6,
        100.0 * part
    );
}
