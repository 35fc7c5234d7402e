//! A line of the results: what was measured over so many parts, and what was predicted.

use super::options::{Operation, Options};
use super::peer::Peer;
use super::placement::Placement;
use crate::harness::json_lines::JsonLines;
use serde::Serialize;
use warprow::Error;
use warprow::device::{Device, DeviceError};
use warprow::multi::Layout;
use warprow::operand::OperandError;

/// The graph of a line.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    pub operation: &'static str,
    pub graph: &'static str,
    pub kind: &'static str,
    pub rows: usize,
    pub nnz: usize,
    /// Columns of X, or features of a node.
    pub features: Option<usize>,
    /// Features of the rows that travel; `None` if no exchange is measured.
    #[serde(skip)]
    pub exchanged: Option<usize>,
}

impl Case {
    /// Without columns of X.
    pub fn new(operation: Operation, graph: &'static str, kind: &'static str) -> Self {
        Self {
            operation: operation.name(),
            graph,
            kind,
            rows: 0,
            nnz: 0,
            features: None,
            exchanged: None,
        }
    }
}

/// Milliseconds of the phases, medians of the samples where a phase is repeated; null on the emulator, and for phases
/// that an operation has not got.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Times {
    /// Dividing A, uploading its parts, and planning them; for SpGEMM with the rows of B.
    pub plan_ms: Option<f64>,
    /// Uploading the rows of X to their owners.
    pub distribution_ms: Option<f64>,
    pub exchange_ms: Option<f64>,
    pub computation_ms: Option<f64>,
    /// Exchange and computation together.
    pub ms: Option<f64>,
    pub gathering_ms: Option<f64>,
}

/// Bytes of the phases, of all devices together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bytes {
    /// What the plan uploads of A, and for SpGEMM of B.
    pub plan_bytes: u64,
    pub distribution_bytes: u64,
    pub exchange_bytes: u64,
    /// The most that a GPU receives in the exchange.
    pub exchange_bytes_of_a_gpu: u64,
    pub gathering_bytes: u64,
}

/// What was found with one placement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    /// By the work that the division counts.
    pub imbalance: f64,
    /// By the devices' times, or for SpGEMM by the products that they have computed.
    pub imbalance_measured: Option<f64>,
    pub rows_received: u64,
    pub rows_replicated: u64,
    /// Products of SpGEMM, and entries of C.
    pub products: Option<u64>,
    pub entries: Option<u64>,
    #[serde(flatten)]
    pub times: Times,
    #[serde(flatten)]
    pub bytes: Bytes,
    pub predicted_exchange_ms: Option<f64>,
    /// The share of the computation that runs during the exchange.
    pub share_during_exchange: f64,
    pub samples: u32,
    /// Why there is nothing else.
    pub skipped: Option<String>,
    /// Whether the result is right.
    pub ok: bool,
}

impl Measured {
    /// What the layout says.
    pub fn of(layout: &Layout) -> Self {
        let volume = layout.volume();
        Self {
            imbalance: layout.partition().imbalance(),
            rows_received: volume.received,
            rows_replicated: volume.replicated,
            ..Self::default()
        }
    }
}

/// What a line with times says beside them.
#[derive(Clone, Debug, Default, Serialize)]
struct Comparison {
    collect_gbytes_per_s: Option<f64>,
    copy_gbytes_per_s: Option<f64>,
    message_us: Option<f64>,
    gap_us: Option<f64>,
    predicted_computation_ms: Option<f64>,
    predicted_ms: Option<f64>,
    /// Against so many parts and devices.
    base_parts: Option<u32>,
    base_devices: Option<u32>,
    speedup: Option<f64>,
    computation_speedup: Option<f64>,
}

#[derive(Serialize)]
struct Line<'a> {
    bench: &'static str,
    #[serde(flatten)]
    case: &'a Case,
    parts: u32,
    /// Different GPUs, or emulators.
    devices: u32,
    /// Their names.
    gpus: Vec<&'a str>,
    peer_access: Option<bool>,
    #[serde(flatten)]
    measured: &'a Measured,
    #[serde(flatten)]
    comparison: &'a Comparison,
    #[serde(flatten)]
    peer: &'a Peer,
}

/// The first line of a case that has times.
struct Base {
    parts: u32,
    devices: u32,
    times: Times,
}

/// The lines of a run.
pub struct Report {
    file: JsonLines,
    all_right: bool,
}

impl Report {
    /// Creates the file that the options name.
    pub fn create(options: &Options, first: &Device) -> anyhow::Result<Self> {
        let environment = options.run.environment(first);
        Ok(Self {
            file: JsonLines::create(options.run.output.as_deref(), environment)?,
            all_right: true,
        })
    }

