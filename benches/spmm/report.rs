//! What a result is.

use crate::harness::measure::Timing;
use crate::spmm::floors::FloorTime;
use serde::Serialize;
use std::borrow::Cow;
use std::time::Duration;
use warprow::{Spmm, SpmmElement};

/// A product to compute.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The graph.
    pub graph: Cow<'static, str>,
    /// The distribution of its nonzeros.
    pub kind: &'static str,
    /// Rows of A and Y.
    pub rows: usize,
    /// Columns of A, rows of X.
    pub cols: usize,
    /// Nonzeros of A.
    pub nnz: usize,
    /// Columns of X and Y.
    pub features: u32,
    /// The element type.
    #[serde(rename = "type")]
    pub element: &'static str,
}

impl Case {
    /// Multiplications and additions of the product.
    pub fn operations(&self) -> f64 {
        2.0 * self.nnz as f64 * f64::from(self.features)
    }
}

/// Who computes a product.
#[derive(Clone, Debug, Serialize)]
pub struct Implementation {
    /// `warprow`, which is what the plan picks, a kernel's name, that of an order of the rows, an algorithm of
    /// cuSPARSE, or `gather_limit`, which computes no product.
    #[serde(rename = "impl")]
    pub name: &'static str,
    /// The kernel that ran, if it is one of this crate; of the gather limit, how it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Cow<'static, str>>,
    /// The instance that ran, if it is one of this crate's plans.
    #[serde(flatten)]
    pub instance: Option<Instance>,
    /// The version of cuSPARSE, if that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cusparse: Option<String>,
}

/// Which instance of a kernel ran: `scripts/instances-by-evidence` compares these with the instances that there are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Instance {
    /// Its PTX entry point: kernel and row end, element type, lanes of a sub-warp, elements of a load, loads of a lane.
    pub variant: &'static str,
    /// Blocks of columns, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column_blocks: Option<u32>,
    /// The entry point for the blocks after the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub further_variant: Option<&'static str>,
}

impl Instance {
    /// That of a plan's runs with so many features; none if the product is empty.
    pub fn of<T: SpmmElement>(plan: &Spmm<T>, features: u32) -> Option<Self> {
        let names = plan.entry_points(features);
        let blocks = plan.column_blocks();
        Some(Self {
            variant: names.first()?,
            column_blocks: (blocks > 1).then_some(blocks),
            further_variant: names.get(1).copied(),
        })
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "a case has a handful of results")]
pub enum Outcome {
    /// A product, or the limit, that was computed.
    Computed(Computed),
    /// One that was not.
    Skipped {
        /// Why.
        skipped: String,
    },
}

/// What was computed.
#[derive(Clone, Debug, Serialize)]
pub struct Computed {
    /// Milliseconds of one launch, the median; null on the emulator, like the following.
    pub ms: Option<f64>,
    /// The least of the samples.
    pub ms_min: Option<f64>,
    /// The most of the samples.
    pub ms_max: Option<f64>,
    /// Samples.
    pub samples: Option<u32>,
    /// Launches in a sample.
    pub launches: Option<u32>,
    /// Milliseconds of a launch whose operands come from memory, as the L2 cache was flushed before; the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_ms: Option<f64>,
    /// The bytes of a floor, and the measured rate.
    #[serde(flatten)]
    pub floor: Option<Rate>,
    /// The preparation; nothing of the limit.
    #[serde(flatten)]
    pub preparation: Option<Preparation>,
    /// The comparison; nothing of the limit, which is no product.
    #[serde(flatten)]
    pub verified: Option<Verified>,
}

/// The bytes of a floor, and the rate at which they move.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rate {
    /// Bytes.
    pub bytes: u64,
    /// GB/s, measured.
    pub gb_per_s: f64,
}

/// What has to be done once for many products, in milliseconds by the host's clock.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Preparation {
    /// The preprocessing of A on the device, with all that it allocates, until the device has finished.
    pub plan_ms: f64,
    /// The same the first time in this process, if it was done twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_plan_ms: Option<f64>,
    /// What of it the order of the rows took, where one was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_ms: Option<f64>,
    /// The order of the rows, if it is not the given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<&'static str>,
    /// The time of a run that the plan's cost model predicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
    /// What bounds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_bound: Option<&'static str>,
    /// The copy of A to the device before, where it is part of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_ms: Option<f64>,
}

