//! How rows are divided for the kernel [`row_bins`](warprow_kernels::spmm::product::row_bins): the longest row that is
//! not cut, and the lanes of a row.
//!
//! - A *share* is the nonzeros of the matrix divided by the resident warps: those that run at the same time.
//! - A *part* is a piece of a cut row, as long as the longest row that is not cut. It has a warp.
//! - The *lanes of a nonzero* load its row of X together. A *group* has the lanes of a row.
//! - A *wave* is as many warps as run at the same time.
//!
//! docs/notes/spmm.md and docs/notes/spmm_plan.md, "Few rows", say what the constants were measured on.

use cuda_std::warp::WARP_SIZE;
use std::iter;
use warprow_kernels::spmm::product::group_sum;
use warprow_kernels::spmm::product::row_bins::{self, shared_x};

/// Resident warps of a multiprocessor, as 40 registers allow: those of the kernel for f32 on sm_90. All types and GPUs
/// are planned with so many.
const RESIDENT_WARPS: u32 = 48;

/// The longest row that is not cut is about this multiple of a power of the share: for up to two lanes of a nonzero,
/// and for more, with which a part takes longer.
const MULTIPLES: [f64; 2] = [6.0, 4.0];

/// That power. The best length grows more slowly than the share: 512 nonzeros for a share of 370, 2048 for 2200.
const POWER: f64 = 0.8;

/// The range of the longest row that is not cut, before [`SPARED_BATCHES`].
const LONGEST: [f64; 2] = [64.0, 4096.0];

/// Rows of usual length are not cut, as that costs more time than the better balance saves: those of up to this
/// multiple of the mean, rounded up to a power of two. The first number is for few lanes of a nonzero, the second for more.
const MEANS: [f64; 2] = [2.0, 1.5];

/// So many lanes of a nonzero are few.
const LANES_OF_FEW_FEATURES: u32 = 4;

/// The limit of a usual length, in shares.
const MOST_SHARES: f64 = 4.0;

/// A usual length may exceed [`MOST_SHARES`] up to this, if the mean is not longer: for few lanes, and for more.
const UNCUT: [f64; 2] = [512.0, 128.0];

/// No row is cut if the longest has at most so many batches of nonzeros more than the limit for cutting: these batches
/// take less time than adding up parts.
const SPARED_BATCHES: u64 = 4;

/// Groups have one of these numbers of lanes at most.
const MOST_LANES: [u32; 2] = [WARP_SIZE, WARP_SIZE / 2];

/// From so many waves on, groups of `row_bins` have as many lanes as there can be: with fewer, more rows are in the L1
/// cache at the same time. In shared memory all rows of X are.
const MOST_WAVES: f64 = 4.0;

/// What a warp does for its rows beside the batches of their nonzeros takes as long as so many batches.
const BATCHES_OF_ROW: f64 = 2.0;

/// The warps that a device runs at the same time.
pub fn resident_warps(multiprocessors: u32) -> u32 {
    multiprocessors.max(1).saturating_mul(RESIDENT_WARPS)
}

/// The lengths of a matrix's rows.
#[derive(Clone, Copy, Debug)]
pub struct RowLengths {
    /// The number of rows.
    pub rows: u32,
    /// The nonzeros of all rows.
    pub nonzeros: u32,
    /// The nonzeros of the longest row, or an upper bound, if it is known.
    pub longest: Option<u32>,
}

/// The binary logarithm of the nonzeros of the longest row that is not cut.
pub fn log_longest(of: RowLengths, resident_warps: u32, lanes_of_nonzero: u32) -> u32 {
    let usual = log_usual_longest(of, resident_warps, lanes_of_nonzero);
    let spared = |&longest: &u32| {
        let more = u64::from(longest.saturating_sub(1 << usual));
        let nonzeros_of_batch = u64::from(WARP_SIZE) * group_sum::LOADS as u64;
        more * u64::from(lanes_of_nonzero) <= SPARED_BATCHES * nonzeros_of_batch
    };
    let longest = of.longest.filter(spared);
    longest.map_or(usual, |longest| {
        usual.max(longest.next_power_of_two().ilog2())
    })
}

