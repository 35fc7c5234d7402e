//! The run: every family, every case, every rung.

use crate::harness::json_lines::JsonLines;
use crate::ladder::cases::{DenseShape, graphs};
use crate::ladder::options::Options;
use crate::ladder::report::Report;
use crate::ladder::rungs::Family;
use crate::ladder::{gemm, spgemm, spmm};
use warprow::device::Device;

/// What every case is told.
pub struct Bench<'a> {
    /// The options.
    pub options: &'a Options,
    /// The device.
    pub device: Device,
    /// The results.
    pub report: Report,
}

/// Runs what the options say; whether all results were right.
///
/// # Errors
///
/// A device that is not there, a file that cannot be written, a launch that fails. What a rung cannot compute is
/// reported as skipped.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    let device = options.run.open_device()?;
    let environment = options.run.environment(&device);
    let results = JsonLines::create(options.run.output.as_deref(), environment)?;
    let on_emulator = device.is_emulator();
    let mut bench = Bench {
        options,
        device,
        report: Report::to(results),
    };
    for &family in &options.families {
        let graphs = graphs(family, on_emulator, options.run.seed)?;
        match family {
            Family::Spmm => (graphs.iter()).try_for_each(|graph| spmm::case(&mut bench, graph))?,
            Family::Spgemm => {
                (graphs.iter()).try_for_each(|graph| spgemm::case(&mut bench, graph))?;
            }
            Family::Gemm => gemm::case(&mut bench, DenseShape::on(on_emulator))?,
        }
    }
    Ok(bench.report.all_right())
}
