//! The run: every case, by every implementation, measured and verified.

use crate::cases::{Graph, Kind};
use crate::cusparse::{Algorithm, CsrBuffers, Cusparse, CusparseElement, Product};
use crate::measure::{Timing, measure};
use crate::operands::Operands;
use crate::options::{ElementType, Options};
use crate::report::{Case, Computed, Environment, Implementation, Line, Outcome, Report};
use crate::{cusparse, table};
use anyhow::Context;
use std::time::Instant;
use warprow::device::{Device, Selector};
use warprow::{Error, Spmm, SpmmElement, SpmmKernel, SpmmOptions, bf16, f16};

/// Runs what the options say; whether all products were right.
///
/// # Errors
///
/// A device that is not there, a library that is insisted on and is not there, a file that cannot be written, a launch
/// that fails. What does not fit the memory and what cuSPARSE refuses is reported as skipped.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    match options.element {
        ElementType::F32 => run_typed::<f32>(options),
        ElementType::F64 => run_typed::<f64>(options),
        ElementType::F16 => run_typed::<f16>(options),
        ElementType::Bf16 => run_typed::<bf16>(options),
    }
}

/// An element type of both sides.
trait BenchElement: SpmmElement + CusparseElement {}

impl<T: SpmmElement + CusparseElement> BenchElement for T {}

fn run_typed<T: BenchElement>(options: &Options) -> anyhow::Result<bool> {
    let selector = match options.device {
        Some(selector) => selector,
        None => Selector::from_environment()?,
    };
    let (device, no_gpu) = Device::select_with_reason(selector)?;
    println!("device: {device}");
    if let Some(reason) = no_gpu {
        println!("no GPU: {reason}");
    }
    let cusparse = open_cusparse(&device, options)?;
    let report = Report::create(options.output.as_deref(), Environment::of(&device));
    let report = report.with_context(|| match &options.output {
        Some(path) => format!("cannot write {}", path.display()),
        None => "cannot report".to_owned(),
    })?;
    let mut bench = Bench {
        kernels: options.kernels(),
        all_right: true,
        options,
        cusparse,
        device,
        report,
    };
    let on_emulator = bench.device.is_emulator();
    println!("{}", table::head());
    for graph in options.graphs(on_emulator) {
        for &kind in &options.kinds {
            bench.graph::<T>(graph, kind, &options.features(on_emulator))?;
        }
    }
    Ok(bench.all_right)
}

/// cuSPARSE, if there is one; not to have it is an error only if it was asked for by its path.
fn open_cusparse(device: &Device, options: &Options) -> anyhow::Result<Option<Cusparse>> {
    if options.no_cusparse {
        return Ok(None);
    }
    if device.is_emulator() && options.cusparse.is_none() {
        println!("no cuSPARSE: it wants a GPU");
        return Ok(None);
    }
    match Cusparse::open(device, options.cusparse.as_deref()) {
        Ok(cusparse) => {
            println!("cuSPARSE {} ({})", cusparse.version(), cusparse.path());
            Ok(Some(cusparse))
        }
        Err(error) if options.cusparse.is_some() => Err(error.into()),
        Err(error) => {
            println!("no cuSPARSE: {error}");
            Ok(None)
        }
    }
}

/// The run's state.
struct Bench<'a> {
    options: &'a Options,
    kernels: Vec<SpmmKernel>,
    device: Device,
    cusparse: Option<Cusparse>,
    report: Report,
    all_right: bool,
}

