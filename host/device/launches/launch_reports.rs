//! What launches have counted: on an emulator, and by a GPU's profiler.

use crate::device::error::DeviceError;
use crate::device::{Backend, Device};
use simt::{CounterOptions, LaunchReport};

impl Device {
    /// The reports of all counted launches since the last call, the oldest first. A launch that ends with a fault has
    /// none.
    ///
    /// An emulator counts if its options have [`counters`](simt::Options::counters). An
    /// [emulator of a GPU](Self::emulator_of) also models that GPU's caches, and gives the occupancy of this crate's
    /// kernels on it. The column indices of a launch's matrix, a parameter `col_idx`, are its work, unless the options
    /// name another buffer.
    ///
    /// ```
    /// use warprow::device::{CounterOptions, Device, DeviceProfile, EmulatorOptions};
    /// use warprow::{Spmm, SpmmKernel, SpmmOptions, SpmmTuning, generate};
    ///
    /// # fn main() -> Result<(), warprow::Error> {
    /// let counters = Some(CounterOptions::default());
    /// let options = EmulatorOptions::new().counters(counters);
    /// let device = Device::emulator_of(&DeviceProfile::h200(), options);
    /// let a = generate::uniform::<f32>(70, 40, 500, 1)?;
    /// let kernel = Some(SpmmKernel::WarpPerRow);
    /// let spmm = Spmm::plan(&device, a.view(), SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel)))?;
    /// device.launch_reports()?; // the plan's launches
    /// spmm.multiply(generate::dense::<f32>(40, 32, 2)?.view())?;
    /// for report in device.launch_reports()? {
    ///     println!("{report}");
    ///     assert!(report.total.global_loads.sectors_per_request() <= 4.0);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoCounters`]: the device is an emulator that counts nothing, or a GPU, whose launches Nsight
    /// Compute (`ncu`) counts.
    pub fn launch_reports(&self) -> Result<Vec<LaunchReport>, DeviceError> {
        self.with_reports(std::mem::take)
    }

    /// The report of the last counted launch, unless [`launch_reports`](Self::launch_reports) has taken it.
    ///
    /// # Errors
    ///
    /// Those of [`launch_reports`](Self::launch_reports).
    pub fn last_launch_report(&self) -> Result<Option<LaunchReport>, DeviceError> {
        self.with_reports(|reports| reports.last().cloned())
    }

    /// Sets what later launches count; `None`: nothing.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoCounters`] on a GPU.
    pub fn set_counters(&self, counters: Option<CounterOptions>) -> Result<(), DeviceError> {
        match &*self.backend {
            Backend::Emulator(emulator) => emulator.set_counters(counters),
            #[cfg(cuda)]
            Backend::Cuda(_) => Err(self.no_counters()),
        }
    }

    /// Runs `work`, and lets a profiler of NVIDIA that was told to wait record what it launches: `ncu
    /// --profile-from-start off`, or `nsys profile --capture-range cudaProfilerApi`. An emulator only runs `work`.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn profiled<R>(&self, work: impl FnOnce() -> R) -> Result<R, DeviceError> {
        match &*self.backend {
            Backend::Emulator(_) => Ok(work()),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.profiled(self.streams.current().cuda(), work),
        }
    }

    fn with_reports<R>(
        &self,
        take: impl FnOnce(&mut Vec<LaunchReport>) -> R,
    ) -> Result<R, DeviceError> {
        let taken = match &*self.backend {
            Backend::Emulator(emulator) => emulator.with_reports(take)?,
            #[cfg(cuda)]
            Backend::Cuda(_) => None,
        };
        taken.ok_or_else(|| self.no_counters())
    }

    fn no_counters(&self) -> DeviceError {
        DeviceError::NoCounters {
            device: self.name().to_owned(),
        }
    }
}
