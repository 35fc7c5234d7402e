//! The run: every case on one device.

use crate::counters::options::{Options, read_registers};
use crate::counters::report::{Counted, Ran, Skipped};
use crate::counters::{micro, operations};
use crate::harness::json_lines::JsonLines;
use std::collections::HashMap;
use warprow::Device;
use warprow::device::{Checks, CounterOptions, DeviceProfile, EmulatorOptions, Hardware};
use warprow_bench_kernels::PTX;

/// Uploads and plans on a device; all that is random has the seed.
type Prepare = Box<dyn Fn(&Device, u64) -> anyhow::Result<Prepared>>;

/// A case: it plans, and hands out what launches its product.
pub struct Case {
    /// Its name: the operation, the input, the kernel.
    pub name: String,
    /// Makes it ready to launch.
    pub prepare: Prepare,
}

/// A case that is ready to launch.
pub enum Prepared {
    /// What launches the product once.
    Product(Box<dyn FnOnce() -> anyhow::Result<()>>),
    /// Why there is none.
    Skipped(String),
}

/// All cases.
pub fn cases() -> Vec<Case> {
    let mut cases = micro::cases();
    cases.extend(operations::cases());
    cases
}

/// An emulator that plans as an H200 does, and models its caches.
pub fn emulator() -> Device {
    let options = EmulatorOptions::new().checks(Checks::BoundsOnly);
    Device::emulator_of(&DeviceProfile::h200(), options)
}

/// Runs what the options say.
///
/// # Errors
///
/// A device that is not there, a file that cannot be written, a launch that fails.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let mut cases = cases();
    cases.retain(|case| case.name.contains(&options.case));
    anyhow::ensure!(!cases.is_empty(), "no case contains `{}`", options.case);
    if options.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    let opened = options.run.open_device()?;
    let device = if opened.is_emulator() {
        emulator()
    } else {
        opened
    };
    device.load_kernels(PTX)?;
    let registers = match &options.registers {
        Some(path) => read_registers(path)?,
        None => HashMap::new(),
    };
    let path = options.run.output.as_deref();
    let mut results = JsonLines::create(path, options.run.environment(&device))?;
    let seed = options.run.seed;
    for case in &cases {
        let lines = if device.is_emulator() {
            count(&device, case, seed, &registers, &mut results)
        } else {
            launch(&device, case, seed, &mut results)
        };
        let lines = lines.map_err(|error| error.context(case.name.clone()))?;
        if path.is_none() {
            print!("{lines}");
        }
    }
    Ok(())
}

/// Runs a case on the emulator, and writes what its launches have counted. Returns the lines.
fn count(
    device: &Device,
    case: &Case,
    seed: u64,
    registers: &HashMap<String, u32>,
    results: &mut JsonLines,
) -> anyhow::Result<String> {
    let name = &case.name;
    device.set_counters(None)?;
    let product = match (case.prepare)(device, seed)? {
        Prepared::Product(product) => product,
        Prepared::Skipped(skipped) => {
            return results.write(&Skipped {
                case: name,
                skipped,
            });
        }
    };
    device.set_counters(Some(CounterOptions::default()))?;
    product()?;
    let mut lines = String::new();
    for (number, mut report) in device.launch_reports()?.into_iter().enumerate() {
        let of_table = report.occupancy.map(|occupancy| occupancy.registers);
        if let Some(&registers) = registers.get(&report.kernel) {
            report.set_registers(&Hardware::H200, registers);
        }
        lines += &results.write(&Counted::new(name, number, &report, of_table))?;
    }
    Ok(lines)
}

/// Runs a case on a GPU, where a profiler may wait for it. Returns the line.
fn launch(
    device: &Device,
    case: &Case,
    seed: u64,
    results: &mut JsonLines,
) -> anyhow::Result<String> {
    let name = &case.name;
    let product = match (case.prepare)(device, seed)? {
        Prepared::Product(product) => product,
        Prepared::Skipped(skipped) => {
            return results.write(&Skipped {
                case: name,
                skipped,
            });
        }
    };
    device.synchronize()?;
    let log = device.log_launches();
    device.profiled(|| {
        product()?;
        Ok::<_, anyhow::Error>(device.synchronize()?)
    })??;
    let launches = log.launches().values().sum();
    results.write(&Ran {
        case: name,
        launches,
    })
}
