//! The warps of each row, made on the device: one warp, or a team of two or four (see [`teams`]).
//!
//! Teams have the long rows, the rows that would not fill the device, and the rows that are left over where the others
//! are divided into blocks: up to three of any length, with four warps each. All rows have teams if that takes no
//! longer.

use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, optional_pointer};
use crate::operand;
use crate::primitives::scan::exclusive_scan;
use crate::spmm::error::SpmmError;
use std::fmt;
use std::ops::RangeInclusive;
use warprow_kernels::spmm::Items;
use warprow_kernels::spmm::product::teams;
use warprow_kernels::spmm::product::teams::WARPS;

/// The range of the maximum number of nonzeros that one warp takes.
const MAX_SHORT_ROW: RangeInclusive<u64> = 256..=2048;

/// Warps that a multiprocessor runs at the same time, as the registers of all instances of `in_step` for f32 but one
/// allow from sm_90 on. By host/ptx/registers.txt it is 36 warps of that one, and 16 to 40 of those for other types.
const RESIDENT_WARPS: u64 = 32;

/// The maximum number of nonzeros that one warp takes: 1.5 times a resident warp's share of all nonzeros. So the device
/// waits for no row.
fn max_short_row(a: &DevicePattern) -> u32 {
    let warps = u64::from(a.device().properties().multiprocessors) * RESIDENT_WARPS;
    let size = u64::from(a.nonzeros()) * 3 / (2 * warps.max(1));
    size.clamp(*MAX_SHORT_ROW.start(), *MAX_SHORT_ROW.end()) as u32
}

/// Waves of blocks from which on it does not matter how full the last one is.
pub const MANY_WAVES: u64 = 8;

/// Mean nonzeros of a warp of a team from which on the team is faster than fewer warps: as many as it has lanes.
const MIN_SHARE: f64 = 32.0;

/// The blocks of a kernel that the device runs at the same time: a *wave*.
#[derive(Clone, Copy, Debug)]
pub struct Wave {
    pub blocks: u64,
    /// The tiles of features, each of which has all blocks; `None` if the number of features is unknown.
    pub tiles: Option<u64>,
}

/// The warps of a team that rows may have, with so many nonzeros in the mean: the most that `fits`, or 1.
fn largest_team(mean_row: f64, fits: impl Fn(u64) -> bool) -> u32 {
    let has_work = |team: u32| mean_row >= MIN_SHARE * f64::from(team);
    let mut teams = [WARPS, WARPS / 2].into_iter();
    let found = teams.find(|&team| has_work(team) && fits(team.into()));
    found.unwrap_or(1)
}

/// The warps of each row of the last of so many waves, with so many nonzeros in a row in the mean: see [`Division`].
pub fn team_of_last_wave(waves: f64, mean_row: f64) -> u32 {
    let fills = |team: u64| waves < MANY_WAVES as f64 && waves.fract() * team as f64 <= 1.0;
    largest_team(mean_row, fills)
}

/// How many of the short rows have one warp, in whole blocks, and how many have two; the others have four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Division {
    single_rows: u32,
    pair_rows: u32,
}

impl Division {
    fn new(shorts: u32, long_rows: u32, nonzeros: u32, wave: Option<Wave>) -> Self {
        let (shorts, longs) = (u64::from(shorts), u64::from(long_rows));
        let mean_row = f64::from(nonzeros) / (shorts + longs).max(1) as f64;
        let blocks = shorts / u64::from(WARPS);
        let last = wave.and_then(|wave| last_teams(shorts, longs, mean_row, wave));
        let (single_blocks, team) = last.unwrap_or((blocks, WARPS));
        let single_rows = single_blocks.min(blocks) * u64::from(WARPS);
        let pair_rows = match team {
            WARPS => 0,
            _ => (shorts - single_rows) / 2 * 2,
        };
        // No more than there are rows.
        Self {
            single_rows: single_rows as u32,
            pair_rows: pair_rows as u32,
        }
    }
}

/// The blocks of rows with one warp, and the team of the short rows after them; `None` if short rows have no teams.
///
/// A short row with one warp can take longer than a long row with four, so all short rows have the largest team that
/// adds no wave. If none adds none, the rows of the last wave have the largest team with which they fit into a wave.
/// Their blocks take about a half or a fourth of the time, and all of the device. If the number of features is unknown,
/// nobody knows how full the last wave will be: then the last rows, a fourth of a wave, have teams of four if rows are
/// long enough for that. The mean row is that of all rows, long ones too.
fn last_teams(shorts: u64, longs: u64, mean_row: f64, wave: Wave) -> Option<(u64, u32)> {
    let (of_wave, tiles) = (wave.blocks.max(1), wave.tiles.unwrap_or(1).max(1));
    let blocks = |team: u64| ((shorts * team).div_ceil(WARPS.into()) + longs) * tiles;
    let (waves, rest) = (blocks(1) / of_wave, blocks(1) % of_wave);
    if waves >= MANY_WAVES {
        return None;
    }
    if wave.tiles.is_none() {
        let singles = blocks(1).saturating_sub(of_wave / 4 + longs);
        let team = largest_team(mean_row, |_| true);
        return (team == WARPS).then_some((singles, team));
    }
    let of_all = largest_team(mean_row, |team| {
        blocks(team).div_ceil(of_wave) <= blocks(1).div_ceil(of_wave)
    });
    if of_all > 1 {
        return Some((0, of_all));
    }
    // Each tile has whole blocks of single rows, and the rows after them.
    let of_rest = largest_team(mean_row, |team| {
        rest.div_ceil(tiles) * tiles * team <= of_wave
    });
    let singles = (waves * of_wave / tiles).saturating_sub(longs);
    (of_rest > 1 && rest > 0).then_some((singles, of_rest))
}

