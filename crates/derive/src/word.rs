//! Enums without fields, and structs around one value, as arguments.

use crate::fields::{bound, word};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, LitByteStr, Member, Result, Type};

/// The types that can be an argument.
enum Shape<'a> {
    /// Variants, and what they are called.
    Names(Vec<(&'a Ident, String)>),
    /// Around this field.
    Around(Member, &'a Type),
}

fn shape(input: &DeriveInput) -> Result<Shape<'_>> {
    let text = "ToArg and FromReply can only be derived for enums without fields and structs with one field";
    let refused = |ident: &Ident| Err(Error::new(ident.span(), text));
    match &input.data {
        Data::Enum(data) if !data.variants.is_empty() => {
            let mut names: Vec<(&Ident, String)> = Vec::new();
            for variant in &data.variants {
                if !matches!(variant.fields, Fields::Unit) {
                    return refused(&variant.ident);
                }
                let name = word(&variant.ident, &variant.attrs)?;
                if names.iter().any(|(_, other)| *other == name) {
                    let text = format!("two variants have the name '{name}'");
                    return Err(Error::new(variant.ident.span(), text));
                }
                names.push((&variant.ident, name));
            }
            Ok(Shape::Names(names))
        }
        Data::Struct(data) if data.fields.len() == 1 => {
            let field = data.fields.iter().zip(data.fields.members()).next();
            let Some((field, member)) = field else { return refused(&input.ident) };
            Ok(Shape::Around(member, &field.ty))
        }
        _ => refused(&input.ident),
    }
}

fn bytes(name: &str, ident: &Ident) -> TokenStream {
    LitByteStr::new(name.as_bytes(), ident.span()).to_token_stream()
}

pub(crate) fn to_arg(input: &DeriveInput) -> Result<TokenStream> {
    let shape = shape(input)?;
    let (ty, write) = match &shape {
        Shape::Names(names) => {
            let arms = names.iter().map(|(ident, name)| {
                let bytes = bytes(name, ident);
                quote!(Self::#ident => args.push(#bytes),)
            });
            (None, quote!(match self { #(#arms)* }))
        }
        Shape::Around(member, ty) => {
            (Some(*ty), quote!(::brisk::ToArg::write(&self.#member, args)))
        }
    };
    let generics = bound(&input.generics, ty.map(|ty| (ty, quote!(::brisk::ToArg))))?;
    let (of_impl, of_type, clause) = generics.split_for_impl();
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #of_impl ::brisk::ToArg for #name #of_type #clause {
            fn write(&self, args: &mut ::brisk::Args<'_>) {
                #write
            }
        }

        #[automatically_derived]
        impl #of_impl ::brisk::ToArgs for #name #of_type #clause {
            fn write_all(&self, args: &mut ::brisk::Args<'_>) {
                ::brisk::ToArg::write(self, args);
            }

            fn count(&self) -> ::core::primitive::usize {
                1
            }
        }
    })
}

pub(crate) fn from_reply(input: &DeriveInput) -> Result<TokenStream> {
    let shape = shape(input)?;
    let name = &input.ident;
    let shown = name.to_string();
    let (ty, methods) = match &shape {
        Shape::Names(names) => {
            let arms = names.iter().map(|(ident, name)| {
                let bytes = bytes(name, ident);
                quote!(#bytes => ::core::result::Result::Ok(Self::#ident),)
            });
            let methods = quote! {
                fn from_reply(reader: &mut ::brisk::Reader<'_>) -> ::brisk::Result<Self> {
                    match ::brisk::derived::string(reader, #shown)? {
                        #(#arms)*
                        other => ::core::result::Result::Err(::brisk::derived::no_such(#shown, other)),
                    }
                }
            };
            (None, methods)
        }
        Shape::Around(member, ty) => {
            let methods = quote! {
                fn from_reply(reader: &mut ::brisk::Reader<'_>) -> ::brisk::Result<Self> {
                    let value = <#ty as ::brisk::FromReply>::from_reply(reader)?;
                    ::core::result::Result::Ok(Self { #member: value })
                }

                fn is_nothing(part: &::brisk::Part<'_>) -> ::core::primitive::bool {
                    <#ty as ::brisk::FromReply>::is_nothing(part)
                }

                fn absent() -> ::core::option::Option<Self> {
                    let value = <#ty as ::brisk::FromReply>::absent()?;
                    ::core::option::Option::Some(Self { #member: value })
                }
            };
            (Some(*ty), methods)
        }
    };
    let generics = bound(&input.generics, ty.map(|ty| (ty, quote!(::brisk::FromReply))))?;
    let (of_impl, of_type, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #of_impl ::brisk::FromReply for #name #of_type #clause {
            #methods
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<String, String> {
        let input: DeriveInput = syn::parse_str(text).unwrap();
        to_arg(&input).map(|tokens| tokens.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn other_types_are_rejected() {
        let refused = "ToArg and FromReply can only be derived for enums without fields and structs with one field";
        for text in
            ["enum E {}", "enum E { A(u8) }", "struct S;", "struct S(u8, u8);", "union U { a: u8 }"]
        {
            assert_eq!(read(text).unwrap_err(), refused, "{text}");
        }
        let twice = "enum E { A, #[word(rename = \"A\")] B }";
        assert_eq!(read(twice).unwrap_err(), "two variants have the name 'A'");
        assert_eq!(read("enum E { #[word(name)] A }").unwrap_err(), "known is rename = \"…\"");
    }

    #[test]
    fn variants_have_the_names_of_their_attributes() {
        let written = read("enum E { r#Type, #[word(rename = \"b c\")] B }").unwrap();
        assert!(written.contains("b\"Type\"") && written.contains("b\"b c\""), "{written}");
        assert!(read("struct S { inner: u16 }").unwrap().contains("self . inner"));
        assert!(read("struct S(u16);").unwrap().contains("self . 0"));
    }
}
