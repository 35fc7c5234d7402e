//! The sizes of a warp's tile and of what a block keeps in shared memory; the launch; and the order of packed W.

#[cfg(not(target_arch = "nvptx64"))]
use crate::product::tile::SHARED_BYTES_OF_SYSTEM;
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, MAX_GRID_Y};
#[cfg(not(target_arch = "nvptx64"))]
use cuda_std::prelude::*;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_std::warp::WARP_SIZE;
#[cfg(not(target_arch = "nvptx64"))]
use warprow_kernels_matrix::Operand;

/// Rows and columns that a warp multiplies at once, and the columns of X in a step.
pub(super) const ROWS: u32 = 16;
pub(super) const COLUMNS: u32 = 16;
const STEP: u32 = 16;

/// Maximum number of columns of X: four steps.
pub(super) const MAX_DEPTH: u32 = 64;

/// Bytes of an element.
const SIZE: u32 = 2;

/// Maximum number of rows of a tile.
const MOST_ROWS: u32 = 256;

/// Shared memory for the tiles of a warp in bytes, unless 16 rows take more. If W is small, 32 warps then fit on a
/// multiprocessor of an H100.
const WARP_BYTES: u32 = 6 << 10;

/// A tile has fewer rows, but at least 16, until each warp has so many tiles. With few tiles, one more for some of the
/// warps would take much of the time.
const TILES_OF_WARP: u64 = 4;

/// The numbers of warps that a block may have; if not even the first fits in shared memory, it has 4, 2 or 1. A block
/// keeps one copy of W. With a large W, one large block has room for more warps than several small ones.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) const BLOCK_WARPS: [u32; 7] = [8, 12, 16, 20, 24, 28, 32];

/// The warps for which a multiprocessor has registers, as the attribute of the kernel limits them.
#[cfg(not(target_arch = "nvptx64"))]
const fn resident_warps(depth: u32) -> u32 {
    match Layout::packed_steps(depth) {
        1 => 32,
        _ => 24,
    }
}

/// The columns of X and Y, and the rows of a tile: a power of two, at least [`ROWS`].
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub depth: u32,
    pub cols: u32,
    pub rows: u32,
}

impl Layout {
    /// Bytes of W for one step and 16 columns: 16 for each lane.
    pub const FRAGMENT_BYTES: u32 = 512;

    /// Bytes of a stage past the end of X, a multiple of 16. Lanes may load 18 elements there: 16 of a step, and 2 of
    /// the last word.
    pub const PAST_END_BYTES: u32 = 48;

    /// The layout with as many rows as fit in [`WARP_BYTES`].
    #[inline(always)]
    pub fn of(depth: u32, cols: u32) -> Self {
        let mut layout = Self {
            depth,
            cols,
            rows: MOST_ROWS,
        };
        while layout.rows > ROWS && layout.warp_bytes() > WARP_BYTES {
            layout.rows /= 2;
        }
        layout
    }

    /// The layout with fewer rows, if `warps` warps have too few tiles of an X of `rows` rows.
    #[inline(always)]
    pub fn for_rows(self, rows: u32, warps: u32) -> Self {
        let mut layout = self;
        while layout.rows > ROWS
            && u64::from(rows) < u64::from(warps) * TILES_OF_WARP * u64::from(layout.rows)
        {
            layout.rows /= 2;
        }
        layout
    }

    /// Steps of a row of X, at least one.
    #[inline(always)]
    pub fn steps(self) -> u32 {
        self.depth.div_ceil(STEP).max(1)
    }

    /// Steps in packed W, for which a kernel is compiled: 1, 2 or 4. Those past the last step of X are zeros.
    #[inline(always)]
    pub const fn packed_steps(depth: u32) -> u32 {
        match depth {
            0..=16 => 1,
            17..=32 => 2,
            _ => 4,
        }
    }

    /// Groups of 16 columns of W.
    #[inline(always)]
    pub fn groups(self) -> u32 {
        self.cols.div_ceil(COLUMNS)
    }

    /// Bytes of packed W. Numbers of bytes saturate at `u32::MAX`. No device has so much shared memory, so the caller
    /// refuses such a launch.
    #[inline(always)]
    pub fn w_bytes(self) -> u32 {
        let per_group = Self::packed_steps(self.depth) * Self::FRAGMENT_BYTES;
        self.groups().saturating_mul(per_group)
    }

    /// Elements of X in a stage.
    #[inline(always)]
    pub fn x_elements(self) -> u32 {
        self.rows.saturating_mul(self.depth)
    }

