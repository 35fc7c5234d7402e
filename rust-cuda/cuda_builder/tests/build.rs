//! Small kernel crates built to PTX, where a toolchain that makes PTX is installed.
//!
//! The crates lie in one workspace at a fixed place, so that `core` is compiled once, not once for each run.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cuda_builder::{
    Arch, Archive, BuildError, CudaBuilder, Inputs, Ptxas, PtxasError, Sources, Stamp, Toolchain,
};
use tempfile::TempDir;

const DEVICE: &str = "#![no_std]\n#![cfg_attr(target_arch = \"nvptx64\", feature(abi_ptx, stdarch_nvptx))]\n\
    #[cfg(target_arch = \"nvptx64\")]\n#[panic_handler]\n\
    fn panic(info: &core::panic::PanicInfo) -> ! {\n\
    \x20   let file = info.location().map_or(\"\", |location| location.file());\n\
    \x20   unsafe { core::ptr::write_volatile(core::ptr::without_provenance_mut(8), file.as_ptr()) };\n\
    \x20   loop {}\n}\n";

/// Panics whose locations are in three places: this crate, a crate beside it, and `core`.
const SCALE: &str = "#[cfg(target_arch = \"nvptx64\")]\n#[unsafe(no_mangle)]\n\
    pub unsafe extern \"ptx-kernel\" fn scale(x: *mut f32, len: usize, by: f32) {\n\
    \x20   let i = unsafe { core::arch::nvptx::_thread_idx_x() } as usize;\n\
    \x20   let x = unsafe { core::slice::from_raw_parts_mut(x, len) };\n\
    \x20   let (head, _) = x.split_at_mut(len / 2);\n\
    \x20   head[i] = numbers::checked(head[i] * by);\n}\n";

/// A kernel for newer architectures.
const STOP: &str = "#[cfg(target_arch = \"nvptx64\")]\n#[unsafe(no_mangle)]\n\
    pub unsafe extern \"ptx-kernel\" fn stop() {\n    unsafe { core::arch::nvptx::trap() }\n}\n\
    #[cfg(target_arch = \"nvptx64\")]\n#[unsafe(export_name = \"kernel_marks$stop\")]\n\
    static MARKS: [u8; 12] = *b\"target sm_90\";\n";

const NUMBERS: &str = "#![no_std]\n#[inline(never)]\npub fn checked(x: f32) -> f32 {\n    \
    assert!(x.is_finite());\n    x\n}\n";

const MISTYPED: &str =
    "#[cfg(target_arch = \"nvptx64\")]\npub fn rows() -> u32 {\n    \"many\"\n}\n";

fn write_workspace(root: &Path) {
    let package = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{rest}")
    };
    let on_numbers = "[dependencies]\nnumbers = { path = \"../numbers\" }\n";
    let files = [
        (
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"*-kernels\", \"numbers\"]\n".to_owned(),
        ),
        ("numbers/Cargo.toml", package("numbers", "")),
        ("numbers/src/lib.rs", NUMBERS.to_owned()),
        (
            "scale-kernels/Cargo.toml",
            package("scale-kernels", on_numbers),
        ),
        ("scale-kernels/src/lib.rs", format!("{DEVICE}{SCALE}{STOP}")),
        (
            "mistyped-kernels/Cargo.toml",
            package("mistyped-kernels", ""),
        ),
        ("mistyped-kernels/src/lib.rs", format!("{DEVICE}{MISTYPED}")),
        ("no-kernels/Cargo.toml", package("no-kernels", "")),
        ("no-kernels/src/lib.rs", DEVICE.to_owned()),
    ];
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A file that is the same keeps its time: cargo then keeps what it built from it.
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            fs::write(path, text).unwrap();
        }
    }
}

fn workspace() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = scratch().join("one");
        write_workspace(&root);
        root
    })
}

fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The toolchain, or nothing with a word about it; nothing is a failure where PTX is required.
fn toolchain() -> Option<Toolchain> {
    match Toolchain::find() {
        Ok(toolchain) => Some(toolchain),
        Err(error) => skip(&error.to_string()),
    }
}

fn skip<T>(reason: &str) -> Option<T> {
    let required = std::env::var_os("WARPROW_REQUIRE_PTX").is_some_and(|value| value == "1");
    assert!(!required, "WARPROW_REQUIRE_PTX=1, but {reason}");
    // Not `eprintln`, which the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
    None
}

fn builder(root: &Path, package: &str, toolchain: Toolchain) -> CudaBuilder {
    CudaBuilder::new(root.join(package))
        .toolchain(toolchain)
        .target_dir(scratch().join("device"))
}

/// The texts of an archive's modules, by kernel and target.
fn texts(archive: &Archive) -> Vec<(String, Arch, String)> {
    let modules = archive.modules().iter();
    modules
        .map(|module| {
            let text = archive.text(module).unwrap();
            (module.kernels.concat(), module.target, text)
        })
        .collect()
}

