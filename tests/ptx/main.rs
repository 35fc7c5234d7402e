//! The archives of PTX that are checked in: they are those of the present sources, hold every kernel and no panic, and
//! the assembler takes each module as it is, for its target and for every newer GPU.

mod assembled;
mod registers;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use cuda_builder::{Arch, Archive, CudaBuilder, Inputs, Module, Sources, Stamp, Toolchain};
use cuda_std::kernel::Instance;
// Linked for its kernels, which register themselves.
use warprow_book_kernels as _;
use warprow_test_kernels::collectives::{CALLS, NEWER_OPERATIONS, OPERATIONS};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What the names of the kernels begin with that need newer architectures, and which.
const NEWER: [(&str, Arch); 5] = [
    ("gemm_sm90_fragments_", Arch::SM90),
    ("gemm_warpgroup_fragments_", Arch::SM90A),
    ("gemm_warpgroup_halves_", Arch::SM90A),
    ("gemm_warpgroup_split_", Arch::SM90A),
    ("newer_collective_", Arch::SM90A),
];

/// Entry points of the library, at most: each costs time to build, and space in every program.
const ENTRY_POINTS: usize = 349;
/// Lines of all modules of the library, at most.
const LINES: usize = 302_000;
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
