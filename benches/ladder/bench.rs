//! The run: every family, every case, every rung.

use crate::harness::json_lines::{Environment, JsonLines};
use crate::ladder::cases::{DenseShape, NamedGraph, graphs};
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
    let environment = Environment::of(&device);
    let results = JsonLines::create(options.run.output.as_deref(), environment)?;
    let on_emulator = device.is_emulator();
    let graphs: Vec<NamedGraph> = graphs(on_emulator, options.run.seed)?;
    let mut bench = Bench {
        options,
        device,
        report: Report::to(results),
    };
    for family in &options.families {
        match family {
            Family::Spmm => {
                for graph in &graphs {
                    spmm::case(&mut bench, graph)?;
                }
            }
            Family::Spgemm => {
                for graph in &graphs {
                    spgemm::case(&mut bench, graph)?;
                }
            }
            Family::Gemm => {
                let shape = DenseShape::on(on_emulator);
                gemm::case::<f32>(&mut bench, shape)?;
                gemm::case::<f64>(&mut bench, shape)?;
            }
        }
    }
    Ok(bench.report.all_right())
}