/// The same by the size of the matrix alone, whatever its longest row.
fn log_usual_longest(of: RowLengths, resident_warps: u32, lanes_of_nonzero: u32) -> u32 {
    let RowLengths { rows, nonzeros, .. } = of;
    let [of_few_lanes, of_more] = MULTIPLES;
    let multiple = if lanes_of_nonzero <= 2 {
        of_few_lanes
    } else {
        of_more
    };
    let share = f64::from(nonzeros) / f64::from(resident_warps.max(1));
    let mean = f64::from(nonzeros.div_ceil(rows.max(1)).max(1));
    let has_few_features = lanes_of_nonzero <= LANES_OF_FEW_FEATURES;
    let of_lanes = |[of_few, of_more]: [f64; 2]| if has_few_features { of_few } else { of_more };
    let usual = (of_lanes(MEANS) * mean).log2().ceil().exp2();
    let uncut = Some(of_lanes(UNCUT)).filter(|&uncut| mean <= uncut);
    let limit = (MOST_SHARES * share).max(uncut.unwrap_or(0.0));
    let [least, most] = LONGEST;
    let longest = (multiple * share.powf(POWER)).max(usual.min(limit));
    longest.clamp(least, most).log2().round() as u32
}

/// The warps of a kernel that takes rows in bins, on a device.
#[derive(Clone, Copy, Debug)]
pub struct KernelWarps {
    /// Those that run at the same time.
    resident: u32,
    /// Nonzeros of a lane that are loaded together: those of a batch.
    pub loads: usize,
    /// Whether each warp takes rows until none is left, as with X in shared memory.
    are_persistent: bool,
}

impl KernelWarps {
    /// Those of `row_bins`, where X is in global memory.
    pub fn new(multiprocessors: u32) -> Self {
        Self {
            resident: resident_warps(multiprocessors),
            loads: group_sum::LOADS,
            are_persistent: false,
        }
    }

    /// Those of `row_bins` with X in shared memory.
    pub fn with_shared_x(multiprocessors: u32) -> Self {
        Self {
            resident: multiprocessors.max(1).saturating_mul(shared_x::WARPS),
            loads: shared_x::LOADS,
            are_persistent: true,
        }
    }
}

/// How many lanes the groups of rows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSizes {
    lanes_of_nonzero: u32,
    /// The most lanes of a group.
    most: u32,
}

impl GroupSizes {
    /// Those of a matrix with so many parts, of so many nonzeros each, and with classes of rows that are not cut, the
    /// longest first: the power of two above the lengths of a class, and its rows.
    ///
    /// Where there are several waves, groups of half a warp may take less time: a warp then starts two rows at a time,
    /// and waits twice as long for each. The time of both is estimated.
    pub fn new(
        lanes_of_nonzero: u32,
        warps: KernelWarps,
        (parts, longest): (f64, f64),
        classes: impl Iterator<Item = (u32, f64)> + Clone,
    ) -> Self {
        let resident = f64::from(warps.resident.max(1));
        let of_most = MOST_LANES.map(|most| {
            let sizes = Self {
                lanes_of_nonzero,
                most: most.max(lanes_of_nonzero),
            };
            let items = classes.clone().map(|(above, rows)| {
                let lanes = sizes.of_rows_below(above);
                (f64::from(lanes), rows, f64::from(above))
            });
            let parts = (f64::from(WARP_SIZE), parts, longest);
            // The sum of the waves, the work of all warps, and when the last warp ends, in batches.
            let (mut waves, mut work, mut end) = (0.0, 0.0, 0.0_f64);
            for (lanes, items, nonzeros) in iter::once(parts).chain(items) {
                let of_class = items * lanes / f64::from(WARP_SIZE);
                let batches = nonzeros * f64::from(lanes_of_nonzero) / (lanes * warps.loads as f64);
                let time = BATCHES_OF_ROW + batches;
                waves += of_class / resident;
                // Rounds until this class ends: the work of longer rows is counted in warps of this class.
                let rounds = (work / time + of_class) / resident;
                let rounds = if waves <= 1.0 {
                    1.0
                } else if warps.are_persistent {
                    rounds.max(1.0)
                } else {
                    rounds.ceil()
                };
                work += of_class * time;
                if of_class > 0.0 {
                    end = end.max(rounds * time);
                }
            }
            (sizes, waves, end)
        });
        let [(of_warp, waves, end), (of_half, _, end_of_half)] = of_most;
        let most_waves = match warps.are_persistent {
            true => f64::INFINITY,
            false => MOST_WAVES,
        };
        match waves > 1.0 && waves < most_waves && end_of_half < end {
            true => of_half,
            false => of_warp,
        }
    }

