//! The archives of PTX that are checked in: they are those of the present sources, hold every kernel and no panic, and
//! the assembler takes each module as it is, for its target and for every newer GPU.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use cuda_builder::{
    Arch, Archive, CudaBuilder, Inputs, KernelResources, Module, Ptxas, Sources, Stamp, Toolchain,
};
use cuda_std::kernel::Instance;
use half::{bf16, f16};
use rayon::prelude::*;
// Linked for its kernels, which register themselves.
use warprow_book_kernels as _;
use warprow_kernels::gemm::{GemmKernel, GemmProblem};
use warprow_kernels::matrix::Operand;
use warprow_test_kernels::collectives::{CALLS, NEWER_OPERATIONS, OPERATIONS};

/// The architectures from the least that the kernels support to the newest.
const ARCHITECTURES: [Arch; 4] = [Arch::SM80, Arch::SM90, Arch::SM100, Arch::SM120];

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What the names of the kernels begin with that need newer architectures, and which.
const NEWER: [(&str, Arch); 5] = [
    ("gemm_double_fragments_", Arch::SM90),
    ("gemm_warpgroup_fragments_", Arch::SM90A),
    ("gemm_warpgroup_halves_", Arch::SM90A),
    ("gemm_warpgroup_split_", Arch::SM90A),
    ("newer_collective_", Arch::SM90A),
];

/// Entry points of the library, at most: each costs time to build, and space in every program.
const ENTRY_POINTS: usize = 260;
/// Lines of all modules of the library, at most.
const LINES: usize = 250_000;
/// Bytes of the library's archives, at most.
const BYTES: usize = 2 << 20;

/// A kernel crate and the archive made from it, by their paths from the repository's root.
struct CheckedIn {
    crate_dir: String,
    path: String,
}

/// The library's families.
fn families() -> Vec<CheckedIn> {
    let of = |family| CheckedIn {
        crate_dir: format!("kernels-gpu/{family}"),
        path: format!("host/ptx/{family}.zip"),
    };
    let families = ["matrix", "spmm", "spgemm", "gemm", "log_softmax", "gcn"];
    families.map(of).into()
}

/// The families, the kernels that test the device library, and those of the book.
fn all() -> Vec<CheckedIn> {
    let mut all = families();
    all.extend(["tests", "book"].map(|folder| CheckedIn {
        crate_dir: format!("{folder}/kernels"),
        path: format!("{folder}/kernels/kernels.zip"),
    }));
    all
}

impl CheckedIn {
    fn crate_dir(&self) -> PathBuf {
        Path::new(ROOT).join(&self.crate_dir)
    }