/// The warps of the rows of a matrix.
#[derive(Debug)]
pub struct Teams {
    count: u32,
    max_short_row: u32,
    /// Rows with a team: those of more nonzeros, and others with two and with four warps.
    long_rows: u32,
    pair_rows: u32,
    other_rows: u32,
    /// The row of each warp; `None` if it has the warp's number.
    row: Option<DeviceBuffer<u32>>,
}

impl Teams {
    /// Gives the rows of `a` their warps, in `order` or in their own. They fill whole waves, if the plan knows them. It
    /// waits for the device.
    pub fn new(
        a: &DevicePattern,
        requested_size: Option<u32>,
        order: Option<&DeviceBuffer<u32>>,
        wave: Option<Wave>,
    ) -> Result<Self, SpmmError> {
        let device = a.device();
        let max_short_row = requested_size.unwrap_or_else(|| max_short_row(a)).max(1);
        let row_ptr = a.row_ptr.read_only();
        let mut shorts = device.uninitialized::<u32>(a.rows as usize + 1)?;
        let config = teams::launch(a.rows);
        // SAFETY: a number for each row, and one for the end.
        unsafe {
            let arguments = (
                a.rows,
                optional_pointer(order),
                row_ptr,
                max_short_row,
                shorts.mutable(),
            );
            device.launch(&teams::count_short(), config, arguments)?;
        }
        // There are no more than rows.
        let short_rows = exclusive_scan(device, &mut shorts)? as u32;
        let long_rows = a.rows - short_rows;
        let division = Division::new(short_rows, long_rows, a.nonzeros(), wave);
        let (single_rows, pair_rows) = (division.single_rows, division.pair_rows);
        let teams = a.rows - single_rows;
        let of_pairs = u64::from(single_rows) + 2 * u64::from(pair_rows);
        let warps = u64::from(teams - pair_rows) * u64::from(WARPS) + of_pairs;
        let count = operand::count("the number of warps", warps)?;
        let mut row = None;
        if teams > 0 || order.is_some() {
            let row = row.insert(device.uninitialized::<u32>(count as usize)?);
            let pointers = (shorts.read_only(), row.mutable());
            let arguments = (
                a.rows,
                optional_pointer(order),
                row_ptr,
                max_short_row,
                pointers.0,
                single_rows,
                pair_rows,
                pointers.1,
            );
            // SAFETY: the sums of the short rows, whole blocks of single rows and of pairs, and a place for each warp.
            unsafe { device.launch(&teams::assign(), config, arguments)? };
        }
        Ok(Self {
            count,
            max_short_row,
            long_rows,
            pair_rows,
            other_rows: teams - pair_rows - long_rows,
            row,
        })
    }

    /// The number of warps.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// An upper bound of the number of roundings between a product and the sum of its row of `terms` nonzeros. A
    /// team's warps take chunks of 32 nonzeros in turn. At most two additions join the sub-warps of a warp, one each
    /// the warps. With sub-warps of 4 lanes, chunks have 64 nonzeros, and three additions join the sub-warps. Each of
    /// these has 8 nonzeros of a chunk, so there are fewer roundings.
    pub fn summation_depth(&self, terms: usize) -> usize {
        let chunks_of_a_warp = terms.div_ceil(32).div_ceil(WARPS as usize);
        let long = 32 * chunks_of_a_warp + 2 + WARPS as usize;
        terms.min(long.max(self.max_short_row as usize))
    }

    /// The items as a kernel gets them.
    pub fn items<T>(&self, items: Items<T>) -> Items<T> {
        Items {
            row: optional_pointer(self.row.as_ref()),
            ..items
        }
    }
}

