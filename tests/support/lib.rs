//! The devices that each test of a kernel runs on, and options and matrices that several test programs share.

pub mod spgemm_choices;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use warprow::CsrMatrix;
use warprow::device::{Device, EmulatorOptions, Schedule, Selector};

/// The emulator with all its checks, in order and in a random order; and the GPU.
///
/// A GPU that is not there is skipped, and this printed; but it is an error if `WARPROW_DEVICE` promises one. With
/// `WARPROW_DEVICE=emulator` there is no GPU. All tests of a process share the GPU's handle.
///
/// # Panics
///
/// If `WARPROW_DEVICE` names no device, or one that is not there.
pub fn devices() -> Vec<Device> {
    let random = EmulatorOptions::new().schedule(Schedule::Random { seed: 0x5eed });
    let mut devices = vec![
        Device::emulator(EmulatorOptions::default()),
        Device::emulator(random),
    ];
    devices.extend(cuda());
    devices
}

/// One of the two emulators of [`devices`], in order in even turns and in a random order in odd ones; and the GPU. For
/// loops over so many cases that each kernel has some on either emulator.
///
/// # Panics
///
/// As [`devices`].
pub fn devices_in_turn(turn: usize) -> Vec<Device> {
    let mut devices = devices();
    devices.remove((turn + 1) % 2);
    devices
}

/// Whether a case of a large loop runs on a device, which has that number among [`devices`]: the emulators take turns,
/// so each has every other case, and a GPU has all.
pub fn is_in_turn(device: &Device, number: usize, turn: usize) -> bool {
    !device.is_emulator() || turn % 2 == number
}

/// As [`devices`], with a handle of the GPU that no other test has: a log of its launches has those of one test alone.
///
/// # Panics
///
/// As [`devices`]; and if the GPU cannot be opened once more.
pub fn unshared_devices() -> Vec<Device> {
    let mut devices = devices();
    for gpu in devices.iter_mut().filter(|device| !device.is_emulator()) {
        *gpu = Device::open().unwrap_or_else(|error| panic!("{error}"));
    }
    devices
}

/// The emulator with all its checks under each of 100 random schedules, on one and on two threads of the host in turn.
/// A right kernel has no fault on any of them.
pub fn schedules() -> impl Iterator<Item = Device> {
    (0..100).map(|seed| {
        Device::emulator(
            EmulatorOptions::new()
                .workers(NonZeroUsize::new(1 + seed as usize % 2))
                .schedule(Schedule::Random { seed }),
        )
    })
}

/// On which [`devices`] tests run in this environment, in a line.
///
/// # Panics
///
/// As [`devices`].
pub fn tested_devices() -> String {
    let gpu = match gpu() {
        Ok(device) => device.to_string(),
        Err(reason) => format!("no GPU: {reason}"),
    };
    format!("devices: the emulator, in order and in a random order; {gpu}")
}

/// The GPU that `WARPROW_DEVICE` names, the first one if it names none.
///
/// # Panics
///
/// As [`devices`].
pub fn cuda() -> Option<Device> {
    match gpu() {
        Ok(device) => Some(device.clone()),
        Err(reason) => {
            println!("skipped on CUDA: {reason}");
            None
        }
    }
}

/// The GPU, or why there is none.
fn gpu() -> &'static Result<Device, String> {
    static GPU: OnceLock<Result<Device, String>> = OnceLock::new();
    GPU.get_or_init(|| {
        let selector = Selector::from_environment().unwrap_or_else(|error| panic!("{error}"));
        match Device::select_with_reason(selector) {
            Ok((device, None)) if device.is_emulator() => {
                Err("WARPROW_DEVICE asks for the emulator".to_owned())
            }
            Ok((device, None)) => Ok(device),
            Ok((_, Some(reason))) => Err(reason.to_string()),
            Err(error) => panic!("{error}"),
        }
    })
}

/// The matrix with these columns in its rows. The values are 1, 2, 3 and so on.
pub fn matrix_of_rows(rows: &[BTreeSet<u32>], cols: u32) -> CsrMatrix<f32> {
    let mut row_ptr = vec![0];
    let mut columns = Vec::new();
    for row in rows {
        columns.extend(row);
        row_ptr.push(columns.len() as u32);
    }
    let values = (0..columns.len()).map(|k| k as f32 + 1.0).collect();
    CsrMatrix::new((rows.len(), cols as usize), row_ptr, columns, values)
}
