//! The element types and the options of a product.

use crate::device::Device;
use crate::scalar::Scalar;
use crate::setters::setters;
use cuda_std::float::Real;
use warprow_kernels::spgemm::BinLimits;

/// Threads that can be resident on a multiprocessor, at most.
const MAX_THREADS_OF_MULTIPROCESSOR: u64 = 2048;

/// Minimum number of entries of C for two copies, of values and of columns. An H200 writes as many in the time of about
/// ten launches.
const MIN_ENTRIES_TO_COPY_TWICE: u32 = 1 << 24;

/// Minimum mean number of entries in a row of C for two copies. To look up where longer rows are staged, and where they
/// go, twice costs little.
const MIN_MEAN_TO_COPY_TWICE: u32 = 64;

/// As [`MIN_ENTRIES_TO_COPY_TWICE`], for shorter rows where the work of all rows must stay: 16 bytes for each, and as
/// much for each row of B. With one copy, products of such rows needed up to 0.55 of the memory of cuSPARSE
/// (docs/notes/spgemm.md).
const MIN_ENTRIES_BESIDE_WORK: u32 = 1 << 22;

/// Threads that can be resident on a device, at most.
pub(super) fn resident_threads(device: &Device) -> u64 {
    u64::from(device.properties().multiprocessors) * MAX_THREADS_OF_MULTIPROCESSOR
}

/// An element type that SpGEMM has kernels for.
pub trait SpgemmElement: Scalar + Real + Default {}

impl SpgemmElement for f32 {}
impl SpgemmElement for f64 {}

/// What a product is.
///
/// ```
/// use warprow::{SpgemmOptions, SpgemmTuning};
///
/// let options = SpgemmOptions::new().deterministic(true);
/// let small = options.tuning(SpgemmTuning::new().memory(1 << 30));
/// # assert_eq!(small.tuning.memory, Some(1 << 30));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpgemmOptions {
    /// Whether every run gives the same bits: each entry is added up in the order of the nonzeros of A. Default: in
    /// any order.
    pub deterministic: bool,
    /// Whether entries whose value turns out to be zero are left out. Default: they stay.
    pub drop_zeros: bool,
    /// How it is computed.
    pub tuning: SpgemmTuning,
}

/// How a product is computed: with how much memory, and by which kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpgemmTuning {
    /// Maximum number of bytes of device memory that [`spgemm`](super::spgemm()) uses, operands included; default:
    /// the free memory. For a [`Spgemm`](super::Spgemm), the maximum that it caches for later runs of its numeric
    /// phase; default: a quarter of the free memory.
    pub memory: Option<u64>,
    /// Whether to take less device memory, and more time.
    ///
    /// A [`Spgemm`](super::Spgemm) then caches nothing. Default: its first run caches a map of the products, and
    /// later runs are faster. The first run then takes up to seven times as long. The map takes 8 bytes for a product
    /// of a row with at most 256 products, and then also 4 bytes for each entry of C. A product of a longer row takes
    /// some 2.3 bytes. There is no map for rows within few columns, copied and merged rows, nor for long rows of a
    /// deterministic product. Spread rows have one if they are few, it takes little time, and no entry has very many
    /// products.
    ///
    /// [`multiply`](super::multiply()) makes no map. If most products are in rows of at most 512 products, it then
    /// copies the values of these rows to C, frees the staged values, and copies the columns. That saves up to a
    /// quarter of the memory in f32, and took up to 1.1 times as long on an H200. Without this option it does so only
    /// for a C of at least 2^24 entries and at least 64 for each row in the mean, and for one of at least 2^22 entries
    /// and fewer than 64 for each row where the numeric phase computes some rows.
    pub low_memory: bool,
    /// Which kernel takes which rows: for benches and tests.
    #[doc(hidden)]
    pub bin_limits: Option<BinLimits>,
}

