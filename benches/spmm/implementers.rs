//! Those who compute a case: the kernels of this crate, the limits, the algorithms of cuSPARSE.

use crate::harness::cusparse::{self, CusparseElement};
use crate::harness::floor::Floor;
use crate::harness::measure::{Effort, Timing, measure};
use crate::spmm::choices::{Choice, OURS, choices};
use crate::spmm::gather_limit;
use crate::spmm::on_device::{Fitting, OnDevice, fitting};
use crate::spmm::operands::Operands;
use crate::spmm::options::Options;
use crate::spmm::report::{
    Computed, Implementation, Instance, Line, Outcome, Preparation, Verified,
};
use crate::spmm::{cusparse_spmm, cusparse_spmv};
use std::time::Instant;
use warprow::device::Device;
use warprow::spmm::Operand;
use warprow::{RowOrder, Spmm, SpmmElement};

/// The name of the copy.
pub const COPY_LIMIT: &str = "copy_limit";

/// The most features of a case with a copy beside it: with more, rows of X that are read again are most of the bytes.
const MAX_COPIED_FEATURES: u32 = 16;

/// An element type of both sides.
pub trait BenchElement: SpmmElement + CusparseElement {}

impl<T: SpmmElement + CusparseElement> BenchElement for T {}

/// Who computes a case.
#[derive(Clone, Copy, Debug)]
pub enum Implementer {
    /// A plan of this crate.
    Warprow(Choice),
    /// The gather limit.
    GatherLimit,
    /// A copy of as many bytes as a product moves at least.
    CopyLimit,
    /// SpMM of cuSPARSE.
    CusparseSpmm(cusparse_spmm::Algorithm),
    /// SpMV of cuSPARSE.
    CusparseSpmv(cusparse_spmv::Algorithm),
}

impl Implementer {
    /// The name in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warprow(choice) => choice.name,
            Self::GatherLimit => gather_limit::NAME,
            Self::CopyLimit => COPY_LIMIT,
            Self::CusparseSpmm(algorithm) => algorithm.name(),
            Self::CusparseSpmv(algorithm) => algorithm.name(),
        }
    }
}

/// cuSPARSE, if it is there.
#[derive(Default)]
pub struct Peers {
    /// With the functions of SpMM.
    pub spmm: Option<cusparse_spmm::Cusparse>,
    /// With those of SpMV.
    pub spmv: Option<cusparse_spmv::Cusparse>,
}

/// What they need: the device, the library if there is one, and how often to measure.
pub struct Implementers {
    device: Device,
    spmm: Option<cusparse_spmm::Cusparse>,
    spmv: Option<cusparse_spmv::Cusparse>,
    floor: Floor,
    choices: Vec<Choice>,
    samples: u32,
    seed: u64,
}

impl Implementers {
    /// Those that the options ask for.
    ///
    /// # Errors
    ///
    /// A library that is insisted on and is not there; a device that does not take the gather limit's kernel.
    pub fn of(device: &Device, options: &Options) -> anyhow::Result<Self> {
        let peers = Peers {
            spmm: options.cusparse.open(device)?,
            spmv: options.cusparse.open(device)?,
        };
        Self::new(
            device,
            peers,
            choices(options),
            options.samples,
            options.run.seed,
        )
    }

    /// Those of these choices, and the peers that are there.
    ///
    /// # Errors
    ///
    /// A device that does not take the gather limit's kernel; a driver without the function that copies.
    pub fn new(
        device: &Device,
        peers: Peers,
        choices: Vec<Choice>,
        samples: u32,
        seed: u64,
    ) -> anyhow::Result<Self> {
        gather_limit::load(device)?;
        Ok(Self {
            device: device.clone(),
            spmm: peers.spmm,
            spmv: peers.spmv,
            floor: Floor::of(device)?,
            choices,
            samples,
            seed,
        })
    }

    /// All that compute a case with so many features, in the order of the table.
    pub fn all(&self, features: u32) -> Vec<Implementer> {
        let ours = self.choices.iter().copied();
        let copies = !self.device.is_emulator() && features <= MAX_COPIED_FEATURES;
        let mut all = vec![Implementer::GatherLimit];
        all.extend(copies.then_some(Implementer::CopyLimit));
        all.extend(ours.map(Implementer::Warprow));
        if features == 1 && self.spmv.is_some() {
            all.extend(cusparse_spmv::Algorithm::ALL.map(Implementer::CusparseSpmv));
        } else if self.spmm.is_some() {
            all.extend(cusparse_spmm::Algorithm::ALL.map(Implementer::CusparseSpmm));
        }
        all
    }

