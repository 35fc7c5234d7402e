//! The library's operations: every rung of every ladder, and what runs by default, on small inputs.

use crate::counters::bench::{Case, Prepared};
use crate::gemm::operands::elements;
use crate::ladder::rungs::{Rung, spgemm_rungs};
use crate::spgemm::cases::Case as SpgemmCase;
use warprow::device::Device;
use warprow::spgemm::{SpgemmKernel, SpgemmOptions, multiply, multiply_unsorted};
use warprow::spmm::RowOrder;
use warprow::{
    CsrMatrix, DeviceCsr, Gemm, GemmKernel, GemmOptions, GemmTuning, Spmm, SpmmElement, SpmmKernel,
    SpmmOptions, SpmmTuning, generate,
};

/// The graph of SpMM: the dependencies between Debian's packages, in `data/`.
const PACKAGES: &str = "packages";

/// Columns of X in the ladder of SpMM.
const FEATURES: u32 = 32;

/// Rows and nonzeros of the matrix of SpGEMM, an R-MAT one.
const SPGEMM: (u32, u32) = (3_001, 20_011);
const PROBABILITIES: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

/// Rows, depth and columns of XW: the shape of the ladder with fewer rows, and one that nothing divides.
const XW: [(u32, usize, usize); 2] = [(5_000, 128, 16), (1_000, 33, 17)];

/// The cases of all families.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &kernel in SpmmKernel::ALL {
        let name = format!("spmm/packages/f32/{FEATURES}/{}", kernel.name());
        cases.push(spmm::<f32>(name, Some(kernel), FEATURES, f32::from));
    }
    for features in [FEATURES, 33, 128] {
        let name = format!("spmm/packages/f32/{features}/default");
        cases.push(spmm::<f32>(name, None, features, f32::from));
    }
    let name = format!("spmm/packages/f64/{FEATURES}/default");
    cases.push(spmm::<f64>(name, None, FEATURES, f64::from));
    for (rows, depth, cols) in XW {
        let kernels = GemmKernel::ALL.iter().copied().map(Some).chain([None]);
        cases.extend(kernels.map(|kernel| xw(kernel, rows, depth, cols)));
    }
    cases.extend(spgemm_rungs().map(spgemm));
    cases
}

/// A times X by a kernel of SpMM; for none, by what runs by default.
fn spmm<T: SpmmElement>(
    name: String,
    kernel: Option<SpmmKernel>,
    features: u32,
    convert: fn(f32) -> T,
) -> Case {
    let prepare = move |device: &Device, seed: u64| {
        let packages = SpgemmCase::named(PACKAGES).expect("it is in the table");
        let a: CsrMatrix<f32> = packages.generate(seed)?;
        let a = a.map(|&value| convert(value));
        let given = kernel.is_some_and(|kernel| kernel != SpmmKernel::Reordered);
        let options = SpmmOptions::new().features(features).tuning(
            SpmmTuning::new()
                .kernel(kernel)
                .order(given.then_some(RowOrder::Given)),
        );
        let spmm = Spmm::plan(device, a.view(), options)?;
        let features = features as usize;
        let x = generate::dense::<T>(a.cols(), features, seed)?;
        let x = device.upload(elements(&x))?;
        let mut y = device.uninitialized(a.rows() * features)?;
        Ok(Prepared::Product(Box::new(move || {
            spmm.run(&x, features, &mut y)?;
            Ok(spmm.device().synchronize()?)
        })))
    };
    Case {
        name,
        prepare: Box::new(prepare),
    }
}

/// X times W by a kernel; for none, by what runs by default.
fn xw(kernel: Option<GemmKernel>, rows: u32, depth: usize, cols: usize) -> Case {
    let prepare = move |device: &Device, seed: u64| {
        let refusal = kernel.and_then(|kernel| kernel.refusal::<f32>(depth as u32));
        if let Some(refusal) = refusal {
            return Ok(Prepared::Skipped(refusal));
        }
        let x = generate::dense::<f32>(rows as usize, depth, seed)?;
        let w = generate::dense::<f32>(depth, cols, seed + 1)?;
        let options = GemmOptions::new()
            .tf32(true)
            .tuning(GemmTuning::new().kernel(kernel));
        let gemm = Gemm::plan(device, w.view(), None, options)?;
        let x = device.upload(elements(&x))?;
        let mut y = device.uninitialized(rows as usize * cols)?;
        let device = device.clone();
        Ok(Prepared::Product(Box::new(move || {
            gemm.run(&x, rows as usize, &mut y)?;
            Ok(device.synchronize()?)
        })))
    };
    let kernel = kernel.map_or("default", GemmKernel::name);
    Case {
        name: format!("xw/{rows}x{depth}x{cols}/f32/{kernel}"),
        prepare: Box::new(prepare),
    }
}

/// A matrix times itself by a rung of SpGEMM; for none, by what runs by default.
fn spgemm(kernel: Option<SpgemmKernel>) -> Case {
    let prepare = move |device: &Device, seed: u64| {
        let (rows, nonzeros) = SPGEMM;
        let a = generate::rmat::<f32>(rows, nonzeros, PROBABILITIES, seed)?;
        let a = DeviceCsr::upload(device, a.view())?;
        let device = device.clone();
        Ok(Prepared::Product(Box::new(move || {
            match kernel {
                Some(kernel) => drop(multiply_unsorted(kernel, &a, &a)?),
                None => drop(multiply(&a, &a, SpgemmOptions::default())?),
            }
            Ok(device.synchronize()?)
        })))
    };
    let name = Rung::of_spgemm(kernel).name;
    Case {
        name: format!("spgemm/rmat_{}/f32/{name}", SPGEMM.0),
        prepare: Box::new(prepare),
    }
}
