//! Values of many parts: lists, sets, maps, tuples.

use super::{COLLECT_MAX, FromReply, Reader};
use crate::error::{Error, Result};
use brisk_resp::reply::read::Part;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};

/// The elements of any aggregate; nothing is an empty one.
fn elements<T: FromReply>(reader: &mut Reader<'_>) -> Result<Vec<T>> {
    let part = reader.part()?;
    match part {
        Part::Null => Ok(Vec::new()),
        Part::Array(count) | Part::Set(count) | Part::Push(count) => {
            T::many(reader, usize::try_from(count).unwrap_or(usize::MAX), false)
        }
        Part::Map(count) => T::many(reader, usize::try_from(count).unwrap_or(usize::MAX), true),
        part => Err(Error::unexpected("list", &part)),
    }
}

impl<T: FromReply> FromReply for Vec<T> {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Vec<T>> {
        elements(reader)
    }
}

impl<T: FromReply> FromReply for VecDeque<T> {
    fn from_reply(reader: &mut Reader<'_>) -> Result<VecDeque<T>> {
        elements(reader).map(VecDeque::from)
    }
}

impl<T: FromReply + Eq + Hash, S: BuildHasher + Default> FromReply for HashSet<T, S> {
    fn from_reply(reader: &mut Reader<'_>) -> Result<HashSet<T, S>> {
        elements(reader).map(|values| values.into_iter().collect())
    }
}

impl<T: FromReply + Ord> FromReply for BTreeSet<T> {
    fn from_reply(reader: &mut Reader<'_>) -> Result<BTreeSet<T>> {
        elements(reader).map(|values| values.into_iter().collect())
    }
}

impl<K, V, S> FromReply for HashMap<K, V, S>
where
    K: FromReply + Eq + Hash,
    V: FromReply,
    S: BuildHasher + Default,
{
    fn from_reply(reader: &mut Reader<'_>) -> Result<HashMap<K, V, S>> {
        elements::<(K, V)>(reader).map(|pairs| pairs.into_iter().collect())
    }
}

impl<K: FromReply + Ord, V: FromReply> FromReply for BTreeMap<K, V> {
    fn from_reply(reader: &mut Reader<'_>) -> Result<BTreeMap<K, V>> {
        elements::<(K, V)>(reader).map(|pairs| pairs.into_iter().collect())
    }
}

impl<T: FromReply, const N: usize> FromReply for [T; N] {
    fn from_reply(reader: &mut Reader<'_>) -> Result<[T; N]> {
        let values = elements(reader)?;
        let count = values.len();
        values.try_into().map_err(|_| Error::unexpected("list of this length", &count))
    }
}

/// Pairs come as a map, as an array of pairs, or as an array in which key and value take turns.
impl<A: FromReply, B: FromReply> FromReply for (A, B) {
    fn from_reply(reader: &mut Reader<'_>) -> Result<(A, B)> {
        let part = reader.part()?;
        if part.len_within() != 2 {
            return Err(Error::unexpected("pair", &part));
        }
        Ok((A::from_reply(reader)?, B::from_reply(reader)?))
    }

    fn many(reader: &mut Reader<'_>, count: usize, is_map: bool) -> Result<Vec<(A, B)>> {
        let nested = !is_map
            && count > 0
            && matches!(reader.peek()?, Part::Array(2) | Part::Map(1) | Part::Set(2));
        let pairs = match (is_map || nested, count % 2) {
            (true, _) => count,
            (false, 0) => count / 2,
            (false, _) => return Err(Error::unexpected("list of pairs", &count)),
        };
        let mut values = Vec::with_capacity(pairs.min(COLLECT_MAX));
        for _ in 0..pairs {
            values.push(match nested {
                true => Self::from_reply(reader)?,
                false => (A::from_reply(reader)?, B::from_reply(reader)?),
            });
        }
        Ok(values)
    }
}

macro_rules! tuples {
    ($($count:literal: $($name:ident)*;)*) => {$(
        impl<$($name: FromReply),*> FromReply for ($($name,)*) {
            fn from_reply(reader: &mut Reader<'_>) -> Result<Self> {
                let part = reader.part()?;
                if part.len_within() != $count {
                    return Err(Error::unexpected(concat!("list of ", $count), &part));
                }
                Ok(($($name::from_reply(reader)?,)*))
            }
        }
    )*};
}

tuples! {
    1: A;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
    7: A B C D E F G;
    8: A B C D E F G H;
}

#[cfg(test)]
mod tests {
    use crate::reply::Reply;
    use bytes::Bytes;
    use std::collections::{BTreeMap, BTreeSet};

    fn reply(text: &str) -> Reply {
        let text = text.replace('|', "\r\n").into_bytes();
        Reply::small(&text).unwrap_or_else(|| Reply::shared(Bytes::from(text)))
    }

    #[test]
    fn both_protocols_give_the_same_pairs() {
        let expected = vec![("a".to_owned(), 1.0), ("b".to_owned(), 2.5)];
        for text in
            ["*4|$1|a|$1|1|$1|b|$3|2.5|", "*2|*2|$1|a|,1|*2|$1|b|,2.5|", "%2|$1|a|,1|$1|b|,2.5|"]
        {
            assert_eq!(reply(text).read::<Vec<(String, f64)>>().unwrap(), expected);
            let map = reply(text).read::<BTreeMap<String, f64>>().unwrap();
            assert_eq!(map.into_iter().collect::<Vec<_>>(), expected);
        }
        assert!(reply("*3|:1|:2|:3|").read::<Vec<(i64, i64)>>().is_err());
        assert_eq!(reply("*0|").read::<Vec<(i64, i64)>>().unwrap(), []);
    }

    #[test]
    fn nothing_an_error_and_another_type_are_told_apart() {
        assert_eq!(reply("$-1|").read::<Option<String>>().unwrap(), None);
        assert_eq!(reply("$0||").read::<Option<String>>().unwrap(), Some(String::new()));
        let error = reply("-WRONGTYPE no|").read::<Option<String>>().unwrap_err();
        assert_eq!(error.code(), Some(crate::Code::WrongType));
        let error = reply(":1|").read::<Vec<String>>().unwrap_err();
        assert_eq!(error.kind(), crate::Kind::UnexpectedReply);
        let within = reply("*2|-ERR a|:1|").read::<Vec<crate::Result<i64>>>().unwrap();
        assert!(within[0].is_err() && matches!(within[1], Ok(1)));
        assert!(reply("*2|-ERR a|:1|").read::<Vec<i64>>().is_err());
    }

    #[test]
    fn what_is_nested_is_read_in_place() {
        let text = "*2|*3|:1|+two|~1|$5|three|*3|:4|+five|~0|";
        let read: Vec<(i64, String, BTreeSet<String>)> = reply(text).read().unwrap();
        assert_eq!(read[0].2.first().unwrap(), "three");
        assert_eq!(read[1].0, 4);
        let long = format!("$50|{}|", "x".repeat(50));
        assert_eq!(reply(&long).read::<Bytes>().unwrap().len(), 50);
    }
}
