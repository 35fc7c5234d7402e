//! Pairs of a column and a value of B, so that one load fetches both, for rows whose products are sorted.

use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, DeviceSlice};
use crate::operand::OperandError;
use crate::spgemm::options::SpgemmElement;
use cuda_std::memory::Global;
use warprow_kernels::spgemm::products::lane_products;

/// Room for the pairs.
#[derive(Debug)]
pub struct Pairs(DeviceBuffer<u32>);

impl Pairs {
    /// Room for the nonzeros of `b`.
    pub fn new(b: &DevicePattern) -> Result<Self, OperandError> {
        Ok(Self(b.device.scratch(2 * b.nnz())?))
    }

    /// Room for the nonzeros of `b`, if values of this type are paired, and sorted rows have enough `products` to save
    /// more time than the pass over B takes.
    pub fn worth_it<T: SpgemmElement>(
        b: &DevicePattern,
        products: u64,
    ) -> Result<Option<Self>, OperandError> {
        if !lane_products::are_paired::<T>() || products < 2 * b.nnz() as u64 || products == 0 {
            return Ok(None);
        }
        Self::new(b).map(Some)
    }

    /// Launches the kernel that pairs the columns of `b` with these values.
    pub fn fill<T: SpgemmElement>(
        &mut self,
        b: &DevicePattern,
        values: DeviceSlice<'_, T>,
    ) -> Result<Global<u32>, OperandError> {
        let nonzeros = b.nonzeros();
        let values = values.read_only().cast::<f32>();
        if nonzeros > 0 {
            let arguments = (b.as_argument(), nonzeros, values, self.0.mutable());
            let config = lane_products::launch(nonzeros);
            // SAFETY: only types of four bytes are paired, and the kernel copies these; there is room for all nonzeros.
            unsafe {
                b.device
                    .launch(&lane_products::pair_nonzeros(), config, arguments)?
            };
        }
        Ok(self.0.read_only())
    }
}
