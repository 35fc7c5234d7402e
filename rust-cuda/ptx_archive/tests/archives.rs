//! Archives written and read again, and what is none.

use ptx_archive::{Arch, Archive, ArchiveError, Module, PtxVersion, write};

fn module(name: &str, target: Arch, kernels: &[&str]) -> Module {
    Module {
        name: name.to_owned(),
        target,
        version: PtxVersion::new(7, 0),
        kernels: kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
    }
}

/// `scale` for three targets, and a module of two kernels.
fn modules() -> [(Module, &'static str); 4] {
    [
        (module("scale.sm_90.ptx", Arch::SM90, &["scale"]), "for 90"),
        (module("scale.sm_80.ptx", Arch::SM80, &["scale"]), "for 80"),
        (
            module("scale.sm_90a.ptx", Arch::SM90A, &["scale"]),
            "for 90a",
        ),
        (
            module("scan.sm_80.ptx", Arch::SM80, &["sums", "add"]),
            "two",
        ),
    ]
}

#[test]
fn an_archive_gives_back_modules_texts_and_stamp() {
    let archive = Archive::open(write(modules(), "made today\n")).unwrap();
    assert_eq!(archive.stamp().unwrap(), "made today\n");
    let mut wanted = modules();
    wanted.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    let wanted_modules: Vec<Module> = wanted.iter().map(|(module, _)| module.clone()).collect();
    assert_eq!(archive.modules(), wanted_modules);
    for (module, text) in &wanted {
        assert_eq!(archive.text(module).unwrap(), *text);
    }
}

#[test]
fn a_gpu_gets_the_module_for_the_newest_target_that_it_runs() {
    let archive = Archive::open(write(modules(), "")).unwrap();
    let of = |kernel: &str, gpu| {
        let module = archive.module_for(kernel, gpu)?;
        Some(module.name.as_str())
    };
    assert_eq!(of("scale", (7, 5)), None);
    assert_eq!(of("scale", (8, 9)), Some("scale.sm_80.ptx"));
    assert_eq!(of("scale", (9, 0)), Some("scale.sm_90a.ptx"));
    assert_eq!(of("scale", (10, 0)), Some("scale.sm_90.ptx"));
    assert_eq!(of("add", (9, 0)), Some("scan.sm_80.ptx"));
    assert_eq!(of("scan", (9, 0)), None);
    assert_eq!(archive.modules_of("scale").count(), 3);
}

#[test]
fn equal_modules_make_equal_archives_in_any_order() {
    let mut reversed = modules();
    reversed.reverse();
    assert_eq!(write(modules(), "x"), write(reversed, "x"));
    assert_ne!(write(modules(), "x"), write(modules(), "y"));
}

#[test]
fn archives_of_other_kernels_have_other_checksums() {
    let checksum = |modules, stamp| Archive::open(write(modules, stamp)).unwrap().checksum();
    assert_eq!(checksum(modules(), "a"), checksum(modules(), "a"));
    let mut changed = modules();
    changed[3].1 = "three";
    assert_ne!(checksum(changed, "a"), checksum(modules(), "a"));
}

#[test]
fn bytes_that_are_no_archive_are_refused() {
    for bytes in [&b""[..], b".version 7.0\n.target sm_80\n"] {
        let error = Archive::open(bytes).unwrap_err();
        assert!(matches!(error, ArchiveError::Zip(_)), "{error}");
    }
}

#[test]
fn a_damaged_module_is_an_error_that_names_it_and_harms_no_other() {
    let text = "mov.u32 %r1, %tid.x;\n".repeat(100);
    let modules = ["a", "b"].map(|name| (module(name, Arch::SM80, &[name]), text.as_str()));
    let mut bytes = write(modules, "");
    // In the packed text of the first module: index and stamp are the first two members.
    let header = bytes
        .windows(4)
        .enumerate()
        .filter(|(_, four)| four == b"PK\x03\x04");
    let headers: Vec<usize> = header.map(|(place, _)| place).collect();
    let middle = usize::midpoint(headers[2], headers[3]);
    for byte in &mut bytes[middle..middle + 4] {
        *byte ^= 0x5a;
    }
    let archive = Archive::open(bytes).unwrap();
    let [a, b] = archive.modules() else { panic!() };
    let error = archive.text(a).unwrap_err();
    assert!(
        matches!(&error, ArchiveError::Member { member, .. } if member == "a"),
        "{error}"
    );
    assert_eq!(archive.text(b).unwrap(), text);
}
