//! The options of a plan of XW.

use crate::setters::setters;
use warprow_kernels::gemm::GemmKernel;

/// What a plan of XW computes.
///
/// ```
/// use warprow::{GemmKernel, GemmOptions, GemmTuning};
///
/// let options = GemmOptions::new().relu(true);
/// let by_hand = options.tuning(GemmTuning::new().kernel(GemmKernel::Staged));
/// # assert!(by_hand.relu && by_hand.tuning.kernel.is_some());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GemmOptions {
    /// Whether negative results become 0, after the bias is added; default: no. A NaN stays.
    pub relu: bool,
    /// Whether f32 may be rounded to tf32 (11 bits of the significand) for tensor cores; default: no. The plan ignores
    /// it for other types, and where an exact kernel is as fast.
    pub tf32: bool,
    /// How it is computed. Default: the plan chooses.
    pub tuning: GemmTuning,
}

impl GemmOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { relu: bool, tf32: bool, tuning: GemmTuning }
        optional {}
    }

    /// The same options, tuned in another way.
    ///
    /// ```
    /// # use warprow::GemmOptions;
    /// let options = GemmOptions::new().map_tuning(|tuning| tuning);
    /// # assert_eq!(options, GemmOptions::new());
    /// ```
    #[must_use]
    pub fn map_tuning(self, change: impl FnOnce(GemmTuning) -> GemmTuning) -> Self {
        self.tuning(change(self.tuning))
    }
}

/// How a plan of XW computes. `None` leaves the choice to the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GemmTuning {
    /// The kernel.
    pub kernel: Option<GemmKernel>,
    /// The instance of `kernel`, by its PTX entry point: for benches and tests. Default: the kernel chooses.
    #[doc(hidden)]
    pub instance: Option<&'static str>,
}

impl GemmTuning {
    /// All choices are the plan's.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields {}
        optional { kernel: GemmKernel, instance: &'static str }
    }
}
