//! Structs as hashes.

use crate::fields::{Field, bound, of_struct};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, LitByteStr, Result};

pub(crate) fn to_hash(input: &DeriveInput) -> Result<TokenStream> {
    let fields = of_struct(input)?;
    let written = || fields.iter().filter(|field| !field.is_skipped);
    let generics = bound(
        &input.generics,
        written().map(|field| match field.is_json {
            true => (field.ty, quote!(::brisk::derived::ToJson)),
            false => (field.ty, quote!(::brisk::derived::ToField)),
        }),
    )?;
    let (of_impl, of_type, clause) = generics.split_for_impl();
    let writes = written().map(|Field { ident, ty, name, is_json, .. }| {
        let function = if *is_json { quote!(write_json) } else { quote!(write_field) };
        quote_spanned!(ty.span()=> ::brisk::derived::#function(args, #name, &self.#ident);)
    });
    let counts = written().map(|Field { ident, ty, is_json, .. }| {
        let function = if *is_json { quote!(is_json_present) } else { quote!(is_present) };
        quote_spanned!(ty.span()=> + ::core::primitive::usize::from(::brisk::derived::#function(&self.#ident)))
    });
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #of_impl ::brisk::ToArgs for #name #of_type #clause {
            fn write_all(&self, args: &mut ::brisk::Args<'_>) {
                #(#writes)*
            }

            fn count(&self) -> ::core::primitive::usize {
                0 #(#counts)*
            }
        }
    })
}

pub(crate) fn from_hash(input: &DeriveInput) -> Result<TokenStream> {
    let fields = of_struct(input)?;
    let generics = bound(
        &input.generics,
        fields.iter().map(|field| match (field.is_skipped, field.is_json, field.is_default) {
            (true, _, _) => (field.ty, quote!(::core::default::Default)),
            (_, true, true) => {
                (field.ty, quote!(::brisk::derived::FromJson + ::core::default::Default))
            }
            (_, true, false) => (field.ty, quote!(::brisk::derived::FromJson)),
            (_, false, true) => {
                (field.ty, quote!(::brisk::derived::FromField + ::core::default::Default))
            }
            (_, false, false) => (field.ty, quote!(::brisk::derived::FromField)),
        }),
    )?;
    let (of_impl, of_type, clause) = generics.split_for_impl();
    let read = || fields.iter().enumerate().filter(|(_, field)| !field.is_skipped);
    let slots = read().map(|(at, Field { ty, .. })| {
        let slot = format_ident!("slot_{at}");
        quote!(let mut #slot: ::core::option::Option<#ty> = ::core::option::Option::None;)
    });
    let arms = read().map(|(at, Field { ty, name, is_json, .. })| {
        let slot = format_ident!("slot_{at}");
        let bytes = LitByteStr::new(name.as_bytes(), ty.span());
        let function = if *is_json { quote!(read_json) } else { quote!(read) };
        quote_spanned!(ty.span()=> #bytes => #slot = ::core::option::Option::Some(fields.#function(#name)?),)
    });
    let values = fields.iter().enumerate().map(|(at, field)| {
        let Field { ident, ty, name, is_default, is_skipped, is_json } = field;
        let slot = format_ident!("slot_{at}");
        match (is_skipped, is_default, is_json) {
            (true, _, _) => {
                quote_spanned!(ty.span()=> #ident: ::core::default::Default::default(),)
            }
            (_, true, _) => quote_spanned!(ty.span()=> #ident: #slot.unwrap_or_default(),),
            (_, _, true) => {
                quote_spanned!(ty.span()=> #ident: fields.required_json(#name, #slot)?,)
            }
            _ => quote_spanned!(ty.span()=> #ident: fields.required(#name, #slot)?,),
        }
    });
    let name = &input.ident;
    let shown = name.to_string();
    Ok(quote! {
        #[automatically_derived]
        impl #of_impl ::brisk::FromReply for #name #of_type #clause {
            fn from_reply(reader: &mut ::brisk::Reader<'_>) -> ::brisk::Result<Self> {
                let mut fields = ::brisk::derived::Fields::begin(reader, #shown)?;
                #(#slots)*
                while let ::core::option::Option::Some(field) = fields.field()? {
                    match field {
                        #(#arms)*
                        _ => fields.pass()?,
                    }
                }
                ::core::result::Result::Ok(Self { #(#values)* })
            }

            fn is_nothing(part: &::brisk::Part<'_>) -> ::core::primitive::bool {
                ::brisk::derived::is_nothing(part)
            }
        }
    })
}
