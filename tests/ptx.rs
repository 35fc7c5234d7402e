//! The PTX that is checked in: it is that of the present sources, holds every kernel, and the assembler of every GPU that it is for takes
//! it: kernels whose names contain `_sm90` are for sm_90 and newer, and those with `_sm90a` for sm_90a alone, as the library compiles them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use cuda_builder::{Arch, CudaBuilder, Ptx, Ptxas, Toolchain, sources_hash};
use cuda_std::kernel::Instance;
use half::{bf16, f16};
use warprow_kernels::gemm::{GemmKernel, Shape};
use warprow_kernels::matrix::Operand;

/// The architectures from the least that the kernels support to the newest.
const ARCHITECTURES: [Arch; 4] = [Arch::SM80, Arch::SM90, Arch::SM100, Arch::SM120];

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A kernel crate and the PTX made from it, by their paths from the repository's root.
struct CheckedIn {
    crate_dir: &'static str,
    ptx: &'static str,
}

const CHECKED_IN: [CheckedIn; 2] = [
    CheckedIn {
        crate_dir: "kernels-gpu",
        ptx: "host/kernels.ptx",
    },
    CheckedIn {
        crate_dir: "tests/kernels",
        ptx: "tests/kernels/kernels.ptx",
    },
];

impl CheckedIn {
    fn crate_dir(&self) -> PathBuf {
        Path::new(ROOT).join(self.crate_dir)
    }

