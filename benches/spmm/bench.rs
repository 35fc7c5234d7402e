//! The run: every case, by every implementation, measured and verified.

use crate::cases::{Graph, Kind};
use crate::cusparse::{self, Algorithm, Cusparse, CusparseElement, Product};
use crate::gather_limit;
use crate::generated::GeneratedGraphs;
use crate::measure::{Effort, Timing, measure};
use crate::on_device::{Fitting, OnDevice, fitting};
use crate::operands::{DenseOperands, Operands};
use crate::options::{ElementType, Options};
use crate::ratios::Ratios;
use crate::report::{
    Case, Computed, Environment, Implementation, Line, Outcome, Preparation, Verified,
};
use crate::results::Results;
use crate::{summary, table};
use sprs::CsMatI;
use std::time::Instant;
use warprow::device::{Device, Selector};
use warprow::generate::{self, GenerateError};
use warprow::{RowOrder, Spmm, SpmmElement, SpmmKernel, SpmmOptions};

/// Runs what the options say; whether all products were right.
///
/// # Errors
///
/// A device that is not there, a library that is insisted on and is not there, a file that cannot be written or resumed, a
/// launch that fails. What does not fit the memory and what cuSPARSE refuses is reported as skipped.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    match options.element {
        ElementType::F32 => run_typed::<f32>(options),
        ElementType::F64 => run_typed::<f64>(options),
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
    let environment = Environment::of(&device);
    let results = Results::open(options.output.as_deref(), options.resume, environment)?;
    let on_emulator = device.is_emulator();
    let mut bench = Bench {
        implementers: implementers(&options.kernels(), &options.orders(), cusparse.is_some()),
        features: options.features(on_emulator),
        all_right: true,
        options,
        cusparse,
        device,
        results,
    };
    let graphs = bench.graphs_to_run::<T>(&options.graphs(on_emulator));
    let most_rows = graphs.iter().map(|(graph, _)| graph.rows).max();
    let most_features = bench.features.iter().max();
    let most_elements = most_rows.unwrap_or(0) as usize * *most_features.unwrap_or(&0) as usize;
    let mut dense = DenseOperands::<T>::new(most_elements, options.seed);
    bench.compile_kernels::<T>()?;
    println!("{}", table::head());
    let mut graph_before = None;
    for (graph, kind, a) in GeneratedGraphs::begin(graphs, options.seed)? {
        if graph_before.replace(graph) != Some(graph) {
            dense.forget();
        }
        bench.graph::<T>(graph, kind, a, &mut dense)?;
    }
    let summary = summary::summary(&Ratios::of(bench.results.records()));
    print!("{summary}");
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

/// Who computes a case.
#[derive(Clone, Copy, Debug)]
enum Implementer {
    /// The kernel that was asked for, or the one that the plan picks.
    Warprow(Option<SpmmKernel>),
    /// The kernel that the plan picks, on rows in that order.
    Ordered(RowOrder),
    GatherLimit,
    Cusparse(Algorithm),
}

impl Implementer {
    fn name(self) -> &'static str {
        match self {
            Self::Warprow(kernel) => kernel.map_or("warprow", SpmmKernel::name),
            Self::Ordered(order) => order.name(),
            Self::GatherLimit => gather_limit::NAME,
            Self::Cusparse(algorithm) => algorithm.name(),
        }
    }
}

/// All of them, in the order of the table.
fn implementers(
    kernels: &[SpmmKernel],
    orders: &[RowOrder],
    with_cusparse: bool,
) -> Vec<Implementer> {
    let ours = std::iter::once(None).chain(kernels.iter().copied().map(Some));
    let theirs = Algorithm::ALL.into_iter().filter(|_| with_cusparse);
    ours.map(Implementer::Warprow)
        .chain(orders.iter().copied().map(Implementer::Ordered))
        .chain([Implementer::GatherLimit])
        .chain(theirs.map(Implementer::Cusparse))
        .collect()
}

