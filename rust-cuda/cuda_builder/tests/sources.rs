//! Which files the hash of a kernel crate's sources covers.

use std::fs;
use std::path::Path;

use cuda_builder::Sources;
use tempfile::TempDir;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn package(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{rest}")
}

/// A workspace whose kernel crate reaches other packages in each of the ways that a manifest has.
fn workspace() -> TempDir {
    let kernels = package(
        "kernels",
        "[dependencies]\nbeside = { path = \"../beside\" }\nhalf = \"2\"\n\
         [dependencies.inherited]\nworkspace = true\nfeatures = [\"x\"]\n\
         [target.'cfg(target_arch = \"nvptx64\")'.dependencies]\ndevice-only = { path = \"../device-only\" }\n\
         [target.'cfg(not(target_arch = \"nvptx64\"))'.dependencies]\nhost-only = { path = \"../host-only\" }\n\
         [target.x86_64-unknown-linux-gnu.dependencies]\nhost-too = { path = \"../host-only\" }\n\
         [dev-dependencies]\ntested-with = { path = \"../host-only\" }\n\
         [build-dependencies]\nbuilt-with = { path = \"../host-only\" }\n",
    );
    let root = "[workspace]\nmembers = [\"*\"]\n[workspace.dependencies]\ninherited = { path = \"inherited\" }\n";
    let dir = TempDir::new().unwrap();
    write(
        dir.path(),
        &[
            ("Cargo.toml", root),
            ("kernels/Cargo.toml", &kernels),
            ("kernels/src/lib.rs", "#![no_std]\nmod spmm;\n"),
            ("kernels/src/spmm/mod.rs", "pub fn row() {}\n"),
            (
                "beside/Cargo.toml",
                &package("beside", "[dependencies]\nfar = { path = \"../far\" }\n"),
            ),
            ("beside/src/lib.rs", ""),
            (
                "far/Cargo.toml",
                &package(
                    "far",
                    "[dependencies]\nkernels-again = { path = \"../beside\" }\n",
                ),
            ),
            ("far/src/lib.rs", ""),
            ("inherited/Cargo.toml", &package("inherited", "")),
            ("inherited/src/lib.rs", ""),
            ("device-only/Cargo.toml", &package("device-only", "")),
            ("device-only/src/lib.rs", ""),
            ("host-only/Cargo.toml", &package("host-only", "")),
            ("host-only/src/lib.rs", ""),
        ],
    );
    dir
}

fn sources(root: &Path) -> Sources {
    Sources::discover(root.join("kernels")).unwrap()
}

fn hash(root: &Path) -> String {
    sources(root).hash().unwrap()
}

#[test]
fn the_packages_are_those_that_the_device_library_is_made_from() {
    let dir = workspace();
    let sources = sources(dir.path());
    assert_eq!(sources.package(), "kernels");
    let packages: Vec<&str> = sources.packages().collect();
    assert_eq!(
        packages,
        ["beside", "device-only", "far", "inherited", "kernels"]
    );
}

#[test]
fn the_hash_does_not_depend_on_the_place_on_line_ends_or_on_comments() {
    let (one, other) = (workspace(), workspace());
    assert_eq!(hash(one.path()), hash(other.path()));
    assert_eq!(hash(one.path()).len(), 64);
    for text in [
        "#![no_std]\r\nmod spmm;\r\n",
        "#![no_std]\n// The kernels.\n\nmod spmm;\n",
    ] {
        write(other.path(), &[("kernels/src/lib.rs", text)]);
        assert_eq!(hash(one.path()), hash(other.path()), "{text}");
    }
}

/// Each path dependency inherits from its own workspace, which need not be that of the kernel crate.
#[test]
fn a_dependency_in_another_workspace_inherits_from_that() {
    let dir = TempDir::new().unwrap();
    let on = |name: &str| format!("[dependencies]\n{name}.workspace = true\n");
    write(
        dir.path(),
        &[
            (
                "user/Cargo.toml",
                "[workspace]\n[workspace.dependencies]\nlibrary.path = \"../lib/library\"\nbase.path = \"base\"\n",
            ),
            (
                "user/kernels/Cargo.toml",
                &package("kernels", &on("library")),
            ),
            ("user/kernels/src/lib.rs", ""),
            ("user/base/Cargo.toml", &package("wrong-base", "")),
            (
                "lib/Cargo.toml",
                "[workspace]\n[workspace.dependencies]\nbase.path = \"base\"\n",
            ),
            ("lib/library/Cargo.toml", &package("library", &on("base"))),
            ("lib/library/src/lib.rs", ""),
            ("lib/base/Cargo.toml", &package("base", "")),
            ("lib/base/src/lib.rs", ""),
        ],
    );
    let sources = Sources::discover(dir.path().join("user/kernels")).unwrap();
    let packages: Vec<&str> = sources.packages().collect();
    assert_eq!(packages, ["base", "kernels", "library"]);
}

