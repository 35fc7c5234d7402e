//! What a product that ran has come to: its times, and whether it is right.

use crate::harness::measure::Timing;
use crate::spmm::implementer::BenchElement;
use crate::spmm::operands::Operands;
use crate::spmm::report::{Computed, Outcome, Preparation, Verified};
use warprow::Spmm;

/// How often a peer may round the sum of an entry of 16-bit elements: cuSPARSE's algorithms add parts of a row in the
/// type of Y.
const ROUNDINGS_OF_PEER: f64 = 8.0;

/// The outcome of a product that took these times, warm and with a flushed L2 cache; `plan` is ours, if it is.
///
/// # Errors
///
/// The device's.
pub fn product<T: BenchElement>(
    [timing, flushed]: [Option<Timing>; 2],
    preparation: Preparation,
    operands: &Operands<'_, T>,
    plan: Option<&Spmm<T>>,
) -> anyhow::Result<Outcome> {
    let verification = operands.verify(plan)?;
    let max_rel_err = verification.entries.max_relative_error;
    // Not so if it is NaN.
    let of_rounded_sums = max_rel_err <= ROUNDINGS_OF_PEER * T::UNIT_ROUNDOFF;
    let is_narrow = T::UNIT_ROUNDOFF > T::SUM_UNIT_ROUNDOFF;
    let rounds_sums = plan.is_none() && is_narrow && !verification.ok() && of_rounded_sums;
    if !verification.ok() && !rounds_sums {
        eprintln!("{verification}");
    }
    let verified = Verified {
        rows_verified: verification.rows,
        max_rel_err,
        rounds_sums,
        exact: None,
        ok: verification.ok() || rounds_sums,
    };
    let computed = Computed::product(timing, preparation, verified);
    Ok(Outcome::Computed(computed.flushed(flushed)))
}
