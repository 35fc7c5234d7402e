//! The comparison of a product of whole numbers by the sums of its rows: exact, and without C on the host.
//!
//! Row i of `C = A A` with weights w has the sum `(A (A w))_i`, here modulo 2^64. An odd weight keeps any error of one
//! entry.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use warprow::device::DeviceError;
use warprow::multi::Layout;
use warprow::{CsrMatrix, DeviceCsr};

/// Entries of C that are fetched at a time, if no row has more.
const FETCHED: usize = 1 << 26;

/// The weights of the columns, and the sums of the rows.
pub struct WholeSums {
    weights: Vec<u64>,
    wanted: Vec<u64>,
}

impl WholeSums {
    /// Those of `A A`.
    pub fn of_square(a: &CsrMatrix<f32>, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let weights: Vec<u64> = (0..a.cols()).map(|_| random.random::<u64>() | 1).collect();
        let wanted = sums_of(a, &sums_of(a, &weights));
        Self { weights, wanted }
    }

    /// Whether the rows of C on the devices have these sums. The pieces of a row that was cut are added.
    pub fn are_those_of<'c>(
        &self,
        layout: &Layout,
        parts: impl Iterator<Item = &'c DeviceCsr<f32>>,
    ) -> Result<bool, DeviceError> {
        let mut found = vec![0_u64; self.wanted.len()];
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for (part, c) in layout.partition().parts().iter().zip(parts) {
            let row_ptr = c.pattern().row_ptr().download()?;
            let mut first = 0;
            while first + 1 < row_ptr.len() {
                let start = row_ptr[first] as usize;
                let end = row_ptr.partition_point(|&end| end as usize <= start + FETCHED);
                let end = (end - 1).max(first + 1);
                let entries = row_ptr[end] as usize - start;
                columns.resize(entries, 0);
                values.resize(entries, 0.0);
                (c.pattern().col_idx()).copy_part_to_slice(start, &mut columns)?;
                c.values().copy_part_to_slice(start, &mut values)?;
                let sums: Vec<u64> = parallel::map(end - first, |row| {
                    let ends = &row_ptr[first + row..][..2];
                    let row = ends[0] as usize - start..ends[1] as usize - start;
                    sum(&columns[row.clone()], &values[row], &self.weights)
                });
                for (row, sum) in (part.rows.start + first..).zip(sums) {
                    let row = &mut found[layout.order().original_row(row)];
                    *row = row.wrapping_add(sum);
                }
                first = end;
            }
        }
        Ok(self.judge(&found))
    }

    /// Whether the rows of C have these sums.
    pub fn are_those_of_matrix(&self, c: &CsrMatrix<f32>) -> bool {
        self.judge(&sums_of(c, &self.weights))
    }

    fn judge(&self, found: &[u64]) -> bool {
        let mut rows = self.wanted.iter().zip(found);
        let wrong = rows.position(|(wanted, found)| wanted != found);
        if let Some(row) = wrong {
            eprintln!("wrong: the sum of row {row}");
        }
        wrong.is_none() && found.len() == self.wanted.len()
    }
}

fn sums_of(matrix: &CsrMatrix<f32>, weights: &[u64]) -> Vec<u64> {
    let of_row = |row| {
        let row = matrix.outer_view(row);
        let row = row.expect("the row is one of the matrix");
        sum(row.indices(), row.data(), weights)
    };
    parallel::map(matrix.rows(), of_row)
}

/// The sum of a row's entries, each times its column's weight.
fn sum(columns: &[u32], values: &[f32], weights: &[u64]) -> u64 {
    let terms = columns.iter().zip(values).map(|(&column, &value)| {
        // A number that is not whole is wrong in any case.
        let whole = if value.fract() == 0.0 {
            value as i64
        } else {
            i64::MAX
        };
        (whole as u64).wrapping_mul(weights[column as usize])
    });
    terms.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warprow::reference::{spgemm, whole_matrix};

    #[test]
    fn a_wrong_missing_or_broken_entry_changes_a_sum() {
        let a = warprow::generate::uniform::<f32>(90, 90, 500, 1).unwrap();
        let a = whole_matrix(a.view(), 2);
        let sums = WholeSums::of_square(&a, 3);
        let c = spgemm(a.view(), a.view()).map(|&c| c as f32);
        assert!(sums.are_those_of_matrix(&c));
        for wrong in [1.0, 0.5, f32::NAN] {
            let mut other = c.clone();
            other.data_mut()[77] += wrong;
            assert!(!sums.are_those_of_matrix(&other), "{wrong}");
        }
        let nonzero = c.data().iter().position(|&c| c != 0.0).unwrap();
        let mut other = c.clone();
        other.data_mut()[nonzero] = 0.0;
        assert!(!sums.are_those_of_matrix(&other));
    }
}
