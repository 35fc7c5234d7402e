//! The `#[kernel]` attribute, which compiles a function for a GPU and for the emulator. `cuda_std` re-exports it.

mod expand;
mod instances;
mod parameter;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Turns a function into a kernel.
///
/// ```ignore
/// #[kernel]                                                        // one entry point: `fill`
/// pub unsafe fn fill(n: u32, value: f32, y: GlobalMut<f32>) { .. }
///
/// #[kernel(T = [f32, f64])]                                        // `axpy_f32`, `axpy_f64`
/// pub unsafe fn axpy<T: Real>(n: u32, a: T, x: Global<T>, y: GlobalMut<T>) { .. }
///
/// #[kernel(name = "spmm_vector", T = [f32, f64], LANES = [8, 16])] // `spmm_vector_f32_8` and three more
/// pub unsafe fn vector<T: Real, const LANES: u32>(..) { .. }
/// ```
///
/// The attribute lists the values of each generic parameter. Every combination is an *instance*. A type parameter takes
/// element types, or types that name a variant and implement `cuda_std::element::InstanceType`. Semicolons separate
/// groups, which are combined on their own: `T = [f32], WIDTH = [1, 4]; T = [f16], WIDTH = [1, 8]` makes four
/// instances.
///
/// | key | meaning |
/// |---|---|
/// | `name = "axpy"` | the name of the entry points, without their suffixes; default: the name of the function |
/// | `target = sm_90` | the kernel needs instructions of `sm_90`; `sm_90a` means that architecture only |
/// | `module = "analysis"` | the driver compiles all kernels with this module together; default: each on its own |
/// | `registers = 128` | maximum number of registers of a thread (`.maxnreg`), for the instances of its group |
/// | `registers_sm90 = 64` | the same, on architecture 90 and newer only |
///
/// A limit on registers also tells the assembler that it may use as many. Without one it saves registers, and orders
/// instructions one after the other that could overlap.
///
/// On `nvptx64`, each instance becomes a PTX entry point, if `cuda_builder` builds this very crate and not one that
/// depends on it. On the host, the name becomes a function that returns the typed handle
/// `cuda_std::kernel::Kernel<(arguments,)>` of an instance: `axpy::<f32>()`.
///
/// The function must be `unsafe` and return nothing. Its parameters must be plain names with types that implement
/// `cuda_std::kernel::KernelParam`.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    let instances = syn::parse_macro_input!(attribute as instances::Instances);
    expand::kernel(instances, function)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Implements `cuda_std::kernel::KernelParam` for a struct, so that it can be an argument of a kernel.
///
/// The struct must be `repr(C)` and `Copy`, and its fields must be arguments themselves. Type parameters are element
/// types. The emulator then names buffers after the fields that point to them: `a.values[3] of 10 f32 (parameter a)`.
///
/// ```ignore
/// #[repr(C)]
/// #[derive(Clone, Copy, KernelParam)]
/// pub struct Rows<T> {
///     pub count: u32,
///     pub stride: u32,
///     pub values: Global<T>,
/// }
/// ```
#[proc_macro_derive(KernelParam)]
pub fn kernel_param(item: TokenStream) -> TokenStream {
    let item = syn::parse_macro_input!(item as syn::DeriveInput);
    parameter::kernel_param(&item)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
