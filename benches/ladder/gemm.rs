//! A case of XW: a tall and narrow matrix times a small one, by every kernel.

use crate::gemm::operands::{WholeOperands, arithmetic, elements, poison, repeated};
use crate::harness::measure::{Effort, measure};
use crate::ladder::bench::Bench;
use crate::ladder::cases::DenseShape;
use crate::ladder::report::{Case, Outcome, Verified};
use crate::ladder::rungs::Rung;
use ndarray::Array2;
use warprow::device::{Device, DeviceBuffer};
use warprow::reference::{DenseEpilogue, verify_gemm};
use warprow::{Gemm, GemmKernel, GemmOptions, GemmTuning, generate};

/// X, W and Y.
struct Operands {
    x: Array2<f32>,
    w: Array2<f32>,
    x_device: DeviceBuffer<f32>,
    y_device: DeviceBuffer<f32>,
    whole: WholeOperands<f32>,
}

/// All kernels of XW on a shape.
///
/// # Errors
///
/// The device's, unless it is a limit of a kernel.
pub fn case(bench: &mut Bench<'_>, shape: DenseShape) -> anyhow::Result<()> {
    let DenseShape { rows, depth, cols } = shape;
    let case = Case {
        case: format!("{rows} x {depth} by {depth} x {cols}"),
        rows: rows as usize,
        cols: depth,
        nnz: None,
        features: Some(cols),
        element: "f32",
    };
    let seed = bench.options.run.seed;
    let x = repeated::<f32>(rows as usize, depth, seed)?;
    let w = generate::dense::<f32>(depth, cols, seed + 1)?;
    let mut operands = Operands {
        whole: WholeOperands::new(&bench.device, &x, &w)?,
        w,
        x_device: bench.device.upload(elements(&x))?,
        y_device: bench.device.uninitialized(rows as usize * cols)?,
        x,
    };
    bench.report.begin_case();
    for &kernel in GemmKernel::ALL {
        let outcome = match why_not(kernel, depth as u32, &bench.device) {
            Some(skipped) => Outcome::Skipped { skipped },
            None => Outcome::of(computed(bench, kernel, &mut operands))?,
        };
        bench.report.add(&Rung::of_gemm(kernel), &case, &outcome)?;
    }
    Ok(())
}

/// Why a kernel cannot compute the product; none if it can.
fn why_not(kernel: GemmKernel, depth: u32, device: &Device) -> Option<String> {
    if let Some(refusal) = kernel.refusal::<f32>(depth) {
        return Some(refusal);
    }
    let found = device.properties().compute_capability;
    let required = kernel.required_arch();
    if !required.includes((found.major, found.minor)) {
        let (major, minor) = required.min_compute_capability();
        return Some(format!(
            "wants compute capability {major}.{minor}, found {}.{}",
            found.major, found.minor
        ));
    }
    None
}

/// The product by one kernel.
fn computed(
    bench: &Bench<'_>,
    kernel: GemmKernel,
    operands: &mut Operands,
) -> anyhow::Result<Outcome> {
    let Operands { x, w, .. } = operands;
    let options = GemmOptions::new()
        .tf32(true)
        .tuning(GemmTuning::new().kernel(kernel));
    let gemm = Gemm::plan(&bench.device, w.view(), None, options)?;
    poison(&mut operands.y_device)?;
    let rows = x.nrows();
    let timing = measure(&bench.device, Effort::of(bench.options.samples), || {
        gemm.run(&operands.x_device, rows, &mut operands.y_device)
    })?;
    let y = Array2::from_shape_vec((rows, w.ncols()), operands.y_device.download()?)?;
    let epilogue = DenseEpilogue::default();
    let arithmetic = arithmetic::<f32>(Some(kernel));
    let verification = verify_gemm(x.view(), w.view(), epilogue, arithmetic, y.view());
    if !verification.ok() {
        eprintln!("{verification}");
    }
    let exact = (operands.whole).is_exact(&bench.device, options)?;
    let verified = Verified {
        rows,
        max_relative_error: verification.max_relative_error,
        ok: verification.ok() && exact,
    };
    let precision = kernel.rounds_f32().then_some("tf32");
    Ok(Outcome::computed(timing, verified).with_precision(precision))
}
