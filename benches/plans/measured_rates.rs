//! The rates of a device: bandwidths of copies of several sizes, and the time of a launch with next to no work.

use crate::harness::floor::Floor;
use crate::harness::measure::{Effort, measure};
use serde::Serialize;
use warprow::device::Device;
use warprow::{DeviceCsr, Spmm, SpmmOptions, generate};

/// The rates; null on the emulator.
#[derive(Debug, Serialize)]
pub struct MeasuredRates {
    bench: &'static str,
    line: &'static str,
    multiprocessors: u32,
    l2_bytes: Option<u64>,
    /// Bytes that are read and written, and the time in milliseconds.
    copies: Vec<(u64, Option<f64>)>,
    /// Milliseconds of a product of 64 rows.
    launch_ms: Option<f64>,
}

/// The bytes per second that a copy of a GiB reads and writes together; `None` on the emulator.
///
/// # Errors
///
/// The driver's.
pub fn copy_rate(device: &Device) -> anyhow::Result<Option<f64>> {
    let bytes = 2 << 30;
    let timing = Floor::of(device)?.time(bytes, Effort::of(9))?;
    Ok(timing.map(|timing| bytes as f64 / (timing.median * 1e-3)))
}

/// Measures them.
pub fn measure_all(device: &Device) -> anyhow::Result<MeasuredRates> {
    let floor = Floor::of(device)?;
    let effort = Effort::of(9);
    let copies = [1, 4, 16, 32, 64, 256, 1024, 4096].map(|mib: u64| mib << 20);
    let copies = copies.map(|bytes| {
        let timing = floor.time(bytes.into(), effort)?;
        Ok((bytes, timing.map(|timing| timing.median)))
    });
    let a = generate::uniform::<f32>(64, 64, 256, 1)?;
    let a = DeviceCsr::upload(device, a.view())?;
    let plan = Spmm::<f32>::plan_device(&a, SpmmOptions::new().features(32))?;
    let x = device.zeros::<f32>(64 * 32)?;
    let mut y = device.zeros::<f32>(64 * 32)?;
    let launch = measure(device, effort, || plan.run(&x, 32, &mut y))?;
    let properties = device.properties();
    Ok(MeasuredRates {
        bench: "plans",
        line: "device",
        multiprocessors: properties.multiprocessors,
        l2_bytes: properties.l2_bytes,
        copies: copies.into_iter().collect::<anyhow::Result<_>>()?,
        launch_ms: launch.map(|timing| timing.median),
    })
}
