//! The tiles of a row of X: how many bytes a kernel loads for one.

use super::LINE;
use super::candidate::Candidate;

/// Bytes of a tile of X.
pub struct Tile {
    /// In the mean of all tiles of a row.
    pub mean: f64,
    /// In the first tile.
    pub first: f64,
    /// The power of two that each tile's address is a multiple of, at most a cache line.
    alignment: f64,
    /// Tiles of a row.
    pub count: f64,
}

impl Tile {
    /// The tiles in which a kernel takes a row of X.
    pub fn of(candidate: &Candidate) -> Self {
        let row = candidate.row.bytes();
        let element = row / f64::from(candidate.row.features());
        Self::cut(row, f64::from(candidate.tile) * element)
    }

    /// The parts of a row of which each lane has a vector.
    pub fn loads(candidate: &Candidate) -> Self {
        let row = candidate.row.bytes();
        let element = row / f64::from(candidate.row.features());
        Self::cut(row, f64::from(candidate.load()) * element)
    }

    fn cut(row: f64, tile: f64) -> Self {
        let count = (row / tile).ceil().max(1.0);
        let aligned = |bytes: f64| ((bytes as u64 | LINE as u64).trailing_zeros()) as i32;
        let mut alignment = aligned(row);
        if count > 1.0 {
            alignment = alignment.min(aligned(tile));
        }
        Self {
            mean: row / count,
            first: tile.min(row),
            alignment: 2.0_f64.powi(alignment),
            count,
        }
    }

    /// The bytes that are loaded for a tile in units of `unit` bytes.
    pub fn loaded(&self, unit: f64) -> f64 {
        self.mean + unit - unit.min(self.alignment)
    }
}
