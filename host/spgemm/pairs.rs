//! Columns and values of B beside each other, for rows whose products are sorted.

use super::SpgemmElement;
use super::lists::Lists;
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;
use cuda_std::memory::Global;
use warprow_kernels::spgemm::products::lane_products;

/// Room for the columns and values of B.
#[derive(Debug)]
pub(super) struct Pairs(DeviceBuffer<u32>);

impl Pairs {
    /// Room for those of `b`.
    pub fn new(b: &DevicePattern) -> Result<Self, Error> {
        Ok(Self(b.device.uninitialized(2 * b.nnz())?))
    }

    /// Room for those of `b`, if values of this type are paired and the sorted rows, whose first bin is `sorted`, have so many
    /// products that it pays.
    pub fn worth_it<T: SpgemmElement>(
        b: &DevicePattern,
        lists: &Lists,
        sorted: u32,
    ) -> Result<Option<Self>, Error> {
        let products = lists.sorted_products(sorted);
        if !lane_products::are_paired::<T>() || products < 2 * b.nnz() as u64 || products == 0 {
            return Ok(None);
        }
        Self::new(b).map(Some)
    }

    /// Launches the kernel that pairs the columns of `b` and these values, as many.
    pub fn fill<T: SpgemmElement>(
        &mut self,
        b: &DevicePattern,
        values: &DeviceBuffer<T>,
    ) -> Result<Global<u32>, Error> {
        let nonzeros = b.nonzeros();
        let values = values.read_only().cast::<f32>();
        if nonzeros > 0 {
            let arguments = (b.as_argument(), nonzeros, values, self.0.mutable());
            let config = lane_products::launch(nonzeros);
            // SAFETY: the values are of four bytes, which are not looked at, and there is room for all nonzeros.
            unsafe {
                b.device
                    .launch(&lane_products::pair_nonzeros(), config, arguments)?
            };
        }
        Ok(self.0.read_only())
    }
}