impl fmt::Display for Teams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (warps, long, most) = (self.count, self.long_rows, self.max_short_row);
        write!(
            f,
            "{warps} warps, {long} rows of more than {most} nonzeros with {WARPS} each"
        )?;
        for (rows, team) in [(self.pair_rows, 2), (self.other_rows, WARPS)] {
            if rows > 0 {
                write!(f, ", {rows} others with {team}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Division, WARPS, Wave, team_of_last_wave};

    const WAVE: Wave = Wave {
        blocks: 1056,
        tiles: Some(1),
    };

    /// The rows with one and with two warps, of so many short and long rows of so many nonzeros.
    fn division(shorts: u32, longs: u32, row: u32, tiles: u64) -> [u32; 2] {
        let wave = Wave {
            tiles: Some(tiles),
            ..WAVE
        };
        found(shorts, longs, row, Some(wave))
    }

    fn found(shorts: u32, longs: u32, row: u32, wave: Option<Wave>) -> [u32; 2] {
        let found = Division::new(shorts, longs, (shorts + longs) * row, wave);
        [found.single_rows, found.pair_rows]
    }

    #[test]
    fn blocks_of_single_warps_are_whole() {
        for shorts in 0..9 {
            assert_eq!(found(shorts, 3, 1, None), [shorts / WARPS * WARPS, 0]);
        }
    }

    #[test]
    fn rows_of_a_last_wave_have_the_largest_team_that_fits_into_it() {
        let of_500 = |rows| division(rows, 0, 500, 1);
        assert_eq!(of_500(4224), [4224, 0], "a whole wave");
        assert_eq!(of_500(4267), [4224, 0], "11 blocks past a wave");
        assert_eq!(of_500(4224 + 1056), [4224, 0], "a fourth of a wave");
        assert_eq!(of_500(4224 + 1060), [4224, 1060], "more than a fourth");
        assert_eq!(of_500(6336), [4224, 2112], "half a wave");
        assert_eq!(of_500(6335), [4224, 2110], "a row is left over");
        assert_eq!(of_500(6340), [6340, 0], "more than half");
        let rows = 4 * 1056 * 8 + 4;
        assert_eq!(of_500(rows), [rows, 0], "many waves");
        let two_tiles = division(4267, 0, 500, 2);
        assert_eq!(two_tiles, [4224, 0], "22 blocks past two waves");
        let five_tiles = division(1056, 0, 500, 5);
        assert_eq!(five_tiles, [844, 212], "teams of four need a third wave");
        let long = division(4267, 10, 500, 1);
        assert_eq!(long, [4184, 0], "long rows have blocks of the wave");
    }

    #[test]
    fn all_rows_have_the_largest_team_that_needs_no_further_wave() {
        let of_300 = |shorts, longs, tiles| division(shorts, longs, 300, tiles);
        assert_eq!(of_300(1000, 0, 1), [0, 0], "1000 blocks instead of 250");
        assert_eq!(of_300(1056, 0, 1), [0, 0], "a whole wave");
        assert_eq!(of_300(1057, 0, 1), [0, 1056], "529 blocks instead of 265");
        assert_eq!(of_300(2112, 0, 1), [0, 2112], "a whole wave of pairs");
        assert_eq!(of_300(2116, 0, 1), [2116, 0], "more than a wave of pairs");
        assert_eq!(of_300(1000, 0, 2), [0, 1000], "1000 blocks in two tiles");
        assert_eq!(of_300(156, 900, 1), [0, 0], "a whole wave with long rows");
        assert_eq!(of_300(157, 900, 1), [0, 156], "900 and 79 blocks");
        assert_eq!(
            of_300(113, 787, 2),
            [0, 0],
            "1800 blocks are two waves, as 1632"
        );
        assert_eq!(of_300(113, 287, 3), [0, 112], "1032 blocks, as 948");
    }

    #[test]
    fn short_rows_have_smaller_teams_or_none() {
        for (row, wanted) in [
            (128, [0, 0]),
            (127, [0, 1000]),
            (64, [0, 1000]),
            (63, [1000, 0]),
        ] {
            assert_eq!(division(1000, 0, row, 1), wanted, "rows of {row} nonzeros");
        }
    }

    #[test]
    fn a_fourth_of_a_wave_has_teams_if_the_features_are_unknown() {
        let unknown = Wave {
            tiles: None,
            ..WAVE
        };
        let of_500 = |rows: u32| found(rows, 0, 500, Some(unknown))[0];
        assert_eq!(of_500(4267), 3212);
        assert_eq!(of_500(1000), 0);
        assert_eq!(of_500(40_000), 40_000, "many waves");
        assert_eq!(found(1000, 0, 127, Some(unknown)), [1000, 0], "short rows");
    }

    #[test]
    fn the_team_of_a_last_wave_is_that_of_the_plan() {
        for (rows, row, wanted) in [
            (1000, 500, 4),
            (2000, 500, 2),
            (2000, 64, 2),
            (2000, 63, 1),
            (3000, 500, 1),
            (5000, 500, 4),
            (6000, 500, 2),
            (7000, 500, 1),
            (40_000, 500, 1),
        ] {
            let waves = f64::from(rows) / (4.0 * 1056.0);
            assert_eq!(team_of_last_wave(waves, row.into()), wanted, "{rows}");
            let [singles, pairs] = division(rows, 0, row, 1);
            let planned = match (rows - singles, pairs) {
                (0, _) => 1,
                (_, 0) => 4,
                _ => 2,
            };
            assert_eq!(planned, wanted, "{rows} rows of {row} nonzeros");
        }
    }
}
