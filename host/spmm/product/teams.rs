//! The warps of each row, made on the device: one warp, or a team of them (see [`teams`]).
//!
//! Teams have the long rows, the rows that would not fill the device, and the up to three rows that are left over where
//! the others are divided into blocks of four, whatever their length. All rows have teams if that takes no longer.

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

/// Warps that a multiprocessor runs at the same time, as the registers of half of the instances of `in_step` for f32
/// allow. By host/ptx/registers.txt it is 28 or 36 warps of the others, and 16 to 44 of those for other types.
const RESIDENT_WARPS: u64 = 32;

/// The maximum number of nonzeros that one warp takes: 1.5 times a resident warp's share of all nonzeros. So the device
/// waits for no row.
fn max_short_row(a: &DevicePattern) -> u32 {
    let warps = u64::from(a.device().properties().multiprocessors) * RESIDENT_WARPS;
    let size = u64::from(a.nonzeros()) * 3 / (2 * warps.max(1));
    size.clamp(*MAX_SHORT_ROW.start(), *MAX_SHORT_ROW.end()) as u32
}

/// Waves of blocks from which on it does not matter how full the last one is.
const MANY_WAVES: u64 = 8;

/// Mean nonzeros of a row from which on a team is faster than a warp: each warp has as many as it has lanes.
const MIN_TEAM_ROW: u64 = WARPS as u64 * 32;

/// The blocks of a kernel that the device runs at the same time: a *wave*.
#[derive(Clone, Copy, Debug)]
pub struct Wave {
    pub blocks: u64,
    /// The tiles of features, each of which has all blocks; `None` if the number of features is unknown.
    pub tiles: Option<u64>,
}

/// Whether teams have the rows of the last of so many waves, with so many nonzeros in a row in the mean: see
/// [`single_rows`].
pub fn fill_last_wave(waves: f64, mean_row: f64) -> bool {
    waves < MANY_WAVES as f64 && waves.fract() <= 0.5 && mean_row >= MIN_TEAM_ROW as f64
}

/// How many of the short rows have a warp each: whole blocks of them. If the last wave would be at most half full, its
/// rows have teams. Their blocks take about a fourth of the time, and all of the device. All rows have teams if that adds
/// no wave. Otherwise short rows, which have one warp, still run when the teams of long rows have ended. If nobody knows
/// how full the last wave will be, the rows of a fourth of a wave have teams.
fn single_rows(shorts: u32, long_rows: u32, nonzeros: u32, wave: Option<Wave>) -> u32 {
    let warps = u64::from(WARPS);
    let (longs, blocks) = (u64::from(long_rows), u64::from(shorts) / warps);
    let rows = u64::from(shorts) + longs;
    let filled = wave.and_then(|wave| {
        let (of_wave, tiles) = (wave.blocks.max(1), wave.tiles.unwrap_or(1).max(1));
        let all = (u64::from(shorts).div_ceil(warps) + longs) * tiles;
        let (waves, rest) = (all / of_wave, all % of_wave);
        let single = match wave.tiles {
            None => all.saturating_sub(of_wave / 4),
            Some(_) if rows * tiles <= all.div_ceil(of_wave) * of_wave => 0,
            Some(_) if 2 * rest <= of_wave => waves * of_wave / tiles,
            Some(_) => return None,
        };
        let pays = waves < MANY_WAVES && u64::from(nonzeros) >= rows * MIN_TEAM_ROW;
        pays.then(|| single.saturating_sub(longs))
    });
    // No more than there are rows.
    (filled.map_or(blocks, |filled| filled.min(blocks)) * warps) as u32
}

/// The warps of the rows of a matrix.
#[derive(Debug)]
pub struct Teams {
    count: u32,
    max_short_row: u32,
    /// Rows with a team: those of more nonzeros, and others.
    long_rows: u32,
    other_teams: u32,
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
        let single_rows = single_rows(short_rows, long_rows, a.nonzeros(), wave);
        let teams = a.rows - single_rows;
        let warps = u64::from(teams) * u64::from(WARPS) + u64::from(single_rows);
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
                pointers.1,
            );
            // SAFETY: the sums of the short rows, whole blocks of them, and a place for each warp.
            unsafe { device.launch(&teams::assign(), config, arguments)? };
        }
        Ok(Self {
            count,
            max_short_row,
            long_rows,
            other_teams: short_rows - single_rows,
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
        match self.other_teams {
            0 => Ok(()),
            others => write!(f, ", and {others} others"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WARPS, Wave, single_rows};

    const WAVE: Wave = Wave {
        blocks: 1056,
        tiles: Some(1),
    };

    #[test]
    fn blocks_of_single_warps_are_whole() {
        for shorts in 0..9 {
            let single = single_rows(shorts, 3, 10, None);
            assert_eq!(single, shorts / WARPS * WARPS);
        }
    }

    #[test]
    fn rows_that_would_fill_at_most_half_a_wave_have_teams() {
        let of_500 = |rows: u32, wave| single_rows(rows, 0, rows * 500, Some(wave));
        assert_eq!(of_500(4267, WAVE), 4224, "11 blocks past a wave");
        assert_eq!(of_500(6336, WAVE), 4224, "half a wave");
        assert_eq!(of_500(6340, WAVE), 6340, "more than half");
        assert_eq!(of_500(1000, WAVE), 0, "a fourth of a wave");
        assert_eq!(
            of_500(4 * 1056 * 8 + 4, WAVE),
            4 * 1056 * 8 + 4,
            "many waves"
        );
        let two_tiles = Wave {
            tiles: Some(2),
            ..WAVE
        };
        assert_eq!(of_500(4267, two_tiles), 4224, "22 blocks past two waves");
        let long = single_rows(4267, 10, 4277 * 500, Some(WAVE));
        assert_eq!(long, 4184, "long rows have blocks of the wave");
        assert_eq!(
            single_rows(4267, 0, 4267 * 100, Some(WAVE)),
            4264,
            "rows are too short for teams"
        );
    }

    #[test]
    fn all_rows_have_teams_if_they_need_no_further_wave() {
        let of_300 = |shorts: u32, longs: u32, tiles| {
            let wave = Wave {
                tiles: Some(tiles),
                ..WAVE
            };
            single_rows(shorts, longs, (shorts + longs) * 300, Some(wave))
        };
        assert_eq!(of_300(113, 787, 1), 0, "900 blocks instead of 816");
        assert_eq!(of_300(156, 900, 1), 0, "a whole wave");
        assert_eq!(of_300(157, 900, 1), 156, "one block more than a wave");
        assert_eq!(of_300(113, 787, 2), 0, "1800 blocks are two waves, as 1632");
        assert_eq!(
            of_300(113, 287, 3),
            112,
            "1200 blocks are two waves, 948 one"
        );
        let short = single_rows(113, 787, 900 * 100, Some(WAVE));
        assert_eq!(short, 112, "rows are too short for teams");
    }

    #[test]
    fn a_fourth_of_a_wave_has_teams_if_the_features_are_unknown() {
        let unknown = Wave {
            tiles: None,
            ..WAVE
        };
        let of_500 = |rows: u32| single_rows(rows, 0, rows * 500, Some(unknown));
        assert_eq!(of_500(4267), 3212);
        assert_eq!(of_500(1000), 0);
        assert_eq!(of_500(40_000), 40_000, "many waves");
    }
}
