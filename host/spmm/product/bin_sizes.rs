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
use warprow_kernels::spmm::product::row_bins;

/// Resident warps of a multiprocessor, as 40 registers allow: those of the kernel for f32 on sm_90. All types and GPUs
/// are planned with so many.
const RESIDENT_WARPS: u32 = 48;

/// The longest row that is not cut is about this multiple of a power of the share: for up to two lanes of a nonzero,
/// and for more, with which a part takes longer.
const MULTIPLES: [f64; 2] = [6.0, 4.0];

/// That power. The best length grows more slowly than the share: 512 nonzeros for a share of 370, 2048 for 2200.
const POWER: f64 = 0.8;

/// The range of the longest row that is not cut.
const LONGEST: [f64; 2] = [64.0, 4096.0];

/// Rows of usual length are not cut, as that costs more time than the better balance saves: those of up to this multiple
/// of the mean, rounded up to a power of two. The first number is for few lanes of a nonzero, the second for more.
const MEANS: [f64; 2] = [2.0, 1.5];

/// So many lanes of a nonzero are few.
const LANES_OF_FEW_FEATURES: u32 = 4;

/// The limit of a usual length, in shares.
const MOST_SHARES: f64 = 4.0;

/// A usual length may exceed [`MOST_SHARES`] up to this, if the mean is not longer: for few lanes, and for more.
const UNCUT: [f64; 2] = [512.0, 128.0];

/// If rows from this length on take a few waves, groups get fewer lanes.
const LONG_ROW: u32 = 128;

/// Fewer than so many waves are few: 3.2 gained by it, 9 lost, and nothing between was measured.
const MOST_WAVES: f64 = 4.0;

/// The warps that a device runs at the same time.
pub fn resident_warps(multiprocessors: u32) -> u32 {
    multiprocessors.max(1).saturating_mul(RESIDENT_WARPS)
}

/// The binary logarithm of the nonzeros of the longest row that is not cut, in a matrix of that size.
pub fn log_longest(rows: u32, nonzeros: u32, resident_warps: u32, lanes_of_nonzero: u32) -> u32 {
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

/// How many lanes the groups of rows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSizes {
    lanes_of_nonzero: u32,
    /// The most lanes of a group: fewer than 32 only if all warps are one wave then.
    most: u32,
}

impl GroupSizes {
    /// Those of a matrix with so many parts, and with classes of rows that are not cut: the power of two above the
    /// lengths of a class, and its rows. In the last of a few waves, a part of the device would be idle. So long rows
    /// get the most lanes with which everything is one wave, and shorter rows get no more than that. If nothing fits
    /// one wave, groups stay as they are.
    pub fn new(
        lanes_of_nonzero: u32,
        resident_warps: u32,
        parts: f64,
        classes: impl Iterator<Item = (u32, f64)> + Clone,
    ) -> Self {
        let with_most = |most| Self {
            lanes_of_nonzero,
            most,
        };
        let waves = |most| {
            let warps = classes.clone().map(|(above, rows)| {
                let most = if above / 2 < LONG_ROW {
                    WARP_SIZE
                } else {
                    most
                };
                rows * f64::from(with_most(most).of_rows_below(above)) / f64::from(WARP_SIZE)
            });
            (parts + warps.sum::<f64>()) / f64::from(resident_warps.max(1))
        };
        if !(1.0..MOST_WAVES).contains(&waves(WARP_SIZE)) {
            return with_most(WARP_SIZE);
        }
        let fewer = [16, 8, 4, 2, 1].into_iter();
        let mut fewer = fewer.filter(|&lanes| lanes >= lanes_of_nonzero);
        with_most(
            fewer
                .find(|&lanes| waves(lanes) <= 1.0)
                .unwrap_or(WARP_SIZE),
        )
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

    #[test]
    fn the_longest_row_is_a_power_of_two_that_grows_with_the_matrix() {
        let longest = |rows, nonzeros, lanes| 1 << log_longest(rows, nonzeros, WARPS, lanes);
        assert_eq!(longest(0, 0, 1), 64, "the least");
        assert_eq!(longest(169_343, 1_166_243, 1), 512);
        assert_eq!(longest(169_343, 1_166_243, 8), 256);
        assert_eq!(longest(235_868, 2_358_104, 8), 512);
        assert_eq!(longest(716_847, 13_954_819, 8), 2048);
        assert_eq!(longest(716_847, 13_954_819, 1), 2048);
        assert_eq!(longest(9, u32::MAX, 8), 4096, "the most");
        assert_eq!(1 << log_longest(9, u32::MAX, 0, 0), 4096);
    }

    #[test]
    fn rows_of_usual_lengths_are_not_cut_unless_few_long_ones_are_all() {
        let longest = |rows, nonzeros, lanes| 1 << log_longest(rows, nonzeros, WARPS, lanes);
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
    fn long_rows_get_fewer_lanes_if_all_warps_then_run_at_the_same_time() {
        let of_rows = |rows: u32, above, lanes| {
            GroupSizes::new(lanes, WARPS, 0.0, [(above, f64::from(rows))].into_iter())
        };
        let sizes = |rows, lanes| of_rows(rows, 512, lanes);
        let short = of_rows(8_000, 128, 2);
        assert_eq!(short.of_rows_below(128), 32, "rows that are not long");
        let lanes = |rows, of_nonzero| sizes(rows, of_nonzero).of_rows_below(512);
        assert_eq!(lanes(6_000, 2), 32, "one wave");
        assert_eq!(lanes(8_000, 2), 16);
        assert_eq!(lanes(20_000, 4), 8);
        assert_eq!(lanes(20_000, 16), 32, "16 are too many for one wave");
        assert_eq!(lanes(60_000, 2), 32, "many waves");
        assert_eq!(
            sizes(20_000, 4).of_rows_below(128),
            8,
            "no more than longer rows"
        );
        assert_eq!(sizes(20_000, 4).nonzeros_of_lane(400), 200);
        assert_eq!(sizes(60_000, 4).nonzeros_of_lane(400), 50);
    }

    #[test]
    fn no_lane_adds_up_more_of_a_shorter_row() {
        for lanes in [1, 2, 4, 8, 16, 32] {
            for rows in [1_000.0, 8_000.0, 60_000.0] {
                let sizes = GroupSizes::new(lanes, WARPS, 0.0, [(512, rows)].into_iter());
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
    }
}
