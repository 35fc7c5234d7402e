//! The run: every matrix, by every implementation, timed and verified.

use crate::harness::cusparse::{self, CusparseElement};
use crate::harness::host_clock::{Runs, measure_whole};
use crate::harness::json_lines::JsonLines;
use crate::spgemm::choices::{Choice, OURS, choices};
use crate::spgemm::cusparse_reuse::{self, Cusparse as CusparseReuse};
use crate::spgemm::cusparse_spgemm::{Algorithm, Cusparse};
use crate::spgemm::failure::Failure;
use crate::spgemm::input::Input;
use crate::spgemm::launched::Launched;
use crate::spgemm::options::{ElementType, Factor, Options};
use crate::spgemm::report::{Line, Object, Outcome, Product, Times, median, table};
use crate::spgemm::verification::Verifier;
use std::sync::Arc;
use std::time::{Duration, Instant};
use warprow::device::{Device, DeviceError};
use warprow::operand::OperandError;
use warprow::spgemm::{Spgemm, SpgemmElement, SpgemmOptions, multiply};
use warprow::{CsrMatrix, DeviceCsr};

/// Multiplications before the first that is timed.
const WARM_UPS: u32 = 3;

/// The time that one algorithm of a peer may take, warm-ups included; three multiplications are timed in any case.
const BUDGET_OF_PEER: Duration = Duration::from_millis(200);

/// Multiplies the matrices that the options name; returns whether all products were right.
///
/// # Errors
///
/// The device or the library that the options name is not there; the file cannot be written; a launch fails. A product
/// that does not fit the memory, or that an implementation refuses, is reported as skipped.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    match options.element {
        ElementType::F32 => run_typed::<f32>(options),
        ElementType::F64 => run_typed::<f64>(options),
    }
}

/// An element type of both sides.
trait BenchElement: SpgemmElement + CusparseElement {}

impl<T: SpgemmElement + CusparseElement> BenchElement for T {}

fn run_typed<T: BenchElement>(options: &Options) -> anyhow::Result<bool> {
    let device = options.run.open_device()?;
    let cusparse = options.cusparse.open(&device)?;
    let environment = options.run.environment(&device);
    let mut results = JsonLines::create(options.run.output.as_deref(), environment)?;
    let bench = Bench {
        samples: options.samples,
        cusparse,
        reuse: options.cusparse.open(&device)?,
        device,
    };
    let mut all_right = true;
    for input in options.inputs(bench.device.is_emulator()) {
        let a = input.matrix::<T>(options.run.seed)?;
        let default = SpgemmOptions::new().bin_limits::<T>(&bench.device, a.rows().try_into()?);
        let choices = choices(options, default)?;
        for &factor in &options.products {
            if factor == Factor::Square && a.rows() != a.cols() {
                println!(
                    "{}: no {}, it is {} x {}",
                    input.name(),
                    factor.name(),
                    a.rows(),
                    a.cols()
                );
                continue;
            }
            let (product, lines) = bench.product(&input, factor, &a, options.run.seed, &choices)?;
            println!("{}", table(&product, &lines));
            for line in &lines {
                results.write(&Object {
                    bench: "spgemm",
                    product: &product,
                    line,
                })?;
                all_right &= line.is_right();
            }
        }
    }
    Ok(all_right)
}

struct Bench {
    device: Device,
    cusparse: Option<Cusparse>,
    reuse: Option<CusparseReuse>,
    samples: u32,
}