/// The run's state.
struct Bench<'a> {
    options: &'a Options,
    implementers: Vec<Implementer>,
    features: Vec<u32>,
    device: Device,
    cusparse: Option<Cusparse>,
    results: Results,
    all_right: bool,
}

impl Bench<'_> {
    /// The graphs and kinds that lack a result.
    fn graphs_to_run<T: BenchElement>(&self, graphs: &[Graph]) -> Vec<(Graph, Kind)> {
        let kinds = self.options.kinds();
        let all = graphs
            .iter()
            .flat_map(|&graph| kinds.iter().map(move |&kind| (graph, kind)));
        all.filter(|&(graph, kind)| {
            let mut cases = self.features.iter().map(|&f| case::<T>(graph, kind, f));
            cases.any(|case| !self.missing(&case).is_empty())
        })
        .collect()
    }

    /// Who has no result of that case.
    fn missing(&self, case: &Case) -> Vec<Implementer> {
        let mut missing = self.implementers.clone();
        missing.retain(|implementer| !self.results.has(case, implementer.name()));
        missing
    }

    /// Has the driver compile what a plan launches, which would be the first plan's time.
    fn compile_kernels<T: BenchElement>(&self) -> anyhow::Result<()> {
        let a = generate::uniform::<T>(64, 64, 640, 1)?;
        let x = self
            .device
            .upload(generate::dense::<T>(64, 4, 1).as_slice().unwrap_or(&[]))?;
        let mut y = self.device.uninitialized(64 * 4)?;
        Spmm::plan(&self.device, a.view(), SpmmOptions::default())?.run(&x, 4, &mut y)?;
        Ok(self.device.synchronize()?)
    }

    /// All cases of one graph.
    fn graph<T: BenchElement>(
        &mut self,
        graph: Graph,
        kind: Kind,
        a: Result<CsMatI<T, u32, u32>, GenerateError>,
        dense: &mut DenseOperands<T>,
    ) -> anyhow::Result<()> {
        let device = self.device.clone();
        let mut on_device = a
            .as_ref()
            .map(|a| (a, OnDevice::new(&device, a, self.options.task_size)));
        for features in self.features.clone() {
            let case = case::<T>(graph, kind, features);
            let missing = self.missing(&case);
            if missing.is_empty() {
                continue;
            }
            let seed = self.options.seed;
            let operands = match &on_device {
                Ok((a, _)) => fitting(Operands::new(&device, a, dense, features, seed))?,
                Err(error) => Err(error.to_string()),
            };
            let mut lines = Vec::new();
            match (&mut on_device, operands) {
                (Ok((_, on_device)), Ok(mut operands)) => {
                    for implementer in missing {
                        let line = self.line(implementer, on_device, &mut operands)?;
                        self.results.add(&case, &line)?;
                        lines.push(line);
                    }
                }
                (_, operands) => {
                    let reason = operands.err().unwrap_or_default();
                    for implementer in missing {
                        let line = self.skipped(implementer, reason.clone());
                        self.results.add(&case, &line)?;
                        lines.push(line);
                    }
                }
            }
            println!("{}", table::block(&case, &lines));
            self.all_right &= lines.iter().all(Line::is_right);
        }
        Ok(())
    }

    /// One case by one implementation.
    fn line<T: BenchElement>(
        &self,
        implementer: Implementer,
        on_device: &mut OnDevice<'_, T>,
        operands: &mut Operands<'_, T>,
    ) -> anyhow::Result<Line> {
        operands.poison()?;
        let line = match implementer {
            Implementer::Warprow(kernel) => {
                self.by_warprow(implementer, on_device.plan(kernel, None)?, operands)?
            }
            Implementer::Ordered(order) => {
                self.by_warprow(implementer, on_device.plan(None, Some(order))?, operands)?
            }
            Implementer::GatherLimit => self.gather_limit(on_device, operands)?,
            Implementer::Cusparse(algorithm) => self.by_cusparse(algorithm, on_device, operands)?,
        };
        Ok(line.unwrap_or_else(|reason| self.skipped(implementer, reason)))
    }

    fn implementation(&self, implementer: Implementer) -> Implementation {
        let version = || {
            self.cusparse
                .as_ref()
                .map(|library| library.version().to_owned())
        };
        Implementation {
            name: implementer.name(),
            kernel: match implementer {
                Implementer::Warprow(Some(kernel)) => Some(kernel.name().into()),
                _ => None,
            },
            cusparse: match implementer {
                Implementer::Cusparse(_) => version(),
                _ => None,
            },
        }
    }

    fn skipped(&self, implementer: Implementer, skipped: String) -> Line {
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
        let timing = measure(&self.device, Effort::of(self.options.samples), || {
            spmm.run(&operands.x, features, &mut operands.y)
        });
        let timing = match fitting(timing)? {
            Ok(timing) => timing,
            Err(reason) => return Ok(Err(reason)),
        };
        let times = spmm.times();
        let preparation = Preparation {
            plan_ms: times.preprocessing.as_secs_f64() * 1e3,
            upload_ms: Some(times.upload.as_secs_f64() * 1e3),
        };
        let implementation = Implementation {
            kernel: Some(spmm.kernel().name().into()),
            ..self.implementation(implementer)
        };
        Ok(Ok(Line {
            implementation,
            outcome: product(timing, preparation, operands)?,
        }))
    }

    fn gather_limit<T: BenchElement>(
        &self,
        on_device: &mut OnDevice<'_, T>,
        operands: &mut Operands<'_, T>,
    ) -> anyhow::Result<Fitting<Line>> {
        let a = match on_device.arrays()? {
            Ok(a) => a,
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let Operands { x, y, features, .. } = operands;
        let samples = self.options.samples;
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

    fn by_cusparse<T: BenchElement>(
        &self,
        algorithm: Algorithm,
        on_device: &mut OnDevice<'_, T>,
        operands: &mut Operands<'_, T>,
    ) -> anyhow::Result<Fitting<Line>> {
        let cusparse = self
            .cusparse
            .as_ref()
            .expect("its algorithms are run if it is there");
        let a = match on_device.arrays()? {
            Ok(a) => a,
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let started = Instant::now();
        let Operands { x, y, features, .. } = operands;
        let run =
            Product::prepare(cusparse, a, x, y, *features, algorithm).and_then(|mut product| {
                let preparation = Preparation {
                    plan_ms: started.elapsed().as_secs_f64() * 1e3,
                    upload_ms: None,
                };
                let effort = Effort::of(self.options.samples);
                let timing = measure(&self.device, effort, || product.run())?;
                Ok((timing, preparation))
            });
        let (timing, preparation) = match run {
            Ok(run) => run,
            Err(cusparse::Error::Device(error)) => return fitting(Err(error)),
            Err(error) => return Ok(Err(error.to_string())),
        };
        Ok(Ok(Line {
            implementation: self.implementation(Implementer::Cusparse(algorithm)),
            outcome: product(timing, preparation, operands)?,
        }))
    }
}

fn case<T: BenchElement>(graph: Graph, kind: Kind, features: u32) -> Case {
    Case {
        graph: graph.name,
        kind: kind.name(),
        rows: graph.rows as usize,
        cols: graph.rows as usize,
        nnz: graph.nonzeros as usize,
        features,
        element: T::NAME,
    }
}

/// What a product that ran has come to.
fn product<T: BenchElement>(
    timing: Option<Timing>,
    preparation: Preparation,
    operands: &Operands<'_, T>,
) -> anyhow::Result<Outcome> {
    let verification = operands.verify()?;
    if !verification.ok() {
        eprintln!("{verification}");
    }
    let verified = Verified {
        rows_verified: operands.rows_verified(),
        max_rel_err: verification.max_relative_error,
        ok: verification.ok(),
    };
    Ok(Outcome::Computed(Computed::product(
        timing,
        preparation,
        verified,
    )))
}