    /// The lanes for rows of fewer than `above` nonzeros, a power of two, and of at least half as many.
    pub fn of_rows_below(self, above: u32) -> u32 {
        row_bins::group(self.lanes_of_nonzero, above).min(self.most)
    }

    /// The most nonzeros that a lane adds up one after the other, of a row of so many or of any shorter one.
    pub fn nonzeros_of_lane(self, nonzeros: usize) -> usize {
        /// Of rows that are too short for the largest groups.
        const OF_SHORT_ROWS: usize = 16;
        let above = u32::try_from(nonzeros).map_or(u32::MAX, |row| row.saturating_add(1));
        let above = above.checked_next_power_of_two().unwrap_or(u32::MAX);
        let together = self.of_rows_below(above) / self.lanes_of_nonzero.max(1);
        let of_this_row = nonzeros.div_ceil(together.max(1) as usize);
        of_this_row.max(OF_SHORT_ROWS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The warps that an H200 runs at the same time.
    const WARPS: u32 = 132 * 48;

    /// A matrix whose longest row is not known.
    fn any(rows: u32, nonzeros: u32) -> RowLengths {
        RowLengths {
            rows,
            nonzeros,
            longest: None,
        }
    }

    #[test]
    fn the_longest_row_is_a_power_of_two_that_grows_with_the_matrix() {
        let longest = |rows, nonzeros, lanes| 1 << log_longest(any(rows, nonzeros), WARPS, lanes);
        assert_eq!(longest(0, 0, 1), 64, "the least");
        assert_eq!(longest(169_343, 1_166_243, 1), 512);
        assert_eq!(longest(169_343, 1_166_243, 8), 256);
        assert_eq!(longest(235_868, 2_358_104, 8), 512);
        assert_eq!(longest(716_847, 13_954_819, 8), 2048);
        assert_eq!(longest(716_847, 13_954_819, 1), 2048);
        assert_eq!(longest(9, u32::MAX, 8), 4096, "the most");
        assert_eq!(1 << log_longest(any(9, u32::MAX), 0, 0), 4096);
    }

    #[test]
    fn rows_of_usual_lengths_are_not_cut_unless_few_long_ones_are_all() {
        let longest = |rows, nonzeros, lanes| 1 << log_longest(any(rows, nonzeros), WARPS, lanes);
        assert_eq!(longest(4_267, 4_267 * 500, 4), 1024);
        assert_eq!(longest(4_267, 4_267 * 500, 8), 1024);
        assert_eq!(longest(4_267, 4_267 * 320, 8), 512);
        assert_eq!(
            longest(768, 768 * 300, 4),
            512,
            "up to 512 for few features"
        );
        assert_eq!(longest(768, 768 * 300, 8), 128, "4 shares of 36 for more");
        assert_eq!(longest(2_048, 2_048 * 51, 8), 128);
        assert_eq!(longest(900, 900 * 70, 8), 128);
        for (lanes, most) in [(4, 512), (5, 128)] {
            assert_eq!(longest(700, 700 * most, lanes), most, "{lanes} lanes");
            assert_eq!(
                longest(700, 700 * (most + 1), lanes),
                most / 2,
                "{lanes} lanes"
            );
        }
        assert_eq!(longest(100, 100 * 20_000, 4), 1024);
        assert_eq!(longest(1, 20_000, 4), 64);
    }

    #[test]
    fn a_row_that_is_a_little_longer_than_the_limit_is_not_cut() {
        let longest = |longest, lanes| {
            let of = RowLengths {
                longest: Some(longest),
                ..any(10_000, 20_000)
            };
            1 << log_longest(of, WARPS, lanes)
        };
        assert_eq!(longest(0, 1), 64, "a matrix without nonzeros");
        assert_eq!(longest(64, 1), 64);
        assert_eq!(longest(65, 1), 128);
        assert_eq!(longest(64 + 512, 1), 1024, "four batches more");
        assert_eq!(longest(64 + 513, 1), 64);
        assert_eq!(longest(64 + 16, 32), 128);
        assert_eq!(longest(64 + 17, 32), 64);
        assert_eq!(longest(u32::MAX, 32), 64);
        let of_many = RowLengths {
            longest: Some(4096 + 512),
            ..any(9, u32::MAX)
        };
        assert_eq!(1 << log_longest(of_many, WARPS, 1), 8192);
    }

    /// Those of an H200.
    fn of_classes(warps: fn(u32) -> KernelWarps, lanes: u32, classes: &[(u32, f64)]) -> GroupSizes {
        GroupSizes::new(lanes, warps(132), (0.0, 64.0), classes.iter().copied())
    }

    #[test]
    fn groups_have_half_a_warp_where_all_rows_end_earlier_then() {
        let sizes = |rows, lanes| of_classes(KernelWarps::new, lanes, &[(512, rows)]);
        let lanes = |rows, of_nonzero| sizes(rows, of_nonzero).of_rows_below(512);
        assert_eq!(lanes(6_000.0, 2), 32, "one wave");
        assert_eq!(lanes(8_000.0, 2), 16, "one wave instead of two");
        assert_eq!(lanes(8_000.0, 32), 32, "a nonzero has a warp");
        assert_eq!(lanes(60_000.0, 2), 32, "many waves");
        assert_eq!(
            sizes(8_000.0, 4).of_rows_below(128),
            16,
            "no more than longer rows"
        );
        assert_eq!(sizes(8_000.0, 4).nonzeros_of_lane(400), 100);
        assert_eq!(sizes(60_000.0, 4).nonzeros_of_lane(400), 50);
    }

    #[test]
    fn rows_of_different_lengths_keep_whole_warps_if_the_longest_would_end_last() {
        let even = [(256, 8_000.0)];
        let uneven = [(2_048, 400.0), (256, 7_600.0)];
        let lanes = |classes| of_classes(KernelWarps::new, 2, classes).of_rows_below(256);
        assert_eq!((lanes(&even), lanes(&uneven)), (16, 32));
    }

    #[test]
    fn with_x_in_shared_memory_any_number_of_waves_may_have_half_warps() {
        let lanes = |rows| {
            let sizes = of_classes(KernelWarps::with_shared_x, 2, &[(256, rows)]);
            sizes.of_rows_below(256)
        };
        assert_eq!([4_000.0, 9_000.0, 60_000.0].map(lanes), [32, 16, 16]);
    }

    #[test]
    fn no_lane_adds_up_more_of_a_shorter_row() {
        for lanes in [1, 2, 4, 8, 16, 32] {
            for rows in [1_000.0, 8_000.0, 60_000.0] {
                let [sizes, shared] = [KernelWarps::new, KernelWarps::with_shared_x]
                    .map(|warps: fn(u32) -> KernelWarps| of_classes(warps, lanes, &[(512, rows)]));
                assert_bounded(lanes, sizes);
                assert_bounded(lanes, shared);
            }
        }
    }

    /// No row of up to 600 nonzeros has a lane that adds up more of them than the bound for a longer row.
    fn assert_bounded(lanes: u32, sizes: GroupSizes) {
        let of_row = |nonzeros: u32| {
            let group = sizes.of_rows_below((nonzeros + 1).next_power_of_two());
            nonzeros.div_ceil(group / lanes) as usize
        };
        for longest in 1..600 {
            let most = (1..=longest).map(of_row).max().unwrap();
            let bound = sizes.nonzeros_of_lane(longest as usize);
            assert!(
                most <= bound,
                "{longest} nonzeros, {sizes:?}: {most} > {bound}"
            );
        }
    }
}
