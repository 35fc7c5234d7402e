//! Takes the PTX that is checked in, for the CUDA back end to embed.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=host/kernels.ptx");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for a build script"));
    fs::copy("host/kernels.ptx", out.join("kernels.ptx")).map(drop)
}
