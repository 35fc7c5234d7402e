//! The bench on a matrix of the caller's: each choice that a plan has, and cuSPARSE. `warprow bench` prints it.

use crate::harness::json_lines::{Environment, JsonLines};
use crate::spmm::choices::{OURS, all_choices};
use crate::spmm::cusparse_spmm::Cusparse;
use crate::spmm::cusparse_spmv;
pub use crate::spmm::implementer::BenchElement;
use crate::spmm::implementer::Peers;
use crate::spmm::implementers::Implementers;
use crate::spmm::on_device::{OnDevice, fitting};
use crate::spmm::operands::{DenseOperands, Operands};
use crate::spmm::report::{Case, Line};
use crate::spmm::results::Record;
use crate::spmm::{ratios::Ratios, summary, table};
use sprs::CsMatI;
use std::path::Path;
use warprow::device::Device;

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct OwnMatrix {
    /// The name in the results.
    pub name: String,
    /// Columns of X.
    pub features: Vec<u32>,
    /// Samples of a time, each of a millisecond or of one launch if that is longer.
    pub samples: u32,
    /// The seed of X.
    pub seed: u64,
}

/// The peer.
pub struct Peer(Peers);

impl Peer {
    /// cuSPARSE from `path`, the library or its folder, or from where it is found.
    ///
    /// # Errors
    ///
    /// In words, why it is not there.
    pub fn cusparse(device: &Device, path: Option<&Path>) -> Result<Self, String> {
        let words = |error: crate::harness::cusparse::Error| error.to_string();
        Ok(Self(Peers {
            spmm: Some(Cusparse::open(device, path).map_err(words)?),
            spmv: Some(cusparse_spmv::Cusparse::open(device, path).map_err(words)?),
        }))
    }

    /// Its version.
    pub fn version(&self) -> &str {
        self.0.spmm.as_ref().map_or("", Cusparse::version)
    }
}

/// What comes next in a run.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// How many were before.
    pub before: usize,
    /// How many there are.
    pub count: usize,
    /// Columns of X.
    pub features: u32,
    /// The implementation.
    pub name: &'static str,
}

/// The results for one number of features.
#[derive(Debug)]
pub struct Measurement {
    case: Case,
    lines: Vec<Line>,
}

impl OwnMatrix {
    /// Runs every implementation for every number of features. `begun` is told which one comes next; `done` has the
    /// results of one number of features.
    ///
    /// # Errors
    ///
    /// The device's. What does not fit the memory and what cuSPARSE refuses is reported as skipped.
    pub fn run<T: BenchElement>(
        &self,
        device: &Device,
        a: &CsMatI<T, u32, u32>,
        peer: Option<Peer>,
        mut begun: impl FnMut(Step),
        mut done: impl FnMut(Measurement) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let peers = peer.map_or_else(Peers::default, |peer| peer.0);
        let implementers =
            Implementers::new(device, peers, all_choices(), self.samples, self.seed)?;
        let most = self.features.iter().copied().max().unwrap_or(0);
        let mut dense = DenseOperands::<T>::new(a.cols() * most as usize, self.seed)?;
        let mut on_device = OnDevice::new(device, a);
        let count = (self.features.iter())
            .map(|&features| implementers.all(features).len())
            .sum();
        let mut before = 0;
        for &features in &self.features {
            let case = Case {
                graph: self.name.clone().into(),
                kind: "file",
                rows: a.rows(),
                cols: a.cols(),
                nnz: a.nnz(),
                features,
                element: T::NAME,
            };
            let mut lines: Vec<Line> = Vec::new();
            match fitting(Operands::new(device, a, &mut dense, features, self.seed))? {
                Ok(mut operands) => {
                    for implementer in implementers.all(features) {
                        let name = implementer.name();
                        begun(Step {
                            before,
                            count,
                            features,
                            name,
                        });
                        before += 1;
                        let line = implementers.line(
                            implementer,
                            &mut on_device,
                            &mut operands,
                            &lines,
                        )?;
                        lines.push(line);
                    }
                }
                Err(reason) => {
                    let skipped = |implementer| implementers.skipped(implementer, reason.clone());
                    lines.extend(implementers.all(features).into_iter().map(skipped));
                }
            }
            done(Measurement { case, lines })?;
        }
        Ok(())
    }
}

impl Measurement {
    /// Columns of X.
    pub fn features(&self) -> u32 {
        self.case.features
    }

    /// Whether no result is wrong.
    pub fn is_right(&self) -> bool {
        self.lines.iter().all(Line::is_right)
    }

    /// The table, with its head.
    pub fn table(&self) -> String {
        format!(
            "{}\n{}",
            table::head(),
            table::block(&self.case, &self.lines)
        )
    }

    /// How good the plan's choice was, in words; empty without times.
    pub fn verdict(&self, device: &Device) -> anyhow::Result<String> {
        let records = self.json(device)?;
        let records: Result<Vec<Record>, _> =
            records.into_iter().map(serde_json::from_value).collect();
        let ratios = Ratios::of(&records?);
        Ok(summary::choices(&ratios))
    }

    /// The implementations with their times in milliseconds, the plan's own as `warprow`.
    pub fn times(&self) -> Vec<(&'static str, f64)> {
        let time = |line: &Line| Some((line.implementation.name, line.right_time()?));
        self.lines.iter().filter_map(time).collect()
    }

    /// The name of the plan's own choice in the results.
    pub const OURS: &'static str = OURS;

    /// An object for each implementation, as the bench writes them to its file.
    ///
    /// # Errors
    ///
    /// None is known.
    pub fn json(&self, device: &Device) -> anyhow::Result<Vec<serde_json::Value>> {
        let mut lines = JsonLines::to(None, Environment::of(device));
        let object = |line: &Line| {
            let text = lines.write(&line.of_case(&self.case))?;
            Ok(serde_json::from_str(&text)?)
        };
        self.lines.iter().map(object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warprow::generate;

    #[test]
    fn each_implementation_is_run_and_right_on_the_emulator() {
        let a = generate::uniform::<f32>(70, 50, 300, 1).unwrap();
        let device = Device::emulator(Default::default());
        let own = OwnMatrix {
            name: "mine.mtx".to_owned(),
            features: vec![3, 8],
            samples: 1,
            seed: 1,
        };
        let (mut begun, mut measured) = (Vec::new(), Vec::new());
        own.run(
            &device,
            &a,
            None,
            |step| begun.push(step),
            |measurement| {
                measured.push(measurement);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!((begun.len(), measured.len()), (begun[0].count, 2));
        assert!(measured.iter().all(Measurement::is_right));
        assert!(measured[1].table().contains("mine.mtx file, 70 x 50"));
        let lines = measured[0].json(&device).unwrap();
        assert_eq!(lines.len(), begun.len() / 2);
        assert_eq!(lines[1]["impl"], Measurement::OURS);
        assert_eq!(lines[1]["ok"], true);
        assert!(Peer::cusparse(&device, None).is_err());
    }
}