/// The comparison of a product with that in f64.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Verified {
    /// Rows of Y that were compared.
    pub rows_verified: usize,
    /// Their greatest error relative to `|A||X|`; null if it is not finite.
    pub max_rel_err: f64,
    /// Whether it is a peer's product of 16-bit elements whose sums were rounded more than once, to 16 bits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rounds_sums: bool,
    /// Whether a product of small whole numbers was exact, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// Whether each entry is within the error that rounding explains.
    pub ok: bool,
}

impl Computed {
    /// The limit.
    pub fn limit(timing: Option<Timing>) -> Self {
        Self {
            ms: timing.map(|timing| timing.median),
            ms_min: timing.map(|timing| timing.min),
            ms_max: timing.map(|timing| timing.max),
            samples: timing.map(|timing| timing.samples),
            launches: timing.map(|timing| timing.launches),
            flushed_ms: None,
            floor: None,
            preparation: None,
            verified: None,
        }
    }

    /// A floor, which is computed from its bytes.
    pub fn floor(floor: FloorTime) -> Self {
        Self {
            ms: Some(floor.ms),
            floor: Some(Rate {
                bytes: floor.bytes,
                gb_per_s: floor.gb_per_s,
            }),
            ..Self::limit(None)
        }
    }

    /// With the time of a launch after a flush of the L2 cache.
    #[must_use]
    pub fn flushed(self, timing: Option<Timing>) -> Self {
        Self {
            flushed_ms: timing.map(|timing| timing.median),
            ..self
        }
    }

    /// The result of a product that took that time and passed or failed the verification.
    pub fn product(timing: Option<Timing>, preparation: Preparation, verified: Verified) -> Self {
        Self {
            preparation: timing.map(|_| preparation),
            verified: Some(verified),
            ..Self::limit(timing)
        }
    }
}

/// A line of the table and of the file.
#[derive(Clone, Debug)]
pub struct Line {
    /// Who computed.
    pub implementation: Implementation,
    /// What came of it.
    pub outcome: Outcome,
}

impl Line {
    /// The object of a file of results.
    pub fn of_case<'a>(&'a self, case: &'a Case) -> impl Serialize + 'a {
        #[derive(Serialize)]
        struct Object<'a> {
            bench: &'static str,
            #[serde(flatten)]
            case: &'a Case,
            #[serde(flatten)]
            implementation: &'a Implementation,
            #[serde(flatten)]
            outcome: &'a Outcome,
        }
        Object {
            bench: "spmm",
            case,
            implementation: &self.implementation,
            outcome: &self.outcome,
        }
    }

    /// This line, wrong if a product of small whole numbers was not exact. If that did not fit the device, it says so
    /// on the terminal.
    pub fn that_is_exact(mut self, exact: Result<bool, String>) -> Self {
        if let Outcome::Computed(Computed {
            verified: Some(verified),
            ..
        }) = &mut self.outcome
        {
            match exact {
                Ok(exact) => {
                    verified.exact = Some(exact);
                    verified.ok &= exact;
                }
                Err(reason) => eprintln!("no product of small whole numbers: {reason}"),
            }
        }
        self
    }

    /// This line, with the time of the first of two plans.
    pub fn after_first_plan(mut self, time: Option<Duration>) -> Self {
        if let Outcome::Computed(Computed {
            preparation: Some(preparation),
            ..
        }) = &mut self.outcome
        {
            preparation.first_plan_ms = time.map(|time| time.as_secs_f64() * 1e3);
        }
        self
    }

    /// Whether there is no wrong result in it.
    pub fn is_right(&self) -> bool {
        match &self.outcome {
            Outcome::Computed(computed) => computed.verified.is_none_or(|verified| verified.ok),
            Outcome::Skipped { .. } => true,
        }
    }

    /// The time in milliseconds, if there is one and the result is right.
    pub fn right_time(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Computed(computed) if self.is_right() => computed.ms,
            _ => None,
        }
    }
}
