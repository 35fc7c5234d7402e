//! Launches as CUDA writes them: `kernel<<<grid, block, shared_bytes>>>(arguments)`.

pub use cuda_std::kernel::{Kernel, KernelArgs, KernelParam};
pub use cuda_std::launch::{Dim3, LaunchConfig};

/// Launches a kernel on a device, written as in CUDA C++: an expression of type `Result<(), Error>`, which is
/// [`Device::launch`](crate::device::Device::launch) and `unsafe` as that is.
///
/// Grid and block are a number, two or three (see [`Dim3`]); the bytes of dynamic shared memory are a
/// number, a name or a parenthesised expression; the kernel is the name of a handle.
///
/// ```
/// use cuda_std::prelude::*;
/// use warprow::{device::Device, launch};
///
/// /// `y[i] += a * x[i]`, a thread an element.
/// ///
/// /// # Safety
/// ///
/// /// `x` and `y` hold `n` elements each.
/// #[kernel(T = [f32])]
/// pub unsafe fn axpy<T: Real>(n: u32, a: T, x: Global<T>, y: GlobalMut<T>) {
///     let i = thread::index_1d() as usize;
///     if i < n as usize {
///         // SAFETY: `i` is below `n`.
///         unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
///     }
/// }
///
/// # fn main() -> Result<(), warprow::Error> {
/// # let device = Device::emulator(Default::default());
/// let x = device.upload(&[1.0_f32, 2.0, 3.0])?;
/// let mut y = device.upload(&[10.0_f32, 20.0, 30.0])?;
/// let axpy = axpy::<f32>();
/// // SAFETY: both buffers hold three elements.
/// unsafe { launch!(device, axpy<<<1, 128, 0>>>(3, 2.0, x.read_only(), y.mutable()))? };
/// assert_eq!(y.download()?, [12.0, 24.0, 36.0]);
/// # Ok(())
/// # }
/// ```
///
/// Arguments of other types than the kernel's do not compile:
///
/// ```compile_fail,E0308
/// # use cuda_std::prelude::*;
/// # use warprow::{device::Device, launch};
/// # #[kernel]
/// # pub unsafe fn fill(n: u32, value: f32, y: GlobalMut<f32>) {}
/// # fn main() -> Result<(), warprow::Error> {
/// # let device = Device::emulator(Default::default());
/// let mut y = device.zeros::<f64>(3)?;        // `fill` wants a buffer of f32
/// let fill = fill();
/// // SAFETY: the buffer holds three elements.
/// unsafe { launch!(device, fill<<<1, 128, 0>>>(3, 2.0, y.mutable()))? };
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! launch {
    ($device:expr, $kernel:ident <<<$grid:expr, $block:expr, $shared_bytes:tt>>>($($argument:expr),* $(,)?)) => {
        $device.launch(
            &$kernel,
            $crate::launch::LaunchConfig::new($grid, $block).shared_bytes($shared_bytes),
            ($($argument,)*),
        )
    };
}
