//! How a matrix's nonzeros spread over its columns, and what a cache of some rows of X gives.

use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use warprow_kernels::spmm::plan::columns;
use warprow_kernels::spmm::plan::columns::BINS;

/// The columns of a matrix by the number of their nonzeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnProfile {
    /// Columns of `2^b` to `2^(b+1) - 1` nonzeros, and these nonzeros; the hottest columns last.
    bins: [(u64, u64); BINS],
}

impl ColumnProfile {
    /// Counts the nonzeros of a matrix of `cols` columns on its device. It waits for the device.
    pub(super) fn measure(
        device: &Device,
        cols: u32,
        col_idx: &DeviceBuffer<u32>,
    ) -> Result<Self, Error> {
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

    /// The different columns that so many nonzeros have if chance puts them into the columns, each as often as its nonzeros say.
    pub(super) fn expected_distinct(&self, nonzeros: f64) -> f64 {
        let all: u64 = self.bins.iter().map(|(_, nonzeros)| nonzeros).sum();
        self.bins
            .iter()
            .filter(|(columns, _)| *columns > 0)
            .map(|&(columns, of_bin)| {
                let (columns, of_bin) = (columns as f64, of_bin as f64);
                // The number of a column's nonzeros is nearly one of Poisson's distribution.
                let mean = nonzeros * of_bin / (all as f64 * columns);
                columns * -(-mean).exp_m1()
            })
            .sum()
    }

    /// The share of the nonzeros that lie in the `columns` hottest columns, from 0 to 1. Columns of one bin count alike.
    pub(super) fn covered(&self, columns: f64) -> f64 {
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
