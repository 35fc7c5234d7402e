//! Gaps between rows of X that nobody has written: SpMM, LogSoftmax and most instances of XW do not read them.

use ndarray::{Array2, ArrayView2};
use std::collections::BTreeSet;
use warprow::device::Device;
use warprow::gemm::GemmError;
use warprow::log_softmax::LogSoftmax;
use warprow::{
    DenseView, DeviceBuffer, Element, Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning,
    Scalar, Spmm, SpmmOptions, bf16, f16, generate,
};

/// A buffer that begins with the first row of a matrix and ends with its last one. `gap` is what is between two rows;
/// default: nobody writes it.
fn upload<T: Scalar + Element>(
    device: &Device,
    matrix: ArrayView2<'_, T>,
    stride: usize,
    gap: Option<T>,
) -> DeviceBuffer<T> {
    let (rows, cols) = matrix.dim();
    let len = (rows - 1) * stride + cols;
    let mut buffer = match gap {
        Some(gap) => device.upload(&vec![gap; len]).unwrap(),
        None => device.uninitialized(len).unwrap(),
    };
    for (i, row) in matrix.rows().into_iter().enumerate() {
        let mut slice = (buffer.as_mut_slice())
            .slice(i * stride..i * stride + cols)
            .unwrap();
        slice.copy_from_slice(row.to_slice().unwrap()).unwrap();
    }
    buffer
}

#[test]
fn spmm_and_log_softmax_read_no_gap() {
    let device = Device::emulator(Default::default());
    for cols in [37, 64] {
        let matrix = generate::dense::<f32>(50, cols, 1).unwrap();
        let stride = cols + 5;
        let x = upload(&device, matrix.view(), stride, None);
        let x = DenseView::new(&x, 50, cols, stride).unwrap();
        let a = generate::uniform::<f32>(20, 50, 100, 1).unwrap();
        let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        let mut y = device.uninitialized(20 * cols).unwrap();
        spmm.run(x, cols, &mut y).unwrap();
        let softmax = LogSoftmax::plan(&device, cols, None).unwrap();
        let mut y = device.uninitialized(50 * cols).unwrap();
        softmax.run(x, 50, &mut y).unwrap();
        device.synchronize().unwrap();
    }
}

fn run<T: GemmElement>(
    gemm: &Gemm<T>,
    x: ArrayView2<'_, T>,
    stride: usize,
    gap: Option<T>,
) -> Result<Array2<T>, GemmError> {
    let (rows, cols) = x.dim();
    let x = upload(gemm.device(), x, stride, gap);
    let mut y = gemm.device().uninitialized(rows * gemm.cols()).unwrap();
    gemm.run(
        DenseView::new(&x, rows, cols, stride).unwrap(),
        rows,
        &mut y,
    )?;
    let y = Array2::from_shape_vec((rows, gemm.cols()), y.download().unwrap());
    Ok(y.unwrap())
}

