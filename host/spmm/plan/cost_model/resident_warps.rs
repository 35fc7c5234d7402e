//! How many warps of a candidate's kernel run on a multiprocessor at the same time.

use super::candidate::Candidate;
use warprow_kernels::spmm::product::row_bins::shared_x;
use warprow_kernels::spmm::{EpilogueKind, SpmmKernel};

impl Candidate {
    /// Resident warps of a multiprocessor: as many as the registers of the kernels allow on sm_90
    /// (host/ptx/registers.txt). Older GPUs run fewer warps of some kernels: 24 instead of 32 of `in_step` in f32 with
    /// 16 and 32 lanes on sm_80.
    pub fn resident_warps(&self) -> f64 {
        use SpmmKernel::{InStep, RowBins, RowGroups, Vector};
        match (self.kernel, self.row.element_bytes(), self.width) {
            (RowBins, ..) if self.has_shared_x => f64::from(shared_x::WARPS),
            (RowBins, 8, _) => 40.0,
            (RowGroups | RowBins, ..) => 48.0,
            (Vector | InStep, 8, _) => 16.0,
            (Vector, 2, width) => self.resident_warps_of_16_bit_vector(width),
            (Vector, _, width) => self.resident_warps_of_vector(width),
            (InStep, 2, 4) => 40.0,
            (InStep, 2, 8) => 28.0,
            (InStep, 4, 2) => 36.0,
            _ => 32.0,
        }
    }

    /// The same of `vector` in f32, whose lanes load `width` elements at a time.
    fn resident_warps_of_vector(&self, width: u32) -> f64 {
        use EpilogueKind::{AnyOrder, Plain};
        match (self.row.epilogue(), width, self.lanes) {
            _ if self.blocks > 1 => 28.0,
            (Plain, 4, 32) | (AnyOrder, 1, 16) => 32.0,
            (AnyOrder, 1, 32) if self.elements_of_lane() > 2 => 24.0,
            (AnyOrder, 1, 32) => 32.0,
            _ if self.elements_of_lane() > 2 => 28.0,
            _ => 36.0,
        }
    }

    /// The same of `vector` in 16 bits.
    fn resident_warps_of_16_bit_vector(&self, width: u32) -> f64 {
        match (self.row.epilogue(), width) {
            (EpilogueKind::AnyOrder, 8) => 24.0,
            (_, 4) => 36.0,
            _ => 28.0,
        }
    }
}