    /// Whether all results were right.
    pub const fn all_right(&self) -> bool {
        self.all_right
    }

    /// Measures a case with each placement of the options, and writes the lines. What does not fit a memory has a line
    /// that says so.
    pub fn case(
        &mut self,
        options: &Options,
        first: &Device,
        case: &Case,
        peer: &Peer,
        mut measure: impl FnMut(&Placement) -> Result<Measured, Error>,
    ) -> anyhow::Result<()> {
        let mut base = None;
        for wanted in options.placements() {
            let Some(placement) = Placement::new(first, wanted, case.exchanged)? else {
                println!(
                    "{} parts: there are not as many GPUs as asked for",
                    wanted.0
                );
                continue;
            };
            let measured = match measure(&placement) {
                Ok(measured) => measured,
                Err(error) => Measured {
                    skipped: Some(reason_to_skip(error)?),
                    ok: true,
                    ..Measured::default()
                },
            };
            self.all_right &= measured.ok;
            let comparison = compare(&placement, &measured, base.as_ref());
            let line = Line {
                bench: "multi",
                case,
                parts: placement.parts(),
                devices: placement.distinct,
                gpus: (placement.devices.iter().take(placement.distinct as usize))
                    .map(Device::name)
                    .collect(),
                peer_access: placement.peer_access,
                measured: &measured,
                comparison: &comparison,
                peer,
            };
            print!("{}", self.file.write(&line)?);
            if base.is_none() && measured.times.ms.is_some() {
                base = Some(Base {
                    parts: placement.parts(),
                    devices: placement.distinct,
                    times: measured.times,
                });
            }
        }
        Ok(())
    }
}

/// Why a device or its kernels cannot have a case; any other error stays one.
fn reason_to_skip(error: Error) -> Result<String, Error> {
    match error {
        error @ (Error::Device(
            DeviceError::OutOfMemory { .. } | DeviceError::HostOutOfMemory { .. },
        )
        | Error::Operand(OperandError::TooLarge { .. })) => Ok(error.to_string()),
        error => Err(error),
    }
}

fn compare(placement: &Placement, measured: &Measured, base: Option<&Base>) -> Comparison {
    let mut comparison = Comparison::default();
    if let Some(link) = &placement.link {
        comparison.collect_gbytes_per_s = Some(link.collect.bytes_per_second / 1e9);
        comparison.copy_gbytes_per_s = Some(link.copy.bytes_per_second / 1e9);
        comparison.message_us = Some(link.message * 1e6);
        comparison.gap_us = Some(link.gap * 1e6);
    }
    let (Some(base), Some(ms)) = (base, measured.times.ms) else {
        return comparison;
    };
    comparison.base_parts = Some(base.parts);
    comparison.base_devices = Some(base.devices);
    comparison.speedup = base.times.ms.map(|base| base / ms);
    // Without an exchange, all is computation.
    let computation = |times: &Times| times.computation_ms.or(times.ms);
    let base_computation = computation(&base.times);
    comparison.computation_speedup = base_computation
        .zip(measured.times.computation_ms)
        .map(|(base, found)| base / found);
    let share = f64::from(base.devices) / f64::from(placement.distinct);
    let predicted = base_computation.map(|base| base * share * measured.imbalance);
    comparison.predicted_computation_ms = predicted;
    let exchange = measured.predicted_exchange_ms.unwrap_or(0.0);
    let together = |computation: f64| {
        let during = measured.share_during_exchange * computation;
        exchange.max(during) + (computation - during)
    };
    comparison.predicted_ms = predicted.map(together);
    comparison
}

/// Milliseconds in which each GPU receives the rows of its parts' halos, of so many features.
pub fn predicted_exchange(placement: &Placement, layout: &Layout, features: usize) -> Option<f64> {
    let link = placement.link.as_ref()?;
    let halos = layout.halos();
    let parts = 0..halos.len();
    let messages = parts.clone().map(|part| {
        let senders = parts.clone().filter(|&other| other != part);
        senders
            .filter(|&other| !halos[part].rows_from(other).is_empty())
            .count() as u64
    });
    let messages = placement.most(messages) as f64;
    let bytes = exchange_bytes_of_a_gpu(placement, layout, features) as f64;
    let parts = f64::from(placement.parts()) / f64::from(placement.distinct);
    (messages > 0.0).then(|| link.milliseconds(bytes, messages, parts))
}

/// The most bytes that a GPU receives in an exchange of rows of f32.
pub fn exchange_bytes_of_a_gpu(placement: &Placement, layout: &Layout, features: usize) -> u64 {
    let rows = layout.halos().iter().map(|halo| halo.rows().len() as u64);
    placement.most(rows) * (features * size_of::<f32>()) as u64
}
