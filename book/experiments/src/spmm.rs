//! A sparse matrix times a dense one: the kernels of the library's ladder, and the book's steps between them.

use crate::counters::{self, ADDED_SECTORS, LOAD_LANES, LOAD_SECTORS, LOADS};
use crate::counters::{LONGEST_WARP, SHUFFLES, STORE_SECTORS};
use crate::measure::{Measurement, cost};
use crate::spmv::Matrix;
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use ndarray::Array2;
use std::io::Write;
use std::str::FromStr;
use warprow::device::DeviceBuffer;
use warprow::reference::WholeProduct;
use warprow::{Device, Spmm, SpmmKernel, SpmmOptions, SpmmTuning, launch};
use warprow_book_kernels::spmv::Csr;
use warprow_book_kernels::tasks::{FEATURES, LANES, TASK};
use warprow_book_kernels::tasks::{
    equal_tasks, join_parts, ordered_tasks, sub_warp_per_row, task_rows,
};

/// A product by one or several kernels.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Kernels of the library's ladder, or steps: sub_warp_per_row, equal_tasks, ordered_tasks
    #[arg(required = true, value_name = "KERNEL")]
    pub kernels: Vec<Kernel>,

    /// The matrix A
    #[command(flatten)]
    pub matrix: Matrix,
}

/// A kernel of the library, or a step of the book.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    /// One of the library's.
    Rung(SpmmKernel),
    /// One of the book's.
    Step(Step),
}

/// The book's steps from `warp_per_row` to `vector`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Step {
    /// Sub-warps with 16-byte loads, one for each row
    SubWarpPerRow,
    /// A sub-warp for each 32 nonzeros; atomic additions
    EqualTasks,
    /// The same with a second kernel instead of atomic additions
    OrderedTasks,
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let rung = SpmmKernel::ALL.iter().find(|rung| rung.name() == name);
        match rung {
            Some(&rung) => Ok(Self::Rung(rung)),
            None => Step::from_str(name, false).map(Self::Step),
        }
    }
}

/// Threads of a block of a step.
const BLOCK: u32 = 128;

/// Multiplies by each kernel, compares the products with the host's, and prints the kernels' counters.
///
/// # Errors
///
/// A file that is no matrix, a fault of a kernel, a wrong result, or an error of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<Option<Measurement>> {
    let product = WholeProduct::<f32>::new(options.matrix.read()?.view(), FEATURES as usize, 1);
    let mut measured = None;
    let mut reports = Vec::new();
    for &kernel in &options.kernels {
        let (new_reports, measurement) = match kernel {
            Kernel::Rung(kernel) => by_rung(kernel, device, &product, out),
            Kernel::Step(step) => by_step(step, device, &product, out),
        }?;
        reports.extend(new_reports);
        measured = measurement;
    }
    if device.is_emulator() && !reports.is_empty() {
        let columns = [
            LOADS,
            LOAD_LANES,
            LOAD_SECTORS,
            STORE_SECTORS,
            ADDED_SECTORS,
            SHUFFLES,
            LONGEST_WARP,
        ];
        counters::print(out, &columns, &reports)?;
    }
    Ok(measured)
}

type Costs = (Vec<warprow::device::LaunchReport>, Option<Measurement>);

/// The product by a kernel of the library.
fn by_rung(
    kernel: SpmmKernel,
    device: &Device,
    product: &WholeProduct<f32>,
    out: &mut dyn Write,
) -> Result<Costs> {
    let spmm_options = SpmmOptions::new()
        .features(FEATURES)
        .tuning(SpmmTuning::new().kernel(kernel));
    let spmm = Spmm::plan(device, product.a(), spmm_options)?;
    let x = device.upload(product.x().as_slice().context("X is contiguous")?)?;
    let mut y = device.uninitialized::<f32>(product.a().rows() * FEATURES as usize)?;
    let multiply = || Ok(spmm.run(&x, FEATURES as usize, &mut y)?);
    let costs = costs(device, kernel.name(), product, out, multiply)?;
    check(product, &y)?;
    Ok(costs)
}

