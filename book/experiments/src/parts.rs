//! A product over several devices: who owns what, which rows of X travel, and what each device reads.

use crate::counters::grouped;
use crate::spmv::{Matrix, hubs};
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::num::NonZeroUsize;
use warprow::device::{CounterOptions, DeviceProfile, EmulatorOptions, LaunchReport};
use warprow::generate::{Communities, communities};
use warprow::multi::{Devices, Division, DivisionOptions, Halo, MultiSpmmOptions, Part, Spmm};
use warprow::reference::WholeProduct;
use warprow::spmm::RowOrder;
use warprow::{CsrMatrix, Device};

/// A product over several devices.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The kind of matrix
    #[arg(value_enum)]
    pub kind: Kind,

    /// Parts: emulators, each with its own memory; on a machine with GPUs, handles of these in turn
    #[arg(long, default_value = "4")]
    pub parts: NonZeroUsize,

    /// The order of the rows [default: clustered, if the parts then receive less than 0.9 times as many rows]
    #[arg(long, value_enum)]
    pub order: Option<Order>,

    /// Columns of X and Y
    #[arg(long, default_value_t = 32)]
    pub features: u32,
}

/// A kind of square matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    /// The dependencies of Debian's packages
    Packages,
    /// Communities of nodes that are neighbours of each other, in random order
    Communities,
    /// A graph whose first rows and columns have most of the nonzeros
    Hubs,
    /// 400 rows of one nonzero, and between them one of 1200
    LongRow,
}

/// An order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Order {
    /// That of the matrix
    Given,
    /// Rows with common columns next to each other
    Clustered,
}

impl Kind {
    fn matrix(self) -> Result<CsrMatrix<f32>> {
        Ok(match self {
            Self::Packages => Matrix::default().read()?,
            Self::Communities => {
                let planted = Communities {
                    sizes: 40..=160,
                    inside: 0.85,
                    shuffled: true,
                };
                communities(6000, 60_000, &planted, 1)?
            }
            Self::Hubs => hubs()?,
            Self::LongRow => long_row()?,
        })
    }
}

/// Row 150 selects every column; row i has a nonzero in column 3 i.
fn long_row() -> Result<CsrMatrix<f32>> {
    let columns = 1200_u32;
    let (mut row_ptr, mut col_idx) = (vec![0_u32], Vec::new());
    for row in 0..columns {
        match row {
            150 => col_idx.extend(0..columns),
            0..=400 => col_idx.push((3 * row) % columns),
            _ => {}
        }
        row_ptr.push(u32::try_from(col_idx.len())?);
    }
    let values = vec![1.0; col_idx.len()];
    let shape = (columns as usize, columns as usize);
    Ok(CsrMatrix::new(shape, row_ptr, col_idx, values))
}

/// Divides a matrix, multiplies on all devices, compares the product with the host's, and prints what travelled.
///
/// # Errors
///
/// A device's, a wrong product, or those of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<()> {
    let features = options.features as usize;
    let product = WholeProduct::<f32>::new(options.kind.matrix()?.view(), features, 1);
    let a = product.a();
    let mut division_options = DivisionOptions::new();
    division_options.order = options.order.map(|order| match order {
        Order::Given => RowOrder::Given,
        Order::Clustered => RowOrder::Clustered,
    });
    let division = Division::plan(device, a, options.parts, division_options, None)?;
    let lengths: Vec<usize> = a.outer_iterator().map(|row| row.nnz()).collect();
    writeln!(
        out,
        "matrix   {} rows, {} nonzeros, the longest row has {}",
        grouped(a.rows() as u64),
        grouped(a.nnz() as u64),
        grouped(lengths.iter().max().map_or(0, |&longest| longest as u64))
    )?;
    parts(&division, out)?;

    let layout = division.layout();
    let equal_rows = equal_rows_imbalance(&lengths, options.parts.get());
    writeln!(
        out,
        "balance  the largest part has {:.2} times the mean work; with equal numbers of rows, {equal_rows:.2} times",
        layout.partition().imbalance()
    )?;
    let order = match layout.order().original() {
        Some(_) => "clustered",
        None => "given",
    };
    writeln!(out, "order    {order}")?;
    let volume = layout.volume();
    writeln!(
        out,
        "travel   {} rows of X, {:.0} % of those of a broadcast; {} bytes",
        grouped(volume.received),
        100.0 * volume.fraction(),
        grouped(volume.received * features as u64 * 4)
    )?;

    let devices = devices(device, options.parts)?;
    let multi_options = MultiSpmmOptions::new().division(division_options);
    let spmm = Spmm::plan(&devices, a, multi_options)?;
    let mut x = spmm.upload(product.x().view())?;
    let mut y = spmm.result(features)?;
    // What the plans have launched is not counted.
    load_sectors(&devices);
    spmm.exchange(&mut x)?;
    let of_exchange = load_sectors(&devices);
    spmm.compute(&x, &mut y)?;
    let of_product = load_sectors(&devices);
    if device.is_emulator() {
        writeln!(
            out,
            "sectors  {} loaded to collect the rows that are sent, {} loaded by the product",
            grouped(of_exchange),
            grouped(of_product)
        )?;
    }
    let verification = product.verify(spmm.download(&y)?.view());
    ensure!(verification.ok(), "wrong product: {verification}");
    writeln!(out, "product  right")?;
    Ok(())
}

