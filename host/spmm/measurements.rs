//! What a plan knows of its candidates' times.

use super::options::{RowOrder, SpmmTuning};
use std::fmt;
use std::time::Duration;
use warprow_kernels::spmm::SpmmKernel;

/// A candidate that a plan has timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpmmMeasurement {
    /// What it is asked for by.
    pub tuning: SpmmTuning,
    /// The time of a run.
    pub time: Duration,
}

impl fmt::Display for SpmmMeasurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tuning = &self.tuning;
        write!(f, "{}", tuning.kernel.map_or("", SpmmKernel::name))?;
        if let Some(lanes) = tuning.lanes {
            write!(f, " with {lanes} lanes")?;
        }
        if tuning.shared_x == Some(true) {
            write!(f, " with X in shared memory")?;
        }
        if let Some(blocks @ 2..) = tuning.column_blocks {
            write!(f, " in {blocks} blocks of columns")?;
        }
        if let Some(order) = tuning.order.filter(|order| *order != RowOrder::Given) {
            write!(f, " in the order {}", order.name())?;
        }
        if let Some(size) = tuning.task_size {
            let joined = match tuning.join_tasks {
                Some(true) => "joined ",
                _ => "",
            };
            write!(f, " on {joined}tasks of {size} steps")?;
        }
        write!(f, " {:.4} ms", self.time.as_secs_f64() * 1e3)
    }
}

/// What a plan knows of its candidates' times.
#[derive(Clone, Debug)]
pub(super) enum Measurements {
    /// The options do not want them.
    NotWanted,
    /// They were wanted, and there are none, for a reason.
    None(&'static str),
    /// Those of the candidates, the fastest first.
    Of(Vec<SpmmMeasurement>),
}

impl Measurements {
    pub fn all(&self) -> &[SpmmMeasurement] {
        match self {
            Self::NotWanted | Self::None(_) => &[],
            Self::Of(all) => all,
        }
    }
}

impl fmt::Display for Measurements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWanted => Ok(()),
            Self::None(reason) => write!(f, "; not measured: {reason}"),
            Self::Of(all) => {
                write!(f, "; measured: ")?;
                for (index, measurement) in all.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{measurement}")?;
                }
                Ok(())
            }
        }
    }
}
