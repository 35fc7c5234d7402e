//! Expands a function into a PTX entry point for each instance, and into the typed handle on the host.

use crate::instances::{Bounded, Instance, Instances, parameter_name, suffix};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Error, FnArg, GenericParam, Ident, ItemFn, LitByteStr, Pat, PatType, Result, ReturnType, Type,
};

/// The expansion of `#[kernel]`.
pub fn kernel(instances: Instances, function: ItemFn) -> Result<TokenStream> {
    let arguments = check(&function)?;
    let combinations = instances.combinations(&function.sig.generics)?;
    let name = match &instances.name {
        Some(name) => name.value(),
        None => function.sig.ident.to_string(),
    };
    let device = device(&name, &instances, &function, &arguments, &combinations);
    let host = host(&name, &function, &arguments, &combinations)?;
    Ok(quote! {
        #device
        #host
    })
}

/// Checks the signature and returns the types of the arguments.
fn check(function: &ItemFn) -> Result<Vec<Type>> {
    let signature = &function.sig;
    if signature.unsafety.is_none() {
        return Err(Error::new_spanned(
            signature.fn_token,
            "a kernel is an `unsafe fn`: its pointers and its launch are the caller's promise",
        ));
    }
    if let ReturnType::Type(_, output) = &signature.output {
        return Err(Error::new_spanned(
            output,
            "a kernel returns nothing: it writes through its pointers",
        ));
    }
    signature
        .inputs
        .iter()
        .map(|input| match input {
            FnArg::Typed(PatType { pat, ty, .. }) if matches!(**pat, Pat::Ident(_)) => {
                Ok((**ty).clone())
            }
            other => Err(Error::new_spanned(
                other,
                "a kernel's parameter is a name and a type",
            )),
        })
        .collect()
}

/// The names of the parameters, of a function that [`check`] accepts.
fn parameter_names(function: &ItemFn) -> Vec<String> {
    let inputs = function.sig.inputs.iter();
    let names = inputs.filter_map(|input| match input {
        FnArg::Typed(PatType { pat, .. }) => match &**pat {
            Pat::Ident(name) => Some(name.ident.to_string()),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    });
    names.collect()
}

/// The device code: the function itself, and an entry point for each instance if `cuda_builder` builds this crate. A
/// static next to an entry point has the marks for `cuda_builder`: what the compiler has no attribute for. No module
/// contains it.
fn device(
    name: &str,
    instances: &Instances,
    function: &ItemFn,
    arguments: &[Type],
    combinations: &[Bounded],
) -> TokenStream {
    let ident = &function.sig.ident;
    let names: Vec<Ident> = (0..arguments.len())
        .map(|i| format_ident!("argument_{i}"))
        .collect();
    let entries = combinations.iter().map(|(instance, limit)| {
        let entry = format!("{name}{}", suffix(instance));
        let bindings = bindings(function, instance);
        let turbofish = (!instance.is_empty()).then(|| quote!(::<#(#instance),*>));
        let marks = instances.marks(*limit);
        let marks = (!marks.is_empty()).then(|| {
            let (symbol, length) = (format!("kernel_marks${entry}"), marks.len());
            let bytes = LitByteStr::new(marks.as_bytes(), Span::call_site());
            quote! {
                #[unsafe(export_name = #symbol)]
                static MARKS: [u8; #length] = *#bytes;
            }
        });
        quote! {
            const _: () = {
                #bindings
                #marks
                #[unsafe(export_name = #entry)]
                unsafe extern "ptx-kernel" fn entry_point(#(#names: #arguments),*) {
                    unsafe { #ident #turbofish(#(#names),*) }
                }
            };
        }
    });
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #[inline(always)]
        #function
        // `cuda_builder` sets `cuda_entry_points` for the crate that it builds, but not for dependencies of that crate:
        // they have PTX of their own.
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[cfg(cuda_entry_points)]
            const _: () = {
                #(#entries)*
            };
        };
    }
}

/// A type alias or a constant for each generic parameter, so that the types of the arguments can be used as written.
fn bindings(function: &ItemFn, instance: &Instance) -> TokenStream {
    let bindings =
        function.sig.generics.params.iter().zip(instance).map(
            |(parameter, value)| match parameter {
                GenericParam::Const(parameter) => {
                    let (ident, ty) = (&parameter.ident, &parameter.ty);
                    quote!(#[allow(dead_code)] const #ident: #ty = #value;)
                }
                GenericParam::Type(parameter) => {
                    let ident = &parameter.ident;
                    quote!(#[allow(dead_code)] type #ident = #value;)
                }
                GenericParam::Lifetime(_) => TokenStream::new(),
            },
        );
    quote!(#(#bindings)*)
}

/// The host code: the instances, and a function of the same name that returns the typed handle of an instance.
///
/// The instances are a static item, so the crate that defines the kernel compiles each of them once. A generic function
/// would be compiled again in every crate, test and example that uses it.
fn host(
    name: &str,
    function: &ItemFn,
    arguments: &[Type],
    combinations: &[Bounded],
) -> Result<TokenStream> {
    let visibility = &function.vis;
    let ident = &function.sig.ident;
    let attributes = &function.attrs;
    let generics = &function.sig.generics;
    let (in_generics, _, where_clause) = generics.split_for_impl();
    let names: Vec<Ident> = (0..arguments.len())
        .map(|i| format_ident!("argument_{i}"))
        .collect();
    let parameters = parameter_names(function);
    let instances = combinations.iter().map(|(instance, _)| {
        let entry = format!("{name}{}", suffix(instance));
        let bindings = bindings(function, instance);
        let turbofish = (!instance.is_empty()).then(|| quote!(::<#(#instance),*>));
        quote!({
            #bindings
            ::cuda_std::kernel::Instance::new::<(#(#arguments,)*)>(
                #entry,
                &[#(#parameters),*],
                // SAFETY: the contract of the instance's thread is that of the kernel.
                ::cuda_std::emulated!(|(#(#names,)*)| unsafe { thread #turbofish(#(#names),*) }),
            )
        })
    });
    let count = combinations.len();
    let suffixes = generics
        .params
        .iter()
        .map(|parameter| {
            let ident = parameter_name(parameter)?;
            Ok(match parameter {
                GenericParam::Type(_) => {
                    quote!(<#ident as ::cuda_std::element::InstanceType>::SUFFIX)
                }
                _ => quote!(&*#ident.to_string()),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let mut body = function.clone();
    body.attrs.clear();
    body.vis = syn::Visibility::Inherited;
    body.sig.ident = format_ident!("thread");
    Ok(quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #(#attributes)*
        #[allow(clippy::missing_safety_doc, reason = "only a launch is unsafe, and not the handle")]
        #visibility fn #ident #in_generics() -> ::cuda_std::kernel::Kernel<(#(#arguments,)*)> #where_clause {
            #[allow(clippy::too_many_arguments, reason = "a launch passes all arguments of a kernel one by one")]
            #[allow(dead_code, reason = "used only if `cuda_std` has its feature `emulator`")]
            #body
            static INSTANCES: [::cuda_std::kernel::Instance; #count] = [#(#instances),*];
            ::cuda_std::kernel::inventory::submit! {
                ::cuda_std::kernel::Instances(&INSTANCES)
            }
            ::cuda_std::kernel::Kernel::of(&INSTANCES, &[#name #(, #suffixes)*].join("_"))
        }
    })
}
