//! How a matrix's nonzeros spread over its columns.
//!
//! Nonzeros of one column read the same row of X. A cache that holds the rows of X of the columns with the most
//! nonzeros serves the nonzeros in these columns.

use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use warprow_kernels::spmm::plan::columns::{self, BINS};

/// A histogram of the columns of a matrix by the number of their nonzeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnProfile {
    /// Element `b`: the number of columns that have `2^b` to `2^(b+1) - 1` nonzeros, and the number of their nonzeros.
    bins: [(u64, u64); BINS],
}

impl ColumnProfile {
    /// Counts the nonzeros of each column of a matrix on its device, and waits for the device.
    pub fn measure(
        device: &Device,
        cols: u32,
        col_idx: &DeviceBuffer<u32>,
    ) -> Result<Self, OperandError> {
        let mut counts = device.zeros::<u32>(cols as usize)?;
        let mut bins = device.zeros::<u64>(2 * BINS)?;
        if !col_idx.is_empty() {
            // Row pointers are u32.
            let nonzeros = col_idx.len() as u32;
            // SAFETY: columns are below `cols`, each has a zeroed count; the bins are zeroed.
            unsafe {
                let arguments = (nonzeros, col_idx.read_only(), counts.mutable());
                device.launch(
                    &columns::count(),
                    columns::launch_count(nonzeros),
                    arguments,
                )?;
                let arguments = (cols, counts.read_only(), bins.mutable());
                device.launch(&columns::bin(), columns::launch_bin(cols), arguments)?;
            }
        }
        let numbers = bins.download()?;
        Ok(Self {
            bins: std::array::from_fn(|bin| (numbers[2 * bin], numbers[2 * bin + 1])),
        })
    }

    /// The expected number of distinct columns of `nonzeros` nonzeros that are drawn at random from the matrix.
    pub fn expected_distinct(&self, nonzeros: f64) -> f64 {
        let all: u64 = self.bins.iter().map(|(_, nonzeros)| nonzeros).sum();
        self.bins
            .iter()
            .filter(|(columns, _)| *columns > 0)
            .map(|&(columns, of_bin)| {
                let (columns, of_bin) = (columns as f64, of_bin as f64);
                // The number of draws of one column nearly has a Poisson distribution.
                let mean = nonzeros * of_bin / (all as f64 * columns);
                columns * -(-mean).exp_m1()
            })
            .sum()
    }

    /// That of `columns` columns of `nonzeros` nonzeros each.
    #[cfg(test)]
    pub fn even(columns: u64, nonzeros: u32) -> Self {
        let mut bins = [(0, 0); BINS];
        if let Some(bin) = nonzeros.checked_ilog2() {
            bins[bin as usize] = (columns, columns * u64::from(nonzeros));
        }
        Self { bins }
    }

    /// The number of columns that have nonzeros.
    pub fn used(&self) -> f64 {
        let columns: u64 = self.bins.iter().map(|(columns, _)| columns).sum();
        columns as f64
    }

    /// An upper bound of the nonzeros of a column.
    pub fn longest(&self) -> u64 {
        let last = self.bins.iter().rposition(|(columns, _)| *columns > 0);
        last.map_or(0, |bin| 1 << (bin + 1))
    }

    /// The share of the nonzeros that lie in the `columns` columns with the most nonzeros, from 0 to 1. Columns of
    /// one bin count alike.
    pub fn covered(&self, columns: f64) -> f64 {
        let all: u64 = self.bins.iter().map(|(_, nonzeros)| nonzeros).sum();
        let (mut left, mut covered) = (columns, 0.0);
        for &(columns, nonzeros) in self.bins.iter().rev() {
            let taken = left.min(columns as f64);
            if taken <= 0.0 {
                continue;
            }
            covered += nonzeros as f64 * (taken / columns as f64);
            left -= taken;
        }
        if all == 0 { 1.0 } else { covered / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::EmulatorOptions;

    #[test]
    fn hot_columns_cover_their_share_of_the_nonzeros() {
        let device = Device::emulator(EmulatorOptions::default());
        // Column 3 has 600 nonzeros, columns 10 to 309 one each, the others none.
        let cols: Vec<u32> = (0..600).map(|_| 3).chain(10..310).collect();
        let profile = ColumnProfile::measure(&device, 701, &device.upload(&cols).unwrap()).unwrap();
        assert_eq!(profile.covered(0.0), 0.0);
        assert_eq!(profile.covered(1.0), 600.0 / 900.0);
        assert_eq!(profile.covered(151.0), 750.0 / 900.0);
        assert_eq!(profile.covered(301.0), 1.0);
        assert_eq!(profile.covered(1e9), 1.0);
    }

    #[test]
    fn few_nonzeros_are_in_different_columns_and_many_in_all() {
        let device = Device::emulator(EmulatorOptions::default());
        let cols: Vec<u32> = (0..4000).map(|k| k % 1000).collect();
        let profile =
            ColumnProfile::measure(&device, 2000, &device.upload(&cols).unwrap()).unwrap();
        assert!((profile.expected_distinct(10.0) - 10.0).abs() < 0.1);
        let half = 1000.0 * (1.0 - (-1.0_f64).exp());
        assert!((profile.expected_distinct(1000.0) - half).abs() < 1e-6);
        assert!((profile.expected_distinct(1e6) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn a_matrix_without_nonzeros_is_covered_by_any_cache() {
        let device = Device::emulator(EmulatorOptions::default());
        for cols in [0, 5] {
            let empty = device.upload::<u32>(&[]).unwrap();
            let profile = ColumnProfile::measure(&device, cols, &empty).unwrap();
            assert_eq!(profile.covered(0.0), 1.0);
        }
    }
}
