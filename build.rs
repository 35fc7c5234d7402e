//! Sets `cfg(cuda)` if the library has its CUDA back end, and puts the kernels where that embeds them: an archive of
//! PTX modules for each family. Those that are checked in are taken as long as they are those of the sources.

use cuda_builder::{BuildError, CudaBuilder};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The families: folders in `kernels-gpu/`, and archives in `host/ptx/`. Each but `matrix` has a feature.
const FAMILIES: [&str; 6] = ["matrix", "spmm", "spgemm", "gemm", "log_softmax", "gcn"];

fn main() -> ExitCode {
    println!("cargo::rustc-check-cfg=cfg(cuda)");
    // Without CUDA nothing reads the PTX, and nothing is needed that makes it.
    if !has_cuda() {
        println!("cargo::rerun-if-changed=build.rs");
        return ExitCode::SUCCESS;
    }
    println!("cargo::rustc-cfg=cuda");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for a build script"));
    let mut families = FAMILIES.to_vec();
    families.retain(|family| *family == "matrix" || has_feature(family));
    if let Err(error) = families.iter().try_for_each(|family| build(family, &out)) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let archives: Vec<String> = families
        .iter()
        .map(|family| format!("include_bytes!(\"{family}.zip\")"))
        .collect();
    let table = format!("[{}]", archives.join(", "));
    if let Err(error) = fs::write(out.join("archives.rs"), table) {
        eprintln!("cannot write the table of archives: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Whether the feature is on, and the system is one on which `cust` and the driver's stubs build.
fn has_cuda() -> bool {
    let target = env::var_os("CARGO_CFG_TARGET_OS")
        .expect("cargo sets CARGO_CFG_TARGET_OS for a build script");
    has_feature("cuda") && target == "linux"
}

fn has_feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase())).is_some()
}

fn build(family: &str, out: &Path) -> Result<(), BuildError> {
    let archive = format!("{family}.zip");
    CudaBuilder::new(Path::new("kernels-gpu").join(family))
        .checked_in(Path::new("host/ptx").join(&archive))
        .copy_to(out.join(&archive))
        .build()?;
    Ok(())
}
