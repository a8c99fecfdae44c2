//! Types that can be arguments of a command.
//!
//! A value is *one* argument ([`ToArg`]) or any number of arguments ([`ToArgs`]: lists, pairs, maps). Arguments are
//! encoded directly into the request. A `u8` is not an argument, so that `&[u8]` is one string and not many numbers.

use crate::error::Error;
use brisk_resp::reply::encode;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

/// The arguments of a command, to which [`ToArg`] and [`ToArgs`] append.
pub struct Args<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) count: u32,
    /// The error, if an argument could not be written.
    pub(crate) failure: Option<Error>,
}

impl Args<'_> {
    /// Appends an argument. O(bytes).
    #[inline]
    pub fn push(&mut self, arg: &[u8]) {
        encode::bulk(self.out, arg);
        self.count += 1;
    }

    /// Records that an argument cannot be written. The command then fails with this error and is not sent.
    #[cold]
    pub fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }
}

/// Shows only the number of arguments, because their values may be secrets.
impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Args").field("count", &self.count).finish_non_exhaustive()
    }
}

/// A value that is one argument of a command: strings, bytes, numbers, and `bool`, which becomes `1` or `0`.
pub trait ToArg {
    /// Appends the argument. O(bytes).
    fn write(&self, args: &mut Args<'_>);
}

/// A value that is any number of arguments: lists, pairs, maps, and everything that is one argument.
pub trait ToArgs {
    /// Appends the arguments. O(bytes).
    fn write_all(&self, args: &mut Args<'_>);

    /// Returns the number of arguments, for commands that need it, for example as `numkeys`. A pair counts once.
    fn count(&self) -> usize;
}

macro_rules! single_args {
    ($([$($generics:tt)*] $type:ty: $self:ident => $bytes:expr;)*) => {$(
        impl<$($generics)*> ToArg for $type {
            #[inline]
            fn write(&self, args: &mut Args<'_>) {
                let $self = self;
                args.push($bytes);
            }
        }

        impl<$($generics)*> ToArgs for $type {
            fn write_all(&self, args: &mut Args<'_>) {
                self.write(args);
            }

            fn count(&self) -> usize {
                1
            }
        }
    )*};
}

single_args! {
    [] str: it => it.as_bytes();
    [] String: it => it.as_bytes();
    [] Cow<'_, str>: it => it.as_bytes();
    [] Box<str>: it => it.as_bytes();
    [] Arc<str>: it => it.as_bytes();
    [] [u8]: it => it;
    [const N: usize] [u8; N]: it => it;
    [] Vec<u8>: it => it;
    [] Cow<'_, [u8]>: it => it;
    [] Box<[u8]>: it => it;
    [] Arc<[u8]>: it => it;
    [] Bytes: it => it;
    [] char: it => it.encode_utf8(&mut [0; 4]).as_bytes();
    [] i16: it => itoa::Buffer::new().format(*it).as_bytes();
    [] u16: it => itoa::Buffer::new().format(*it).as_bytes();
    [] i32: it => itoa::Buffer::new().format(*it).as_bytes();
    [] u32: it => itoa::Buffer::new().format(*it).as_bytes();
    [] i64: it => itoa::Buffer::new().format(*it).as_bytes();
    [] u64: it => itoa::Buffer::new().format(*it).as_bytes();
    [] isize: it => itoa::Buffer::new().format(*it).as_bytes();
    [] usize: it => itoa::Buffer::new().format(*it).as_bytes();
    [] i128: it => itoa::Buffer::new().format(*it).as_bytes();
    [] u128: it => itoa::Buffer::new().format(*it).as_bytes();
    [] NonZero<i32>: it => itoa::Buffer::new().format(it.get()).as_bytes();
    [] NonZero<u32>: it => itoa::Buffer::new().format(it.get()).as_bytes();
    [] NonZero<i64>: it => itoa::Buffer::new().format(it.get()).as_bytes();
    [] NonZero<u64>: it => itoa::Buffer::new().format(it.get()).as_bytes();
    [] NonZero<usize>: it => itoa::Buffer::new().format(it.get()).as_bytes();
    [] bool: it => if *it { b"1" } else { b"0" };
    [] f32: it => it.to_string().as_bytes();
    [] f64: it => it.to_string().as_bytes();
}

impl<T: ToArg + ?Sized> ToArg for &T {
    #[inline]
    fn write(&self, args: &mut Args<'_>) {
        (**self).write(args);
    }
}

impl<T: ToArgs + ?Sized> ToArgs for &T {
    fn write_all(&self, args: &mut Args<'_>) {
        (**self).write_all(args);
    }

