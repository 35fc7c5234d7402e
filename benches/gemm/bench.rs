//! The run: every case, by every implementation, measured and verified.

use crate::gemm::choices::{Choice, OURS, choices, softmax_kernels};
use crate::gemm::cublas::{Cublas, Mode};
use crate::gemm::operands::{
    Rows, WholeOperands, arithmetic, distinct_rows, elements, poison, repeated,
};
use crate::gemm::options::{Options, WeightShape};
use crate::gemm::random::{self, Product};
use crate::gemm::report::{Case, Line, Object, text};
use crate::harness::element_type::ElementType;
use crate::harness::floor::Floor;
use crate::harness::json_lines::JsonLines;
use crate::harness::measure::{Effort, measure};
use ndarray::{Array2, ArrayView2};
use warprow::device::{Device, DeviceError};
use warprow::gemm::{GemmElement, GemmError};
use warprow::log_softmax::{LogSoftmax, SoftmaxElement};
use warprow::reference::{DenseEpilogue, GemmReference, Verification, verify_log_softmax};
use warprow::{Error, Gemm, GemmOptions, bf16, f16, generate};

/// Runs the cases that the options name; returns whether all results were right.
///
/// # Errors
///
/// The device or the library that the options name is not there; the file cannot be written; a launch fails. A case
/// that does not fit the memory, or that cuBLAS refuses, is reported as skipped.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    let device = options.run.open_device()?;
    let cublas = match &options.cublas {
        _ if options.no_cublas => None,
        Some(path) => Some(Cublas::open(&device, Some(path)).map_err(anyhow::Error::msg)?),
        None => Cublas::open(&device, None)
            .inspect_err(|error| println!("no cuBLAS: {error}"))
            .ok(),
    };
    if let Some(cublas) = &cublas {
        println!("cuBLAS {} ({})", cublas.version, cublas.path.display());
    }
    let environment = options.run.environment(&device);
    let results = JsonLines::create(options.run.output.as_deref(), environment)?;
    let mut bench = Bench {
        floor: Floor::of(&device)?,
        options,
        device,
        cublas,
        results,
        all_right: true,
    };
    if let Some(count) = options.random {
        bench.random(count)?;
        return Ok(bench.all_right);
    }
    for rows in options.rows(bench.device.is_emulator()) {
        for &shape in &options.shapes {
            for &element in &options.elements {
                bench.gemm_of(element, Rows::all(rows), shape)?;
            }
        }
        for &classes in &options.classes {
            let classes = classes as usize;
            for &element in &options.elements {
                match element {
                    ElementType::F32 => bench.log_softmax::<f32>(rows, classes)?,
                    ElementType::F64 => bench.log_softmax::<f64>(rows, classes)?,
                    ElementType::F16 => bench.log_softmax::<f16>(rows, classes)?,
                    ElementType::Bf16 => bench.log_softmax::<bf16>(rows, classes)?,
                }
            }
        }
    }
    Ok(bench.all_right)
}

/// The run's state.
struct Bench<'a> {
    options: &'a Options,
    device: Device,
    cublas: Option<Cublas>,
    floor: Floor,
    results: JsonLines,
    all_right: bool,
}

