//! Inputs of cases: numbers that depend on their index alone, and sparse matrices.

use std::collections::BTreeMap;

/// A hash of `index`: the output function of SplitMix64 (Steele, Lea and Flood, 2014).
#[must_use]
pub fn hash(index: u64) -> u64 {
    let mut bits = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// `count` whole numbers from -8 to 8. Their sums and products are exact in f32, in any order.
#[must_use]
pub fn floats(count: usize) -> Vec<f32> {
    (0..count as u64)
        .map(|index| (hash(index) % 17) as f32 - 8.0)
        .collect()
}

/// `count` numbers less than `bound`.
#[must_use]
pub fn numbers(count: usize, bound: u32) -> Vec<u32> {
    (0..count as u64)
        .map(|index| (hash(index) % u64::from(bound)) as u32)
        .collect()
}

/// A sparse matrix in CSR: the nonzeros of row r are those from `row_ptr[r]` to before `row_ptr[r + 1]`.
#[derive(Clone, Debug)]
pub struct Csr {
    /// Number of columns.
    pub cols: u32,
    /// For each row its first nonzero, and at last the number of all nonzeros.
    pub row_ptr: Vec<u32>,
    /// The column of each nonzero; they rise within a row.
    pub col_idx: Vec<u32>,
    /// The value of each nonzero.
    pub values: Vec<f32>,
}

impl Csr {
    /// A matrix of `rows` rows and `cols` columns; `length` tells the number of nonzeros of a row. Rows longer than
    /// `cols` are cut.
    #[must_use]
    pub fn new(rows: u32, cols: u32, length: impl Fn(u32) -> u32) -> Self {
        let (mut row_ptr, mut col_idx) = (vec![0], Vec::new());
        for row in 0..rows {
            let length = length(row).min(cols);
            // Every third column, from a random one on: distinct if 3 does not divide `cols`.
            let step = if cols.is_multiple_of(3) { 1 } else { 3 };
            let first = hash(u64::from(row)) % u64::from(cols.max(1));
            let column = |k| ((first + step * u64::from(k)) % u64::from(cols)) as u32;
            let mut columns: Vec<u32> = (0..length).map(column).collect();
            columns.sort_unstable();
            col_idx.extend(columns);
            row_ptr.push(col_idx.len() as u32);
        }
        let values = floats(col_idx.len());
        Self {
            cols,
            row_ptr,
            col_idx,
            values,
        }
    }

    /// A matrix with rows of 0 to 7 nonzeros, and every 50th row with 100.
    #[must_use]
    pub fn typical(rows: u32, cols: u32) -> Self {
        Self::new(rows, cols, |row| match row % 50 {
            20 => 100,
            _ => (hash(u64::from(row) + 1) % 8) as u32,
        })
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.row_ptr.len() - 1
    }

    /// The row of each nonzero.
    #[must_use]
    pub fn row_idx(&self) -> Vec<u32> {
        let lengths = self.row_ptr.windows(2).map(|pair| pair[1] - pair[0]);
        let rows = (0..).zip(lengths);
        rows.flat_map(|(row, length)| (0..length).map(move |_| row))
            .collect()
    }

    /// The matrix times a vector. It is exact for whole numbers.
    #[must_use]
    pub fn times(&self, x: &[f32]) -> Vec<f32> {
        let mut y = vec![0.0; self.rows()];
        for (nonzero, row) in self.row_idx().into_iter().enumerate() {
            y[row as usize] += self.values[nonzero] * x[self.col_idx[nonzero] as usize];
        }
        y
    }

    /// The matrix times a dense one, whose rows have `features` elements each.
    #[must_use]
    pub fn times_rows(&self, x: &[f32], features: usize) -> Vec<f32> {
        let mut y = vec![0.0; self.rows() * features];
        for (nonzero, row) in self.row_idx().into_iter().enumerate() {
            let (row, col) = (row as usize, self.col_idx[nonzero] as usize);
            for feature in 0..features {
                y[row * features + feature] += self.values[nonzero] * x[col * features + feature];
            }
        }
        y
    }

    /// The matrix times a sparse one. A sum that is zero stays in the result.
    #[must_use]
    pub fn product(&self, other: &Self) -> Self {
        let mut rows = vec![BTreeMap::new(); self.rows()];
        for (nonzero, row) in self.row_idx().into_iter().enumerate() {
            let of_other = self.col_idx[nonzero] as usize;
            let (start, end) = (other.row_ptr[of_other], other.row_ptr[of_other + 1]);
            for k in start as usize..end as usize {
                let sum: &mut f32 = rows[row as usize].entry(other.col_idx[k]).or_default();
                *sum += self.values[nonzero] * other.values[k];
            }
        }
        let mut row_ptr = vec![0];
        row_ptr.extend(rows.iter().scan(0, |end, row| {
            *end += row.len() as u32;
            Some(*end)
        }));
        Self {
            cols: other.cols,
            row_ptr,
            col_idx: rows.iter().flat_map(BTreeMap::keys).copied().collect(),
            values: rows.iter().flat_map(BTreeMap::values).copied().collect(),
        }
    }
}

/// Two sparse matrices whose product has `rows` rows of at most 200 nonzeros. Four columns of it are equal modulo 256.
#[must_use]
pub fn factors(rows: u32) -> (Csr, Csr) {
    let a = Csr::typical(rows, rows + 130);
    let mut b = Csr::new(a.cols, 200, |row| (hash(u64::from(row) + 7) % 12) as u32);
    b.cols *= 4;
    for row in b.row_ptr.windows(2) {
        let columns = &mut b.col_idx[row[0] as usize..row[1] as usize];
        for column in &mut *columns {
            *column = 256 * (*column % 4) + *column / 4;
        }
        columns.sort_unstable();
    }
    (a, b)
}
