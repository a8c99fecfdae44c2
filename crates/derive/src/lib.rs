//! Derives of the client library `brisk`, which exports them with its feature `derive`.
//!
//! | derive | for | implements |
//! |---|---|---|
//! | [`macro@ToHash`] | structs with named fields | `brisk::ToArgs`: fields and values, for HSET and XADD |
//! | [`macro@FromHash`] | structs with named fields | `brisk::FromReply`: of HGETALL, or the fields of a stream's entry |
//! | [`macro@ToArg`] | enums without fields, structs around one value | `brisk::ToArg` and `brisk::ToArgs`: one word |
//! | [`macro@FromReply`] | enums without fields, structs around one value | `brisk::FromReply` |
//!
//! `fields` reads what stands in the program, `hash` and `word` write the implementations; what these call is
//! in the module `derived` of the client library.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod fields;
mod hash;
mod word;

use proc_macro::TokenStream;
use syn::DeriveInput;

/// A struct with named fields as the fields and values of a hash: wherever pairs are words of a command.
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
/// let words: Vec<&[u8]> = command.request().words().collect();
/// assert_eq!(words, [&b"HSET"[..], b"user:1", b"name", b"ana", b"tags", b"[\"new\"]"]);
/// assert!(ana.is_dirty);
/// ```
///
/// A value is anything that is one word (`brisk::ToArg`), a `u8`, or an `Option` of these. A field that is `None`
/// is left out: HSET then leaves alone what the hash has of it, and does not remove it. So is one with
/// `#[hash(json)]` whose JSON would be `null`.
///
/// | attribute of a field | meaning |
/// |---|---|
/// | `#[hash(rename = "…")]` | its name in the hash |
/// | `#[hash(json)]` | its value is JSON, made by serde; with the feature `json` of `brisk` |
/// | `#[hash(skip)]` | it is not in the hash; read, it is its type's default |
/// | `#[hash(default)]` | its type's default if the hash has none; of no meaning here |
///
/// What is not one word is refused, unless it is JSON:
///
/// ```compile_fail
/// #[derive(brisk::ToHash)]
/// struct User {
///     tags: Vec<String>,
/// }
/// ```
///
/// So is an attribute that is not known, and whatever is not a struct with named fields:
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

/// A struct with named fields made of a hash: of what HGETALL tells, or of the fields of a stream's entry.
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
/// A value is anything that implements `brisk::FromReply`, or a `u8`. Attributes are those of [`macro@ToHash`].
/// Fields of the hash that the struct does not have are passed over. A field that the hash does not have is `None`
/// if it is an `Option`, the default with `#[hash(default)]`, and else an error of the kind `Missing`; this and
/// every other error names the field. A key that is not there is an empty hash: `Option<User>` is `None` then.
///
/// A struct cannot borrow from the reply, except as a `Cow`, which then owns:
///
/// ```compile_fail
/// #[derive(brisk::FromHash)]
/// struct User<'a> {
///     name: &'a str,
/// }
/// ```
///
/// Two fields cannot have one name:
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

/// An enum without fields as a word, which is the variant's name; or a struct around one value as that value.
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
/// let words: Vec<&[u8]> = command.request().words().collect();
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

/// An enum without fields made of its name, or a struct around one value made of that value.
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