/// The product by a step of the book.
fn by_step(
    step: Step,
    device: &Device,
    product: &WholeProduct<f32>,
    out: &mut dyn Write,
) -> Result<Costs> {
    let a = product.a();
    let rows = u32::try_from(a.rows())?;
    let tasks = u32::try_from(a.nnz())?.div_ceil(TASK);
    let row_ptr = device.upload(a.indptr().raw_storage())?;
    let (col_idx, values) = (device.upload(a.indices())?, device.upload(a.data())?);
    let x = device.upload(product.x().as_slice().context("X is contiguous")?)?;
    let mut y = device.upload(&vec![0.0_f32; a.rows() * FEATURES as usize])?;
    let mut first_row = device.uninitialized::<u32>(tasks as usize)?;
    let mut parts = device.uninitialized::<f32>(2 * (tasks * FEATURES) as usize)?;
    let there = Csr {
        rows,
        row_ptr: row_ptr.read_only(),
        col_idx: col_idx.read_only(),
        values: values.read_only(),
    };
    let blocks = |sub_warps: u32| sub_warps.div_ceil(BLOCK / LANES);
    if tasks > 0 {
        let kernel = task_rows();
        // SAFETY: the row pointers are those of a matrix, and there is room for the row of each task.
        unsafe {
            launch!(device, kernel<<<tasks.div_ceil(BLOCK), BLOCK, 0>>>(
                rows, there.row_ptr, tasks, first_row.mutable()
            ))?;
        }
    }
    let multiply = || -> Result<()> {
        let (x, first_row) = (x.read_only(), first_row.read_only());
        // SAFETY: the arrays are those of a matrix; X and Y have 32 columns, and buffers are aligned to 16 bytes.
        // `task_rows` has written the rows of the tasks. Y is zero before, and `parts` has two rows for each task.
        unsafe {
            match step {
                Step::SubWarpPerRow => {
                    let kernel = sub_warp_per_row();
                    launch!(device, kernel<<<blocks(rows), BLOCK, 0>>>(there, x, y.mutable()))?;
                }
                _ if tasks == 0 => {}
                Step::EqualTasks => {
                    let kernel = equal_tasks();
                    launch!(device, kernel<<<blocks(tasks), BLOCK, 0>>>(
                        there, x, first_row, y.mutable()
                    ))?;
                }
                Step::OrderedTasks => {
                    let (kernel, join) = (ordered_tasks(), join_parts());
                    launch!(device, kernel<<<blocks(tasks), BLOCK, 0>>>(
                        there, x, first_row, parts.mutable(), y.mutable()
                    ))?;
                    launch!(device, join<<<blocks(tasks), BLOCK, 0>>>(
                        there, tasks, first_row, parts.read_only(), y.mutable()
                    ))?;
                }
            }
        }
        Ok(())
    };
    let name = step.to_possible_value().context("a step has a name")?;
    let costs = costs(device, name.get_name(), product, out, multiply)?;
    // On a GPU, `equal_tasks` has added to the same Y again and again.
    if device.is_emulator() || step != Step::EqualTasks {
        check(product, &y)?;
    }
    Ok(costs)
}

/// What a product costs: the reports of its launches, or its time on a GPU.
fn costs(
    device: &Device,
    name: &str,
    product: &WholeProduct<f32>,
    out: &mut dyn Write,
    mut multiply: impl FnMut() -> Result<()>,
) -> Result<Costs> {
    // Those of the plan.
    drop(device.launch_reports());
    multiply()?;
    if device.is_emulator() {
        return Ok((device.launch_reports().unwrap_or_default(), None));
    }
    let a = product.a();
    let elements = a.rows() + a.cols();
    let bytes =
        8 * a.nnz() as u64 + 4 * (a.rows() as u64 + 1 + elements as u64 * u64::from(FEATURES));
    writeln!(out, "kernel   {name}")?;
    let measurement = cost(device, format!("spmm, {name}"), bytes, out, multiply)?;
    Ok((Vec::new(), measurement))
}

/// Compares a product of whole numbers with the host's.
fn check(product: &WholeProduct<f32>, y: &DeviceBuffer<f32>) -> Result<()> {
    let shape = (product.a().rows(), FEATURES as usize);
    let y = Array2::from_shape_vec(shape, y.download()?)?;
    let verification = product.verify(y.view());
    ensure!(verification.ok(), "wrong product: {verification}");
    Ok(())
}