    fn read(&self) -> Ptx {
        let path = Path::new(ROOT).join(self.ptx);
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Ptx::parse(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// Says that something was left out; where PTX is required, it must not be.
fn skip(reason: &str) {
    let required = std::env::var_os("WARPROW_REQUIRE_PTX").is_some_and(|value| value == "1");
    assert!(!required, "WARPROW_REQUIRE_PTX=1, but {reason}");
    // Not `eprintln`, which the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

#[test]
fn the_checked_in_ptx_is_that_of_the_present_sources() {
    for checked_in in &CHECKED_IN {
        let present = sources_hash(checked_in.crate_dir()).unwrap();
        assert_eq!(
            checked_in.read().stamp().sources(),
            present,
            "{} is not that of {}; make it anew with `WARPROW_UPDATE_PTX=1 cargo build --workspace`",
            checked_in.ptx,
            checked_in.crate_dir,
        );
    }
}

#[test]
fn the_compiler_that_made_the_checked_in_ptx_makes_the_same_again() {
    for checked_in in &CHECKED_IN {
        let old = checked_in.read();
        let Some(toolchain) = Toolchain::find_compiler(old.stamp().compiler()) else {
            skip(&format!(
                "{} was made by {}, which is not here",
                checked_in.ptx,
                old.stamp().compiler()
            ));
            continue;
        };
        let new = CudaBuilder::new(checked_in.crate_dir())
            .arch(Arch::SM80)
            .toolchain(toolchain)
            .target_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join("device"))
            .build()
            .unwrap();
        let differing = old
            .text()
            .lines()
            .zip(new.text().lines())
            .position(|(old, new)| old != new);
        assert!(
            old.text() == new.text(),
            "{}: differs at line {:?} (from 0)",
            checked_in.ptx,
            differing
        );
    }
}

#[test]
fn the_checked_in_ptx_holds_every_kernel_of_the_table_once_and_no_other() {
    let mut named: Vec<&str> = cuda_std::kernel::instances().map(Instance::name).collect();
    named.sort_unstable();
    let ptx = CHECKED_IN[0].read();
    let mut held = ptx.entry_points().to_vec();
    held.sort();
    let distinct: HashSet<&String> = held.iter().collect();
    assert_eq!(distinct.len(), held.len(), "a kernel twice in {held:?}");
    assert_eq!(held, named);
}

#[test]
fn the_checked_in_ptx_runs_from_sm_80_on() {
    for checked_in in &CHECKED_IN {
        assert_eq!(checked_in.read().target(), "sm_80", "{}", checked_in.ptx);
    }
}

/// The text without those entry points, each of which begins with a line of its own and ends with a closing brace.
fn without(ptx: &str, names: &[&String]) -> String {
    let mut text = String::new();
    let mut left_out = false;
    for line in ptx.lines() {
        if let Some(entry) = line.strip_prefix(".visible .entry ") {
            left_out = (names.iter()).any(|name| entry.split('(').next() == Some(name.as_str()));
        }
        if !left_out {
            text.push_str(line);
            text.push('\n');
        }
        left_out &= line != "}";
    }
    text
}

/// Registers of a multiprocessor, which a block shares out.
const REGISTERS: u32 = 1 << 16;

/// Into blocks of how many threads XW's kernels are launched at most, by their names, over shapes that choose every tile.
fn threads_of_xw() -> HashMap<String, u32> {
    fn add<T: Operand>(most: &mut HashMap<String, u32>, shape: Shape) {
        let kernels = GemmKernel::ALL.iter();
        for &kernel in kernels.filter(|kernel| kernel.refusal::<T>(shape.depth).is_none()) {
            if let Some(plan) = kernel.plan::<T>(shape) {
                let block = plan.config.block;
                let most = most.entry(plan.kernel.name().to_owned()).or_default();
                *most = (*most).max(block.x * block.y * block.z);
            }
        }
    }
    let mut most = HashMap::new();
    for shared_bytes in [99 << 10, 163 << 10, 227 << 10] {
        for depth in [4, 16, 40, 100, 128, 256, 300, 400, 512, 602, 800, 1024] {
            for cols in [1, 16, 17, 41, 48, 49, 64, 65, 100, 128, 129, 1024] {
                let shape = Shape {
                    rows: 1 << 20,
                    depth,
                    cols,
                    multiprocessors: 132,
                    shared_bytes,
                };
                add::<f32>(&mut most, shape);
                add::<f64>(&mut most, shape);
                add::<f16>(&mut most, shape);
                add::<bf16>(&mut most, shape);
            }
        }
    }
    most
}

/// Bytes that a thread has in local memory, or writes there, at most for the limit of registers of its kernel, on the architecture where they
/// are most. With the limit these kernels were measured to be no slower on sm_90, where they have up to 20, those of `vector_added` while their additions
/// were atomic; newer ones were not measured.
const SPILLED: [(&str, u32); 10] = [
    ("spmm_vector_f32_32_4_1", 8),
    ("spmm_vector_any_order_f32_32_4_1", 8),
    ("spmm_vector_any_order_f32_16_4_1", 8),
    ("spmm_vector_f32_16_1_3", 20),
    ("spmm_vector_added_f32_32_4_1", 8),
    ("spmm_vector_added_f32_16_1_3", 28),
    ("spmm_vector_f16_8_8_1", 16),
    ("spmm_vector_f16_16_8_1", 24),
    ("spmm_vector_bf16_8_8_1", 16),
    ("spmm_vector_bf16_16_8_1", 24),
];

/// The text as a GPU of compute capability 9.0 or newer gets it, with the limits of registers that are for such.
fn with_limits(text: &str) -> String {
    let mut limited = String::with_capacity(text.len());
    for line in text.lines() {
        let limit = line
            .strip_prefix("// ")
            .and_then(|directive| directive.strip_suffix(" sm_90"))
            .filter(|directive| directive.starts_with(".maxnreg "));
        limited.push_str(limit.unwrap_or(line));
        limited.push('\n');
    }
    limited
}

#[test]
fn every_kernel_assembles_for_every_architecture_and_none_spills() {
    let ptxas = match Ptxas::find() {
        Ok(ptxas) => ptxas,
        Err(error) => return skip(&error.to_string()),
    };
    let scratch = tempfile::tempdir().unwrap();
    let threads = threads_of_xw();
    assert!(threads.len() > 50, "{threads:?}");
    for checked_in in &CHECKED_IN {
        let ptx = checked_in.read();
        let (newer, sm80): (Vec<&String>, Vec<&String>) =
            (ptx.entry_points().iter()).partition(|name| name.contains("_sm90"));
        let (sm90a, sm90): (Vec<&String>, Vec<&String>) =
            (newer.iter()).partition(|name| name.contains("_sm90a"));
        let for_sm80 = without(ptx.text(), &newer);
        let for_newer = |others: [&[&String]; 2], version: &str, target: &str| {
            without(ptx.text(), &others.concat())
                .replace("\n.version 7.0\n", &format!("\n.version {version}\n"))
                .replace("\n.target sm_80\n", &format!("\n.target {target}\n"))
        };
        let for_sm90 = for_newer([&sm80, &sm90a], "7.8", "sm_90");
        let for_sm90a = for_newer([&sm80, &sm90], "8.0", "sm_90a");
        for arch in ARCHITECTURES {
            let assemble =
                |text: &str, arch: Arch| ptxas.assemble(text, arch, scratch.path()).unwrap();
            let is_limited = arch != Arch::SM80;
            let mut kernels = if is_limited {
                assemble(&with_limits(&for_sm80), arch)
            } else {
                assemble(&for_sm80, arch)
            };
            let mut wanted = sm80.len();
            if arch != Arch::SM80 && !sm90.is_empty() {
                kernels.extend(assemble(&for_sm90, arch));
                wanted += sm90.len();
            }
            if arch == Arch::SM90 && !sm90a.is_empty() {
                kernels.extend(assemble(&for_sm90a, Arch::SM90A));
                wanted += sm90a.len();
            }
            assert_eq!(kernels.len(), wanted, "{} for {arch}", checked_in.ptx);
            for kernel in &kernels {
                println!(
                    "{arch} {}: {} registers, {} bytes of stack",
                    kernel.name, kernel.registers, kernel.stack_bytes
                );
            }
            for kernel in &kernels {
                let threads = threads.get(&kernel.name).copied().unwrap_or(1);
                // A warp's registers are given out in units of 256.
                assert!(
                    kernel.registers.next_multiple_of(8) * threads <= REGISTERS,
                    "{arch} {}: {} registers are too many for blocks of {threads} threads",
                    kernel.name,
                    kernel.registers
                );
            }
            let allowed = |name: &str| {
                let known = SPILLED.iter().find(|(limited, _)| *limited == name);
                known.map_or(0, |&(_, bytes)| if is_limited { bytes } else { 0 })
            };
            let spilling: Vec<_> = kernels
                .iter()
                // A stack frame is an array that is not in registers, which costs as much.
                .filter(|kernel| {
                    kernel.spill_store_bytes.max(kernel.stack_bytes) > allowed(&kernel.name)
                })
                .collect();
            assert!(
                spilling.is_empty(),
                "{} for {arch}: not all is in registers: {spilling:#?}",
                checked_in.ptx
            );
        }
    }
}
