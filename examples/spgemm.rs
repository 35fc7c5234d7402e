//! Multiplies two sparse matrices, on the GPU if there is one and on the emulator otherwise, and checks the result.

mod command;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warprow::device::Selector;
use warprow::matrix_market::Output;
use warprow::spgemm::spgemm;
use warprow::{
    CsrMatrix, Device, DeviceCsr, Error, Spgemm, SpgemmElement, SpgemmOptions, SpgemmTuning,
    reference,
};

/// Multiplies a sparse matrix by another one, or by itself, and checks the result against a reference in f64.
#[derive(Parser)]
#[command(name = "spgemm")]
struct Options {
    /// A Matrix Market file, .mtx or .mtx.gz [default: the dependencies of Debian's packages]
    a: Option<PathBuf>,

    /// The matrix to multiply by [default: the same]
    b: Option<PathBuf>,

    /// A file for the product, .mtx or .mtx.gz
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The same bits in every run
    #[arg(long)]
    deterministic: bool,

    /// Leave out entries that turn out zero
    #[arg(long)]
    drop_zeros: bool,

    /// Bytes of device memory to use, in blocks of rows if the product does not fit; K, M and G are powers of 1024
    /// [default: what is free]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,

    /// auto, cuda, cuda:N or emulator [default: what WARPROW_DEVICE says, else auto]
    #[arg(long)]
    device: Option<Selector>,

    /// The type of the elements
    #[arg(long = "type", value_enum, default_value_t = ElementType::F32)]
    element: ElementType,
}

#[derive(Clone, Copy, ValueEnum)]
enum ElementType {
    F32,
    F64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.element {
        ElementType::F32 => run::<f32>(&options),
        ElementType::F64 => run::<f64>(&options),
    };
    command::exit_code(outcome)
}

/// Everything from the files to the verdict; whether the result verified.
fn run<T: SpgemmElement>(options: &Options) -> Result<bool> {
    let out = &mut io::stdout();
    let (_, a) = command::matrix::<T>(options.a.as_deref())?;
    let b = match &options.b {
        Some(path) => Some(command::matrix::<T>(Some(path))?.1),
        None => None,
    };
    let b = b.as_ref().unwrap_or(&a);
    if a.cols() != b.rows() {
        bail!(
            "a {} x {} matrix cannot multiply a {} x {} one{}",
            a.rows(),
            a.cols(),
            b.rows(),
            b.cols(),
            if options.b.is_none() {
                ": give a second one"
            } else {
                ""
            }
        );
    }
    // Before the computation, which may take long: is there a place for its result?
    let output = match &options.output {
        Some(path) => Some((path, create_output(path)?)),
        None => None,
    };
    let device = command::open_device(options.device, out)?;
    for (name, matrix) in [("A", &a), ("B", b)] {
        let (rows, cols, nnz) = (matrix.rows(), matrix.cols(), matrix.nnz());
        writeln!(out, "{name}        {rows} x {cols}, {nnz} nonzeros")?;
    }
    let spgemm_options = SpgemmOptions::new()
        .deterministic(options.deterministic)
        .drop_zeros(options.drop_zeros)
        .tuning(SpgemmTuning::new().memory(options.memory));
    let start = Instant::now();
    let product = spgemm(&device, a.view(), b.view(), spgemm_options)?;
    let wall = start.elapsed();
    let c = &product.c;
    writeln!(
        out,
        "C        {} x {}, {} entries of {} products, {:.2} products an entry, in {} block{} of rows",
        c.rows(),
        c.cols(),
        c.nnz(),
        product.products,
        product.products as f64 / c.nnz().max(1) as f64,
        product.blocks,
        if product.blocks == 1 { "" } else { "s" },
    )?;
    if device.is_emulator() {
        let seconds = wall.as_secs_f64();
        writeln!(out, "time     {seconds:.2} s, emulated, no GPU timing")?;
    } else if product.blocks == 1 {
        time(&device, &a, b, spgemm_options, out)?;
    } else {
        let seconds = wall.as_secs_f64();
        writeln!(
            out,
            "time     {seconds:.3} s, with the copies of all blocks to and from the device"
        )?;
    }
    let right = if options.drop_zeros {
        writeln!(
            out,
            "check    none: zeros were dropped, and the reference keeps them"
        )?;
        true
    } else {
        let verification = reference::verify_spgemm(a.view(), b.view(), c.view());
        writeln!(out, "check    {verification}")?;
        verification.ok()
    };
    if let Some((path, output)) = output {
        output.write(c.view())?;
        writeln!(out, "written  {}", path.display())?;
    }
    drop(product);
    let exact = check_exactly(&device, &a, b, spgemm_options)?;
    let verdict = if exact { "all" } else { "WRONG: not all" };
    writeln!(
        out,
        "exact    {verdict} entries of a product of small whole numbers, with the same nonzeros"
    )?;
    Ok(right && exact)
}

