//! The GPU architecture that PTX is made for.

use std::fmt;

/// A GPU architecture by its number: the compute capability times ten.
///
/// PTX for one architecture runs on it and on all later ones: the driver compiles it for the GPU at hand. What is *specific* to an
/// architecture, as the `a` of `sm_90a` says, runs on no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    number: u32,
    specific: bool,
}

impl Arch {
    /// Compute capability 8.0 (A100).
    pub const SM80: Arch = Arch::new(80);
    /// Compute capability 8.6 (GeForce 30).
    pub const SM86: Arch = Arch::new(86);
    /// Compute capability 8.9 (L40, GeForce 40).
    pub const SM89: Arch = Arch::new(89);
    /// Compute capability 9.0 (H100, H200).
    pub const SM90: Arch = Arch::new(90);
    /// Compute capability 9.0 with the instructions that it alone has.
    pub const SM90A: Arch = Arch {
        number: 90,
        specific: true,
    };
    /// Compute capability 10.0 (B200).
    pub const SM100: Arch = Arch::new(100);
    /// Compute capability 12.0 (GeForce 50).
    pub const SM120: Arch = Arch::new(120);

    const fn new(number: u32) -> Arch {
        Arch {
            number,
            specific: false,
        }
    }

    /// The number alone, 80 for `sm_80`.
    pub fn number(self) -> u32 {
        self.number
    }
}

/// Takes any number; [`CudaBuilder::build`](crate::CudaBuilder::build) refuses one that the compiler does not know.
impl From<u32> for Arch {
    fn from(number: u32) -> Arch {
        Arch::new(number)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specific = if self.specific { "a" } else { "" };
        write!(f, "sm_{}{specific}", self.number)
    }
}
