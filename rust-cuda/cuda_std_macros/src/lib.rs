//! The `#[kernel]` attribute: one function, two machines. See `cuda_std` for how it is used.

mod expand;
mod instances;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Makes a function a kernel.
///
/// ```ignore
/// #[kernel]                                                        // one entry point: `fill`
/// pub unsafe fn fill(n: u32, value: f32, y: GlobalMut<f32>) { .. }
///
/// #[kernel(T = [f32, f64])]                                        // `axpy_f32`, `axpy_f64`
/// pub unsafe fn axpy<T: Real>(n: u32, a: T, x: Global<T>, y: GlobalMut<T>) { .. }
///
/// #[kernel(name = "spmm_vector", T = [f32, f64], LANES = [8, 16])] // `spmm_vector_f32_8`, .. four of them
/// pub unsafe fn vector<T: Real, const LANES: u32>(..) { .. }
/// ```
///
/// Each generic parameter has its list of instances in the attribute; the kernel is instantiated for every combination.
/// A type parameter is an element type, or a type that names a variant and implements `cuda_std::element::InstanceType`.
/// Where not every combination is wanted, semicolons separate groups of lists:
/// `T = [f32], WIDTH = [1, 4]; T = [f16], WIDTH = [1, 8]` is four entry points.
///
/// `target = sm_90` says that the kernel has instructions which `sm_80` lacks: its PTX is for that architecture and
/// newer ones. `target = sm_90a` is for that one alone.
///
/// The driver compiles each entry point by itself when it is first launched. Kernels with the same `module =
/// "analysis"` are compiled together, which is faster if all of them are used.
///
/// `registers = 128` in a group is a limit for its instances (`.maxnreg`). It says with how many threads beside it a
/// thread is to run, and that the assembler may spend the registers that this leaves: with no limit it saves them, and
/// puts instructions one after another that could run at the same time. `registers_sm90 = 64` is a limit on GPUs of
/// that architecture and newer ones; older ones have none.
///
/// On `nvptx64` each instance becomes a PTX entry point, named after the function (or `name`) and its instance, in the
/// crate that `cuda_builder` builds; a crate that this one depends on has PTX of its own. On the host the function's
/// name becomes a function that gives the typed handle `cuda_std::kernel::Kernel<(arguments,)>` of an instance:
/// `axpy::<f32>()`.
///
/// The function is `unsafe`, returns nothing, and its parameters are plain names with types that are
/// `cuda_std::kernel::KernelParam`.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    let instances = syn::parse_macro_input!(attribute as instances::Instances);
    expand::kernel(instances, function)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
