//! Values of many parts: lists, sets, maps, tuples.

use super::{COLLECT_MAX, FromReply, Reader};
use crate::error::{Error, Result};
use brisk_resp::reply::read::Part;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;
use std::sync::Arc;

/// The elements of any aggregate. Nil is read as an empty aggregate.
fn elements<T: FromReply>(reader: &mut Reader<'_>) -> Result<Vec<T>> {
    let part = reader.part()?;
    match part {
        Part::Null => Ok(Vec::new()),
        Part::Array(count) | Part::Set(count) | Part::Push(count) => {
            T::many(reader, usize::try_from(count).unwrap_or(usize::MAX), false)
        }
        Part::Map(count) => T::many(reader, usize::try_from(count).unwrap_or(usize::MAX), true),
        part => Err(Error::unexpected("a list", &part)),
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
        let part = reader.peek()?;
        let values = elements(reader)?;
        values.try_into().map_err(|_| Error::unexpected("a list of this length", &part))
    }
}

/// Types that wrap one value.
macro_rules! around {
    ($($type:ident)*) => {$(
        impl<T: FromReply> FromReply for $type<T> {
            fn from_reply(reader: &mut Reader<'_>) -> Result<$type<T>> {
                T::from_reply(reader).map($type::new)
            }

            fn is_nothing(part: &Part<'_>) -> bool {
                T::is_nothing(part)
            }

            fn absent() -> Option<$type<T>> {
                T::absent().map($type::new)
            }
        }

        impl<T: FromReply> FromReply for $type<[T]> {
            fn from_reply(reader: &mut Reader<'_>) -> Result<$type<[T]>> {
                elements(reader).map($type::from)
            }
        }
    )*};
}

around! { Arc Box Rc }

/// Pairs arrive as a map, as an array of pairs, or as a flat array of keys and values.
impl<A: FromReply, B: FromReply> FromReply for (A, B) {
    fn from_reply(reader: &mut Reader<'_>) -> Result<(A, B)> {
        let part = reader.part()?;
        if part.len_within() != 2 {
            return Err(Error::unexpected("a pair", &part));
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
            (false, _) => {
                return Err(Error::unexpected("a list of pairs", &Part::Array(count as u64)));
            }
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
                    return Err(Error::unexpected(concat!("a list of ", $count), &part));
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
    9: A B C D E F G H I;
    10: A B C D E F G H I J;
    11: A B C D E F G H I J K;
    12: A B C D E F G H I J K L;
}

#[cfg(test)]
mod tests {
    use crate::reply::Reply;
    use bytes::Bytes;
    use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
    use std::num::NonZero;
    use std::sync::Arc;

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
    fn a_null_an_error_and_another_type_are_distinguished() {
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
    fn an_empty_list_is_not_nil() {
        for (text, is_there) in [("*0|", true), ("*-1|", false), ("_|", false), ("~0|", true)] {
            let list = reply(text).read::<Option<Vec<String>>>().unwrap();
            assert_eq!(list, is_there.then(Vec::new), "{text}");
            let set = reply(text).read::<Option<HashSet<String>>>().unwrap();
            assert_eq!(set.is_some(), is_there, "{text}");
            // Types other than `Option` read nil as an empty collection.
            assert_eq!(reply(text).read::<Vec<String>>().unwrap(), Vec::<String>::new());
            assert!(reply(text).read::<HashMap<String, i64>>().unwrap().is_empty());
        }
        assert!(reply("%0|").read::<Option<BTreeMap<String, i64>>>().unwrap().is_some());
    }

    #[test]
    fn values_of_maps_may_be_nil_or_lists() {
        for text in ["*4|$1|a|$1|1|$1|b|$-1|", "%2|$1|a|:1|$1|b|_|"] {
            let map = reply(text).read::<HashMap<String, Option<i64>>>().unwrap();
            assert_eq!(map, HashMap::from([("a".into(), Some(1)), ("b".into(), None)]));
        }
        for text in ["*4|$1|a|*2|:1|:2|$1|b|*0|", "%2|$1|a|*2|:1|:2|$1|b|*-1|"] {
            let map = reply(text).read::<BTreeMap<Arc<str>, Box<[i64]>>>().unwrap();
            assert_eq!(map["a"][..], [1, 2]);
            assert!(map["b"].is_empty());
        }
        let flags = reply("%1|:1|#t|").read::<HashMap<NonZero<u32>, bool>>().unwrap();
        assert_eq!(flags.into_iter().collect::<Vec<_>>(), [(NonZero::<u32>::MIN, true)]);
    }

    #[test]
    fn tuples_must_have_the_requested_length() {
        type Twelve = (i8, i16, i32, i64, u16, u32, u64, f64, bool, String, Option<i64>, Vec<i64>);
        let text = "*12|:1|:2|:3|:4|:5|:6|:7|,8.5|#t|+ten|_|*1|:12|";
        let twelve = reply(text).read::<Twelve>().unwrap();
        assert_eq!(twelve, (1, 2, 3, 4, 5, 6, 7, 8.5, true, "ten".into(), None, vec![12]));
        assert!(reply(text).read::<(i64, i64, i64)>().is_err());
        assert_eq!(reply("*-1|").read::<Option<(i64, i64)>>().unwrap(), None);
        assert_eq!(reply("*1|:7|").read::<Box<(i64,)>>().unwrap().0, 7);
        assert_eq!(reply("$1|7|").read::<Option<Arc<i64>>>().unwrap().as_deref(), Some(&7));
    }

    #[test]
    fn nested_replies_are_read_in_place() {
        let text = "*2|*3|:1|+two|~1|$5|three|*3|:4|+five|~0|";
        let read: Vec<(i64, String, BTreeSet<String>)> = reply(text).read().unwrap();
        assert_eq!(read[0].2.first().unwrap(), "three");
        assert_eq!(read[1].0, 4);
        let long = format!("$50|{}|", "x".repeat(50));
        assert_eq!(reply(&long).read::<Bytes>().unwrap().len(), 50);
    }
}
