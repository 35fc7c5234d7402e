//! How a case is computed and timed: by the kernels of this crate, the limits, the algorithms of cuSPARSE.

use crate::harness::cusparse;
use crate::harness::floor::Floor;
use crate::harness::flushed::FlushedL2;
use crate::harness::measure::{Effort, Timing, measure};
use crate::spmm::choices::{Choice, OURS, choices};
use crate::spmm::floors::Floors;
use crate::spmm::gather_limit;
use crate::spmm::implementer::{BenchElement, Implementer, Peers};
use crate::spmm::on_device::{Fitting, OnDevice, fitting};
use crate::spmm::operands::Operands;
use crate::spmm::options::Options;
use crate::spmm::outcome::product;
use crate::spmm::report::{Computed, Implementation, Instance, Line, Outcome, Preparation};
use crate::spmm::{cusparse_spmm, cusparse_spmv};
use std::cell::{Cell, RefCell};
use std::time::Instant;
use warprow::device::{Device, DeviceError};
use warprow::spmm::Operand;
use warprow::{RowOrder, Spmm};

/// The most features of a case with a copy beside it: with more, rows of X that are read again are most of the bytes.
const MAX_COPIED_FEATURES: u32 = 16;

/// Samples of a launch after a flush of the L2 cache, at most.
const FLUSHED_SAMPLES: u32 = 9;

/// Multiplications up to which a product of small whole numbers is computed beside the measured one.
const MOST_EXACT: u64 = 1 << 31;

/// What they need: the device, the library if there is one, and how often to measure.
pub struct Implementers {
    device: Device,
    spmm: Option<cusparse_spmm::Cusparse>,
    spmv: Option<cusparse_spmv::Cusparse>,
    floor: Floor,
    floors: Option<Floors>,
    flushed: RefCell<FlushedL2>,
    choices: Vec<Choice>,
    samples: u32,
    seed: u64,
    /// When the device was last at work for a time.
    idle_since: Cell<Instant>,
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
    /// A device that does not take the gather limit's kernel, or has no memory for the rates of the floors; a driver
    /// without the function that copies.
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
            floors: Floors::measure(device)?,
            flushed: RefCell::new(FlushedL2::of(device)?),
            choices,
            samples,
            seed,
            idle_since: Cell::new(Instant::now()),
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
        if self.floors.is_some() {
            all.extend([Implementer::MemoryFloor, Implementer::L2Floor]);
        }
        all
    }

    /// Has a device that has idled work until it is as fast as ever.
    fn wake<T: BenchElement>(&self, operands: &mut Operands<'_, T>) -> anyhow::Result<()> {
        Ok(operands.wake(&self.device, self.idle_since.get().elapsed())?)
    }

    /// The time of a launch with operands in the L2 cache, as far as they fit, and with operands from memory. Of one
    /// that another is much faster than, there is only the first.
    fn times<E: From<DeviceError>>(
        &self,
        effort: Effort,
        fastest: Option<f64>,
        mut launch: impl FnMut() -> Result<(), E>,
    ) -> Result<[Option<Timing>; 2], E> {
        let timing = measure(&self.device, effort, &mut launch)?;
        let is_fast = |timing: Timing| fastest.is_none_or(|fastest| timing.median < 1.5 * fastest);
        let flushed = if timing.is_some_and(is_fast) {
            let samples = self.samples.min(FLUSHED_SAMPLES);
            self.flushed.borrow_mut().measure(samples, launch)?
        } else {
            None
        };
        self.idle_since.set(Instant::now());
        Ok([timing, flushed])
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
                self.wake(operands)?;
                let line = self.by_warprow(implementer, plan, operands)?;
                match line {
                    Ok(line) if choice.name == OURS => {
                        let line = line.after_first_plan(on_device.first_planning());
                        if line.is_right() && operands.multiplications() <= MOST_EXACT {
                            let exact = on_device.is_exact(choice, operands, self.seed)?;
                            Ok(line.that_is_exact(exact))
                        } else {
                            Ok(line)
                        }
                    }
                    line => line,
                }
            }
            Implementer::GatherLimit => {
                self.wake(operands)?;
                self.gather_limit(on_device, operands)?
            }
            Implementer::CopyLimit => self.copy_limit(on_device, operands)?,
            Implementer::MemoryFloor | Implementer::L2Floor => {
                let extents = on_device.extents(operands.features);
                let floors = self.floors.as_ref().expect("it has no line without floors");
                let floor = match implementer {
                    Implementer::MemoryFloor => floors.of_memory(extents),
                    _ => floors.of_l2(extents),
                };
                Ok(Line {
                    implementation: self.implementation(implementer),
                    outcome: Outcome::Computed(Computed::floor(floor)),
                })
            }
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
        // Of other choices than the plan's own, the cold time says nothing new.
        let fastest = (implementer.name() != OURS).then_some(0.0);
        let timings = self.times(Effort::of(self.samples), fastest, || {
            spmm.run(&operands.x, features, &mut operands.y)
        });
        let timings = match fitting(timings)? {
            Ok(timings) => timings,
            Err(reason) => return Ok(Err(reason)),
        };
        let times = spmm.times();
        let prediction = spmm.prediction(operands.features);
        let preparation = Preparation {
            predicted_ms: prediction.map(|(time, _)| time.as_secs_f64() * 1e3),
            predicted_bound: prediction.map(|(_, bound)| bound),
            plan_ms: times.preprocessing.as_secs_f64() * 1e3,
            first_plan_ms: None,
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
            outcome: product(timings, preparation, operands, Some(spmm))?,
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
        self.idle_since.set(Instant::now());
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
        self.wake(operands)?;
        let Operands { x, y, features, .. } = operands;
        let effort = Effort::of(self.samples).against(fastest_peer);
        let timed = |planned: [Instant; 3], launch: &mut dyn FnMut() -> Result<(), _>| {
            let [first, second] = [0, 1].map(|plan| planned[plan + 1] - planned[plan]);
            let preparation = Preparation {
                plan_ms: second.as_secs_f64() * 1e3,
                first_plan_ms: Some(first.as_secs_f64() * 1e3),
                ..Preparation::default()
            };
            Ok((self.times(effort, fastest_peer, launch)?, preparation))
        };
        // The second of two preparations counts, as of our plans.
        let begun = Instant::now();
        let run = match (implementer, &self.spmm, &self.spmv) {
            (Implementer::CusparseSpmm(algorithm), Some(library), _) => {
                let first = cusparse_spmm::Product::prepare(library, a, x, y, *features, algorithm);
                first.map(drop).and_then(|()| {
                    let again = Instant::now();
                    let mut product =
                        cusparse_spmm::Product::prepare(library, a, x, y, *features, algorithm)?;
                    timed([begun, again, Instant::now()], &mut || product.run())
                })
            }
            (Implementer::CusparseSpmv(algorithm), _, Some(library)) => {
                let first = cusparse_spmv::Product::prepare(library, a, x, y, algorithm);
                first.map(drop).and_then(|()| {
                    let again = Instant::now();
                    let mut product = cusparse_spmv::Product::prepare(library, a, x, y, algorithm)?;
                    timed([begun, again, Instant::now()], &mut || product.run())
                })
            }
            _ => unreachable!("its algorithms are run if it is there"),
        };
        let (timings, preparation) = match run {
            Ok(run) => run,
            Err(cusparse::Error::Device(error)) => return fitting(Err(error)),
            Err(error) => return Ok(Err(error.to_string())),
        };
        Ok(Ok(Line {
            implementation: self.implementation(implementer),
            outcome: product(timings, preparation, operands, None)?,
        }))
    }
}