impl Bench<'_> {
    /// So many random products, each of another element type than the one before.
    fn random(&mut self, count: u32) -> anyhow::Result<()> {
        let products = random::products(count, self.options.run.seed, self.device.is_emulator());
        let elements = self.options.elements.iter().cycle();
        for (Product { rows, shape }, &element) in products.into_iter().zip(elements) {
            self.gemm_of(element, Rows::sampled(rows), shape)?;
        }
        Ok(())
    }

    /// The product of this element type by every implementation.
    fn gemm_of(
        &mut self,
        element: ElementType,
        rows: Rows,
        shape: WeightShape,
    ) -> anyhow::Result<()> {
        match element {
            ElementType::F32 => self.gemm::<f32>(rows, shape),
            ElementType::F64 => self.gemm::<f64>(rows, shape),
            ElementType::F16 => self.gemm::<f16>(rows, shape),
            ElementType::Bf16 => self.gemm::<bf16>(rows, shape),
        }
    }

    fn gemm<T: GemmElement>(&mut self, of_y: Rows, shape: WeightShape) -> anyhow::Result<()> {
        let WeightShape { depth, cols } = shape;
        let seed = self.options.run.seed;
        let rows = of_y.count();
        let x = repeated::<T>(of_y.on_host(), depth, seed)?;
        let w = generate::dense::<T>(depth, cols, seed + 1)?;
        let plan = Gemm::plan(&self.device, w.view(), None, GemmOptions::default())?;
        let case = Case {
            bench: "gemm",
            rows,
            k: depth,
            features: cols,
            element: T::NAME,
            bytes: plan.bytes(rows as usize),
        };
        let operands = of_y.upload(&self.device, &x).and_then(|x| {
            let y = self.device.uninitialized::<T>(rows as usize * cols)?;
            Ok((x, self.device.upload(elements(&w))?, y))
        });
        let (x_device, w_device, mut y_device) = match operands {
            Ok(operands) => operands,
            Err(error) => return self.skip(&case, "warprow", error),
        };
        let floor = self.floor(&case)?;
        let reference = GemmReference::new(distinct_rows(&x), w.view(), DenseEpilogue::default());
        let whole = WholeOperands::new(&self.device, &x, &w)?;
        for choice in choices::<T>(self.options, &self.device, depth) {
            let Some(gemm) = self.plan(&choice, w.view())? else {
                continue;
            };
            poison(&mut y_device)?;
            let timing = measure(&self.device, Effort::of(self.options.samples), || {
                gemm.run(&x_device, rows as usize, &mut y_device)
            })?;
            let y = of_y.download(&y_device, cols)?;
            let line = Line {
                implementation: choice.name,
                kernel: Some(gemm.kernel().name()),
                variant: gemm.entry_point(rows as usize)?,
                ..Line::default()
            };
            let found = reference.verify(arithmetic::<T>(Some(gemm.kernel())), y.view());
            let exact = whole.is_exact(&self.device, choice.options)?;
            let line = line.timed(timing, floor).verified(of_y.compared(), &found);
            self.write(&case, line, &found, exact)?;
        }
        let Some(cublas) = &self.cublas else {
            return Ok(());
        };
        let mut lines = Vec::new();
        for mode in Mode::ALL {
            poison(&mut y_device)?;
            let line = Line {
                implementation: mode.name().to_owned(),
                cublas: Some(cublas.version.clone()),
                ..Line::default()
            };
            let mut launch = || {
                let (x, w) = ((&x_device, rows as usize), (&w_device, cols));
                let done = cublas.multiply(mode, x, w, &mut y_device);
                done.map_err(anyhow::Error::msg)
            };
            match measure(&self.device, Effort::of(self.options.samples), &mut launch) {
                Ok(timing) => {
                    let y = of_y.download(&y_device, cols)?;
                    let found = reference.verify(arithmetic::<T>(None), y.view());
                    let line = line.timed(timing, floor).verified(of_y.compared(), &found);
                    lines.push((line, Some(found)));
                }
                Err(error) => {
                    let skipped = Some(error.to_string());
                    lines.push((Line { skipped, ..line }, None));
                }
            }
        }
        for (line, found) in lines {
            match found {
                Some(found) => self.write(&case, line, &found, true)?,
                None => self.report(&case, &line)?,
            }
        }
        Ok(())
    }

    /// The plan of a choice; `None` for a kernel or instance that is asked for and cannot compute the product.
    fn plan<T: GemmElement>(
        &self,
        choice: &Choice,
        w: ArrayView2<'_, T>,
    ) -> anyhow::Result<Option<Gemm<T>>> {
        match Gemm::plan(&self.device, w, None, choice.options) {
            Err(GemmError::Kernel { .. }) if !choice.is_own() => Ok(None),
            plan => Ok(Some(plan.map_err(Error::from)?)),
        }
    }

    /// LogSoftmax of the rows of a matrix.
    fn log_softmax<T: SoftmaxElement + GemmElement>(
        &mut self,
        rows: u32,
        classes: usize,
    ) -> anyhow::Result<()> {
        let x = repeated::<T>(rows as usize, classes, self.options.run.seed)?;
        let plan = LogSoftmax::plan(&self.device, classes, None)?;
        let case = Case {
            bench: "log_softmax",
            rows,
            k: classes,
            features: classes,
            element: T::NAME,
            bytes: plan.bytes(rows as usize),
        };
        let x_device = self.device.upload(elements(&x))?;
        let mut y_device = self.device.uninitialized::<T>(x.len())?;
        let floor = self.floor(&case)?;
        let asked_for = softmax_kernels(self.options).iter().filter_map(|&kernel| {
            let plan = LogSoftmax::plan(&self.device, classes, None);
            let plan = plan.map(|plan| plan.with_kernel(kernel)).transpose()?;
            Some(plan.map(|plan| (plan.entry_point(), plan)))
        });
        let plans: Vec<_> = [Ok((OURS, plan))].into_iter().chain(asked_for).collect();
        for plan in plans {
            let (name, plan) = plan?;
            poison(&mut y_device)?;
            let timing = measure(&self.device, Effort::of(self.options.samples), || {
                plan.run(&x_device, rows as usize, &mut y_device)
            })?;
            let y = Array2::from_shape_vec(x.dim(), y_device.download()?)?;
            let line = Line {
                implementation: name.to_owned(),
                variant: Some(plan.entry_point()),
                ..Line::default()
            };
            let found = verify_log_softmax(x.view(), y.view());
            let line = line.timed(timing, floor).verified(rows as usize, &found);
            self.write(&case, line, &found, true)?;
        }
        Ok(())
    }

    /// Milliseconds in which the device copies half of the case's bytes, which moves all of them; `None` if there is
    /// no time.
    fn floor(&mut self, case: &Case) -> anyhow::Result<Option<f64>> {
        let effort = Effort::of(self.options.samples);
        let Some(timing) = self.floor.time(case.bytes, effort)? else {
            return Ok(None);
        };
        let line = Line {
            implementation: "floor".to_owned(),
            ..Line::default()
        };
        self.report(case, &line.timed(Some(timing), None))?;
        Ok(Some(timing.median))
    }

    /// Reports a verified result; `exact` is false if one of small whole numbers was wrong.
    fn write(
        &mut self,
        case: &Case,
        line: Line,
        found: &Verification,
        exact: bool,
    ) -> anyhow::Result<()> {
        if !found.ok() {
            eprintln!("{found}");
        }
        let mut line = line;
        line.ok = Some(found.ok() && exact);
        self.report(case, &line)
    }

    /// Prints the line and adds it to the file.
    fn report(&mut self, case: &Case, line: &Line) -> anyhow::Result<()> {
        self.all_right &= line.ok != Some(false);
        println!("{}", text(case, line));
        self.results.write(&Object { case, line }).map(drop)
    }

    /// Reports a case that does not fit the memory; any other error ends the run.
    fn skip(&mut self, case: &Case, name: &str, error: DeviceError) -> anyhow::Result<()> {
        let skipped = match error {
            DeviceError::OutOfMemory { .. } | DeviceError::HostOutOfMemory { .. } => {
                Some(error.to_string())
            }
            error => return Err(error.into()),
        };
        let line = Line {
            implementation: name.to_owned(),
            skipped,
            ..Line::default()
        };
        self.report(case, &line)
    }
}