impl Bench<'_> {
    /// All cases of one graph.
    fn graph<T: BenchElement>(
        &mut self,
        graph: Graph,
        kind: Kind,
        features: &[u32],
    ) -> anyhow::Result<()> {
        let seed = self.options.seed;
        let a = kind.generate::<T>(graph, seed);
        for &features in features {
            let case = Case {
                graph: graph.name,
                kind: kind.name(),
                rows: graph.rows as usize,
                cols: graph.rows as usize,
                nnz: graph.nonzeros as usize,
                features,
                element: T::NAME,
            };
            let lines = match &a {
                Err(error) => self.all_skipped(&error.to_string()),
                Ok(a) => match Operands::new(&self.device, a, features, seed) {
                    Ok(mut operands) => self.case(&mut operands)?,
                    Err(error) => self.all_skipped(&reason_to_skip(error)?),
                },
            };
            println!("{}", table::block(&case, &lines));
            for line in &lines {
                self.report.write(&case, line)?;
                self.all_right &= line.is_right();
            }
        }
        Ok(())
    }

    /// One case, by every implementation.
    fn case<T: BenchElement>(&self, operands: &mut Operands<'_, T>) -> anyhow::Result<Vec<Line>> {
        let mut lines = Vec::new();
        for kernel in self.our_choices() {
            lines.push(self.by_kernel(kernel, operands)?);
        }
        if let Some(cusparse) = &self.cusparse {
            // One copy of A for all its algorithms.
            let a = match CsrBuffers::upload(&self.device, operands.a.view()) {
                Ok(a) => Ok(a),
                Err(error) => Err(reason_to_skip_cusparse(error)?),
            };
            for algorithm in Algorithm::ALL {
                let outcome = match &a {
                    Ok(a) => self.by_cusparse(cusparse, a, algorithm, operands)?,
                    Err(reason) => Outcome::Skipped {
                        skipped: reason.clone(),
                    },
                };
                lines.push(Line {
                    implementation: of_cusparse(cusparse, algorithm),
                    outcome,
                });
            }
        }
        Ok(lines)
    }

    /// The kernel that the plan picks, `None`, and those asked for.
    fn our_choices(&self) -> impl Iterator<Item = Option<SpmmKernel>> {
        std::iter::once(None).chain(self.kernels.iter().copied().map(Some))
    }

    /// A line for every implementation that says why there is no result.
    fn all_skipped(&self, reason: &str) -> Vec<Line> {
        let ours = self.our_choices().map(|kernel| of_warprow(kernel, kernel));
        let theirs = self
            .cusparse
            .iter()
            .flat_map(|cusparse| Algorithm::ALL.map(|algorithm| of_cusparse(cusparse, algorithm)));
        ours.chain(theirs)
            .map(|implementation| Line {
                implementation,
                outcome: Outcome::Skipped {
                    skipped: reason.to_owned(),
                },
            })
            .collect()
    }

    fn by_kernel<T: BenchElement>(
        &self,
        kernel: Option<SpmmKernel>,
        operands: &mut Operands<'_, T>,
    ) -> anyhow::Result<Line> {
        operands.poison()?;
        let start = Instant::now();
        let options = SpmmOptions {
            kernel,
            task_size: self.options.task_size,
            ..SpmmOptions::default()
        };
        let plan = Spmm::plan(&self.device, operands.a.view(), options);
        let run = plan.and_then(|spmm| {
            self.device.synchronize()?;
            let plan_ms = start.elapsed().as_secs_f64() * 1e3;
            let features = operands.features as usize;
            let timing = measure(&self.device, self.options.samples, || {
                spmm.run(&operands.x, features, &mut operands.y)
            })?;
            Ok((spmm.kernel(), timing, plan_ms))
        });
        let (picked, timing, plan_ms) = match run {
            Ok(run) => run,
            Err(error) => {
                return Ok(Line {
                    implementation: of_warprow(kernel, kernel),
                    outcome: Outcome::Skipped {
                        skipped: reason_to_skip(error)?,
                    },
                });
            }
        };
        Ok(Line {
            implementation: of_warprow(kernel, Some(picked)),
            outcome: computed(timing, plan_ms, operands)?,
        })
    }

    fn by_cusparse<T: BenchElement>(
        &self,
        cusparse: &Cusparse,
        a: &CsrBuffers<T>,
        algorithm: Algorithm,
        operands: &mut Operands<'_, T>,
    ) -> anyhow::Result<Outcome> {
        operands.poison()?;
        let start = Instant::now();
        let Operands { x, y, features, .. } = operands;
        let run =
            Product::prepare(cusparse, a, x, y, *features, algorithm).and_then(|mut product| {
                let plan_ms = start.elapsed().as_secs_f64() * 1e3;
                let timing = measure(&self.device, self.options.samples, || product.run())?;
                Ok((timing, plan_ms))
            });
        match run {
            Ok((timing, plan_ms)) => computed(timing, plan_ms, operands),
            Err(error) => Ok(Outcome::Skipped {
                skipped: reason_to_skip_cusparse(error)?,
            }),
        }
    }
}

/// What a product that ran has come to.
fn computed<T: BenchElement>(
    timing: Option<Timing>,
    plan_ms: f64,
    operands: &mut Operands<'_, T>,
) -> anyhow::Result<Outcome> {
    let verification = operands.verify()?;
    if !verification.ok() {
        eprintln!("{verification}");
    }
    Ok(Outcome::Computed(Computed::new(
        timing,
        plan_ms,
        operands.rows_verified(),
        &verification,
    )))
}

/// The kernel that was asked for, or the plan's choice, and the one that ran.
fn of_warprow(asked_for: Option<SpmmKernel>, ran: Option<SpmmKernel>) -> Implementation {
    Implementation {
        name: asked_for.map_or("warprow", SpmmKernel::name),
        kernel: ran.map(SpmmKernel::name),
        cusparse: None,
    }
}

fn of_cusparse(cusparse: &Cusparse, algorithm: Algorithm) -> Implementation {
    Implementation {
        name: algorithm.name(),
        kernel: None,
        cusparse: Some(cusparse.version().to_owned()),
    }
}

/// The words for a case that does not fit the memory or that the kernel has no instance for; any other error ends the run.
fn reason_to_skip(error: Error) -> anyhow::Result<String> {
    match error {
        Error::OutOfMemory { .. }
        | Error::HostOutOfMemory { .. }
        | Error::Unsupported { .. } => Ok(error.to_string()),
        error => Err(error.into()),
    }
}

/// The words for what cuSPARSE refuses; an error of the device ends the run, unless it is one of memory.
fn reason_to_skip_cusparse(error: cusparse::Error) -> anyhow::Result<String> {
    match error {
        cusparse::Error::Device(error) => reason_to_skip(error),
        error => Ok(error.to_string()),
    }
}
