//! A graph on the device, put there once for all widths of X: a plan for each kernel, and the arrays for those
//! without plans.

use crate::spmm::choices::{Choice, OURS};
use crate::spmm::floors::{Extents, used_columns};
use crate::spmm::operands::Operands;
use sprs::CsMatI;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;
use warprow::device::{Device, DeviceError};
use warprow::reference::WholeProduct;
use warprow::spmm::SpmmError;
use warprow::{DeviceCsr, Error, Spmm, SpmmElement, SpmmOptions};

/// What was put there, or the words for why it does not fit.
pub type Fitting<V> = Result<V, String>;

/// A graph on the device.
pub struct OnDevice<'a, T: SpmmElement> {
    device: &'a Device,
    a: &'a CsMatI<T, u32, u32>,
    plans: HashMap<&'static str, Fitting<Spmm<T>>>,
    /// The number of features that the plan's own choice was made for.
    own_features: Option<u32>,
    /// The time of the first of the plan's own two plans.
    first_planning: Option<Duration>,
    used_columns: Option<usize>,
    arrays: Option<Fitting<DeviceCsr<T>>>,
}

impl<'a, T: SpmmElement> OnDevice<'a, T> {
    /// Nothing as yet.
    pub fn new(device: &'a Device, a: &'a CsMatI<T, u32, u32>) -> Self {
        Self {
            device,
            a,
            plans: HashMap::new(),
            own_features: None,
            first_planning: None,
            used_columns: None,
            arrays: None,
        }
    }

    /// The options of that choice's plan.
    fn options(choice: Choice, features: u32) -> SpmmOptions {
        let mut options = choice.options;
        if choice.name == OURS {
            options.features = Some(features);
        }
        options
    }

    /// Whether the product of small whole numbers is exact by that choice; or why it does not fit.
    ///
    /// # Errors
    ///
    /// The device's, unless it is one of memory.
    pub fn is_exact(
        &mut self,
        choice: Choice,
        operands: &mut Operands<'_, T>,
        seed: u64,
    ) -> anyhow::Result<Fitting<bool>> {
        let whole = WholeProduct::<T>::new(self.a.view(), operands.features as usize, seed);
        let options = Self::options(choice, operands.features);
        let plan = match fitting(Spmm::plan(self.device, whole.a(), options))? {
            Ok(plan) => plan,
            Err(reason) => return Ok(Err(reason)),
        };
        fitting(operands.is_exact(&plan, &whole))
    }

    /// The plan of that choice, once for all widths, but the plan's own for each width anew, which it knows. On a GPU
    /// it is the second of two, as the first takes the driver's time for kernels and memory.
    ///
    /// # Errors
    ///
    /// The device's, unless it is one of memory.
    pub fn plan(&mut self, choice: Choice, features: u32) -> anyhow::Result<&Fitting<Spmm<T>>> {
        let options = Self::options(choice, features);
        let mut again = false;
        if choice.name == OURS && self.own_features != Some(features) {
            again = !self.device.is_emulator();
            self.own_features = Some(features);
            self.plans.remove(OURS);
        }
        match self.plans.entry(choice.name) {
            Entry::Occupied(plan) => Ok(plan.into_mut()),
            Entry::Vacant(place) => {
                let plan = || Spmm::plan(self.device, self.a.view(), options);
                let mut plan_of_choice = plan();
                if again && let Ok(first) = &plan_of_choice {
                    self.first_planning = Some(first.times().preprocessing);
                    drop(plan_of_choice);
                    plan_of_choice = plan();
                }
                Ok(place.insert(fitting(plan_of_choice)?))
            }
        }
    }

    /// What the time of the plan's own first plan was, if there were two.
    pub const fn first_planning(&self) -> Option<Duration> {
        self.first_planning
    }

    /// What a product with so many features moves.
    pub fn extents(&mut self, features: u32) -> Extents {
        let used = self
            .used_columns
            .get_or_insert_with(|| used_columns(self.a));
        Extents {
            rows: self.a.rows(),
            nonzeros: self.a.nnz(),
            used_columns: *used,
            features,
            element_bytes: size_of::<T>(),
        }
    }

    /// The arrays.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn arrays(&mut self) -> anyhow::Result<&Fitting<DeviceCsr<T>>> {
        if self.arrays.is_none() {
            self.arrays = Some(fitting(DeviceCsr::upload(self.device, self.a.view()))?);
        }
        Ok(self.arrays.as_ref().expect("the arrays are there"))
    }
}

/// An error of memory, or of a kernel that has not what is wanted, as a result in words; any other error ends the run.
///
/// # Errors
///
/// The other errors.
pub fn fitting<V>(result: Result<V, impl Into<Error>>) -> anyhow::Result<Fitting<V>> {
    match result.map_err(Into::into) {
        Ok(value) => Ok(Ok(value)),
        Err(
            error @ (Error::Device(
                DeviceError::OutOfMemory { .. } | DeviceError::HostOutOfMemory { .. },
            )
            | Error::Spmm(SpmmError::Kernel { .. })),
        ) => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}
