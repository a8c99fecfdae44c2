//! Derive macros of the client library `brisk`, which exports them with its Cargo feature `derive`.
//!
//! | derive | for | implements |
//! |---|---|---|
//! | [`macro@ToHash`] | structs with named fields | `brisk::ToArgs`: fields and values, for HSET and XADD |
//! | [`macro@FromHash`] | structs with named fields | `brisk::FromReply`: from HGETALL or the fields of a stream entry |
//! | [`macro@ToArg`] | enums without fields, structs around one value | `brisk::ToArg` and `brisk::ToArgs`: one argument |
//! | [`macro@FromReply`] | enums without fields, structs around one value | `brisk::FromReply` |
//!
//! The module `fields` parses the input; `hash` and `word` generate the implementations. The generated code calls the
//! module `derived` of the client library.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod fields;
mod hash;
mod word;

use proc_macro::TokenStream;
use syn::DeriveInput;

/// Converts a struct with named fields to the fields and values of a hash. Use the struct wherever a command takes
/// pairs, for example in HSET and XADD.
///
/// ```
/// #[derive(brisk::ToHash)]
/// struct User<'a> {
///     name: &'a str,
///     #[hash(rename = "mail")]
///     address: Option<String>,
///     #[hash(json)]
///     tags: Vec<String>,
///     #[hash(skip)]
///     is_dirty: bool,
/// }
///
/// let tags = vec!["new".to_owned()];
/// let ana = User { name: "ana", address: None, tags, is_dirty: true };
/// let command = brisk::commands::hset("user:1", &ana);
/// let words: Vec<&[u8]> = command.request().arguments().collect();
/// assert_eq!(words, [&b"HSET"[..], b"user:1", b"name", b"ana", b"tags", b"[\"new\"]"]);
/// assert!(ana.is_dirty);
/// ```
///
/// A field's type is any type that is one argument (`brisk::ToArg`), `u8`, or an `Option` of these. A field that is
/// `None` is skipped: HSET does not change or remove that field of the hash. A field with `#[hash(json)]` is skipped if
/// its JSON would be `null`.
///
/// | attribute of a field | meaning |
/// |---|---|
/// | `#[hash(rename = "…")]` | the name in the hash |
/// | `#[hash(json)]` | the value is stored as JSON with serde; requires the feature `json` of `brisk` |
/// | `#[hash(skip)]` | the field is not in the hash; when read, it has its type's default |
/// | `#[hash(default)]` | when read, the field has its type's default if the hash lacks it; no effect on writing |
///
/// A type that is not one argument is rejected, unless the field is JSON:
///
/// ```compile_fail
/// #[derive(brisk::ToHash)]
/// struct User {
///     tags: Vec<String>,
/// }
/// ```
///
/// Unknown attributes are rejected, and so are items that are not structs with named fields:
///
/// ```compile_fail
/// #[derive(brisk::ToHash)]
/// struct User {
///     #[hash(named = "n")]
///     name: String,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(brisk::ToHash)]
/// struct Point(i64, i64);
/// ```
#[proc_macro_derive(ToHash, attributes(hash))]
pub fn to_hash(input: TokenStream) -> TokenStream {
    expand(input, hash::to_hash)
}

/// Converts a hash to a struct with named fields: the reply of HGETALL, or the fields of a stream entry.
///
/// ```
/// #[derive(brisk::ToHash, brisk::FromHash)]
/// struct User<Id> {
///     id: Id,
///     name: String,
///     age: Option<u8>,
///     #[hash(default)]
///     visits: u64,
/// }
///
/// async fn example(db: brisk::Client) -> brisk::Result<()> {
///     let ana = User { id: 1, name: "ana".to_owned(), age: Some(30), visits: 0 };
///     db.hset("user:1", &ana).await?;
///     let same: User<u32> = db.hgetall("user:1").await?;
///     let none: Option<User<u32>> = db.hgetall("user:2").await?;
///     let log: Vec<(String, User<u32>)> = db.xrange("joined", "-", "+").await?;
///     Ok(())
/// }
/// ```
///
/// A field's type is any type that implements `brisk::FromReply`, or `u8`. The attributes are those of
/// [`macro@ToHash`]. Fields of the hash that the struct lacks are ignored. A field that the hash lacks is `None` if it
/// is an `Option`, and the default with `#[hash(default)]`. Otherwise the error is of the kind `Missing`. All errors
/// name the field. A missing key is an empty hash, for which `Option<User>` is `None`.
///
/// A struct cannot borrow from the reply, except with a `Cow`, which then owns its value:
///
/// ```compile_fail
/// #[derive(brisk::FromHash)]
/// struct User<'a> {
///     name: &'a str,
/// }
/// ```
///
/// Two fields cannot have the same name:
///
/// ```compile_fail
/// #[derive(brisk::FromHash)]
/// struct User {
///     name: String,
///     #[hash(rename = "name")]
///     other: String,
/// }
/// ```
#[proc_macro_derive(FromHash, attributes(hash))]
pub fn from_hash(input: TokenStream) -> TokenStream {
    expand(input, hash::from_hash)
}

/// Converts an enum without fields to an argument, which is the variant's name. Converts a struct around one value to
/// that value.
///
/// ```
/// #[derive(brisk::ToArg)]
/// enum State {
///     #[word(rename = "active")]
///     Active,
///     Gone,
/// }
///
/// #[derive(brisk::ToArg)]
/// struct Id(u64);
///
/// let command = brisk::commands::hset(Id(7), [("state", State::Active), ("before", State::Gone)]);
/// let words: Vec<&[u8]> = command.request().arguments().collect();
/// assert_eq!(words, [&b"HSET"[..], b"7", b"state", b"active", b"before", b"Gone"]);
/// ```
///
/// ```compile_fail
/// #[derive(brisk::ToArg)]
/// enum State {
///     Active(u32),
/// }
/// ```
#[proc_macro_derive(ToArg, attributes(word))]
pub fn to_arg(input: TokenStream) -> TokenStream {
    expand(input, word::to_arg)
}

/// Converts the name of a variant to an enum without fields. Converts a value to a struct around one value.
///
/// ```no_run
/// #[derive(brisk::FromReply, PartialEq, Debug)]
/// enum State {
///     #[word(rename = "active")]
///     Active,
///     Gone,
/// }
///
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// let state: Option<State> = db.hget("user:1", "state").await?;
/// assert_eq!(state, Some(State::Active));
/// # Ok(())
/// # }
/// ```
#[proc_macro_derive(FromReply, attributes(word))]
pub fn from_reply(input: TokenStream) -> TokenStream {
    expand(input, word::from_reply)
}

fn expand(
    input: TokenStream,
    with: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let expanded = syn::parse2(input.into()).and_then(|input| with(&input));
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
