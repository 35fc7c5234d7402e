//! `warprow info`: what a matrix is like, and which kernels the plans choose for it.

mod chart;
mod plans;
mod spy;
mod statistics;

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::operands::{InputOptions, check_memory};
use crate::output::Out;
use crate::results;
use crate::terminal::{bytes, count};
use clap::Args;
use serde_json::{Value, json};
use statistics::{Lengths, Statistics};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  warprow info graph.mtx
  warprow info edges.tsv --symmetric --features 32,128,512
  warprow info graph.npz --plot graph.svg
  warprow info graph.mtx --json | jq .rows.most";

#[derive(Args)]
pub struct Options {
    /// The sparse matrix
    a: PathBuf,

    #[command(flatten)]
    input: InputOptions,

    /// Columns of the dense matrices that products are planned for
    #[arg(
        long,
        value_name = "N,N,..",
        value_delimiter = ',',
        default_value = "32,128"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    features: Vec<u32>,

    /// Plan no products
    #[arg(long)]
    no_plans: bool,

    /// A file for a picture of the nonzeros and of the rows' and columns' lengths
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

pub fn run(options: &Options, global: &Global) -> Result<bool> {
    let mut out = Out::new(global);
    let a = options.input.sparse::<f32>(&options.a)?;
    let name = options.a.display().to_string();
    check_memory(
        &format!(
            "{name}: statistics of {} x {}",
            count(a.rows()),
            count(a.cols())
        ),
        Statistics::memory(a.shape(), a.nnz()),
    )?;
    let place = results::bytes(options.plot.as_deref(), &mut out)?;
    let statistics = Statistics::of(&a);
    show(&name, &statistics, &mut out)?;
    if !options.no_plans {
        plans::show(&a, &statistics, &options.features, global, &mut out)?;
    }
    if let Some(path) = &options.plot {
        out.value("plot", path.to_string_lossy());
    }
    // First: the picture may fail.
    out.finish()?;
    if let Some(place) = place {
        let svg = spy::draw(&name, &a, &statistics).map_err(Failure::input)?;
        place.write_bytes(svg.as_bytes(), &mut out)?;
    }
    Ok(true)
}

fn show(name: &str, found: &Statistics, out: &mut Out) -> Result<()> {
    let Statistics {
        shape, nonzeros, ..
    } = found;
    out.value("file", name);
    out.value("shape", json!([shape.0, shape.1]));
    out.value("nonzeros", *nonzeros);
    out.value("stored_zeros", found.stored_zeros);
    let per_row = *nonzeros as f64 / shape.0.max(1) as f64;
    let csr = 8 * *nonzeros as u64 + 4 * (shape.0 as u64 + 1);
    let zeros = match found.stored_zeros {
        0 => String::new(),
        zeros => format!(", {} of them zero", count(zeros)),
    };
    out.paragraph(
        "matrix",
        format!(
            "{name}: {} x {}, {} nonzeros{zeros}, {per_row:.1} a row, {} as CSR in f32",
            count(shape.0),
            count(shape.1),
            count(*nonzeros),
            bytes(csr)
        ),
    )?;
    lengths("rows", &found.rows, out)?;
    lengths("columns", &found.columns, out)?;
    if let Some(symmetry) = &found.symmetry {
        let percent = |part: f64| format!("{:.1} %", 100.0 * part);
        out.value(
            "symmetry",
            json!({ "structure": symmetry.structure, "values": symmetry.values }),
        );
        out.paragraph(
            "symmetry",
            match (symmetry.structure, symmetry.values) {
                (1.0, 1.0) => "symmetric, values too".to_owned(),
                (structure, values) => format!(
                    "{} of the nonzeros off the diagonal have a counterpart across it, {} an equal one",
                    percent(structure),
                    percent(values)
                ),
            },
        )?;
    }
    let bandwidth = &found.bandwidth;
    out.value(
        "bandwidth",
        json!({
            "below": bandwidth.below,
            "above": bandwidth.above,
            "mean_distance": bandwidth.mean_distance,
            "on_diagonal": bandwidth.on_diagonal,
        }),
    );
    out.paragraph(
        "bandwidth",
        format!(
            "{} below the diagonal, {} above; mean distance from it {}; on it {}",
            count(bandwidth.below),
            count(bandwidth.above),
            count(bandwidth.mean_distance.round() as u64),
            count(bandwidth.on_diagonal)
        ),
    )?;
    out.value("locality", found.locality);
    out.paragraph(
        "locality",
        format!(
            "64 consecutive rows have {:.2} distinct columns per nonzero (1: no row of X is used twice)",
            found.locality
        ),
    )?;
    square(found, out)
}

fn lengths(what: &'static str, found: &Lengths, out: &mut Out) -> Result<()> {
    out.value(
        what,
        json!({
            "count": found.count,
            "least": found.least,
            "median": found.median,
            "mean": found.mean,
            "percentile_99": found.percentile_99,
            "most": found.most,
            "empty": found.empty,
            "histogram": found.histogram.iter().map(|bin| {
                json!({ "least": bin.least, "most": bin.most, "count": bin.count })
            }).collect::<Vec<Value>>(),
        }),
    );
    out.paragraph(
        what,
        format!(
            "{} to {} nonzeros, median {}, mean {:.1}; 99 % have at most {}; {} are empty",
            count(found.least),
            count(found.most),
            count(found.median),
            found.mean,
            count(found.percentile_99),
            count(found.empty)
        ),
    )?;
    for line in chart::histogram(&found.histogram) {
        out.line("", line)?;
    }
    Ok(())
}

/// The product of the matrix with itself.
fn square(found: &Statistics, out: &mut Out) -> Result<()> {
    let Some(square) = &found.square else {
        return Ok(());
    };
    let products = count(square.products);
    out.value(
        "square",
        json!({ "products": square.products, "entries": square.entries }),
    );
    out.paragraph(
        "A x A",
        match square.entries {
            Some(entries) => format!(
                "{products} products, {} entries, {:.2} products an entry",
                count(entries),
                square.products as f64 / entries.max(1) as f64
            ),
            None => format!("{products} products; too many to count the entries"),
        },
    )
}
