//! Counts what the kernels of an operation do: on the emulator exactly as a GPU would, and on a GPU by Nsight Compute.

mod command;
mod memory;
mod profiling;

use anyhow::{Result, anyhow, bail, ensure};
use clap::{Parser, ValueEnum};
use profiling::ncu;
use profiling::operations::{Choice, Operation};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use warprow::Device;
use warprow::device::pictures::{Picture, Sources};
use warprow::device::{
    Checks, CounterOptions, DeviceProfile, EmulatorOptions, LaunchReport, Selector, TracedWarp,
};

/// Counts what the kernels of an operation do: requests, sectors, bank conflicts, active lanes, load balance.
///
/// The emulator counts what a GPU would count. The table shows the launches of the product, and says what would help.
#[derive(Parser)]
#[command(name = "profile")]
struct Options {
    #[command(subcommand)]
    operation: Operation,

    /// The counters of each line of the kernel
    #[arg(long, global = true)]
    by_line: bool,

    /// Small launches too, and those of the plan
    #[arg(long, global = true)]
    all_launches: bool,

    /// A line of JSON for each launch
    #[arg(long, global = true)]
    json: bool,

    /// A file for a picture of the largest launch
    #[arg(long, global = true, value_name = "FILE.svg")]
    picture: Option<PathBuf>,

    /// What the picture shows: the sectors of a warp's requests, the banks of one request, the source with its
    /// counters, or the work of the blocks
    #[arg(long, global = true, value_enum, default_value_t = View::Balance)]
    view: View,

    /// A file for the requests of a few warps of the largest launch, for Perfetto or chrome://tracing
    #[arg(long, global = true, value_name = "FILE.json")]
    trace: Option<PathBuf>,

    /// The first warp whose requests are drawn or written: its block, and its number in the block
    #[arg(long, global = true, value_name = "BLOCK:WARP", default_value = "0:0")]
    warp: FirstWarp,

    /// The GPU that the emulator plans for, and whose caches it models
    #[arg(long, global = true, value_enum, default_value_t = Gpu::H200)]
    gpu: Gpu,

    /// emulator, or cuda or cuda:N to measure on that GPU by `ncu` too
    #[arg(long, global = true, default_value = "emulator")]
    device: Selector,

    /// Runs on the GPU, for `ncu` to count
    #[arg(long, global = true, hide = true)]
    under_ncu: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Gpu {
    A100,
    H100,
    H200,
}

impl Gpu {
    fn profile(self) -> DeviceProfile {
        match self {
            Self::A100 => DeviceProfile::a100(),
            Self::H100 => DeviceProfile::h100(),
            Self::H200 => DeviceProfile::h200(),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum View {
    Access,
    Banks,
    Source,
    Balance,
}

impl View {
    fn picture(self) -> Picture {
        match self {
            Self::Access => Picture::Access,
            Self::Banks => Picture::Banks,
            Self::Source => Picture::Source,
            Self::Balance => Picture::Balance,
        }
    }
}

/// The first of the warps that are traced.
#[derive(Clone, Copy)]
struct FirstWarp {
    block: u64,
    warp: u32,
}

impl FromStr for FirstWarp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (block, warp) = text.split_once(':')?;
            Some(Self {
                block: block.parse().ok()?,
                warp: warp.parse().ok()?,
            })
        };
        parse().ok_or_else(|| format!("wanted two numbers, as 12:0; found `{text}`"))
    }
}

/// Maximum number of requests of a warp that are kept.
const TRACED_REQUESTS: usize = 4096;

impl Options {
    /// What the emulator counts. A launch is traced only if someone reads it.
    fn counters(&self) -> CounterOptions {
        let mut counters = CounterOptions::default();
        if self.picture.is_some() || self.trace.is_some() {
            for (trace, warp) in counters.traces.iter_mut().zip(self.warp.warp..) {
                *trace = Some(TracedWarp {
                    block: self.warp.block,
                    warp,
                    requests: TRACED_REQUESTS,
                });
            }
        }
        counters
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    command::exit_code(run(&options).map(|()| true))
}

fn run(options: &Options) -> Result<()> {
    let out = &mut io::stdout();
    if options.under_ncu {
        let device = command::open_device(Some(options.device), out)?;
        return run_for_ncu(&options.operation, &device, options.all_launches);
    }
    let on_gpu = match options.device {
        Selector::Emulator => None,
        Selector::Cuda(_) => Some(ncu::find()?),
        other => bail!("--device is {other}, wanted is emulator, cuda or cuda:N"),
    };
    ensure!(
        on_gpu.is_none() || !options.operation.compares(),
        "--compare is for --device emulator alone"
    );
    let emulated = emulate(options, Choice::Kernel)?;
    let compared = match options.operation.compares() {
        true => Some(emulate(options, Choice::Compared)?),
        false => None,
    };
    emulated.draw(options)?;
    if let Some(ncu) = on_gpu {
        let measured = ncu::measure(&ncu)?;
        return ncu::write(&measured, &emulated.shown(options), options.json, out);
    }
    if options.json {
        for launches in [Some(&emulated), compared.as_ref()].into_iter().flatten() {
            for report in launches.shown(options) {
                writeln!(out, "{}", serde_json::to_string(report)?)?;
            }
        }
        return Ok(());
    }
    writeln!(out, "device   {}", emulated.device)?;
    match &compared {
        Some(other) => write_comparison(&emulated, other, options, out),
        None => emulated.write(options, out),
    }
}

/// Plans and multiplies once on a GPU, where `ncu` waits for the product's launches, or for all.
fn run_for_ncu(operation: &Operation, device: &Device, all_launches: bool) -> Result<()> {
    if all_launches {
        return device.profiled(|| operation.prepare(device, Choice::Kernel)?())?;
    }
    let product = operation.prepare(device, Choice::Kernel)?;
    device.profiled(product)?
}

/// What the launches of an operation have counted.
struct Launches {
    device: Device,
    /// Those of uploads and plans; empty if they are not wanted.
    of_plan: Vec<LaunchReport>,
    of_product: Vec<LaunchReport>,
}

/// Plans and multiplies once on the emulator, and counts.
fn emulate(options: &Options, choice: Choice) -> Result<Launches> {
    let emulator = EmulatorOptions::new().checks(Checks::BoundsOnly);
    let device = Device::emulator_of(&options.gpu.profile(), emulator);
    let counters = Some(options.counters());
    if options.all_launches {
        device.set_counters(counters)?;
    }
    let product = options.operation.prepare(&device, choice)?;
    device.set_counters(counters)?;
    let of_plan = device.launch_reports()?;
    product()?;
    let of_product = device.launch_reports()?;
    ensure!(
        !of_product.is_empty(),
        "the product is empty, and nothing is launched"
    );
    Ok(Launches {
        device,
        of_plan,
        of_product,
    })
}

/// A launch is small if its work is less than this part of the product's.
const SMALL: f64 = 0.01;

/// A launch's work: the sectors and wavefronts that its requests take.
fn work(report: &LaunchReport) -> u64 {
    let sectors = report.total.global().map(|(_, of)| of.sectors);
    let wavefronts = report.total.shared().map(|(_, of)| of.wavefronts);
    sectors.iter().chain(&wavefronts).sum()
}

impl Launches {
    /// The launches to show: the product's, without small ones, and then the plan's if all are wanted.
    fn shown(&self, options: &Options) -> Vec<&LaunchReport> {
        let all: u64 = self.of_product.iter().map(work).sum();
        let is_small = |report: &LaunchReport| (work(report) as f64) < SMALL * all as f64;
        let of_product = self.of_product.iter();
        let of_product = of_product.filter(|report| options.all_launches || !is_small(report));
        of_product.chain(&self.of_plan).collect()
    }

