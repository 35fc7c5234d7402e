//! A graph on the device, put there once for all widths of X: a plan for each kernel, and the arrays for those without plans.

use sprs::CsMatI;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use warprow::device::Device;
use warprow::{DeviceCsr, Error, RowOrder, Spmm, SpmmElement, SpmmKernel, SpmmOptions};

/// What was put there, or the words for why it does not fit.
pub type Fitting<V> = Result<V, String>;

/// A kernel and an order of the rows, or the plan's own.
type Choice = (Option<SpmmKernel>, Option<RowOrder>);

/// A graph on the device.
pub struct OnDevice<'a, T: SpmmElement> {
    device: &'a Device,
    a: &'a CsMatI<T, u32, u32>,
    tuning: SpmmOptions,
    plans: HashMap<Choice, Fitting<Spmm<T>>>,
    arrays: Option<Fitting<DeviceCsr<T>>>,
}

impl<'a, T: SpmmElement> OnDevice<'a, T> {
    /// Nothing as yet.
    pub fn new(device: &'a Device, a: &'a CsMatI<T, u32, u32>, tuning: SpmmOptions) -> Self {
        Self {
            device,
            a,
            tuning,
            plans: HashMap::new(),
            arrays: None,
        }
    }

    /// The plan for that kernel and that order of the rows, or with those of its own choice: the second of two on a GPU, as the
    /// first one takes the driver's time for kernels and memory.
    ///
    /// # Errors
    ///
    /// The device's, unless it is one of memory.
    pub fn plan(
        &mut self,
        kernel: Option<SpmmKernel>,
        order: Option<RowOrder>,
    ) -> anyhow::Result<&Fitting<Spmm<T>>> {
        match self.plans.entry((kernel, order)) {
            Entry::Occupied(plan) => Ok(plan.into_mut()),
            Entry::Vacant(place) => {
                let options = SpmmOptions {
                    kernel,
                    order,
                    ..self.tuning
                };
                let plan = || Spmm::plan(self.device, self.a.view(), options);
                let mut first = plan();
                if first.is_ok() && !self.device.is_emulator() {
                    drop(first);
                    first = plan();
                }
                Ok(place.insert(fitting(first)?))
            }
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
pub fn fitting<V>(result: Result<V, Error>) -> anyhow::Result<Fitting<V>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(
            error @ (Error::OutOfMemory { .. }
            | Error::HostOutOfMemory { .. }
            | Error::Kernel { .. }),
        ) => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}