#[test]
fn a_kernel_crate_becomes_a_stamped_archive_of_modules() {
    let Some(toolchain) = toolchain() else { return };
    let compiler = toolchain.compiler().to_owned();
    let archive = builder(workspace(), "scale-kernels", toolchain)
        .arch(80)
        .build()
        .unwrap();
    let modules = archive.modules();
    assert_eq!(modules.len(), 2);
    assert_eq!(modules[0].name, "scale.sm_80.ptx");
    assert_eq!(modules[1].name, "stop.sm_90.ptx");
    let texts = texts(&archive);
    assert!(texts[0].2.contains(".target sm_80\n"), "{}", texts[0].2);
    assert!(texts[0].2.contains("numbers"), "{}", texts[0].2);
    assert!(texts[1].2.contains(".target sm_90\n"), "{}", texts[1].2);
    // Neither what the other kernel uses, nor comments.
    assert!(!texts[1].2.contains("numbers"), "{}", texts[1].2);
    assert!(!texts.iter().any(|(_, _, text)| text.contains("//")));
    let sources = Sources::discover(workspace().join("scale-kernels")).unwrap();
    let stamp = Stamp::of(&archive).unwrap();
    assert_eq!(stamp.inputs(), &Inputs::of(&sources, Arch::SM80).unwrap());
    assert_eq!(stamp.compiler(), compiler);
}

#[test]
fn an_up_to_date_file_is_taken_without_running_cargo() {
    let Some(toolchain) = toolchain() else { return };
    let out = TempDir::new().unwrap();
    let file = out.path().join("new/kernels.zip");
    let builder = builder(workspace(), "scale-kernels", toolchain).copy_to(&file);
    let first = builder.clone().build().unwrap();
    let written = fs::read(&file).unwrap();
    assert_eq!(
        texts(&Archive::open(written.clone()).unwrap()),
        texts(&first)
    );

    // Cargo cannot build in a file: whoever runs it now fails.
    let broken = builder.target_dir(&file);
    assert_eq!(texts(&broken.clone().build().unwrap()), texts(&first));
    let other_arch = broken.clone().arch(Arch::SM90).build();
    assert!(
        matches!(other_arch, Err(BuildError::Cargo { .. })),
        "{other_arch:?}"
    );
    fs::write(&file, &written[1..]).unwrap();
    let damaged = broken.build();
    assert!(
        matches!(damaged, Err(BuildError::Cargo { .. })),
        "{damaged:?}"
    );
}

#[test]
fn the_compiler_that_made_a_module_is_found_by_its_stamp() {
    let Some(toolchain) = toolchain() else { return };
    assert_eq!(
        Toolchain::find_compiler(toolchain.compiler()),
        Some(toolchain)
    );
    assert_eq!(Toolchain::find_compiler("rustc 0.0.0, LLVM 0"), None);
}

#[test]
fn the_text_is_the_same_byte_for_byte_wherever_the_sources_lie() {
    let Some(toolchain) = toolchain() else { return };
    let elsewhere = scratch().join("another place/deeper");
    write_workspace(&elsewhere);
    let here = builder(workspace(), "scale-kernels", toolchain.clone())
        .build()
        .unwrap();
    let there = builder(&elsewhere, "scale-kernels", toolchain)
        .build()
        .unwrap();
    assert!(texts(&here) == texts(&there), "the texts differ");
}

#[test]
fn the_compilers_own_message_is_in_the_error() {
    let Some(toolchain) = toolchain() else { return };
    let error = builder(workspace(), "mistyped-kernels", toolchain)
        .build()
        .unwrap_err();
    assert!(matches!(error, BuildError::Compile { .. }), "{error}");
    // `main` of a build script prints `Debug`.
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(text.contains("error[E0308]: mismatched types\n"), "{text}");
        assert!(text.contains("|     \"many\"\n"), "{text}");
        assert!(text.contains("mistyped-kernels"), "{text}");
    }
}

#[test]
fn a_crate_without_kernels_is_an_error() {
    let Some(toolchain) = toolchain() else { return };
    let error = builder(workspace(), "no-kernels", toolchain)
        .build()
        .unwrap_err();
    assert!(
        matches!(&error, BuildError::NoKernels { package } if package == "no-kernels"),
        "{error}"
    );
}

#[test]
fn an_architecture_that_the_compiler_does_not_know_is_an_error_that_lists_the_known() {
    let Some(toolchain) = toolchain() else { return };
    let error = builder(workspace(), "scale-kernels", toolchain)
        .arch(81)
        .build()
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("sm_81 is no architecture") && text.contains("sm_80 "),
        "{text}"
    );
}

#[test]
fn the_assembler_takes_each_module_as_it_is_and_tells_what_its_kernel_needs() {
    let Some(toolchain) = toolchain() else { return };
    let ptxas = match Ptxas::find() {
        Ok(ptxas) => ptxas,
        Err(error) => return skip(&error.to_string()).unwrap_or_default(),
    };
    let archive = builder(workspace(), "scale-kernels", toolchain)
        .build()
        .unwrap();
    let dir = TempDir::new().unwrap();
    let texts = texts(&archive);
    for (kernel, target, text) in &texts {
        for arch in [Arch::SM80, Arch::SM90] {
            let assembled = ptxas.assemble([text.as_str()], arch, dir.path());
            if arch < *target {
                assert!(matches!(assembled, Err(PtxasError::Refused { .. })));
                continue;
            }
            let kernels = assembled.unwrap();
            assert_eq!(kernels.len(), 1);
            assert_eq!(&kernels[0].name, kernel);
            assert!(kernels[0].registers > 0);
        }
    }
    let both = texts.iter().map(|(_, _, text)| text.as_str());
    let kernels = ptxas.assemble(both, Arch::SM90, dir.path()).unwrap();
    assert_eq!(kernels.len(), 2);
    let refused = ptxas.assemble(
        [".version 7.0\n.target sm_80\nnonsense\n"],
        Arch::SM80,
        dir.path(),
    );
    assert!(
        matches!(refused, Err(PtxasError::Refused { .. })),
        "{refused:?}"
    );
}