    /// The launch with the most work.
    fn main(&self) -> &LaunchReport {
        let main = self.of_product.iter().max_by_key(|report| work(report));
        main.expect("`emulate` has found launches")
    }

    /// Writes the files of pictures and traces.
    fn draw(&self, options: &Options) -> Result<()> {
        let (root, hardware) = (Path::new(ROOT), options.gpu.profile().hardware);
        let report = self.main();
        let files = [
            (&options.picture, options.view.picture()),
            (&options.trace, Picture::Trace),
        ];
        for (path, picture) in files {
            let Some(path) = path else {
                continue;
            };
            let text = picture.draw(report, &Sources::of_report(report, root), &hardware)?;
            fs::write(path, text)
                .map_err(|error| anyhow!("cannot write {}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn write(&self, options: &Options, out: &mut impl Write) -> Result<()> {
        let shown = self.shown(options);
        for report in &shown {
            writeln!(out, "\n{report}")?;
            if options.by_line {
                write_lines(report, out)?;
            }
            for sentence in report.advice() {
                writeln!(out, "- {sentence}")?;
            }
        }
        let hidden = self.of_product.len() + self.of_plan.len() - shown.len();
        if hidden > 0 {
            let s = if hidden == 1 { "" } else { "es" };
            writeln!(out, "\n{hidden} small launch{s} not shown (--all-launches)")?;
        }
        Ok(())
    }
}

/// The largest launches of two products side by side.
fn write_comparison(
    one: &Launches,
    other: &Launches,
    options: &Options,
    out: &mut impl Write,
) -> Result<()> {
    let launches = [one, other].map(|launches| launches.of_product.len());
    let (one, other) = (one.main(), other.main());
    writeln!(out, "\n{}", one.compare(other))?;
    if launches != [1, 1] {
        let [of_one, of_other] = launches;
        writeln!(out, "the largest of {of_one} and of {of_other} launches")?;
    }
    if options.by_line {
        write_lines(one, out)?;
        write_lines(other, out)?;
    }
    Ok(())
}

/// The root of the workspace; the compiler knows files by their paths from there.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The counters of each line, and the lines themselves where their files are found.
fn write_lines(report: &LaunchReport, out: &mut impl Write) -> Result<()> {
    writeln!(out, "{}", report.by_line())?;
    let root = Path::new(ROOT);
    let files: BTreeSet<&str> = report.lines.iter().map(|line| line.file.as_str()).collect();
    for file in files {
        let Ok(text) = fs::read_to_string(root.join(file)) else {
            continue;
        };
        writeln!(out, "{file}")?;
        for line in report.lines.iter().filter(|line| line.file == file) {
            let source = (line.line as usize)
                .checked_sub(1)
                .and_then(|number| text.lines().nth(number));
            writeln!(
                out,
                "{:>6}  {}",
                line.line,
                source.unwrap_or_default().trim()
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}
