//! `warprow spgemm`: sparse times sparse.

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::operands::{self, InputOptions};
use crate::output::Out;
use crate::progress;
use crate::results::ResultOptions;
use crate::terminal::count;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use warprow::spgemm::spgemm;
use warprow::{SpgemmElement, SpgemmOptions, reference};

pub const EXAMPLES: &str = "\
Examples:
  warprow spgemm a.mtx -o square.mtx.gz              C = A A
  warprow spgemm a.npz b.npz -o c.npz
  warprow spgemm a.mtx --type f64 --memory 4G --deterministic -o c.npz";

#[derive(Args)]
pub struct Options {
    /// The matrix A
    a: PathBuf,

    /// The matrix B [default: A]
    b: Option<PathBuf>,

    #[command(flatten)]
    input: InputOptions,

    #[command(flatten)]
    result: ResultOptions,

    /// The type of the elements
    #[arg(long = "type", value_enum, default_value_t = ElementType::F32)]
    element: ElementType,

    /// Give the same bits in every run
    #[arg(long)]
    deterministic: bool,

    /// Remove entries whose sum is zero; the product is then not verified
    #[arg(long)]
    drop_zeros: bool,

    /// Maximum device memory, in bytes or with K, M or G (powers of 1024); a larger product is computed in blocks of
    /// rows [default: all free memory]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ElementType {
    F32,
    F64,
}

pub fn run(options: &Options, global: &Global) -> Result<bool> {
    match options.element {
        ElementType::F32 => multiply::<f32>(options, global),
        ElementType::F64 => multiply::<f64>(options, global),
    }
}

fn multiply<T: SpgemmElement>(options: &Options, global: &Global) -> Result<bool> {
    let mut out = Out::new(global);
    let (a, b) = options
        .input
        .one_or_two::<T>(&options.a, options.b.as_deref())?;
    let b = b.as_ref().unwrap_or(&a);
    if a.cols() != b.rows() {
        let (a, b) = (a.shape(), b.shape());
        return Err(Failure::input(format!(
            "a {} x {} matrix cannot multiply a {} x {} one{}",
            a.0,
            a.1,
            b.0,
            b.1,
            if options.b.is_none() {
                ": give a second one"
            } else {
                ""
            }
        )));
    }
    // Before the computation, which may take long: is there a place for its result?
    let place = options.result.sparse(&mut out)?;
    let device = global.open_device(&mut out)?;
    out.line(
        "A",
        format!("{}: {}", options.a.display(), operands::description(&a)),
    )?;
    if let Some(path) = &options.b {
        out.line(
            "B",
            format!("{}: {}", path.display(), operands::description(b)),
        )?;
    }
    let mut product_options = SpgemmOptions::default();
    product_options.deterministic = options.deterministic;
    product_options.drop_zeros = options.drop_zeros;
    product_options.tuning.memory = options.memory;
    let start = Instant::now();
    let product = progress::emulated(&device, "multiplying", || {
        spgemm(&device, a.view(), b.view(), product_options)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let c = &product.c;
    out.line(
        "C",
        format!(
            "{} x {}, {} entries of {} products, {:.2} products an entry, in {} block{} of rows",
            count(c.rows()),
            count(c.cols()),
            count(c.nnz()),
            count(product.products),
            product.products as f64 / c.nnz().max(1) as f64,
            product.blocks,
            if product.blocks == 1 { "" } else { "s" },
        ),
    )?;
    out.value("rows", c.rows());
    out.value("columns", c.cols());
    out.value("entries", c.nnz());
    out.value("products", product.products);
    out.value("blocks", product.blocks);
    let emulated = device.is_emulator();
    let note = if emulated {
        "emulated, no GPU timing"
    } else {
        "with the copies of A, B and C and the driver's compilation of kernels"
    };
    out.line("time", format!("{seconds:.3} s, {note}"))?;
    out.value("time", json!({ "seconds": seconds, "emulated": emulated }));

    let right = if options.result.no_verify {
        true
    } else if options.drop_zeros {
        out.line(
            "check",
            "none: zeros were dropped, and the reference keeps them",
        )?;
        true
    } else {
        let verification = reference::verify_spgemm(a.view(), b.view(), c.view());
        out.verdict("check", verification.ok(), &verification)?;
        out.value("verified", verification.ok());
        out.value("max_relative_error", verification.values.max_relative_error);
        verification.ok()
    };
    if let Some(place) = place.and_then(|place| place.if_right(right)) {
        place.write_sparse(c.view(), &mut out)?;
    }
    out.finish()?;
    Ok(right)
}

/// A number of bytes: `1500000`, `64M`.
fn bytes(text: &str) -> std::result::Result<u64, String> {
    let wanted = || "wanted a number of bytes, as 64M".to_owned();
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'K')) => (&text[..at], 1 << 10),
        Some((at, 'M')) => (&text[..at], 1 << 20),
        Some((at, 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1_u64),
    };
    let number: u64 = digits.parse().map_err(|_| wanted())?;
    number.checked_mul(factor).ok_or_else(wanted)
}
