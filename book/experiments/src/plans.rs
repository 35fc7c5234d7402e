//! What a plan of SpMM decides for matrices of several kinds.

use crate::spmv::Matrix;
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::io::Write;
use warprow::generate::{Communities, communities, uniform};
use warprow::{CsrMatrix, Device, Spmm, SpmmOptions};

/// A plan.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The kind of matrix
    #[arg(value_enum)]
    pub kind: Kind,

    /// Columns of X and Y
    #[arg(long, default_value_t = 32)]
    pub features: u32,
}

/// A kind of matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    /// The dependencies of Debian's packages
    Packages,
    /// 600 rows of 500 random columns
    LongRows,
    /// Communities of nodes that are neighbours of each other, in random order
    Communities,
}

/// Columns of the output.
const WIDTH: usize = 110;

impl Kind {
    fn matrix(self) -> Result<CsrMatrix<f32>> {
        Ok(match self {
            Self::Packages => Matrix::default().read()?,
            Self::LongRows => uniform(600, 2000, 300_000, 1)?,
            Self::Communities => {
                let planted = Communities {
                    sizes: 60..=600,
                    inside: 0.85,
                    shuffled: true,
                };
                communities(20_000, 600_000, &planted, 1)?
            }
        })
    }
}

/// Prints what the plan of a matrix decides.
///
/// # Errors
///
/// The device's, or those of `out`.
pub fn run(options: &Options, device: &Device, out: &mut dyn Write) -> Result<()> {
    let a = options.kind.matrix()?;
    let plan = Spmm::plan(
        device,
        a.view(),
        SpmmOptions::new().features(options.features),
    )?;
    writeln!(out, "kernel   {}", plan.kernel().name())?;
    writeln!(out, "order    {}", plan.order().name())?;
    if let Some(lanes) = plan.lanes(options.features) {
        writeln!(out, "lanes    {lanes} of a sub-warp")?;
    }
    if let Some(launch) = plan.launch_config(options.features as usize)? {
        writeln!(out, "launch   {launch}")?;
    }
    writeln!(out, "columns  in {} blocks", plan.column_blocks())?;
    let mut line = "plan    ".to_owned();
    for word in plan.to_string().split(' ') {
        if line.len() + word.len() >= WIDTH {
            writeln!(out, "{line}")?;
            line = " ".repeat(8);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}")?;
    Ok(())
}
