//! Kernels that crash the process: it ends with a message, or as it would without the emulator.

use crate::machine::planted::{GRID, buggy};
use crate::machine::*;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Runs the test `name` again in a process of its own, with `CRASH` set.
fn crash(name: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("CRASH", "1")
        .output()
        .unwrap()
}

fn is_crash() -> bool {
    std::env::var_os("CRASH").is_some()
}

fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if depth == 0 {
        return 0;
    }
    recurse(depth - 1) + frame[3]
}

#[test]
fn a_stack_overflow_names_kernel_thread_and_limit() {
    if is_crash() {
        let emulator = emulator(2, simt::Checks::Full, simt::Schedule::InOrder);
        run(&emulator, shape(GRID, 40), || {
            recurse(if buggy(5) { 1 << 20 } else { 20 });
            simt::lane::sync_threads();
        })
        .unwrap();
    }
    let output = crash("stack::a_stack_overflow_names_kernel_thread_and_limit");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(6), "{text}");
    let message = "kernel `tested`, block (43, 0, 0), thread (5, 0, 0): the thread has overflowed its stack, which has \
                   64 KiB on the emulator";
    assert!(text.contains(message), "{text}");
}

#[test]
fn other_segmentation_faults_end_the_process_as_before() {
    if is_crash() {
        run(&strict(), shape(1, 1), || {
            // SAFETY: none; the process crashes.
            unsafe { black_box(std::ptr::without_provenance::<u8>(64)).read_volatile() };
        })
        .unwrap();
    }
    let output = crash("stack::other_segmentation_faults_end_the_process_as_before");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(11), "{text}");
    assert!(!text.contains("overflowed its stack"), "{text}");
}
