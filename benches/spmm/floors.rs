//! Floors of a product's time: its bytes over rates that were measured on the same device.
//!
//! The *memory floor* reads A and the used rows of X and writes Y, each once, at the rate at which the driver copies a
//! GiB. A product whose operands come from memory is not faster. One whose operands are in the L2 cache can be.
//!
//! The *L2 floor* reads A, and a row of X for each nonzero, and writes Y, at the rate at which the gather limit reads
//! random rows of an X that fits the L2 cache. A product that finds rows of X in the L1 caches can be faster.

use crate::harness::floor::Floor;
use crate::harness::measure::Effort;
use crate::spmm::gather_limit;
use sprs::CsMatI;
use std::sync::atomic::{AtomicBool, Ordering};
use warprow::device::Device;
use warprow::{DeviceCsr, Error, generate};

/// The names in the results.
pub const MEMORY_FLOOR: &str = "memory_floor";
/// The L2 floor's.
pub const L2_FLOOR: &str = "l2_floor";

/// Bytes that the copy reads and writes together.
const COPIED: u128 = 2 << 30;

/// The rows of the X that fits the L2 cache, 16 MiB: far more than the L1 caches have.
const GATHERED_ROWS: u32 = 1 << 15;

/// Its columns.
const GATHERED_FEATURES: u32 = 128;

/// The nonzeros that select its rows.
const GATHERED_NONZEROS: u32 = 1 << 21;

/// Samples of each rate.
const SAMPLES: u32 = 9;

/// The measured rates, in bytes per second.
#[derive(Clone, Copy, Debug)]
pub struct Floors {
    memory: f64,
    l2: f64,
}

/// A floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloorTime {
    /// Bytes.
    pub bytes: u64,
    /// Their time in milliseconds.
    pub ms: f64,
    /// The rate, in GB/s.
    pub gb_per_s: f64,
}

impl FloorTime {
    fn new(bytes: u64, rate: f64) -> Self {
        Self {
            bytes,
            ms: bytes as f64 / rate * 1e3,
            gb_per_s: rate / 1e9,
        }
    }
}

/// What a product moves.
#[derive(Clone, Copy, Debug)]
pub struct Extents {
    /// Rows of A and Y.
    pub rows: usize,
    /// Nonzeros of A.
    pub nonzeros: usize,
    /// Columns of A that have a nonzero.
    pub used_columns: usize,
    /// Columns of X and Y.
    pub features: u32,
    /// Bytes of an element.
    pub element_bytes: usize,
}

impl Extents {
    fn bytes(&self, rows_of_x: usize) -> u64 {
        let row = self.element_bytes as u64 * u64::from(self.features);
        let of_a =
            self.nonzeros as u64 * (4 + self.element_bytes as u64) + 4 * (self.rows as u64 + 1);
        of_a + row * (rows_of_x as u64 + self.rows as u64)
    }
}

impl Floors {
    /// Measures the rates by kernels that [`gather_limit::load`] has loaded; `None` on the emulator, and where the copy
    /// does not fit the memory.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn measure(device: &Device) -> anyhow::Result<Option<Self>> {
        if device.is_emulator() {
            return Ok(None);
        }
        let Some(copy) = Floor::of(device)?.time(COPIED, Effort::of(SAMPLES))? else {
            return Ok(None);
        };
        let rows = GATHERED_ROWS;
        let a = generate::uniform::<f32>(rows, rows, GATHERED_NONZEROS, 1).map_err(Error::from)?;
        let a = DeviceCsr::upload(device, a.view())?;
        let elements = (rows * GATHERED_FEATURES) as usize;
        let x = device.zeros::<f32>(elements)?;
        let mut y = device.zeros::<f32>(elements)?;
        let (_, gather) = gather_limit::best(device, &a, &x, &mut y, GATHERED_FEATURES, SAMPLES)?;
        let extents = Extents {
            rows: rows as usize,
            nonzeros: GATHERED_NONZEROS as usize,
            used_columns: rows as usize,
            features: GATHERED_FEATURES,
            element_bytes: size_of::<f32>(),
        };
        Ok(gather.map(|gather| Self {
            memory: COPIED as f64 / (copy.median * 1e-3),
            l2: extents.bytes(extents.nonzeros) as f64 / (gather.median * 1e-3),
        }))
    }

    /// Bytes that a copy reads and writes in a second.
    pub const fn memory_rate(&self) -> f64 {
        self.memory
    }

    /// Bytes that the gather limit reads from the L2 cache in a second.
    pub const fn l2_rate(&self) -> f64 {
        self.l2
    }

    /// The memory floor.
    pub fn of_memory(&self, extents: Extents) -> FloorTime {
        FloorTime::new(extents.bytes(extents.used_columns), self.memory)
    }

    /// The L2 floor.
    pub fn of_l2(&self, extents: Extents) -> FloorTime {
        FloorTime::new(extents.bytes(extents.nonzeros), self.l2)
    }
}

/// The columns that have a nonzero.
pub fn used_columns<T: Sync>(a: &CsMatI<T, u32, u32>) -> usize {
    let used: Vec<AtomicBool> = (0..a.cols()).map(|_| AtomicBool::new(false)).collect();
    let columns = a.indices();
    parallel::each(columns.len(), |place| {
        let column = &used[columns[place] as usize];
        // Many nonzeros have the same column: a cache line is written only once.
        if !column.load(Ordering::Relaxed) {
            column.store(true, Ordering::Relaxed);
        }
    });
    let used = used.into_iter().map(AtomicBool::into_inner);
    used.filter(|&used| used).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_a_and_of_the_rows_of_x_and_y() {
        // 2 rows, 3 nonzeros in 2 of the columns, 5 features in f32.
        let extents = Extents {
            rows: 2,
            nonzeros: 3,
            used_columns: 2,
            features: 5,
            element_bytes: 4,
        };
        let floors = Floors {
            memory: 1e3,
            l2: 2e3,
        };
        let of_a = 3 * 8 + 3 * 4;
        let memory = floors.of_memory(extents);
        assert_eq!(memory.bytes, of_a + (2 + 2) * 20);
        assert!((memory.ms - memory.bytes as f64).abs() < 1e-9);
        let l2 = floors.of_l2(extents);
        assert_eq!(l2.bytes, of_a + (3 + 2) * 20);
        assert!((l2.ms - l2.bytes as f64 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn columns_without_a_nonzero_are_not_used() {
        let a = CsMatI::new((2, 5), vec![0, 2, 3], vec![1, 3, 3], vec![1.0_f32; 3]);
        assert_eq!(used_columns(&a), 2);
    }

    #[test]
    fn the_emulator_has_no_rates() {
        let device = Device::emulator(Default::default());
        assert!(Floors::measure(&device).unwrap().is_none());
    }
}
