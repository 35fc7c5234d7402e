//! Pictures of small kernels are those that were looked at: the files beside this one.
//!
//! `SIMT_UPDATE_PICTURES=1 cargo test -p warprow-simt --test pictures` replaces the files. Look at each that changes,
//! in a light and in a dark theme.

mod kernels;

use std::env;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use simt::pictures::{self, Picture, Sources};
use simt::{
    CounterOptions, Emulator, Fault, Hardware, Launch, LaunchReport, Options, Parameter, TracedWarp,
};

/// The report of a launch that succeeds.
fn report(name: &str, grid: u32, kernel: impl Fn(u64, u64) + Sync) -> LaunchReport {
    let emulator = emulator();
    let [x, y] = [buffer(&emulator), buffer(&emulator)];
    emulator
        .launch(shape(name, grid, 32), &|| kernel(x, y))
        .unwrap();
    emulator.last_report().unwrap()
}

/// The fault of a launch, whose buffer is the kernel's parameter `y`.
fn fault(name: &str, grid: u32, block: u32, kernel: impl Fn(u64) + Sync) -> Fault {
    let emulator = emulator();
    let y = buffer(&emulator);
    let shape = shape(name, grid, block);
    let mut fault = emulator.launch(shape, &|| kernel(y)).unwrap_err();
    // Addresses differ from run to run.
    fault.name_parameters(&[Parameter {
        name: "y".to_owned(),
        address: y,
        element: "u32",
        bytes: 4,
    }]);
    fault
}

/// One worker and blocks in order: each run is the same.
fn emulator() -> Emulator {
    let mut counters = CounterOptions::default();
    counters.traces[0] = Some(TracedWarp {
        block: 0,
        warp: 0,
        requests: 100,
    });
    Emulator::new(
        Options::new()
            .workers(NonZeroUsize::new(1))
            .counters(counters),
    )
}

/// A buffer of 1024 words, all zero.
fn buffer(emulator: &Emulator) -> u64 {
    let address = emulator.allocate(4096, 4).unwrap();
    emulator.zero(address, 4096).unwrap();
    address
}

fn shape(kernel: &str, grid: u32, block: u32) -> Launch<'_> {
    Launch {
        kernel,
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        shared_bytes: 0,
    }
}

fn sources() -> Sources {
    let mut sources = Sources::default();
    // As the compiler knows it: relative to the workspace.
    let file = file!().replace("main.rs", "kernels.rs");
    sources.insert(file, include_str!("kernels.rs"));
    sources
}

fn draw(picture: Picture, report: &LaunchReport) -> String {
    picture.draw(report, &sources(), &Hardware::H200).unwrap()
}

/// Compares a picture with the file of that name.
#[track_caller]
fn check(name: &str, found: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/pictures")
        .join(name);
    if env::var_os("SIMT_UPDATE_PICTURES").is_some() {
        fs::write(&file, found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let differ = found
        .lines()
        .zip(expected.lines())
        .position(|(a, b)| a != b);
    assert!(
        found == expected,
        "{} differs, first at line {:?}; SIMT_UPDATE_PICTURES=1 replaces it",
        file.display(),
        differ.map(|line| line + 1)
    );
}

#[test]
fn the_access_map_tells_coalesced_strided_and_random_accesses_apart() {
    let report = report("patterns", 1, kernels::patterns);
    check("access_map.svg", &draw(Picture::Access, &report));
}

#[test]
fn the_bank_map_shows_the_worst_request() {
    let report = report("tile", 1, |_, _| kernels::tile());
    check("bank_map.svg", &draw(Picture::Banks, &report));
}

#[test]
fn the_bank_map_shows_the_parts_of_a_wide_request() {
    let report = report("tile", 1, |_, _| kernels::tile());
    let wide = report.traces[0]
        .requests
        .iter()
        .find(|request| request.bytes == 16);
    let svg = pictures::bank_map(&report.kernel, wide.unwrap(), &sources()).unwrap();
    check("bank_map_wide.svg", &svg);
}

#[test]
fn the_source_view_shows_the_counted_lines() {
    let report = report("patterns", 1, kernels::patterns);
    check("source_view.svg", &draw(Picture::Source, &report));
}

#[test]
fn the_load_balance_shows_a_long_block() {
    let report = report("uneven", 600, kernels::uneven);
    // Few slots, so that blocks follow each other.
    let small = Hardware {
        multiprocessors: 4,
        max_blocks: 8,
        ..Hardware::H200
    };
    let svg = pictures::load_balance(&report, &small);
    check("load_balance.svg", &svg);
}

#[test]
fn a_race_in_a_block_lacks_a_barrier() {
    let fault = fault("race_in_a_block", 1, 64, |_| kernels::race_in_a_block());
    let svg = pictures::fault(&fault, &sources()).unwrap();
    check("race_in_a_block.svg", &svg);
}

#[test]
fn a_race_of_blocks_lacks_a_fence_and_an_atomic_word() {
    let fault = fault("race_of_blocks", 2, 1, kernels::race_of_blocks);
    let svg = pictures::fault(&fault, &sources()).unwrap();
    check("race_of_blocks.svg", &svg);
}

#[test]
fn a_barrier_that_a_thread_does_not_reach_is_drawn() {
    let fault = fault("early_return", 1, 64, |_| kernels::early_return());
    let svg = pictures::fault(&fault, &sources()).unwrap();
    check("early_return.svg", &svg);
}

#[test]
fn a_lane_that_is_absent_is_drawn() {
    let fault = fault("partial_shuffle", 1, 32, |_| kernels::partial_shuffle());
    let svg = pictures::fault(&fault, &sources()).unwrap();
    check("partial_shuffle.svg", &svg);
}

#[test]
fn a_fault_of_one_thread_has_no_picture() {
    let fault = fault("stray", 1, 1, |_| kernels::patterns(0, 0));
    assert_eq!(pictures::fault(&fault, &sources()), None);
}

#[test]
fn pictures_that_a_report_cannot_have_are_refused() {
    let report = report("uneven", 2, |_, _| ());
    let error = Picture::Banks
        .draw(&report, &sources(), &Hardware::H200)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `uneven`: the picture `banks` needs a traced request to shared memory, found none"
    );
    let error = "accesses".parse::<Picture>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "wanted a picture: access, banks, source, balance, trace, found `accesses`"
    );
    for picture in Picture::ALL {
        assert_eq!(picture.to_string().parse(), Ok(picture));
    }
}

#[test]
fn a_timeline_has_an_event_for_each_request_in_order() {
    let report = report("pat\"terns", 1, kernels::patterns);
    let text = pictures::chrome_trace(&report);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let (names, requests): (Vec<_>, Vec<_>) = events.iter().partition(|event| event["ph"] == "M");
    assert_eq!(names.len(), 2, "a block and a warp");
    assert_eq!(names[0]["args"]["name"], "pat\"terns, block 0");
    assert_eq!(requests.len() as u64, report.traces[0].executed);
    for (time, event) in requests.iter().enumerate() {
        assert_eq!((&event["ph"], &event["ts"]), (&"X".into(), &time.into()));
    }
    assert_eq!(requests[0]["cat"], "global load");
    assert_eq!(requests[0]["args"]["sectors"], 4);
}