    fn count(&self) -> usize {
        (**self).count()
    }
}

/// Lists of arguments, or of pairs.
macro_rules! lists {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> ToArgs for $type {
            fn write_all(&self, args: &mut Args<'_>) {
                self.iter().for_each(|one| one.write_all(args));
            }

            fn count(&self) -> usize {
                self.len()
            }
        }
    )*};
}

/// An element of a list of arguments: an argument or a pair. A single byte is not an element; a byte string is.
pub trait Item: ToArgs {}

impl<T: ToArg + ToArgs> Item for T {}

impl<A: ToArg, B: ToArg> Item for (A, B) {}

impl<A: ToArg, B: ToArg> ToArgs for (A, B) {
    fn write_all(&self, args: &mut Args<'_>) {
        self.0.write(args);
        self.1.write(args);
    }

    fn count(&self) -> usize {
        1
    }
}

impl<A: ToArg, B: ToArg, C: ToArg> Item for (A, B, C) {}

impl<A: ToArg, B: ToArg, C: ToArg> ToArgs for (A, B, C) {
    fn write_all(&self, args: &mut Args<'_>) {
        self.0.write(args);
        self.1.write(args);
        self.2.write(args);
    }

    fn count(&self) -> usize {
        1
    }
}

lists! {
    [T: Item] [T];
    [T: Item, const N: usize] [T; N];
    [T: Item] Vec<T>;
    [T: Item, S] HashSet<T, S>;
    [T: Item] BTreeSet<T>;
}

macro_rules! maps {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> ToArgs for $type {
            fn write_all(&self, args: &mut Args<'_>) {
                for (key, value) in self {
                    key.write(args);
                    value.write(args);
                }
            }

            fn count(&self) -> usize {
                self.len()
            }
        }
    )*};
}

maps! {
    [K: ToArg, V: ToArg, S] HashMap<K, V, S>;
    [K: ToArg, V: ToArg] BTreeMap<K, V>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(args: impl ToArgs) -> (String, u32, usize) {
        let mut out = Vec::new();
        let mut encoded = Args { out: &mut out, count: 0, failure: None };
        args.write_all(&mut encoded);
        let count = encoded.count;
        let text = out.escape_ascii().to_string().replace("\\r\\n", "|");
        (text, count, args.count())
    }

    #[test]
    fn strings_lists_and_pairs_become_bulk_strings() {
        assert_eq!(written("a"), ("$1|a|".into(), 1, 1));
        assert_eq!(written(&b"ab"[..]), ("$2|ab|".into(), 1, 1));
        assert_eq!(written(b"ab"), ("$2|ab|".into(), 1, 1));
        assert_eq!(written(vec![b'a']), ("$1|a|".into(), 1, 1));
        assert_eq!(written(["a", "b"]), ("$1|a|$1|b|".into(), 2, 2));
        assert_eq!(written(&["a".to_owned()][..]), ("$1|a|".into(), 1, 1));
        assert_eq!(written([("a", 1), ("b", -2)]), ("$1|a|$1|1|$1|b|$2|-2|".into(), 4, 2));
        assert_eq!(written(BTreeMap::from([("a", 0.5)])), ("$1|a|$3|0.5|".into(), 2, 1));
        assert_eq!(written(vec![vec![1_u8], vec![]]), ("$1|\\x01|$0||".into(), 2, 2));
        assert_eq!(written(f64::INFINITY), ("$3|inf|".into(), 1, 1));
        assert_eq!(written(f64::NEG_INFINITY), ("$4|-inf|".into(), 1, 1));
        assert_eq!(written(0.1), ("$3|0.1|".into(), 1, 1));
        assert_eq!(written([true, false]), ("$1|1|$1|0|".into(), 2, 2));
        assert_eq!(written(NonZero::new(7_u64).unwrap()), ("$1|7|".into(), 1, 1));
        assert_eq!(written(Arc::<[u8]>::from(&b"ab"[..])), ("$2|ab|".into(), 1, 1));
    }
}
