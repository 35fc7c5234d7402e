//! Those who compute a case: the kernels of this crate, the limits, the algorithms of cuSPARSE.

use crate::harness::cusparse::CusparseElement;
use crate::spmm::choices::Choice;
use crate::spmm::floors::{L2_FLOOR, MEMORY_FLOOR};
use crate::spmm::{cusparse_spmm, cusparse_spmv, gather_limit};
use warprow::SpmmElement;

/// The name of the copy.
pub const COPY_LIMIT: &str = "copy_limit";

/// An element type of both sides.
pub trait BenchElement: SpmmElement + CusparseElement {}

impl<T: SpmmElement + CusparseElement> BenchElement for T {}

/// Who computes a case.
#[derive(Clone, Copy, Debug)]
pub enum Implementer {
    /// A plan of this crate.
    Warprow(Choice),
    /// The gather limit.
    GatherLimit,
    /// A copy of as many bytes as a product moves at least.
    CopyLimit,
    /// SpMM of cuSPARSE.
    CusparseSpmm(cusparse_spmm::Algorithm),
    /// SpMV of cuSPARSE.
    CusparseSpmv(cusparse_spmv::Algorithm),
    /// The product's bytes over the memory's measured bandwidth.
    MemoryFloor,
    /// The gathered bytes over the L2 cache's.
    L2Floor,
}

impl Implementer {
    /// The name in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warprow(choice) => choice.name,
            Self::GatherLimit => gather_limit::NAME,
            Self::CopyLimit => COPY_LIMIT,
            Self::CusparseSpmm(algorithm) => algorithm.name(),
            Self::CusparseSpmv(algorithm) => algorithm.name(),
            Self::MemoryFloor => MEMORY_FLOOR,
            Self::L2Floor => L2_FLOOR,
        }
    }
}

/// cuSPARSE, if it is there.
#[derive(Default)]
pub struct Peers {
    /// With the functions of SpMM.
    pub spmm: Option<cusparse_spmm::Cusparse>,
    /// With those of SpMV.
    pub spmv: Option<cusparse_spmv::Cusparse>,
}
