//! What the device-wide primitives and a plan's preprocessing cost: scans, sorts, transposes, orders of the rows.
//!
//! ```text
//! cargo bench -p warprow-benches --bench device_wide    # 80 million elements; on the emulator 20 thousand
//! cargo bench -p warprow-benches --bench device_wide -- --elements 1000000
//! ```
//!
//! The emulator has no times; there it only shows that all runs.

use anyhow::ensure;
use clap::Parser;
use std::time::Duration;
use warprow::DeviceCsr;
use warprow::device::{Device, DeviceBuffer};
use warprow::generate::{self, Communities};
use warprow::operand::OperandError;
use warprow::scan::exclusive_scan;
use warprow::sort::sort_pairs;
use warprow::{RowOrder, Spmm, SpmmOptions, SpmmTuning};

/// Runs of which the median counts.
const RUNS: usize = 5;

/// Bits of the keys that are sorted by: three passes.
const KEY_BITS: u32 = 24;

/// Nonzeros of a row of the graph.
const ROW_LENGTH: u32 = 20;

/// The device-wide primitives' time.
#[derive(Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench device_wide --")]
struct Options {
    /// Elements, pairs and nonzeros [default: 80000000 on a GPU, 20000 on the emulator]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1000..))]
    elements: Option<u32>,

    /// What `cargo bench` passes to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let device = Device::open()?;
    let on_emulator = device.is_emulator();
    let default = if on_emulator { 20_000 } else { 80_000_000 };
    let len = options.elements.unwrap_or(default);
    println!("{device}, {len} elements");
    // As `i * an odd number` modulo a power of two: every key, in no order.
    let keys: Vec<u32> = (0..len)
        .map(|i| i.wrapping_mul(2_654_435_761) >> (u32::BITS - KEY_BITS))
        .collect();
    let numbers: Vec<u32> = (0..len).collect();

    check_scan(&device, len)?;
    let mut counts = device.uninitialized::<u32>(len as usize)?;
    let time = median(&device, || {
        counts.fill_zero()?;
        timed(&device, || exclusive_scan(&device, &mut counts))
    })?;
    print("exclusive scan", time, 12 * u64::from(len));

    check_sort(&device, &keys, &numbers)?;
    let time = median(&device, || {
        let mut keys = device.upload(&keys)?;
        let mut values: DeviceBuffer<u32> = device.upload(&numbers)?;
        timed(&device, || {
            sort_pairs(&device, &mut keys, &mut values, KEY_BITS)
        })
    })?;
    let passes = u64::from(KEY_BITS.div_ceil(8));
    print("sort of pairs, 24 bits", time, passes * 20 * u64::from(len));

    let planted = Communities {
        sizes: 60..=600,
        inside: 0.85,
        shuffled: true,
    };
    let rows = len / ROW_LENGTH;
    let a = generate::communities::<f32>(rows, len, &planted, 1)?;
    println!("shuffled communities, {rows} rows, {len} nonzeros");
    let on_device = DeviceCsr::upload(&device, a.view())?;
    let transposed = on_device.transpose()?.download()?;
    ensure!(
        transposed == a.transpose_view().to_csr(),
        "the transpose is wrong"
    );
    drop(transposed);
    let time = median(&device, || timed(&device, || on_device.transpose()))?;
    print("transpose", time, 0);
    drop(on_device);
    for &order in RowOrder::ALL {
        let options = SpmmOptions::new().tuning(SpmmTuning::new().order(order));
        // The first one compiles the kernels.
        Spmm::plan(&device, a.view(), options)?;
        println!("{}", Spmm::plan(&device, a.view(), options)?);
    }
    Ok(())
}

/// Whether a scan of so many counts is right.
fn check_scan(device: &Device, len: u32) -> anyhow::Result<()> {
    let counts: Vec<u32> = (0..len).map(|i| i % 3).collect();
    let mut sums = device.upload(&counts)?;
    let total = exclusive_scan(device, &mut sums)?;
    let mut before = 0;
    for (sum, count) in sums.download()?.into_iter().zip(counts) {
        ensure!(
            sum == before,
            "the scan is wrong: {sum} where {before} is wanted"
        );
        before += count;
    }
    ensure!(
        total == u64::from(before),
        "the scan's sum is wrong: {total}"
    );
    Ok(())
}

/// Whether these pairs are sorted right: by their keys, and those of equal keys by their values, which ascend.
fn check_sort(device: &Device, keys: &[u32], values: &[u32]) -> anyhow::Result<()> {
    let (mut sorted, mut moved) = (device.upload(keys)?, device.upload(values)?);
    sort_pairs(device, &mut sorted, &mut moved, KEY_BITS)?;
    let (sorted, moved) = (sorted.download()?, moved.download()?);
    let pairs: Vec<(u32, u32)> = sorted.into_iter().zip(moved).collect();
    let ascend = pairs.windows(2).all(|pair| pair[0] < pair[1]);
    let belong = pairs
        .iter()
        .all(|&(key, value)| keys[value as usize] == key);
    ensure!(
        ascend && belong && pairs.len() == keys.len(),
        "the sort is wrong"
    );
    Ok(())
}

/// The device's time for what `run` has it do, after all that it was told before.
fn timed<R>(
    device: &Device,
    run: impl FnOnce() -> Result<R, OperandError>,
) -> Result<Option<Duration>, OperandError> {
    let timer = device.start_timer()?;
    let result = run()?;
    let time = timer.stop()?;
    drop(result);
    Ok(time)
}

/// The median of the times that `run` gives; the first, which compiles the kernels, does not count.
fn median(
    device: &Device,
    mut run: impl FnMut() -> Result<Option<Duration>, OperandError>,
) -> Result<Option<Duration>, OperandError> {
    run()?;
    if device.is_emulator() {
        return Ok(None);
    }
    let mut times = (0..RUNS).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times[RUNS / 2])
}

/// A line: the time, and the bytes moved in it if they are known.
fn print(what: &str, time: Option<Duration>, bytes: u64) {
    let Some(time) = time else {
        println!("  {what:<24} emulated: no timing");
        return;
    };
    let rate = match bytes {
        0 => String::new(),
        bytes => format!(", {:.0} GB/s", bytes as f64 / time.as_secs_f64() / 1e9),
    };
    println!("  {what:<24} {:.3} ms{rate}", time.as_secs_f64() * 1e3);
}
