//! The device-side standard library: what a kernel needs, on a GPU and on the emulator.
//!
//! A kernel crate is compiled twice, from the same source. For `nvptx64-nvidia-cuda`, a function of this crate is one
//! PTX instruction or a few. For the host, it is a checked call into [`simt`], the emulator.
//!
//! The attribute [`kernel`](macro@kernel) declares a kernel; its page has an example.
//!
//! | module | content |
//! |---|---|
//! | [`thread`] | indices and dimensions, barriers of a block, memory fences |
//! | [`warp`] | shuffles, votes, match and reduce among the 32 lanes of a warp |
//! | [`memory`] | typed device pointers: `Global`, `GlobalMut`, `Shared` |
//! | [`shared`] | shared memory, static and dynamic |
//! | [`async_copy`] | asynchronous copies from global to shared memory |
//! | [`mma`] | matrix multiplication by a warp, on tensor cores |
//! | [`warpgroup`] | matrix multiplication by four warps, on tensor cores of sm_90a |
//! | [`atomic`] | atomic operations of block, device and system scope |
//! | [`float`] | fused multiply-add, maximum, fast `exp2` and `log2`, 16-bit floats |
//! | [`launch`], [`kernel`](mod@kernel) | grid and block sizes; the handle that `#[kernel]` makes |

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch, stdarch_nvptx))]
#![cfg_attr(target_arch = "nvptx64", feature(abi_unadjusted, link_llvm_intrinsics))]

pub mod async_copy;
pub mod atomic;
mod backend;
pub mod element;
pub mod float;
#[cfg(not(target_arch = "nvptx64"))]
pub mod kernel;
pub mod launch;
pub mod memory;
pub mod mma;
mod scope;
pub mod shared;
pub mod thread;
pub mod warp;
pub mod warpgroup;
mod word;

/// Declares a kernel and, on the host, its typed handle.
///
/// ```
/// use cuda_std::prelude::*;
///
/// /// `y[i] += a * x[i]`, one thread per element.
/// ///
/// /// # Safety
/// ///
/// /// `x` and `y` hold `n` elements each.
/// #[kernel(T = [f32, f64])]
/// pub unsafe fn axpy<T: Real>(n: u32, a: T, x: Global<T>, y: GlobalMut<T>) {
///     let i = thread::index_1d() as usize;
///     if i < n as usize {
///         // SAFETY: `i` is less than `n`, the length of both.
///         unsafe { y.store(i, a.mul_add(x.load(i), y.load(i))) };
///     }
/// }
///
/// // On the host, the name of the kernel is a typed handle: it has the entry point and the types of the arguments.
/// let handle: Kernel<(u32, f32, Global<f32>, GlobalMut<f32>)> = axpy::<f32>();
/// assert_eq!(handle.name(), "axpy_f32");
/// ```
///
/// The attribute must list the instances of each generic parameter. This does not compile:
///
/// ```compile_fail
/// use cuda_std::prelude::*;
///
/// #[kernel] // `T = [..]` is missing
/// pub unsafe fn scale<T: Real>(a: T, x: GlobalMut<T>) {}
/// ```
pub use cuda_std_macros::kernel;
pub use half::{bf16, f16};

/// The items that most kernels import.
pub mod prelude {
    pub use crate::element::Element;
    pub use crate::float::Real;
    #[cfg(not(target_arch = "nvptx64"))]
    pub use crate::kernel::{Kernel, KernelParam};
    pub use crate::launch::{Dim3, LaunchConfig};
    pub use crate::memory::{Global, GlobalMut, Shared};
    pub use crate::{atomic, kernel, shared, shared_array, thread, warp};
    pub use half::{bf16, f16};
}