#[test]
fn the_hash_changes_with_each_file_that_the_library_is_made_from() {
    let changes = [
        ("kernels/src/spmm/mod.rs", "pub fn row() { }\n"),
        ("kernels/src/spmm/merge.rs", ""),
        ("kernels/build.rs", "fn main() {}\n"),
        ("kernels/src/spmm/table.bin", "\u{1}"),
        (
            "Cargo.toml",
            "[workspace]\n[workspace.dependencies]\ninherited = { path = \"inherited\", features = [\"y\"] }\n",
        ),
        (
            "Cargo.toml",
            "[workspace]\n[workspace.dependencies]\ninherited = { path = \"inherited\" }\n\
             [profile.release.package.far]\nopt-level = 1\n",
        ),
        ("far/src/lib.rs", "// far\n"),
        ("inherited/src/lib.rs", "// inherited\n"),
        (
            "device-only/Cargo.toml",
            &package("device-only", "[features]\nx = []\n"),
        ),
    ];
    for (name, text) in changes {
        let dir = workspace();
        let before = hash(dir.path());
        write(dir.path(), &[(name, text)]);
        assert_ne!(hash(dir.path()), before, "{name}");
    }
}

#[test]
fn a_renamed_file_changes_the_hash() {
    let dir = workspace();
    let before = hash(dir.path());
    let src = dir.path().join("kernels/src");
    fs::rename(src.join("spmm/mod.rs"), src.join("spmm.rs")).unwrap();
    assert_ne!(hash(dir.path()), before);
}

#[test]
fn the_hash_does_not_change_with_files_that_the_library_is_not_made_from() {
    let dir = workspace();
    let before = hash(dir.path());
    write(
        dir.path(),
        &[
            (
                "Cargo.toml",
                "[workspace]\nresolver = \"3\"\n[workspace.dependencies]\ninherited.path = \"inherited\"\n\
                 unused = \"1\"\n[profile.release]\nopt-level = 1\n",
            ),
            (
                "beside/Cargo.toml",
                &package(
                    "beside",
                    "description = \"Beside.\"\n[dependencies]\nfar = { path = \"../far\" } # near\n\
                     [dev-dependencies]\ntempfile = \"3\"\n[lints]\nworkspace = true\n",
                ),
            ),
            ("Cargo.lock", "version = 4\n"),
            ("host-only/src/lib.rs", "// host\n"),
            ("kernels/README.md", "# kernels\n"),
            ("kernels/kernels.ptx", ".version 7.0\n"),
            ("kernels/tests/rows.rs", "// test\n"),
            ("kernels/target/debug/out.rs", "// built\n"),
            ("kernels/src/.hidden/x.rs", "// editor\n"),
            ("kernels/inner/Cargo.toml", &package("inner", "")),
            ("kernels/inner/src/lib.rs", "// another package\n"),
        ],
    );
    assert_eq!(hash(dir.path()), before);
}

#[test]
fn a_manifest_that_cargo_would_refuse_is_named_in_the_error() {
    let dir = workspace();
    let refused = |text: &str| {
        write(dir.path(), &[("kernels/Cargo.toml", text)]);
        Sources::discover(dir.path().join("kernels"))
            .unwrap_err()
            .to_string()
    };
    let manifest = Path::new("kernels")
        .join("Cargo.toml")
        .display()
        .to_string();
    let missing = refused(&package(
        "kernels",
        "[dependencies]\nnone = { path = \"../none\" }\n",
    ));
    assert!(
        missing.contains("cannot find the dependency") && missing.contains("none"),
        "{missing}"
    );
    let inherited = refused(&package(
        "kernels",
        "[dependencies]\nnone.workspace = true\n",
    ));
    assert!(
        inherited.contains(&manifest) && inherited.contains("`none` is inherited"),
        "{inherited}"
    );
    let nameless = refused("[package]\nversion = \"0.1.0\"\n");
    assert!(
        nameless.contains(&manifest) && nameless.contains("a package with a name"),
        "{nameless}"
    );
    assert!(refused("[package\n").contains(&manifest));
    let nowhere = Sources::discover(dir.path().join("nowhere"))
        .unwrap_err()
        .to_string();
    assert!(nowhere.contains("nowhere"), "{nowhere}");
}

#[test]
fn the_packages_from_registries_are_those_of_the_lock_file_that_the_device_uses() {
    let dir = workspace();
    let of = |lock: &str| {
        write(dir.path(), &[("Cargo.lock", lock)]);
        sources(dir.path()).registry_packages()
    };
    let registry = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let lock = |half: &str| {
        format!(
            "version = 4\n[[package]]\nname = \"kernels\"\nversion = \"0.1.0\"\n\
             dependencies = [\"beside\", \"half\", \"rayon\"]\n\
             [[package]]\nname = \"half\"\nversion = \"{half}\"\n{registry}\ndependencies = [\"cfg-if\"]\n\
             [[package]]\nname = \"cfg-if\"\nversion = \"1.0.4\"\n{registry}\n\
             [[package]]\nname = \"rayon\"\nversion = \"1.12.0\"\n{registry}\n"
        )
    };
    assert_eq!(sources(dir.path()).registry_packages().unwrap(), [""; 0]);
    assert_eq!(of(&lock("2.7.1")).unwrap(), ["cfg-if 1.0.4", "half 2.7.1"]);
    assert_eq!(of(&lock("2.8.0")).unwrap(), ["cfg-if 1.0.4", "half 2.8.0"]);
    let error = of("version = ").unwrap_err().to_string();
    assert!(error.contains("Cargo.lock"), "{error}");
}