impl Bench {
    /// One product, by the choices and by every other implementation.
    fn product<T: BenchElement>(
        &self,
        input: &Input,
        factor: Factor,
        a: &CsrMatrix<T>,
        seed: u64,
        choices: &[Choice],
    ) -> anyhow::Result<(Product, Vec<Line>)> {
        let transposed;
        let b = match factor {
            Factor::Square => a,
            Factor::Transposed => {
                transposed = a.transpose_view().to_csr();
                &transposed
            }
        };
        let verifier = Verifier::choose(a, b, seed);
        let product = Product {
            graph: input.name(),
            kind: input.kind_name(),
            product: factor.name(),
            rows: a.rows(),
            cols: a.cols(),
            nnz: a.nnz(),
            element: T::NAME,
            products: verifier.products.iter().sum(),
        };
        let operands = DeviceCsr::upload(&self.device, a.view())
            .and_then(|a| Ok((a, DeviceCsr::upload(&self.device, b.view())?)));
        let mut lines = Vec::new();
        let mut add = |name, cusparse: Option<String>, outcome: Result<Outcome, Failure>| {
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(Failure::Skipped(skipped)) => Outcome::Skipped { skipped },
                Err(Failure::Fatal(error)) => return Err(error),
            };
            lines.push(Line {
                implementation: name,
                cusparse,
                outcome,
            });
            Ok(())
        };
        let (a, b) = operands?;
        let mut launched_by_default = None;
        for &choice in choices {
            let launched = match Launched::of(&self.device, &a, &b, choice.options) {
                Ok(launched) => launched,
                Err(error) => {
                    add(choice.name, None, Err(error.into()))?;
                    continue;
                }
            };
            if launched_by_default.as_ref() == Some(&launched) {
                continue;
            }
            launched_by_default.get_or_insert_with(|| launched.clone());
            let outcome = self.by_warprow(choice, &a, &b, &verifier, launched);
            add(choice.name, None, outcome)?;
        }
        if let Some(cusparse) = &self.cusparse {
            for algorithm in Algorithm::ALL {
                let version = Some(cusparse.version().to_owned());
                let outcome = self.by_cusparse(cusparse, algorithm, &a, &b, &verifier);
                add(algorithm.name(), version, outcome)?;
            }
        }
        if let Some(cusparse) = &self.reuse {
            let version = Some(cusparse.version().to_owned());
            let outcome = self.by_cusparse_reuse(cusparse, &a, &b, &verifier);
            add(cusparse_reuse::NAME, version, outcome)?;
        }
        Ok((product, lines))
    }

    fn by_warprow<T: BenchElement>(
        &self,
        Choice { name, options }: Choice,
        a: &DeviceCsr<T>,
        b: &DeviceCsr<T>,
        verifier: &Verifier<'_, T>,
        launched: Launched,
    ) -> Result<Outcome, Failure> {
        let (mut times, c) = self.times(verifier, Duration::MAX, || {
            Ok::<_, OperandError>(multiply(a, b, options)?.c)
        })?;
        let entries = c.pattern().nnz() as u64;
        let mut found = verifier.verify(&c.download()?);
        drop(c);
        if times.ms.is_some() {
            let c = self.time_phases(options, a, b, &mut times)?;
            found = found.and(verifier.verify(&c.download()?));
        }
        // The choices of a sweep are compared with the product in f64 alone.
        if name == OURS {
            found.ok &= self.is_exact(verifier, |a, b| multiply(a, b, options)?.c.download())?;
        }
        Ok(Outcome::Computed {
            entries,
            times,
            launched: Some(Box::new(launched)),
            found,
        })
    }

    /// Whether the product of small whole numbers with the same nonzeros is exact. If the device has no memory for it,
    /// the terminal says so.
    fn is_exact<T: BenchElement>(
        &self,
        verifier: &Verifier<'_, T>,
        multiply: impl Fn(&DeviceCsr<T>, &DeviceCsr<T>) -> Result<CsrMatrix<T>, OperandError>,
    ) -> Result<bool, Failure> {
        let whole = verifier.whole_operands();
        let product = || {
            let a = DeviceCsr::upload(&self.device, whole[0].view())?;
            let b = DeviceCsr::upload(&self.device, whole[1].view())?;
            multiply(&a, &b)
        };
        match product().map_err(Failure::from) {
            Ok(c) => {
                let is_exact = verifier.is_exact(&whole, &c);
                if !is_exact {
                    eprintln!("wrong with small whole numbers");
                }
                Ok(is_exact)
            }
            Err(Failure::Skipped(reason)) => {
                eprintln!("no product of small whole numbers: {reason}");
                Ok(true)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Times the phases, and gives the product of the last run.
    fn time_phases<T: BenchElement>(
        &self,
        options: SpgemmOptions,
        a: &DeviceCsr<T>,
        b: &DeviceCsr<T>,
        times: &mut Times,
    ) -> Result<DeviceCsr<T>, OperandError> {
        let symbolic = || Spgemm::<T>::symbolic(a.pattern(), b.pattern(), options);
        let before = self.device.allocated_bytes();
        self.device.take_peak_bytes();
        times.symbolic_ms = Some(self.samples_of(|| symbolic().map(drop))?);
        let mut spgemm = symbolic()?;
        let mut values = self.device.uninitialized(spgemm.entries())?;
        let mut first = Vec::new();
        for sample in 0..WARM_UPS + self.samples {
            // The product map of the run before is freed first.
            drop(spgemm);
            spgemm = symbolic()?;
            self.device.synchronize()?;
            let start = Instant::now();
            spgemm.numeric_into(a.values(), b.values(), &mut values)?;
            self.device.synchronize()?;
            if sample >= WARM_UPS {
                first.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        times.numeric_first_ms = Some(median(&mut first));
        times.phases_peak_bytes = Some(self.device.take_peak_bytes() - before);
        let run = || spgemm.numeric_into(a.values(), b.values(), &mut values);
        times.numeric_ms = Some(self.samples_of(run)?);
        DeviceCsr::new(Arc::clone(spgemm.pattern()), values)
    }

    fn by_cusparse<T: BenchElement>(
        &self,
        cusparse: &Cusparse,
        algorithm: Algorithm,
        a: &DeviceCsr<T>,
        b: &DeviceCsr<T>,
        verifier: &Verifier<'_, T>,
    ) -> Result<Outcome, Failure> {
        let multiply = || cusparse.multiply(a, b, algorithm);
        let (times, c) = self.times(verifier, BUDGET_OF_PEER, multiply)?;
        Ok(Outcome::Computed {
            entries: c.values.len() as u64,
            times,
            launched: None,
            found: verifier.verify_peer(&c.row_ptr, &c.col_idx, &c.values)?,
        })
    }

    /// The whole multiplication, then the structure and the values alone.
    fn by_cusparse_reuse<T: BenchElement>(
        &self,
        cusparse: &CusparseReuse,
        a: &DeviceCsr<T>,
        b: &DeviceCsr<T>,
        verifier: &Verifier<'_, T>,
    ) -> Result<Outcome, Failure> {
        let mut symbolic = Vec::new();
        let (mut times, mut structure) = self.times(verifier, BUDGET_OF_PEER, || {
            let start = Instant::now();
            let mut structure = cusparse.structure(a, b)?;
            self.device.synchronize()?;
            symbolic.push(start.elapsed().as_secs_f64() * 1e3);
            structure.compute()?;
            Ok::<_, cusparse::Error>(structure)
        })?;
        times.symbolic_ms = times.ms.and(Some(median(&mut symbolic)));
        times.phases_peak_bytes = times.peak_bytes;
        let runs = Runs {
            warm_ups: WARM_UPS,
            samples: self.samples,
            budget: BUDGET_OF_PEER,
        };
        let (numeric, ()) = measure_whole(&self.device, runs, || structure.compute())?;
        times.numeric_ms = numeric.map(|timing| timing.median);
        let c = structure.product();
        let found = verifier.verify_peer(&c.row_ptr, &c.col_idx, &c.values)?;
        Ok(Outcome::Computed {
            entries: c.values.len() as u64,
            times,
            launched: None,
            found,
        })
    }

    /// Times whole multiplications, and gives the last product.
    fn times<T: BenchElement, C, E>(
        &self,
        verifier: &Verifier<'_, T>,
        budget: Duration,
        multiply: impl FnMut() -> Result<C, E>,
    ) -> Result<(Times, C), Failure>
    where
        E: From<DeviceError>,
        Failure: From<E>,
    {
        let runs = Runs {
            warm_ups: WARM_UPS,
            samples: self.samples,
            budget,
        };
        // Freed memory of another product, if it is used again, may be larger than what this one needs.
        self.device.trim_pool()?;
        let before = self.device.allocated_bytes();
        self.device.take_peak_bytes();
        let (timing, product) = measure_whole(&self.device, runs, multiply)?;
        let peak = self.device.take_peak_bytes() - before;
        let products: u64 = verifier.products.iter().sum();
        let times = timing.map_or_else(Times::default, |timing| Times {
            ms: Some(timing.median),
            ms_min: Some(timing.min),
            ms_max: Some(timing.max),
            peak_bytes: Some(peak),
            gflops: Some(2.0 * products as f64 / timing.median / 1e6),
            ..Times::default()
        });
        Ok((times, product))
    }

    /// The median of the milliseconds that `phase` takes, after some runs to warm up.
    fn samples_of(
        &self,
        mut phase: impl FnMut() -> Result<(), OperandError>,
    ) -> Result<f64, OperandError> {
        let mut times = Vec::new();
        for sample in 0..WARM_UPS + self.samples {
            self.device.synchronize()?;
            let start = Instant::now();
            phase()?;
            self.device.synchronize()?;
            if sample >= WARM_UPS {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(median(&mut times))
    }
}