/// The plans with each instance of the kernels of the product that can multiply by W.
fn plans<T: GemmElement>(device: &Device, w: ArrayView2<'_, T>) -> Vec<(&'static str, Gemm<T>)> {
    let mut plans = Vec::new();
    let names = cuda_std::kernel::instances().map(|instance| instance.name());
    for name in names.filter(|name| name.starts_with("gemm_")) {
        for &kernel in GemmKernel::ALL {
            let tuning = GemmTuning::new().kernel(kernel).instance(name);
            let options = GemmOptions::new().tf32(true).tuning(tuning);
            match Gemm::plan(device, w, None, options) {
                Ok(gemm) if kernel.folder() == "product" => plans.push((name, gemm)),
                Ok(_) | Err(GemmError::Kernel { .. }) => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
    plans
}

/// Multiplies with every instance. Adds those that read gaps to `readers`, and those that do not to `others`.
fn every_instance<T: GemmElement>(
    readers: &mut BTreeSet<&'static str>,
    others: &mut BTreeSet<&'static str>,
) {
    let device = Device::emulator(Default::default());
    for (k, n) in [(7, 20), (12, 50), (37, 50), (64, 20)] {
        let x = generate::dense::<T>(150, k, 1).unwrap();
        let w = generate::dense::<T>(k, n, 2).unwrap();
        for (name, gemm) in plans(&device, w.view()) {
            let packed = run(&gemm, x.view(), k, None).unwrap();
            let aligned = (k + 8).next_multiple_of(8);
            for stride in [k + 5, k + 6, aligned] {
                let what = format!("{name}, {k} to {n} columns, rows {stride} apart");
                let written = match run(&gemm, x.view(), stride, Some(T::from_f64(f64::NAN))) {
                    // The leading dimension.
                    Err(GemmError::Kernel { .. }) => continue,
                    written => written.unwrap_or_else(|error| panic!("{what}: {error}")),
                };
                assert_eq!(written, packed, "{what}");
                let is_aligned = (stride * size_of::<T>()).is_multiple_of(16)
                    && (k * size_of::<T>()).is_multiple_of(4);
                let reads_gaps = name.ends_with("Unaligned") && !is_aligned;
                match run(&gemm, x.view(), stride, None) {
                    Ok(unwritten) => {
                        assert_eq!(unwritten, packed, "{what}");
                        assert!(!reads_gaps, "{what}: it does not read gaps");
                        others.insert(name);
                    }
                    Err(error) => {
                        let text = error.to_string();
                        assert!(
                            reads_gaps && text.contains("never written"),
                            "{what}: {text}"
                        );
                        readers.insert(name);
                    }
                }
            }
        }
    }
}

#[test]
fn xw_reads_gaps_only_in_unaligned_tiles_and_uses_none() {
    let (mut readers, mut others) = (BTreeSet::new(), BTreeSet::new());
    every_instance::<f32>(&mut readers, &mut others);
    every_instance::<f64>(&mut readers, &mut others);
    every_instance::<f16>(&mut readers, &mut others);
    every_instance::<bf16>(&mut readers, &mut others);
    // What the documentation of `Gemm::run` names.
    let documented = [
        "gemm_warpgroup_fragments_bf16_Columns128Unaligned",
        "gemm_warpgroup_fragments_bf16_Columns48Unaligned",
        "gemm_warpgroup_fragments_f16_Columns128Unaligned",
        "gemm_warpgroup_fragments_f16_Columns48Unaligned",
        "gemm_warpgroup_split_Columns48CompactUnaligned",
        "gemm_warpgroup_split_Columns48StreamedUnaligned",
    ];
    assert!(readers.iter().eq(documented.iter()), "{readers:#?}");
    assert!(others.len() > 30, "{others:#?}");
}

/// The plan's own choice, at which nothing is asked for.
fn default_plan<T: GemmElement>(
    device: &Device,
    (k, n): (usize, usize),
    stride: usize,
) -> Result<Array2<T>, GemmError> {
    let x = generate::dense::<T>(150, k, 1).unwrap();
    let w = generate::dense::<T>(k, n, 2).unwrap();
    let gemm = Gemm::plan(device, w.view(), None, GemmOptions::default()).unwrap();
    run(&gemm, x.view(), stride, None)
}

#[test]
fn plans_take_unwritten_gaps_for_shapes_of_aligned_tiles_and_no_others() {
    let device = Device::emulator(Default::default());
    for (shape, stride) in [
        ((15, 50), 20),
        ((37, 16), 42),
        ((64, 20), 69),
        ((64, 50), 69),
    ] {
        default_plan::<f32>(&device, shape, stride).unwrap();
        default_plan::<f64>(&device, shape, stride).unwrap();
    }
    // 16-bit elements: `shallow`, `flat_fragments`, `fragments`, and tiles for up to 16 or for 49 columns and more.
    for (shape, stride) in [((2, 9), 5), ((7, 50), 9), ((37, 50), 42), ((130, 9), 137)] {
        default_plan::<f16>(&device, shape, stride).unwrap();
        default_plan::<bf16>(&device, shape, stride).unwrap();
    }
    for (shape, stride) in [((64, 16), 70), ((72, 50), 78), ((72, 20), 80)] {
        default_plan::<f16>(&device, shape, stride).unwrap();
        default_plan::<bf16>(&device, shape, stride).unwrap();
    }
    default_plan::<f32>(&device, (37, 20), 42).unwrap_err();
    for (shape, stride) in [((72, 20), 78), ((67, 50), 72), ((67, 50), 73)] {
        default_plan::<f16>(&device, shape, stride).unwrap_err();
        default_plan::<bf16>(&device, shape, stride).unwrap_err();
    }
}
