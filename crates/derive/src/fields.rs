//! Parses the declaration: the fields of a struct, their names and attributes, and the bounds that their types need.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Generics, Ident, LitStr, Result, Type};

/// A field of a struct.
pub(crate) struct Field<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) ty: &'a Type,
    /// The name in the hash.
    pub(crate) name: String,
    pub(crate) is_default: bool,
    pub(crate) is_skipped: bool,
    pub(crate) is_json: bool,
}

/// The fields of a struct with named fields. All errors are reported together.
pub(crate) fn of_struct(input: &DeriveInput) -> Result<Vec<Field<'_>>> {
    let named = match &input.data {
        Data::Struct(data) => match &data.fields {
            syn::Fields::Named(fields) => Some(&fields.named),
            _ => None,
        },
        _ => None,
    };
    let text = "ToHash and FromHash can only be derived for structs with named fields";
    let named = named.ok_or_else(|| Error::new(input.ident.span(), text))?;
    let (mut fields, mut names, mut failure) = (Vec::new(), HashSet::new(), None);
    for field in named {
        let Some(ident) = &field.ident else { continue };
        match read(ident, &field.ty, &field.attrs) {
            Ok(field) if field.is_skipped || names.insert(field.name.clone()) => fields.push(field),
            Ok(field) => {
                let text = format!("two fields have the name '{}'", field.name);
                combine(&mut failure, Error::new(ident.span(), text));
            }
            Err(error) => combine(&mut failure, error),
        }
    }
    failure.map_or(Ok(fields), Err)
}

fn combine(failure: &mut Option<Error>, error: Error) {
    match failure {
        Some(failure) => failure.combine(error),
        None => *failure = Some(error),
    }
}

fn read<'a>(ident: &'a Ident, ty: &'a Type, attributes: &[Attribute]) -> Result<Field<'a>> {
    let name = ident.unraw().to_string();
    let mut field = Field { ident, ty, name, is_default: false, is_skipped: false, is_json: false };
    let mut is_renamed = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("hash")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename") {
                field.name = meta.value()?.parse::<LitStr>()?.value();
                is_renamed = true;
            } else if meta.path.is_ident("default") {
                field.is_default = true;
            } else if meta.path.is_ident("skip") {
                field.is_skipped = true;
            } else if meta.path.is_ident("json") {
                field.is_json = true;
            } else {
                let text =
                    "unknown attribute; supported are rename = \"…\", default, skip and json";
                return Err(meta.error(text));
            }
            Ok(())
        })?;
    }
    if field.is_skipped && (field.is_default || field.is_json || is_renamed) {
        return Err(Error::new(ident.span(), "skip cannot be combined with other attributes"));
    }
    Ok(field)
}

/// The name of a variant in the protocol.
pub(crate) fn word(ident: &Ident, attributes: &[Attribute]) -> Result<String> {
    let mut name = ident.unraw().to_string();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("word")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("rename") {
                return Err(meta.error("known is rename = \"…\""));
            }
            name = meta.value()?.parse::<LitStr>()?.value();
            Ok(())
        })?;
    }
    Ok(name)
}

/// The generics of the struct, with a trait bound for each type that mentions one of its parameters.
pub(crate) fn bound<'a>(
    generics: &Generics,
    bounds: impl IntoIterator<Item = (&'a Type, TokenStream)>,
) -> Result<Generics> {
    let params: Vec<&Ident> = generics.type_params().map(|param| &param.ident).collect();
    let mut generics = generics.clone();
    if params.is_empty() {
        return Ok(generics);
    }
    for (ty, bound) in bounds {
        if mentions(ty.to_token_stream(), &params) {
            let predicate = syn::parse2(quote!(#ty: #bound))
                .map_err(|error| Error::new(ty.span(), error.to_string()))?;
            generics.make_where_clause().predicates.push(predicate);
        }
    }
    Ok(generics)
}

fn mentions(tokens: TokenStream, params: &[&Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => params.contains(&&ident),
        TokenTree::Group(group) => mentions(group.stream(), params),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let input: DeriveInput = syn::parse_str(text).unwrap();
        let errors = of_struct(&input).err().expect("it is refused");
        errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn names_and_attributes_are_read() {
        let input = syn::parse_str(
            "struct S { a: u8, #[hash(rename = \"x y\", default)] #[doc = \"b\"] b: u8, #[hash(json)] c: u8,
                #[hash(skip)] d: u8, r#type: u8 }",
        );
        let input = input.unwrap();
        let fields = of_struct(&input).unwrap();
        let shown: Vec<_> = fields
            .iter()
            .map(|field| {
                let flags = [field.is_default, field.is_json, field.is_skipped];
                (field.name.as_str(), flags.map(u8::from))
            })
            .collect();
        let expected = [
            ("a", [0, 0, 0]),
            ("x y", [1, 0, 0]),
            ("c", [0, 1, 0]),
            ("d", [0, 0, 1]),
            ("type", [0; 3]),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let kinds = "ToHash and FromHash can only be derived for structs with named fields";
        assert_eq!(refused("struct S(u8);"), kinds);
        assert_eq!(refused("enum S { A }"), kinds);
        let known = "unknown attribute; supported are rename = \"…\", default, skip and json";
        let text = "struct S { #[hash(nam)] a: u8, b: u8, #[hash(rename = \"b\")] c: u8 }";
        assert_eq!(refused(text), format!("{known}; two fields have the name 'b'"));
        assert!(refused("struct S { #[hash(skip, json)] a: u8 }").contains("cannot be combined"));
        assert!(refused("struct S { #[hash(rename = 1)] a: u8 }").contains("string literal"));
    }

    #[test]
    fn only_types_with_a_parameter_are_bound() {
        let input: DeriveInput = syn::parse_str(
            "struct S<'a, T: Clone, const N: usize> { a: Vec<(u8, T)>, b: &'a str }",
        )
        .unwrap();
        let fields = of_struct(&input).unwrap();
        let bounds = fields.iter().map(|field| (field.ty, quote!(X)));
        let generics = bound(&input.generics, bounds).unwrap();
        let clause = generics.where_clause.to_token_stream().to_string();
        assert_eq!(clause.replace(' ', ""), "whereVec<(u8,T)>:X");
    }
}
