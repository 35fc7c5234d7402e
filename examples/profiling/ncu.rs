//! The same counters on a GPU, by Nsight Compute: the program runs itself under `ncu`.

use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::{BTreeMap, HashMap};
use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use warprow::device::{Counters, LaunchReport};

/// A counter of hardware.
struct Metric {
    label: &'static str,
    /// Its name in `ncu`.
    name: &'static str,
    /// The same counter of the emulator; `None` if it has none.
    emulated: fn(&LaunchReport) -> Option<f64>,
}

/// A metric that the emulator counts.
macro_rules! counted {
    ($label:literal, $name:literal, $($field:ident).+) => {
        Metric {
            label: $label,
            name: $name,
            emulated: |report| {
                let counters: &Counters = &report.total;
                Some(counters.$($field).+ as f64)
            },
        }
    };
}

const METRICS: [Metric; 15] = [
    counted!(
        "global loads: requests",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        global_loads.requests
    ),
    counted!(
        "global loads: sectors",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        global_loads.sectors
    ),
    counted!(
        "global stores: requests",
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        global_stores.requests
    ),
    counted!(
        "global stores: sectors",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        global_stores.sectors
    ),
    counted!(
        "global atomics: requests",
        "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
        global_atomics.requests
    ),
    counted!(
        "global atomics: sectors",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
        global_atomics.sectors
    ),
    counted!(
        "global reductions: requests",
        "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
        global_reductions.requests
    ),
    counted!(
        "global reductions: sectors",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
        global_reductions.sectors
    ),
    counted!(
        "shared loads: wavefronts",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        shared_loads.wavefronts
    ),
    counted!(
        "shared loads: bank conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        shared_loads.bank_conflicts
    ),
    counted!(
        "shared stores: wavefronts",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        shared_stores.wavefronts
    ),
    counted!(
        "shared stores: bank conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        shared_stores.bank_conflicts
    ),
    Metric {
        label: "bytes read from memory",
        name: "dram__bytes_read.sum",
        emulated: |report| Some(report.memory?.memory_read_bytes as f64),
    },
    Metric {
        label: "threads per instruction",
        name: "smsp__thread_inst_executed_per_inst_executed.ratio",
        emulated: |_| None,
    },
    Metric {
        label: "nanoseconds",
        name: "gpu__time_duration.sum",
        emulated: |_| None,
    },
];

/// A launch on a GPU.
pub struct Measured {
    kernel: String,
    /// By the names of the metrics.
    values: BTreeMap<String, f64>,
}

/// `ncu` on the search path.
pub fn find() -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|dir| dir.join("ncu"))
        .find(|ncu| ncu.is_file())
        .context("no `ncu` on the search path: it counts on a GPU, and the emulator (--device emulator) without one")
}

/// Runs this program again under `ncu`, which counts the launches of the product.
pub fn measure(ncu: &PathBuf) -> Result<Vec<Measured>> {
    let names = METRICS.map(|metric| metric.name).join(",");
    let mut command = Command::new(ncu);
    command
        .args(["--csv", "--print-units", "base", "--clock-control", "none"])
        .args(["--profile-from-start", "off", "--metrics", &names])
        .arg(env::current_exe().map_err(|error| anyhow!("cannot find this program: {error}"))?)
        .args(env::args_os().skip(1))
        .arg("--under-ncu");
    let output = command.output();
    let output = output.map_err(|error| anyhow!("cannot run {}: {error}", ncu.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        // `ncu` writes its own errors among what the program prints.
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_error = |line: &&str| line.starts_with("==ERROR==") || line.starts_with("error: ");
        let lines: Vec<&str> = text
            .lines()
            .chain(errors.lines())
            .filter(is_error)
            .collect();
        bail!("ncu failed with {}: {}", output.status, lines.join("; "));
    }
    parse(&text)
}

/// Reads what `ncu --csv` prints: lines of quoted fields, one for each launch and metric, the columns' names first.
fn parse(text: &str) -> Result<Vec<Measured>> {
    let mut lines = text.lines().filter_map(|line| {
        let fields = line.strip_prefix('"')?.strip_suffix('"')?;
        Some(fields.split("\",\"").collect::<Vec<_>>())
    });
    let header = lines.next().context("ncu has counted no launch")?;
    let mut launches: Vec<(String, Measured)> = Vec::new();
    for line in lines {
        ensure!(
            line.len() == header.len(),
            "ncu: wanted {} columns, found {}",
            header.len(),
            line.len()
        );
        let fields: HashMap<&str, &str> = header.iter().copied().zip(line).collect();
        let field = |name: &str| {
            let field = fields.get(name).copied();
            field.with_context(|| format!("ncu: no column `{name}`"))
        };
        let id = field("ID")?;
        if launches.last().is_none_or(|(last, _)| last != id) {
            let launch = Measured {
                kernel: field("Kernel Name")?.to_owned(),
                values: BTreeMap::new(),
            };
            launches.push((id.to_owned(), launch));
        }
        let (name, value) = (field("Metric Name")?, field("Metric Value")?);
        // A metric that the GPU does not have is `n/a`.
        if let Ok(number) = value.replace(',', "").parse() {
            let (_, launch) = launches.last_mut().expect("it was added above");
            launch.values.insert(name.to_owned(), number);
        }
    }
    ensure!(!launches.is_empty(), "ncu has counted no launch");
    Ok(launches.into_iter().map(|(_, launch)| launch).collect())
}

/// Prints the launches, each beside the emulator's first launch of the same kernel that is left.
pub fn write(
    measured: &[Measured],
    emulated: &[&LaunchReport],
    json: bool,
    out: &mut impl Write,
) -> Result<()> {
    let mut left: Vec<&LaunchReport> = emulated.to_vec();
    for launch in measured {
        if json {
            let line = serde_json::json!({"kernel": launch.kernel, "metrics": launch.values});
            writeln!(out, "{line}")?;
            continue;
        }
        let same = left
            .iter()
            .position(|report| report.kernel == launch.kernel);
        let report = same.map(|same| left.remove(same));
        let heading = ["emulator", "GPU"];
        writeln!(
            out,
            "\n{:<32}{:>16}{:>16}",
            launch.kernel, heading[0], heading[1]
        )?;
        for metric in &METRICS {
            let number = |value: Option<f64>| match value {
                None => String::new(),
                Some(value) if value.fract() == 0.0 => format!("{value:.0}"),
                Some(value) => format!("{value:.1}"),
            };
            let found = launch.values.get(metric.name).copied();
            let emulated = report.and_then(metric.emulated);
            if found.is_none_or(|value| value == 0.0) && emulated.is_none_or(|value| value == 0.0) {
                continue;
            }
            writeln!(
                out,
                "{:<32}{:>16}{:>16}",
                metric.label,
                number(emulated),
                number(found)
            )?;
        }
    }
    Ok(())
}
