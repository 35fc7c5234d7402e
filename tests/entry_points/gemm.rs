//! XW: every instance of every kernel, with bias and ReLU.

use crate::{assert_all_run, family_of};
use std::collections::BTreeSet;
use warprow::device::{Device, LaunchLog};
use warprow::reference::{Arithmetic, DenseEpilogue, verify_gemm};
use warprow::{Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning, bf16, f16, generate};
use warprow_kernels::gemm::GemmProblem;

/// Rows of X on a GPU: more than a few tiles have.
const GPU_ROWS: usize = 700;

/// Rows of X on the emulator, which takes seconds for each hundred rows.
const EMULATOR_ROWS: usize = 140;

/// Rows and columns of a W for which `shallow` takes tiles of 8 rows of f32, its fewest.
const LEAST_TILES: (usize, usize) = (32, 512);

/// Rows of X for each multiprocessor with which some blocks of `shallow` take two such tiles: it launches 8 blocks.
const ROWS_OF_TWO_TILES: usize = 80;

/// Rows and columns of W: for each tile a product that takes it.
const SHAPES: [(usize, usize); 14] = [
    (33, 1),
    (16, 16),
    (128, 16),
    (8, 5),
    (21, 9),
    (100, 47),
    (100, 64),
    (128, 128),
    // Rows of an odd number of 16-bit elements, in two tiles of columns whose rows are not aligned.
    (31, 139),
    // W fits into shared memory only without padding.
    (602, 41),
    // W does not fit.
    (602, 30),
    (800, 130),
    (1100, 47),
    (1100, 17),
];

#[test]
fn every_entry_point_runs() {
    assert_all_run("gemm", |device| {
        let log = device.log_launches();
        every_instance::<f32>(device, &log);
        every_instance::<f64>(device, &log);
        every_instance::<f16>(device, &log);
        every_instance::<bf16>(device, &log);
        blocks_of_shallow_use_their_shared_memory_again(device);
    });
}

/// At least 10,000 rows on a GPU of 128 multiprocessors, and a few hundred on the emulator.
fn blocks_of_shallow_use_their_shared_memory_again(device: &Device) {
    let multiprocessors = device.properties().multiprocessors as usize;
    let rows = if device.is_emulator() {
        ROWS_OF_TWO_TILES * multiprocessors.min(4)
    } else {
        ROWS_OF_TWO_TILES * multiprocessors
    };
    let (depth, cols) = LEAST_TILES;
    let x = generate::dense::<f32>(rows, depth, 1).unwrap();
    let w = generate::dense::<f32>(depth, cols, 2).unwrap();
    let options = GemmOptions::new().tuning(GemmTuning::new().kernel(GemmKernel::Shallow));
    let gemm = Gemm::plan(device, w.view(), None, options).unwrap();
    let blocks = gemm.launch_config(rows).unwrap().unwrap().grid.y as usize;
    assert!(
        blocks == 8 * multiprocessors || device.is_emulator(),
        "{blocks}"
    );
    let y = gemm.multiply(x.view()).unwrap();
    let arithmetic = Arithmetic::of::<f32>();
    let checked = verify_gemm(
        x.view(),
        w.view(),
        DenseEpilogue::new(),
        arithmetic,
        y.view(),
    );
    assert!(checked.ok(), "{gemm}: {checked}");
}

/// Runs each kernel in the shapes that lead to an instance which has not run.
fn every_instance<T: GemmElement>(device: &Device, log: &LaunchLog) {
    let rows = if device.is_emulator() {
        EMULATOR_ROWS
    } else {
        GPU_ROWS
    };
    for (depth, cols) in SHAPES {
        let x = generate::dense::<T>(rows, depth, 1).unwrap();
        let w = generate::dense::<T>(depth, cols, 2).unwrap();
        let bias = generate::dense::<T>(1, cols, 3).unwrap();
        for &kernel in GemmKernel::ALL {
            let options = GemmOptions::new()
                .relu(true)
                .tf32(true)
                .tuning(GemmTuning::new().kernel(kernel));
            // Not every kernel has this type and depth, or serves this device.
            let Ok(gemm) = Gemm::plan(device, w.view(), Some(bias.row(0)), options) else {
                continue;
            };
            if (log.launches()).contains_key(gemm.entry_point(rows).unwrap().unwrap()) {
                continue;
            }
            let y = gemm.multiply(x.view()).unwrap();
            let epilogue = DenseEpilogue::new().bias(bias.row(0)).relu(true);
            let arithmetic = match (kernel.rounds_f32(), T::NAME) {
                (true, "f32") => Arithmetic::tf32(),
                (_, "f16" | "bf16") => Arithmetic::tensor_cores(),
                _ => Arithmetic::of::<T>(),
            };
            let checked = verify_gemm(x.view(), w.view(), epilogue, arithmetic, y.view());
            assert!(checked.ok(), "{gemm}: {checked}");
        }
    }
}

/// Adds the instances that the cases lead to on a GPU of so many multiprocessors.
fn add_planned<T: GemmElement>(multiprocessors: u32, planned: &mut BTreeSet<&'static str>) {
    for (depth, cols) in SHAPES {
        let problem = GemmProblem {
            rows: GPU_ROWS as u32,
            depth: depth as u32,
            cols: cols as u32,
            multiprocessors,
            shared_bytes: 227 << 10,
            instance: None,
        };
        let kernels = GemmKernel::ALL.iter();
        for kernel in kernels.filter(|kernel| kernel.refusal::<T>(problem.depth).is_none()) {
            planned.insert(kernel.plan::<T>(problem).unwrap().kernel.name());
        }
    }
}

#[test]
fn the_cases_lead_to_every_instance_on_gpus_of_any_number_of_multiprocessors() {
    let names = cuda_std::kernel::instances().map(|instance| instance.name());
    let wanted: BTreeSet<&str> = names
        .filter(|name| family_of(name) == Some("gemm"))
        .collect();
    for multiprocessors in [1, 4, 16, 78, 132, 256] {
        let mut planned = BTreeSet::new();
        add_planned::<f32>(multiprocessors, &mut planned);
        add_planned::<f64>(multiprocessors, &mut planned);
        add_planned::<f16>(multiprocessors, &mut planned);
        add_planned::<bf16>(multiprocessors, &mut planned);
        assert_eq!(planned, wanted, "{multiprocessors} multiprocessors");
    }
}