/// Prints a line for each part.
fn parts(division: &Division<f32>, out: &mut dyn Write) -> Result<()> {
    let layout = division.layout();
    writeln!(
        out,
        "part            rows  nonzeros       owns  receives  from parts  without halo"
    )?;
    for (number, part) in layout.partition().parts().iter().enumerate() {
        let halo = &layout.halos()[number];
        let senders = (0..layout.halos().len()).filter(|&other| !halo.rows_from(other).is_empty());
        writeln!(
            out,
            "{number:>4} {:>15}  {:>8}  {:>9}  {:>8}  {:>10}  {:>10} %",
            range(part),
            grouped(part.nonzeros.len() as u64),
            grouped(halo.own().len() as u64),
            grouped(halo.rows().len() as u64),
            senders.count(),
            interior_percent(&division.matrix_of(number), halo)
        )?;
    }
    Ok(())
}

/// The first and the last row of a part.
fn range(part: &Part) -> String {
    match part.rows.len() {
        0 => "none".to_owned(),
        _ => format!("{} to {}", part.rows.start, part.rows.end - 1),
    }
}

/// The share of a part's nonzeros whose rows need no row of X from another part.
fn interior_percent(rows: &CsrMatrix<f32>, halo: &Halo) -> u64 {
    let own = halo.local_own();
    let of_row = |row: &[u32]| row.iter().all(|&column| own.contains(&(column as usize)));
    let interior = rows.outer_iterator().filter(|row| of_row(row.indices()));
    let nonzeros: usize = interior.map(|row| row.nnz()).sum();
    (100 * nonzeros as u64) / rows.nnz().max(1) as u64
}

/// The work of the largest part, divided by the mean, if all parts have the same number of rows.
fn equal_rows_imbalance(lengths: &[usize], parts: usize) -> f64 {
    let work = |part: usize| -> usize {
        let bounds = |part: usize| part * lengths.len() / parts;
        let lengths = &lengths[bounds(part)..bounds(part + 1)];
        lengths.iter().map(|length| 1 + length).sum()
    };
    let of_parts: Vec<usize> = (0..parts).map(work).collect();
    let total: usize = of_parts.iter().sum();
    let largest = of_parts.iter().max().copied().unwrap_or(0);
    largest as f64 * parts as f64 / total.max(1) as f64
}

/// As many devices as parts: emulators of an H200, or handles of the machine's GPUs in turn.
fn devices(device: &Device, parts: NonZeroUsize) -> Result<Devices> {
    let parts = 0..parts.get();
    if !device.is_emulator() {
        let gpus: Vec<Device> = Devices::all()?.iter().cloned().collect();
        let in_turn = parts.map(|part| gpus[part % gpus.len()].clone());
        return Ok(Devices::of(in_turn.collect())?);
    }
    let emulator = |_| {
        let options = EmulatorOptions::new()
            .workers(NonZeroUsize::new(1))
            .counters(CounterOptions::default());
        Device::emulator_of(&DeviceProfile::h200(), options)
    };
    Ok(Devices::of(parts.map(emulator).collect())?)
}

/// Sectors that all launches since the last call have loaded; 0 on GPUs, which do not count.
fn load_sectors(devices: &Devices) -> u64 {
    let reports = devices
        .iter()
        .flat_map(|device| device.launch_reports().unwrap_or_default());
    let sectors = |report: LaunchReport| report.total.global_loads.sectors;
    reports.map(sectors).sum()
}
