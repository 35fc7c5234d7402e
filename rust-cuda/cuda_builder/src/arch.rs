//! The GPU architecture that PTX is made for.

use std::fmt;

/// A GPU architecture by its number: the compute capability times ten.
///
/// PTX for one architecture runs on it and on all later ones: the driver compiles it for the GPU at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch(u32);

impl Arch {
    /// Compute capability 8.0 (A100).
    pub const SM80: Arch = Arch(80);
    /// Compute capability 8.6 (GeForce 30).
    pub const SM86: Arch = Arch(86);
    /// Compute capability 8.9 (L40, GeForce 40).
    pub const SM89: Arch = Arch(89);
    /// Compute capability 9.0 (H100, H200).
    pub const SM90: Arch = Arch(90);
    /// Compute capability 10.0 (B200).
    pub const SM100: Arch = Arch(100);
    /// Compute capability 12.0 (GeForce 50).
    pub const SM120: Arch = Arch(120);

    /// The number alone, 80 for `sm_80`.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Takes any number; [`CudaBuilder::build`](crate::CudaBuilder::build) refuses one that the compiler does not know.
impl From<u32> for Arch {
    fn from(number: u32) -> Arch {
        Arch(number)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}
