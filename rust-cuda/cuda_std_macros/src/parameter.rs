//! Derives `KernelParam` for a struct.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Data, DataStruct, DeriveInput, Error, Fields, Result, parse_quote};

/// The expansion of `#[derive(KernelParam)]`.
pub fn kernel_param(item: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(DataStruct {
        fields: Fields::Named(fields),
        ..
    }) = &item.data
    else {
        let wanted = "an argument of a kernel is a struct with named fields";
        return Err(Error::new_spanned(&item.ident, wanted));
    };
    if !is_repr_c(item)? {
        let wanted =
            "an argument of a kernel is `repr(C)`: host and device must agree on its layout";
        return Err(Error::new_spanned(&item.ident, wanted));
    }
    let mut generics = item.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter
            .bounds
            .push(parse_quote!(::cuda_std::element::Element));
    }
    let (in_generics, of_generics, where_clause) = generics.split_for_impl();
    let ident = &item.ident;
    let names: Vec<&Ident> = fields
        .named
        .iter()
        .filter_map(|field| field.ident.as_ref())
        .collect();
    let types = fields.named.iter().map(|field| &field.ty);
    Ok(quote! {
        // SAFETY: the struct is `repr(C)`, and all its fields are arguments, or this does not compile.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl #in_generics ::cuda_std::kernel::KernelParam for #ident #of_generics #where_clause {
            fn name_buffers(
                &self,
                name: &str,
                buffers: &mut ::std::vec::Vec<::cuda_std::kernel::Parameter>,
            ) {
                #(<#types as ::cuda_std::kernel::KernelParam>::name_buffers(
                    &self.#names,
                    &::std::format!("{name}.{}", ::std::stringify!(#names)),
                    buffers,
                );)*
            }
        }
    })
}

fn is_repr_c(item: &DeriveInput) -> Result<bool> {
    let mut found = false;
    for attribute in item
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("repr"))
    {
        attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("C");
            // The rest of an alignment: `align(8)`.
            if meta.input.peek(syn::token::Paren) {
                let rest;
                syn::parenthesized!(rest in meta.input);
                rest.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}