    /// One case by one implementation, after those `before`.
    ///
    /// # Errors
    ///
    /// The device's, unless it is one of memory.
    pub fn line<T: BenchElement>(
        &self,
        implementer: Implementer,
        on_device: &mut OnDevice<'_, T>,
        operands: &mut Operands<'_, T>,
        before: &[Line],
    ) -> anyhow::Result<Line> {
        operands.poison()?;
        let line = match implementer {
            Implementer::Warprow(choice) => {
                let plan = on_device.plan(choice, operands.features)?;
                if choice.name == OURS {
                    operands.wake(&self.device)?;
                }
                let line = self.by_warprow(implementer, plan, operands)?;
                match line {
                    Ok(line) if line.is_right() => {
                        let exact = on_device.is_exact(choice, operands, self.seed)?;
                        Ok(line.that_is_exact(exact))
                    }
                    line => line,
                }
            }
            Implementer::GatherLimit => {
                operands.wake(&self.device)?;
                self.gather_limit(on_device, operands)?
            }
            Implementer::CopyLimit => self.copy_limit(on_device, operands)?,
            Implementer::CusparseSpmm(_) | Implementer::CusparseSpmv(_) => {
                let peers = before
                    .iter()
                    .filter(|line| line.implementation.cusparse.is_some());
                let fastest = peers.filter_map(Line::right_time).min_by(f64::total_cmp);
                self.by_cusparse(implementer, on_device, operands, fastest)?
            }
        };
        Ok(line.unwrap_or_else(|reason| self.skipped(implementer, reason)))
    }

    fn implementation(&self, implementer: Implementer) -> Implementation {
        let version = || {
            self.spmm
                .as_ref()
                .map(|library| library.version().to_owned())
        };
        Implementation {
            name: implementer.name(),
            kernel: match implementer {
                Implementer::Warprow(choice) if choice.name != OURS => choice
                    .options
                    .tuning
                    .kernel
                    .map(|kernel| kernel.name().into()),
                _ => None,
            },
            instance: None,
            cusparse: match implementer {
                Implementer::CusparseSpmm(_) | Implementer::CusparseSpmv(_) => version(),
                _ => None,
            },
        }
    }

    /// The line that says why there is no result.
    pub fn skipped(&self, implementer: Implementer, skipped: String) -> Line {
        Line {
            implementation: self.implementation(implementer),
            outcome: Outcome::Skipped { skipped },
        }
    }

