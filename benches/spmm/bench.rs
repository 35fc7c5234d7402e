//! The run: every case, by every implementation, measured and verified.

use crate::harness::element_type::ElementType;
use crate::spmm::generated::GeneratedMatrices;
use crate::spmm::implementer::{BenchElement, Implementer};
use crate::spmm::implementers::Implementers;
use crate::spmm::matrix::{Made, Matrix};
use crate::spmm::on_device::{OnDevice, fitting};
use crate::spmm::operands::{DenseOperands, Operands};
use crate::spmm::options::Options;
use crate::spmm::ratios::Ratios;
use crate::spmm::report::{Case, Line};
use crate::spmm::results::Results;
use crate::spmm::{summary, table};
use warprow::device::Device;
use warprow::generate;
use warprow::spmm::RowOrder;
use warprow::{Spmm, SpmmOptions, SpmmTuning, bf16, f16};

/// Runs what the options say; whether all products were right.
///
/// # Errors
///
/// A device that is not there, a library that is insisted on and is not there, a file that cannot be written or
/// resumed, a launch that fails. What does not fit the memory and what cuSPARSE refuses is reported as skipped.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    match options.element {
        ElementType::F32 => run_typed::<f32>(options),
        ElementType::F64 => run_typed::<f64>(options),
        ElementType::F16 => run_typed::<f16>(options),
        ElementType::Bf16 => run_typed::<bf16>(options),
    }
}

fn run_typed<T: BenchElement>(options: &Options) -> anyhow::Result<bool> {
    let device = options.run.open_device()?;
    let implementers = Implementers::of(&device, options)?;
    let environment = options.run.environment(&device);
    let results = Results::open(options.run.output.as_deref(), options.resume, environment)?;
    let on_emulator = device.is_emulator();
    let mut bench = Bench {
        implementers,
        features: options.features(on_emulator),
        all_right: true,
        options,
        device,
        results,
    };
    let matrices = bench.matrices_to_run::<T>(options.matrices(on_emulator));
    let elements = |matrix: &Matrix| {
        let columns = matrix.extents().map_or(0, |[_, columns, _]| columns);
        let features = matrix.features(&bench.features);
        columns * features.into_iter().max().unwrap_or(0) as usize
    };
    let most_elements = matrices.iter().map(elements).max().unwrap_or(0);
    // The first matrix is made while X is.
    let generated = GeneratedMatrices::begin(matrices, options.run.seed)?;
    let mut dense = DenseOperands::<T>::new(most_elements, options.run.seed)?;
    bench.compile_kernels::<T>()?;
    println!("{}", table::head());
    let mut name_before = None;
    for (matrix, a) in generated {
        let name = matrix.name();
        if name_before.as_ref() != Some(&name) {
            dense.forget();
        }
        name_before = Some(name);
        bench.matrix::<T>(&matrix, a?, &mut dense)?;
    }
    let ratios = Ratios::of(bench.results.records());
    let means = match options.random {
        Some(_) => summary::overall(&ratios),
        None => summary::summary(&ratios),
    };
    print!("{means}{}", summary::choices(&ratios));
    Ok(bench.all_right)
}

/// The run's state.
struct Bench<'a> {
    options: &'a Options,
    implementers: Implementers,
    features: Vec<u32>,
    device: Device,
    results: Results,
    all_right: bool,
}

impl Bench<'_> {
    /// The matrices that lack a result.
    fn matrices_to_run<T: BenchElement>(&self, mut matrices: Vec<Matrix>) -> Vec<Matrix> {
        let lacks = |matrix: &Matrix, features| !self.missing::<T>(matrix, features).is_empty();
        matrices.retain(|matrix| {
            let features = matrix.features(&self.features);
            features.into_iter().any(|features| lacks(matrix, features))
        });
        matrices
    }

    /// Who has no result of that product.
    fn missing<T: BenchElement>(&self, matrix: &Matrix, features: u32) -> Vec<Implementer> {
        let mut missing = self.implementers.all(features);
        missing.retain(|implementer| {
            !(self.results).has(matrix, features, T::NAME, implementer.name())
        });
        missing
    }

    /// Has the driver compile what a plan launches, which would be the first plan's time, and that of the first one
    /// that looks for an order.
    fn compile_kernels<T: BenchElement>(&self) -> anyhow::Result<()> {
        let a = generate::uniform::<T>(64, 64, 640, 1)?;
        let x = self
            .device
            .upload(generate::dense::<T>(64, 4, 1)?.as_slice().unwrap_or(&[]))?;
        let mut y = self.device.uninitialized(64 * 4)?;
        for order in [None, Some(RowOrder::Clustered)] {
            let options = SpmmOptions::new().tuning(SpmmTuning::new().order(order));
            Spmm::plan(&self.device, a.view(), options)?.run(&x, 4, &mut y)?;
        }
        Ok(self.device.synchronize()?)
    }

    /// All cases of one matrix.
    fn matrix<T: BenchElement>(
        &mut self,
        matrix: &Matrix,
        a: Made<T>,
        dense: &mut DenseOperands<T>,
    ) -> anyhow::Result<()> {
        let device = self.device.clone();
        let mut on_device = a.as_ref().map(|a| (a, OnDevice::new(&device, a)));
        for features in matrix.features(&self.features) {
            let missing = self.missing::<T>(matrix, features);
            if missing.is_empty() {
                continue;
            }
            let case = case(matrix, &a, features);
            let seed = self.options.run.seed;
            let operands = match &on_device {
                Ok((a, _)) => fitting(Operands::new(&device, a, dense, features, seed))?,
                Err(reason) => Err(String::clone(reason)),
            };
            let mut lines = Vec::new();
            match (&mut on_device, operands) {
                (Ok((_, on_device)), Ok(mut operands)) => {
                    for implementer in missing {
                        let line = self.implementers.line(
                            implementer,
                            on_device,
                            &mut operands,
                            &lines,
                        )?;
                        self.results.add(&case, &line)?;
                        lines.push(line);
                    }
                }
                (_, operands) => {
                    let reason = operands.err().unwrap_or_default();
                    for implementer in missing {
                        let line = self.implementers.skipped(implementer, reason.clone());
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
}

fn case<T: BenchElement>(matrix: &Matrix, a: &Made<T>, features: u32) -> Case {
    let made = a.as_ref().ok().map(|a| [a.rows(), a.cols(), a.nnz()]);
    let [rows, cols, nnz] = made.or(matrix.extents()).unwrap_or_default();
    Case {
        graph: matrix.name(),
        kind: matrix.kind(),
        rows,
        cols,
        nnz,
        features,
        element: T::NAME,
    }
}