impl SpgemmTuning {
    /// All choices are the operation's.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { low_memory: bool }
        optional { memory: u64, bin_limits: BinLimits }
    }

    /// Whether columns and values of rows that are sorted are copied to C one after the other, for so many entries and
    /// rows. That takes less memory, but each row is looked up twice. `keeps_work` says whether the work of all rows
    /// and the extents of B must stay, which for short rows is a large part of all memory.
    pub(super) fn copies_twice(&self, entries: u32, rows: u32, keeps_work: bool) -> bool {
        let mean = entries / rows.max(1);
        let is_large = entries >= MIN_ENTRIES_TO_COPY_TWICE && mean >= MIN_MEAN_TO_COPY_TWICE;
        let needs_room =
            keeps_work && entries >= MIN_ENTRIES_BESIDE_WORK && mean < MIN_MEAN_TO_COPY_TWICE;
        self.low_memory || is_large || needs_room
    }
}

impl SpgemmOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { deterministic: bool, drop_zeros: bool, tuning: SpgemmTuning }
        optional {}
    }

    /// The limits of the bins, which decide the kernel of each row, for an A of so many rows. Benches that change one
    /// limit start from these.
    #[doc(hidden)]
    pub fn bin_limits<T: SpgemmElement>(&self, device: &Device, rows: u32) -> BinLimits {
        let properties = device.properties();
        let shared_bytes = properties.max_shared_bytes_per_block;
        let default = BinLimits::new(shared_bytes, size_of::<T>() as u32);
        let mut bin_limits = match self.tuning.bin_limits {
            Some(bin_limits) => bin_limits.within(default),
            None => default,
        };
        // A lane merges a row alone. With fewer rows than threads that can be resident, it pays to use more lanes.
        if self.tuning.bin_limits.is_none() && u64::from(rows) < resident_threads(device) {
            bin_limits.merge_nonzeros = 0;
        }
        bin_limits.ordered = self.deterministic.into();
        bin_limits
    }

    /// The same options, tuned in another way.
    ///
    /// ```
    /// # use warprow::SpgemmOptions;
    /// let options = SpgemmOptions::new().map_tuning(|tuning| tuning);
    /// # assert_eq!(options, SpgemmOptions::new());
    /// ```
    #[must_use]
    pub fn map_tuning(self, change: impl FnOnce(SpgemmTuning) -> SpgemmTuning) -> Self {
        self.tuning(change(self.tuning))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceProfile, EmulatorOptions};

    #[test]
    fn rows_are_merged_where_each_resident_thread_has_one() {
        let h200 = Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default());
        let merged =
            |options: SpgemmOptions, rows| options.bin_limits::<f32>(&h200, rows).merge_nonzeros;
        let threads = 132 * 2048;
        let default = SpgemmOptions::new();
        assert_eq!(merged(default, threads - 1), 0);
        assert_eq!(merged(default, threads), 16);
        let by_hand = default.bin_limits::<f32>(&h200, threads);
        let by_hand = default.tuning(SpgemmTuning::new().bin_limits(by_hand));
        assert_eq!(merged(by_hand, 1), 16, "what the caller asks for");
    }

    #[test]
    fn long_rows_of_a_large_product_are_copied_twice() {
        let default = SpgemmTuning::new();
        assert!(default.copies_twice(1 << 24, 1 << 18, false));
        assert!(!default.copies_twice((1 << 24) - 1, 1 << 10, false));
        assert!(
            !default.copies_twice(1 << 24, (1 << 18) + 1, false),
            "short rows"
        );
        assert!(default.low_memory(true).copies_twice(1, 1, false));
    }

    #[test]
    fn short_rows_beside_longer_ones_are_copied_twice() {
        let copies_twice = |entries, rows| {
            let [without, with] = [false, true]
                .map(|keeps_work| SpgemmTuning::new().copies_twice(entries, rows, keeps_work));
            assert!(!without, "the work of all rows is freed");
            with
        };
        assert!(copies_twice(1 << 22, 1 << 20));
        assert!(copies_twice((1 << 24) - 1, 1 << 18));
        assert!(!copies_twice((1 << 24) - 1, 1 << 17), "longer rows");
        assert!(!copies_twice((1 << 22) - 1, 1 << 20), "few entries");
    }
}
