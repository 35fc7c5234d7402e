//! What a product is computed for: the type of the elements, and the options.

use crate::device::Device;
use crate::scalar::Scalar;
use cuda_std::float::Real;
use warprow_kernels::spgemm::Borders;

/// An element type that SpGEMM has kernels for.
pub trait SpgemmElement: Scalar + Real + Default {}

impl SpgemmElement for f32 {}
impl SpgemmElement for f64 {}

/// How a product is to be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpgemmOptions {
    /// Bitwise the same result in every run: each entry is added up in the order of the nonzeros of A. Without it sums are
    /// added up in the order of chance.
    pub deterministic: bool,
    /// Entries that turn out zero are left out; else every entry that the structure gives is kept.
    pub drop_zeros: bool,
    /// Bytes of device memory that [`spgemm`](super::spgemm()) may use, operands among them; what is free if it is not said. And
    /// bytes that a [`Spgemm`](super::Spgemm) may keep for later runs of its numeric phase; a quarter of what is free if it is not said.
    pub memory: Option<u64>,
    /// A [`Spgemm`](super::Spgemm) keeps nothing from its first run for later ones. Else that run keeps on the device where the products of
    /// long rows come from and go, some 2.3 bytes a product, and later ones are faster.
    pub low_memory: bool,
    /// Which kernel takes which rows: for benches and tests.
    #[doc(hidden)]
    pub borders: Option<Borders>,
}

impl SpgemmOptions {
    /// The borders between kernels on a device.
    pub(super) fn borders<T: SpgemmElement>(&self, device: &Device) -> Borders {
        let shared_bytes = device.properties().max_shared_bytes_per_block;
        let default = Borders::new(shared_bytes, size_of::<T>() as u32);
        Borders {
            ordered: self.deterministic.into(),
            ..self
                .borders
                .map_or(default, |borders| borders.within(default))
        }
    }
}
