//! The table of the kernels' registers, which theoretical occupancy needs: it lists every kernel of the library, as the
//! assembler that made it would today.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use cuda_builder::{Arch, KernelResources, Module};

use super::assembled::{Assembled, assembled};
use super::{ROOT, families, skip};

/// The table, by its path from the repository's root.
const TABLE: &str = "host/ptx/registers.txt";

/// The compute capabilities of the GPUs that it is for.
const GPUS: [(u32, u32); 2] = [(8, 0), (9, 0)];

/// The modules that those GPUs run, and the architectures that they are assembled for.
fn modules_of_gpus() -> BTreeSet<(String, Arch)> {
    let mut modules = BTreeSet::new();
    for checked_in in families() {
        let archive = checked_in.open();
        for kernel in archive.modules().iter().flat_map(|module| &module.kernels) {
            for gpu in GPUS {
                let module = archive.module_for(kernel, gpu);
                modules.extend(module.map(|module| (module.name.clone(), arch_of(module, gpu))));
            }
        }
    }
    modules
}

/// The architecture that a GPU assembles a module for.
fn arch_of(module: &Module, (major, minor): (u32, u32)) -> Arch {
    if module.target.is_specific() {
        module.target
    } else {
        Arch::from(10 * major + minor)
    }
}

/// The table as an assembler of that version makes it.
fn table(version: &str, assembled: &[Assembled]) -> String {
    let modules = modules_of_gpus();
    let lines: BTreeSet<String> = assembled
        .iter()
        .filter(|of| modules.contains(&(of.module.name.clone(), of.arch)))
        .map(|Assembled { arch, kernel, .. }| {
            let KernelResources {
                name,
                registers,
                shared_bytes,
                ..
            } = kernel;
            format!("{name} {arch} {registers} {shared_bytes}\n")
        })
        .collect();
    let header = format!("# kernel target registers static_shared_bytes; {version}\n");
    [header].into_iter().chain(lines).collect()
}

fn path() -> PathBuf {
    PathBuf::from(ROOT).join(TABLE)
}

fn checked_in() -> String {
    fs::read_to_string(path()).unwrap_or_else(|error| panic!("{TABLE}: {error}"))
}

#[test]
fn the_table_of_registers_is_that_of_the_present_kernels() {
    let Some((ptxas, assembled)) = assembled() else {
        return;
    };
    let new = table(ptxas.version(), assembled);
    if std::env::var_os("WARPROW_UPDATE_REGISTERS").is_some_and(|value| value == "1") {
        fs::write(path(), &new).unwrap();
    }
    let old = checked_in();
    let (header, of_new) = (old.lines().next(), new.lines().next());
    if header != of_new {
        return skip(&format!(
            "{TABLE} begins `{header:?}`, and ptxas here makes `{of_new:?}`"
        ));
    }
    let differing = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(
        old == new,
        "{TABLE} differs: {differing:?}; make it anew with scripts/kernel-registers"
    );
}

#[test]
fn the_table_of_registers_lists_every_kernel_once_for_each_gpu() {
    let mut wanted = BTreeSet::new();
    for checked_in in families() {
        let archive = checked_in.open();
        for kernel in archive.modules().iter().flat_map(|module| &module.kernels) {
            for gpu in GPUS {
                let module = archive.module_for(kernel, gpu);
                wanted.extend(module.map(|module| format!("{kernel} {}", arch_of(module, gpu))));
            }
        }
    }
    let table = checked_in();
    let pairs = table.lines().skip(1).map(|line| {
        let numbers = line.rsplitn(3, ' ').collect::<Vec<_>>();
        numbers[2].to_owned()
    });
    let listed: Vec<String> = pairs.collect();
    assert!(listed.is_sorted_by(|a, b| a < b), "not sorted");
    let listed = BTreeSet::from_iter(listed);
    assert_eq!(
        listed, wanted,
        "make {TABLE} anew with scripts/kernel-registers"
    );
}
