//! Every experiment of the book on every device: right kernels with odd sizes, wrong ones with their fault.

use support::devices;
use warprow::Device;
use warprow_book::{Experiment, axpy, hello};

/// Runs the experiment; what it prints, or its error.
fn run(device: &Device, experiment: Experiment) -> Result<String, String> {
    warprow_book::load_kernels(device).unwrap();
    let mut out = Vec::new();
    match experiment.run(device, &mut out) {
        Ok(()) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// Runs an experiment that must succeed on each device. It compares its result with the host's.
fn succeeds(experiment: &Experiment) {
    for device in devices() {
        if let Err(error) = run(&device, experiment.clone()) {
            panic!("{experiment:?} on {device}: {error}");
        }
    }
}

/// Runs an experiment that the emulator must refuse with an error that has all `parts`.
fn fails(experiment: &Experiment, parts: &[&str]) {
    let device = Device::emulator(warprow::device::EmulatorOptions::default());
    match run(&device, experiment.clone()) {
        Ok(text) => panic!("{experiment:?} succeeded: {text}"),
        Err(error) => {
            for part in parts {
                assert!(error.contains(part), "wanted `{part}`, found: {error}");
            }
        }
    }
}

#[test]
fn threads_know_their_block_warp_and_lane() {
    for (elements, block) in [(1, 1), (31, 32), (100, 48), (1000, 1024), (2049, 33)] {
        succeeds(&Experiment::Hello(hello::Options { elements, block }));
    }
}

#[test]
fn axpy_takes_any_number_of_elements_and_needs_its_guard() {
    for elements in [1, 127, 128, 129, 1000] {
        succeeds(&Experiment::Axpy(axpy::Options {
            elements,
            without_guard: false,
        }));
    }
    let without_guard = Experiment::Axpy(axpy::Options {
        elements: 1000,
        without_guard: true,
    });
    fails(
        &without_guard,
        &["out of bounds", "hello.rs", "of 1000 f32"],
    );
}
