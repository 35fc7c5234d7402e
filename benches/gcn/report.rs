//! The results: a line on the terminal and a JSON object in the file for each.

use crate::measure::Timing;
use crate::networks::Network;
use crate::verification::Verification;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use warprow::device::Device;

/// A result: of one operator, or of the whole network.
#[derive(Clone, Debug)]
pub struct Line {
    /// `warprow`; `warprow_fused` where bias, ReLU and LogSoftmax are the end of products.
    pub implementation: &'static str,
    /// `gemm`, `spmm`, `activate`, `log_softmax`, `spmm_activate`, `spmm_log_softmax`; `network`; or `launches`, the network launched operator by operator.
    pub operator: String,
    /// The layer, from 1; 0 for the whole.
    pub layer: usize,
    /// Bytes to move.
    pub bytes: u128,
    /// The time of one run; none on the emulator.
    pub timing: Option<Timing>,
    /// Milliseconds of a copy of as many bytes.
    pub floor_ms: Option<f64>,
}

/// The file of the results, if there is one, and where and when they are from.
#[derive(Debug)]
pub struct Report {
    file: Option<File>,
    device: String,
    driver: Option<String>,
    date: String,
}

impl Report {
    /// Creates the file, or empties it; none for no path.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn create(path: Option<&Path>, device: &Device) -> std::io::Result<Self> {
        let driver = device.properties().driver;
        Ok(Self {
            file: path.map(File::create).transpose()?,
            device: device.name().to_owned(),
            driver: driver.map(|version| format!("CUDA {version}")),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        })
    }

    /// Prints a line of a network and adds it to the file; `found` is what was found in the network's result.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn write(
        &mut self,
        network: &Network,
        line: &Line,
        found: Verification,
    ) -> std::io::Result<()> {
        #[derive(Serialize)]
        struct Object<'a> {
            bench: &'static str,
            graph: &'static str,
            rows: u32,
            nnz: u32,
            widths: [usize; 3],
            #[serde(rename = "type")]
            element: &'static str,
            #[serde(rename = "impl")]
            implementation: &'static str,
            operator: &'a str,
            layer: usize,
            ms: Option<f64>,
            ms_min: Option<f64>,
            ms_max: Option<f64>,
            launches: Option<u32>,
            floor_ms: Option<f64>,
            bytes: u128,
            ok: bool,
            max_rel_err: f64,
            device: &'a str,
            driver: Option<&'a str>,
            date: &'a str,
        }
        println!("{}", text(network, line, found));
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let object = Object {
            bench: "gcn",
            graph: network.name,
            rows: network.nodes,
            nnz: network.edges,
            widths: network.widths,
            element: "f32",
            implementation: line.implementation,
            operator: &line.operator,
            layer: line.layer,
            ms: line.timing.map(|timing| timing.median),
            ms_min: line.timing.map(|timing| timing.min),
            ms_max: line.timing.map(|timing| timing.max),
            launches: line.timing.map(|timing| timing.launches),
            floor_ms: line.floor_ms,
            bytes: line.bytes,
            ok: found.ok,
            max_rel_err: found.max_rel_err,
            device: &self.device,
            driver: self.driver.as_deref(),
            date: &self.date,
        };
        let mut text = serde_json::to_string(&object)?;
        text.push('\n');
        file.write_all(text.as_bytes())
    }
}

fn text(network: &Network, line: &Line, found: Verification) -> String {
    let mut text = format!(
        "{:<9} {:<16} {:<28}",
        network.name,
        line.implementation,
        format!("{} {}", line.operator, line.layer)
    );
    match (line.timing, line.floor_ms) {
        (Some(timing), Some(floor)) => {
            let part = floor / timing.median;
            text += &format!("{:>9.4} ms, {part:.2} of the floor", timing.median);
        }
        (Some(timing), None) => text += &format!("{:>9.4} ms", timing.median),
        (None, _) => text += "emulated: no timing",
    }
    let verdict = if found.ok { "ok" } else { "WRONG" };
    text + &format!(", {verdict}, error {:.1e}", found.max_rel_err)
}