    fn by_warprow<T: BenchElement>(
        &self,
        implementer: Implementer,
        plan: &Fitting<Spmm<T>>,
        operands: &mut Operands<'_, T>,
    ) -> anyhow::Result<Fitting<Line>> {
        let spmm = match plan {
            Ok(spmm) => spmm,
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let features = operands.features as usize;
        let timing = measure(&self.device, Effort::of(self.samples), || {
            spmm.run(&operands.x, features, &mut operands.y)
        });
        let timing = match fitting(timing)? {
            Ok(timing) => timing,
            Err(reason) => return Ok(Err(reason)),
        };
        let times = spmm.times();
        let prediction = spmm.prediction(operands.features);
        let preparation = Preparation {
            predicted_ms: prediction.map(|(time, _)| time.as_secs_f64() * 1e3),
            predicted_bound: prediction.map(|(_, bound)| bound),
            plan_ms: times.preprocessing.as_secs_f64() * 1e3,
            order_ms: times.ordering.map(|time| time.as_secs_f64() * 1e3),
            order: (spmm.order() != RowOrder::Given).then(|| spmm.order().name()),
            upload_ms: Some(times.upload.as_secs_f64() * 1e3),
        };
        let implementation = Implementation {
            kernel: Some(spmm.kernel().name().into()),
            instance: Instance::of(spmm, operands.features),
            ..self.implementation(implementer)
        };
        Ok(Ok(Line {
            implementation,
            outcome: product(timing, preparation, operands, Some(spmm))?,
        }))
    }

    fn gather_limit<T: BenchElement>(
        &self,
        on_device: &mut OnDevice<'_, T>,
        operands: &mut Operands<'_, T>,
    ) -> anyhow::Result<Fitting<Line>> {
        if !gather_limit::has::<T>() {
            return Ok(Err(format!("there is no gather limit in {}", T::NAME)));
        }
        let a = match on_device.arrays()? {
            Ok(a) => a,
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let Operands { x, y, features, .. } = operands;
        let samples = self.samples;
        let (cut, timing) = gather_limit::best(&self.device, a, x, y, *features, samples)?;
        let implementation = Implementation {
            kernel: Some(cut.name().into()),
            ..self.implementation(Implementer::GatherLimit)
        };
        Ok(Ok(Line {
            implementation,
            outcome: Outcome::Computed(Computed::limit(timing)),
        }))
    }

    /// The copy of A, X and Y, each once.
    fn copy_limit<T: BenchElement>(
        &self,
        on_device: &mut OnDevice<'_, T>,
        operands: &Operands<'_, T>,
    ) -> anyhow::Result<Fitting<Line>> {
        let a = match on_device.arrays()? {
            Ok(a) => a.pattern(),
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let (nnz, rows) = (a.nnz() as u128, a.rows() as u128);
        let dense = (operands.x.len() + operands.y.len()) * size_of::<T>();
        let bytes =
            nnz * (4 + size_of::<<T as Operand>::Sum>() as u128) + 4 * (rows + 1) + dense as u128;
        let Some(timing) = self.floor.time(bytes, Effort::of(self.samples))? else {
            return Ok(Err("the copy does not fit the memory".into()));
        };
        Ok(Ok(Line {
            implementation: self.implementation(Implementer::CopyLimit),
            outcome: Outcome::Computed(Computed::limit(Some(timing))),
        }))
    }

    fn by_cusparse<T: BenchElement>(
        &self,
        implementer: Implementer,
        on_device: &mut OnDevice<'_, T>,
        operands: &mut Operands<'_, T>,
        fastest_peer: Option<f64>,
    ) -> anyhow::Result<Fitting<Line>> {
        let a = match on_device.arrays()? {
            Ok(a) => a,
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let started = Instant::now();
        let Operands { x, y, features, .. } = operands;
        let timed = |launch: &mut dyn FnMut() -> Result<(), cusparse::Error>| {
            let preparation = Preparation {
                plan_ms: started.elapsed().as_secs_f64() * 1e3,
                ..Preparation::default()
            };
            let effort = Effort::of(self.samples).against(fastest_peer);
            let timing = measure(&self.device, effort, launch)?;
            Ok((timing, preparation))
        };
        let run = match (implementer, &self.spmm, &self.spmv) {
            (Implementer::CusparseSpmm(algorithm), Some(library), _) => {
                cusparse_spmm::Product::prepare(library, a, x, y, *features, algorithm)
                    .and_then(|mut product| timed(&mut || product.run()))
            }
            (Implementer::CusparseSpmv(algorithm), _, Some(library)) => {
                cusparse_spmv::Product::prepare(library, a, x, y, algorithm)
                    .and_then(|mut product| timed(&mut || product.run()))
            }
            _ => unreachable!("its algorithms are run if it is there"),
        };
        let (timing, preparation) = match run {
            Ok(run) => run,
            Err(cusparse::Error::Device(error)) => return fitting(Err(error)),
            Err(error) => return Ok(Err(error.to_string())),
        };
        Ok(Ok(Line {
            implementation: self.implementation(implementer),
            outcome: product(timing, preparation, operands, None)?,
        }))
    }
}

/// What a product that ran has come to.
fn product<T: BenchElement>(
    timing: Option<Timing>,
    preparation: Preparation,
    operands: &Operands<'_, T>,
    plan: Option<&Spmm<T>>,
) -> anyhow::Result<Outcome> {
    let verification = operands.verify(plan)?;
    if !verification.ok() {
        eprintln!("{verification}");
    }
    let verified = Verified {
        rows_verified: operands.rows(),
        max_rel_err: verification.entries.max_relative_error,
        ok: verification.ok(),
    };
    Ok(Outcome::Computed(Computed::product(
        timing,
        preparation,
        verified,
    )))
}