/// Whether the product of small whole numbers with the same nonzeros and options is exact, and has zeros only where
/// they are wanted.
fn check_exactly<T: SpgemmElement>(
    device: &Device,
    a: &CsrMatrix<T>,
    b: &CsrMatrix<T>,
    options: SpgemmOptions,
) -> Result<bool> {
    let a = reference::whole_matrix::<_, T>(a.view(), 1);
    let b = reference::whole_matrix::<_, T>(b.view(), 2);
    let c = spgemm(device, a.view(), b.view(), options)?.c;
    Ok(if options.drop_zeros {
        let all = reference::spgemm(a.view(), b.view());
        let nonzeros = all.iter().filter(|(value, _)| **value != 0.0);
        let found = c.iter().map(|(value, place)| (value.to_f64(), place));
        found.eq(nonzeros.map(|(&value, place)| (value, place)))
    } else {
        let found = reference::verify_spgemm(a.view(), b.view(), c.view());
        found.ok() && found.values.is_exact()
    })
}

/// Opens the file for the product. On Unix, if Ctrl-C or SIGTERM ends the program, what is there of it is removed.
fn create_output(path: &Path) -> Result<Output> {
    let output = Output::create(path)?;
    #[cfg(unix)]
    if let Some(partial) = output.partial_path() {
        signals::remove_when_ended(partial)?;
    }
    Ok(output)
}

/// Signals that end the program.
#[cfg(unix)]
mod signals {
    use anyhow::{Context, Result};
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    use std::fs;
    use std::path::Path;

    /// Removes the file when Ctrl-C or SIGTERM ends the program.
    pub fn remove_when_ended(path: &Path) -> Result<()> {
        let path = path.to_owned();
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
        std::thread::spawn(move || {
            for signal in signals.forever() {
                // It is gone if it is complete and has its final name.
                let _ = fs::remove_file(&path);
                let _ = emulate_default_handler(signal);
            }
        });
        Ok(())
    }
}

/// Multiplications on a GPU, after as many to warm up.
const SAMPLES: usize = 10;

/// Multiplies often, operands on the device, and prints the median time of each phase.
fn time<T: SpgemmElement>(
    device: &Device,
    a: &CsrMatrix<T>,
    b: &CsrMatrix<T>,
    options: SpgemmOptions,
    out: &mut impl Write,
) -> Result<()> {
    let a = DeviceCsr::upload(device, a.view())?;
    let b = DeviceCsr::upload(device, b.view())?;
    let multiply = || -> Result<(Duration, Duration, u128), Error> {
        let start = Instant::now();
        let spgemm = Spgemm::<T>::symbolic(a.pattern(), b.pattern(), options)?;
        device.synchronize()?;
        let symbolic = start.elapsed();
        let c = spgemm.numeric(a.values(), b.values())?;
        device.synchronize()?;
        let whole = start.elapsed();
        drop(c);
        Ok((symbolic, whole - symbolic, spgemm.flops()))
    };
    for _ in 0..SAMPLES {
        multiply()?;
    }
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        samples.push(multiply()?);
    }
    samples.sort_unstable_by_key(|&(symbolic, numeric, _)| symbolic + numeric);
    let (symbolic, numeric, flops) = samples[SAMPLES / 2];
    let whole = symbolic + numeric;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    writeln!(
        out,
        "time     {:.3} ms with the allocation of C, the median of {SAMPLES}: \
         symbolic {:.3} ms, numeric {:.3} ms; {:.1} GFLOP/s",
        milliseconds(whole),
        milliseconds(symbolic),
        milliseconds(numeric),
        flops as f64 / whole.as_secs_f64() / 1e9
    )?;
    Ok(())
}

/// A number of bytes: `1500000`, `64M`.
fn bytes(text: &str) -> Result<u64, String> {
    let wanted = || format!("wanted a number of bytes, as 64M; found `{text}`");
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'K')) => (&text[..at], 1 << 10),
        Some((at, 'M')) => (&text[..at], 1 << 20),
        Some((at, 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1_u64),
    };
    let number: u64 = digits.parse().map_err(|_| wanted())?;
    number.checked_mul(factor).ok_or_else(wanted)
}
