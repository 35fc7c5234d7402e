//! The products of this crate that a run times: the default, and a sweep over limits that replace a kernel by others.

use crate::spgemm::options::Options;
use warprow::spgemm::{BinLimits, SpgemmOptions, SpgemmTuning};

/// The name of the product with the default limits, or those that the command line changes.
pub const OURS: &str = "warprow";

/// A product: its name in the results, and its options.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The name.
    pub name: &'static str,
    /// The options.
    pub options: SpgemmOptions,
}

/// A name, and a change of the limits.
type LimitChange = (&'static str, fn(&mut BinLimits));

/// Limits under which other kernels take the rows of some kernel. The name says what is not launched, or less often.
const SWEEP: [LimitChange; 13] = [
    ("sizes_joined", |limits| limits.joined_products = u32::MAX),
    ("no_merge", |limits| limits.merge_nonzeros = 0),
    ("no_sort_of_512", |limits| limits.sort_products = 256),
    ("no_numeric_sort", |limits| limits.numeric_sort_products = 0),
    ("no_runs", |limits| limits.run_span = 0),
    ("no_narrow", |limits| limits.narrow_span = 0),
    ("no_hash", |limits| limits.hash_products = 0),
    ("few_rows_joined", |limits| limits.few_rows = u32::MAX),
    ("no_neighbours", |limits| {
        limits.min_neighbour_warps = u32::MAX;
    }),
    ("no_windows", |limits| limits.window_span = 0),
    ("no_search_rows", |limits| limits.search_row_entries = 0),
    ("no_spread", |limits| limits.spread_products = 0),
    ("no_rank", |limits| limits.rank_words = 0),
];

/// The default first, then those of a sweep if the options ask for one. `default` is the limits of a plan for the
/// device and the rows of A.
///
/// # Errors
///
/// Limits on the command line that are none.
pub fn choices(options: &Options, default: BinLimits) -> anyhow::Result<Vec<Choice>> {
    let asked_for = options.bin_limits(default)?;
    let own = SpgemmOptions::new()
        .deterministic(options.deterministic)
        .tuning(
            SpgemmTuning::new()
                .low_memory(options.low_memory)
                .bin_limits(asked_for),
        );
    let mut choices = vec![Choice {
        name: OURS,
        options: own,
    }];
    if options.sweep {
        choices.extend(SWEEP.map(|(name, change)| {
            let mut limits = asked_for.unwrap_or(default);
            change(&mut limits);
            Choice {
                name,
                options: own.map_tuning(|tuning| tuning.bin_limits(limits)),
            }
        }));
        choices.push(Choice {
            name: "no_product_map",
            options: own.map_tuning(|tuning| tuning.low_memory(true)),
        });
    }
    Ok(choices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use warprow::device::{Device, EmulatorOptions};

    /// `merge_nonzeros` of each choice, for an A of `rows` rows on a device of one multiprocessor. A choice without
    /// limits has those of the plan.
    fn merged(arguments: &[&str], rows: u32) -> Vec<(&'static str, u32)> {
        let options = EmulatorOptions::new().workers(std::num::NonZeroUsize::new(1));
        let device = Device::emulator(options);
        let options = Options::try_parse_from([&["spgemm"], arguments].concat()).unwrap();
        let default = SpgemmOptions::new().bin_limits::<f32>(&device, rows);
        let choices = choices(&options, default).unwrap();
        let limits = |choice: &Choice| choice.options.bin_limits::<f32>(&device, rows);
        let merged = |choice: &Choice| (choice.name, limits(choice).merge_nonzeros);
        choices.iter().map(merged).collect()
    }

    #[test]
    fn a_sweep_merges_rows_where_a_plan_does_and_nowhere_else() {
        assert!(
            merged(&["--sweep"], 2047)
                .iter()
                .all(|&(_, nonzeros)| nonzeros == 0)
        );
        for (name, nonzeros) in merged(&["--sweep"], 2048) {
            let wanted = if name == "no_merge" { 0 } else { 16 };
            assert_eq!(nonzeros, wanted, "{name}");
        }
        // Other limits on the command line leave it as it is, and one that names it decides.
        assert_eq!(merged(&["--bin-limits", "few_rows=0"], 2047)[0].1, 0);
        for (name, nonzeros) in merged(&["--sweep", "--bin-limits", "merge_nonzeros=9"], 2047) {
            let wanted = if name == "no_merge" { 0 } else { 9 };
            assert_eq!(nonzeros, wanted, "{name}");
        }
    }
}
