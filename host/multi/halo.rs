//! The halo of a part: the rows of X (or B) that its nonzeros select and other parts own.
//!
//! A part numbers the rows of X that it uses compactly, in their global order. Its own rows stand together:
//!
//! ```text
//! global rows of X   0 1 2 3 | 4 5 6 7 | 8 9          three owners
//! part 1 selects       x   x   x   x x     x
//! its own                      4 5 6 7
//! its halo             1   3               9          1 and 3 from part 0, 9 from part 2
//! locally              0   1   2 3 4 5     6
//! ```

use super::partition::Owners;
use std::ops::Range;

/// The rows of X that a part uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halo {
    own: Range<usize>,
    /// The rows of other parts, ascending.
    rows: Vec<u32>,
    /// Where the rows of each other part start among `rows`, and where the last part's end.
    starts: Vec<usize>,
    /// How many of `rows` are before the part's own.
    before: usize,
}

impl Halo {
    /// The halo of a part whose nonzeros have these columns.
    ///
    /// # Panics
    ///
    /// If a column is not below the number of rows that have owners.
    pub fn new(part: usize, owners: &Owners, col_idx: &[u32]) -> Self {
        let own = owners.rows_of(part);
        let mut used = vec![0_u64; owners.rows().div_ceil(64)];
        for &column in col_idx {
            assert!((column as usize) < owners.rows());
            used[column as usize / 64] |= 1 << (column % 64);
        }
        let rows = (0_u32..)
            .zip(&used)
            .flat_map(|(word, &bits)| set_bits(bits).map(move |bit| 64 * word + bit))
            .filter(|&row| !own.contains(&(row as usize)));
        Self::of_rows(part, owners, rows.collect())
    }

    /// The halo of a part that is given all rows of X, as in a broadcast.
    pub fn replicated(part: usize, owners: &Owners) -> Self {
        let own = owners.rows_of(part);
        let all = 0..owners.rows() as u32;
        let rows = all.filter(|&row| !own.contains(&(row as usize)));
        Self::of_rows(part, owners, rows.collect())
    }

    fn of_rows(part: usize, owners: &Owners, rows: Vec<u32>) -> Self {
        let below = |end: usize| rows.partition_point(|&row| (row as usize) < end);
        let ends = (0..owners.parts()).map(|part| below(owners.rows_of(part).end));
        let own = owners.rows_of(part);
        Self {
            starts: [0].into_iter().chain(ends).collect(),
            before: below(own.start),
            own,
            rows,
        }
    }

    /// The rows that the part owns.
    pub fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    /// The rows of other parts, ascending.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The rows that another part sends: their global numbers.
    pub fn rows_from(&self, part: usize) -> &[u32] {
        &self.rows[self.starts[part]..self.starts[part + 1]]
    }

    /// Where the rows that another part sends stand among the local rows.
    pub fn local_rows_from(&self, part: usize) -> Range<usize> {
        let Range { start, end } = self.starts[part]..self.starts[part + 1];
        // An owner's rows are all before the part's own, or all behind.
        let own = if start < self.before {
            0
        } else {
            self.own.len()
        };
        start + own..end + own
    }

    /// Where the part's own rows stand among the local rows.
    pub fn local_own(&self) -> Range<usize> {
        self.before..self.before + self.own.len()
    }

    /// The number of local rows: the part's own and the halo.
    pub fn local_len(&self) -> usize {
        self.own.len() + self.rows.len()
    }

    /// The local number of a row; `None` if the part has not got it.
    pub fn local(&self, row: u32) -> Option<usize> {
        if self.own.contains(&(row as usize)) {
            return Some(self.before + row as usize - self.own.start);
        }
        let number = self.rows.binary_search(&row).ok()?;
        Some(match number < self.before {
            true => number,
            false => number + self.own.len(),
        })
    }

    /// The global number of each local row.
    pub fn global(&self) -> impl Iterator<Item = u32> + '_ {
        let (before, behind) = self.rows.split_at(self.before);
        let own = self.own.start as u32..self.own.end as u32;
        let before = before.iter().copied();
        before.chain(own).chain(behind.iter().copied())
    }
}

/// The numbers of the bits that are set, ascending.
fn set_bits(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit)
    })
}

/// Rows of X that travel, for all parts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Volume {
    /// Rows that the parts receive.
    pub received: u64,
    /// Rows that they would receive if each were given all rows that it does not own.
    pub replicated: u64,
}

impl Volume {
    /// The volume of a product with these halos.
    pub fn of(halos: &[Halo], owners: &Owners) -> Self {
        let received = halos.iter().map(|halo| halo.rows().len() as u64);
        let replicated = halos
            .iter()
            .map(|halo| (owners.rows() - halo.own.len()) as u64);
        Self {
            received: received.sum(),
            replicated: replicated.sum(),
        }
    }

    /// The rows received, as a fraction of replication's; 0 if nothing would travel.
    pub fn fraction(self) -> f64 {
        match self.replicated {
            0 => 0.0,
            replicated => self.received as f64 / replicated as f64,
        }
    }
}