    /// Bytes of a stage, a multiple of 16: those of X, and what lanes load past them.
    #[inline(always)]
    pub fn x_bytes(self) -> u32 {
        let bytes = self.x_elements().saturating_mul(SIZE);
        bytes.saturating_add(Self::PAST_END_BYTES)
    }

    /// Bytes of the tiles of a warp: two stages of X, and Y.
    #[inline(always)]
    pub fn warp_bytes(self) -> u32 {
        let y_bytes = (SIZE * self.rows).saturating_mul(self.cols);
        self.x_bytes().saturating_mul(2).saturating_add(y_bytes)
    }
}

/// Bytes of a block of so many warps. They saturate where the block cannot be launched anyway.
#[cfg(not(target_arch = "nvptx64"))]
fn block_bytes(layout: Layout, warps: u32) -> u32 {
    let bytes = u64::from(layout.w_bytes()) + u64::from(warps) * u64::from(layout.warp_bytes());
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The grid has blocks along y, whose warps share the rows.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn launch(problem: GemmProblem) -> LaunchConfig {
    let layout = Layout::of(problem.depth, problem.cols);
    let tiles = problem.rows.div_ceil(ROWS);
    let multiprocessors = problem.multiprocessors.max(1);
    let (warps, fitting) = block(problem, layout);
    let most = multiprocessors.saturating_mul(fitting);
    let tile = layout.for_rows(problem.rows, most.saturating_mul(warps));
    // If tiles have 16 rows, a warp takes at most `rounds` of them. Only as many blocks run as that needs, so few warps
    // have one tile less than the others.
    let rounds = match tile.rows {
        ROWS => tiles.div_ceil(most.saturating_mul(warps)).max(1),
        _ => 1,
    };
    let blocks = tiles.div_ceil(warps.saturating_mul(rounds));
    let blocks = blocks.min(most).clamp(1, MAX_GRID_Y);
    LaunchConfig::new((1, blocks), warps * WARP_SIZE).shared_bytes(block_bytes(layout, warps))
}

/// The warps of a block, and the blocks that a multiprocessor has room for.
#[cfg(not(target_arch = "nvptx64"))]
fn block(problem: GemmProblem, layout: Layout) -> (u32, u32) {
    let with_system = |bytes: u32| bytes.saturating_add(SHARED_BYTES_OF_SYSTEM);
    let fitting = |warps: u32| {
        let bytes = with_system(block_bytes(layout, warps));
        let room = with_system(problem.shared_bytes) / bytes;
        room.min(resident_warps(problem.depth) / warps)
    };
    let tiles = problem.rows.div_ceil(ROWS);
    // The number of tiles of 16 rows that a warp takes one after the other.
    let rounds = |warps: u32| {
        let of_multiprocessor = fitting(warps) * warps;
        tiles.div_ceil(
            problem
                .multiprocessors
                .max(1)
                .saturating_mul(of_multiprocessor),
        )
    };
    // On a tie `min_by_key` takes the first one, which has the fewest warps.
    let fits = |warps: &u32| fitting(*warps) > 0;
    let best = BLOCK_WARPS
        .into_iter()
        .filter(fits)
        .min_by_key(|&warps| rounds(warps));
    let warps = best.or([4, 2].into_iter().find(fits)).unwrap_or(1);
    (warps, fitting(warps).max(1))
}

/// W in the order in which lanes load it, padded with zeros. For each 16 columns and each step, the lane with
/// g = lane / 4 and t = lane % 4 has rows 4t to 4t + 3 of two columns. They are chosen such that a lane's sums are of
/// columns 4t to 4t + 3.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn pack<T: Operand>(w: &[T], problem: GemmProblem) -> Vec<T> {
    let layout = Layout::of(problem.depth, problem.cols);
    let (depth, cols) = (problem.depth as usize, problem.cols as usize);
    let mut packed = Vec::with_capacity(layout.w_bytes() as usize / size_of::<T>());
    for first_column in (0..cols).step_by(COLUMNS as usize) {
        for step in 0..Layout::packed_steps(problem.depth) as usize {
            for lane in 0..WARP_SIZE as usize {
                let (g, t) = (lane / 4, lane % 4);
                for fragment in 0..2 {
                    let column = first_column + 4 * (g / 2) + 2 * fragment + g % 2;
                    packed.extend((0..4).map(|i| {
                        let row = STEP as usize * step + 4 * t + i;
                        if row < depth && column < cols {
                            w[row * cols + column]
                        } else {
                            T::narrow(T::Sum::ZERO)
                        }
                    }));
                }
            }
        }
    }
    packed
}