    fn bytes(&self) -> Vec<u8> {
        let path = Path::new(ROOT).join(&self.path);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn open(&self) -> Archive {
        Archive::open(self.bytes()).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    fn stamp(&self) -> Stamp {
        Stamp::of(&self.open()).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }
}

/// The modules of an archive with their texts.
fn modules(archive: &Archive) -> Vec<(Module, String)> {
    let modules = archive.modules().iter();
    modules
        .map(|module| (module.clone(), archive.text(module).unwrap()))
        .collect()
}

/// Says that something was left out; where PTX is required, it must not be.
fn skip(reason: &str) {
    let required = std::env::var_os("WARPROW_REQUIRE_PTX").is_some_and(|value| value == "1");
    assert!(!required, "WARPROW_REQUIRE_PTX=1, but {reason}");
    // Not `eprintln`, which the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

#[test]
fn the_archives_are_those_of_the_present_sources() {
    for checked_in in all() {
        let sources = Sources::discover(checked_in.crate_dir()).unwrap();
        let present = Inputs::of(&sources, Arch::SM80).unwrap();
        let difference = checked_in.stamp().inputs().difference(&present);
        assert_eq!(
            difference, None,
            "{} is not that of {}; make it anew with `WARPROW_UPDATE_PTX=1 cargo build --workspace`",
            checked_in.path, checked_in.crate_dir,
        );
    }
}

#[test]
fn the_compiler_that_made_an_archive_makes_the_same_again() {
    for checked_in in all() {
        let stamp = checked_in.stamp();
        let Some(toolchain) = Toolchain::find_compiler(stamp.compiler()) else {
            skip(&format!(
                "{} was made by {}, which is not here",
                checked_in.path,
                stamp.compiler()
            ));
            continue;
        };
        let new = CudaBuilder::new(checked_in.crate_dir())
            .toolchain(toolchain)
            .target_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join("device"))
            .build()
            .unwrap();
        let old = checked_in.open();
        assert_eq!(Stamp::of(&new).unwrap(), stamp, "{}", checked_in.path);
        assert_eq!(old.modules(), new.modules(), "{}", checked_in.path);
        for ((module, old), (_, new)) in modules(&old).iter().zip(modules(&new)) {
            let differing = old
                .lines()
                .zip(new.lines())
                .position(|(old, new)| old != new);
            assert!(
                *old == new,
                "{}: {} differs at line {differing:?} (from 0)",
                checked_in.path,
                module.name
            );
        }
    }
}

#[test]
fn the_archives_hold_every_kernel_once_and_no_other() {
    let mut held = BTreeMap::new();
    for checked_in in all() {
        let archive = checked_in.open();
        let kernels = archive.modules().iter().flat_map(|module| &module.kernels);
        for kernel in BTreeSet::from_iter(kernels) {
            let other = held.insert(kernel.clone(), checked_in.path.clone());
            assert_eq!(other, None, "{kernel} is in {} too", checked_in.path);
        }
    }
    let asked_for: BTreeSet<&str> = cuda_std::kernel::instances().map(Instance::name).collect();
    let held: BTreeSet<&str> = held.keys().map(String::as_str).collect();
    assert_eq!(held, asked_for);
}

#[test]
fn kernels_run_from_sm_80_on_but_for_those_that_need_newer_ones() {
    for checked_in in all() {
        let archive = checked_in.open();
        for kernel in archive.modules().iter().flat_map(|module| &module.kernels) {
            let newer = NEWER.iter().find(|(name, _)| kernel.starts_with(name));
            let wanted = newer.map_or(Arch::SM80, |&(_, arch)| arch);
            let least = archive.modules_of(kernel).map(|module| module.target).min();
            assert_eq!(least, Some(wanted), "{kernel}");
        }
    }
}

#[test]
fn no_kernel_contains_a_panic() {
    let mut panicking = Vec::new();
    for checked_in in families() {
        for (module, text) in modules(&checked_in.open()) {
            if text.contains("panic") {
                panicking.push(module.name);
            }
        }
    }
    assert!(
        panicking.is_empty(),
        "{} modules contain a panic, which a divisor or an index of unknown size leaves behind: {panicking:#?}",
        panicking.len()
    );
}

#[test]
fn no_collective_operation_is_copied_merged_or_left_out() {
    let texts: HashMap<String, String> = all()
        .iter()
        .flat_map(|checked_in| modules(&checked_in.open()))
        .map(|(module, text)| (module.kernels[0].clone(), text))
        .collect();
    let mut wrong = Vec::new();
    for (prefix, operations) in [("", &OPERATIONS[..]), ("newer_", &NEWER_OPERATIONS)] {
        for kernel in ["collective_apart", "collective_in_branches"] {
            for (number, operation) in operations.iter().enumerate() {
                let kernel = format!("{prefix}{kernel}_{number}");
                let instructions = texts[&kernel].split_whitespace();
                let count = instructions
                    .filter(|word| word.starts_with(operation))
                    .count();
                if count != CALLS {
                    wrong.push(format!("{kernel}: {count} times {operation}, not {CALLS}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_library_has_no_more_kernels_lines_and_bytes_than_it_may() {
    let (mut entry_points, mut lines, mut bytes) = (BTreeSet::new(), 0, 0);
    for checked_in in families() {
        bytes += checked_in.bytes().len();
        for (module, text) in modules(&checked_in.open()) {
            lines += text.lines().count();
            entry_points.extend(module.kernels);
        }
    }
    let entry_points = entry_points.len();
    println!("{entry_points} entry points, {lines} lines, {bytes} bytes");
    assert!(entry_points <= ENTRY_POINTS, "{entry_points} entry points");
    assert!(lines <= LINES, "{lines} lines");
    assert!(bytes <= BYTES, "{bytes} bytes");
}

/// Registers of a multiprocessor, which a block shares out.
const REGISTERS: u32 = 1 << 16;

/// Into blocks of how many threads XW's kernels are launched at most, by their names, over problems that choose every
/// tile.
fn threads_of_xw() -> HashMap<String, u32> {
    fn add<T: Operand>(most: &mut HashMap<String, u32>, problem: GemmProblem) {
        let kernels = GemmKernel::ALL.iter();
        for &kernel in kernels.filter(|kernel| kernel.refusal::<T>(problem.depth).is_none()) {
            if let Some(plan) = kernel.plan::<T>(problem) {
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
                let problem = GemmProblem {
                    rows: 1 << 20,
                    depth,
                    cols,
                    multiprocessors: 132,
                    shared_bytes,
                };
                add::<f32>(&mut most, problem);
                add::<f64>(&mut most, problem);
                add::<f16>(&mut most, problem);
                add::<bf16>(&mut most, problem);
            }
        }
    }
    most
}

/// Bytes that a thread has in local memory, or writes there, at most for the limit of registers of its kernel, on the
/// architecture where they are most. With the limit these kernels were measured to be no slower on sm_90, where they
/// have up to 20, those of `vector_added` while their additions were atomic; newer ones were not measured.
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

/// How many modules one run of the assembler takes: its start costs as much as a small kernel.
const MODULES_A_RUN: usize = 16;

/// The architectures that a module is assembled for: its target, and those of [`ARCHITECTURES`] that run it.
fn architectures_of(module: &Module) -> BTreeSet<Arch> {
    let newer = ARCHITECTURES
        .into_iter()
        .filter(|&arch| !module.target.is_specific() && arch > module.target);
    newer.chain([module.target]).collect()
}

/// Whether a thread may write so many bytes to local memory.
fn may_spill(module: &Module, kernel: &KernelResources) -> bool {
    let known = SPILLED.iter().find(|(limited, _)| *limited == kernel.name);
    // Only the modules for sm_90 have the limit.
    let allowed = known.filter(|_| module.target > Arch::SM80);
    // A stack frame is an array that is not in registers, which costs as much.
    kernel.spill_store_bytes.max(kernel.stack_bytes) <= allowed.map_or(0, |&(_, bytes)| bytes)
}

#[test]
fn every_module_assembles_as_it_is_for_its_target_and_newer_ones_and_none_spills() {
    let ptxas = match Ptxas::find() {
        Ok(ptxas) => ptxas,
        Err(error) => return skip(&error.to_string()),
    };
    let threads = threads_of_xw();
    assert!(threads.len() > 50, "{threads:?}");
    let modules: Vec<(Module, String)> = all()
        .iter()
        .flat_map(|checked_in| modules(&checked_in.open()))
        .collect();
    // By target too, as modules for two targets have kernels of the same names.
    let mut runs: BTreeMap<(Arch, Arch), Vec<&(Module, String)>> = BTreeMap::new();
    for module in &modules {
        for arch in architectures_of(&module.0) {
            runs.entry((arch, module.0.target))
                .or_default()
                .push(module);
        }
    }
    let runs: Vec<(Arch, &[&(Module, String)])> = runs
        .iter()
        .flat_map(|(&(arch, _), modules)| modules.chunks(MODULES_A_RUN).map(move |run| (arch, run)))
        .collect();
    let scratch = tempfile::tempdir().unwrap();
    let refused: Vec<String> = runs
        .par_iter()
        .flat_map_iter(|&(arch, run)| {
            let texts = run.iter().map(|(_, text)| text.as_str());
            let kernels = ptxas.assemble(texts, arch, scratch.path()).unwrap();
            let kernels: HashMap<&str, &KernelResources> = kernels
                .iter()
                .map(|kernel| (kernel.name.as_str(), kernel))
                .collect();
            let mut refused = Vec::new();
            for (module, name) in run
                .iter()
                .flat_map(|(module, _)| module.kernels.iter().map(move |kernel| (module, kernel)))
            {
                let kernel = kernels[name.as_str()];
                let KernelResources {
                    registers,
                    stack_bytes,
                    ..
                } = *kernel;
                println!("{arch} {name}: {registers} registers, {stack_bytes} bytes of stack");
                let threads = threads.get(name).copied().unwrap_or(1);
                // A warp's registers are given out in units of 256.
                if registers.next_multiple_of(8) * threads > REGISTERS {
                    refused.push(format!(
                        "{} for {arch}: {registers} registers are too many for blocks of {threads} threads",
                        module.name
                    ));
                }
                if !may_spill(module, kernel) {
                    refused.push(format!(
                        "{} for {arch}: not all is in registers: {kernel:?}",
                        module.name
                    ));
                }
            }
            refused
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}
