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

/// The milliseconds of a product of 64 rows, of many one after the other; `None` on the emulator.
///
/// # Errors
///
/// The device's.
pub fn launch_ms(device: &Device) -> anyhow::Result<Option<f64>> {
    let a = generate::uniform::<f32>(64, 64, 256, 1)?;
    let a = DeviceCsr::upload(device, a.view())?;
    let plan = Spmm::<f32>::plan_device(&a, SpmmOptions::new().features(32))?;
    let x = device.zeros::<f32>(64 * 32)?;
    let mut y = device.zeros::<f32>(64 * 32)?;
    let timing = measure(device, Effort::of(9), || plan.run(&x, 32, &mut y))?;
    Ok(timing.map(|timing| timing.median))
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
    let properties = device.properties();
    Ok(MeasuredRates {
        bench: "plans",
        line: "device",
        multiprocessors: properties.multiprocessors,
        l2_bytes: properties.l2_bytes,
        copies: copies.into_iter().collect::<anyhow::Result<_>>()?,
        launch_ms: launch_ms(device)?,
    })
}
