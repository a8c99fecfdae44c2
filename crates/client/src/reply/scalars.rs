//! Values of one part: numbers, strings, flags.

use super::{FromReply, Reader};
use crate::error::{Error, Result};
use brisk_resp::reply::read::Part;
use bytes::Bytes;
use std::borrow::Cow;
use std::num::NonZero;
use std::rc::Rc;
use std::str;
use std::sync::Arc;

fn text<'a>(part: &Part<'a>, wanted: &'static str) -> Result<&'a [u8]> {
    match *part {
        Part::BigNumber(digits) => Ok(digits),
        ref part => part.as_bytes().ok_or_else(|| Error::unexpected(wanted, part)),
    }
}

impl FromReply for () {
    fn from_reply(reader: &mut Reader<'_>) -> Result<()> {
        let mut rest = reader.clone();
        rest.skip()?;
        let read = reader.part().map(|_| ());
        *reader = rest;
        read
    }
}

impl FromReply for bool {
    fn from_reply(reader: &mut Reader<'_>) -> Result<bool> {
        let part = reader.part()?;
        match part {
            Part::Boolean(value) => Ok(value),
            Part::Integer(value) => Ok(value != 0),
            Part::Null => Ok(false),
            Part::Simple(b"OK") => Ok(true),
            // Clients in other languages write Booleans like this.
            Part::Bulk(b"1" | b"true") => Ok(true),
            Part::Bulk(b"0" | b"false") => Ok(false),
            part => Err(Error::unexpected("a Boolean", &part)),
        }
    }
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl FromReply for $type {
            #[inline]
            fn from_reply(reader: &mut Reader<'_>) -> Result<$type> {
                let part = reader.part()?;
                let whole = match part {
                    Part::Integer(value) => <$type>::try_from(value).ok(),
                    Part::Boolean(value) => Some(<$type>::from(value)),
                    Part::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                        <$type>::try_from(value as i64).ok()
                    }
                    part => text(&part, stringify!($type))
                        .ok()
                        .and_then(|text| str::from_utf8(text).ok()?.parse().ok()),
                };
                whole.ok_or_else(|| Error::unexpected(stringify!($type), &part))
            }
        }
    )*};
}

// `u8` is missing, because a list of bytes is a string.
integers! { i8 i16 u16 i32 u32 i64 u64 i128 u128 isize usize }

macro_rules! other_than_0 {
    ($($type:ty)*) => {$(
        impl FromReply for NonZero<$type> {
            fn from_reply(reader: &mut Reader<'_>) -> Result<NonZero<$type>> {
                let part = reader.peek()?;
                let value = <$type>::from_reply(reader)?;
                NonZero::new(value).ok_or_else(|| Error::unexpected("a number other than 0", &part))
            }
        }
    )*};
}

other_than_0! { i8 i16 u16 i32 u32 i64 u64 i128 u128 isize usize }

impl FromReply for f64 {
    fn from_reply(reader: &mut Reader<'_>) -> Result<f64> {
        let part = reader.part()?;
        match part {
            Part::Double(value) => Ok(value),
            Part::Integer(value) => Ok(value as f64),
            part => text(&part, "f64")
                .ok()
                .and_then(|text| str::from_utf8(text).ok()?.parse().ok())
                .ok_or_else(|| Error::unexpected("f64", &part)),
        }
    }
}

impl FromReply for f32 {
    fn from_reply(reader: &mut Reader<'_>) -> Result<f32> {
        f64::from_reply(reader).map(|value| value as f32)
    }
}

impl FromReply for String {
    fn from_reply(reader: &mut Reader<'_>) -> Result<String> {
        let part = reader.part()?;
        match part {
            Part::Integer(value) => Ok(value.to_string()),
            Part::Double(value) => Ok(value.to_string()),
            part => str::from_utf8(text(&part, "String")?)
                .map(str::to_owned)
                .map_err(|_| Error::unexpected("a UTF-8 string", &part)),
        }
    }
}

impl FromReply for char {
    fn from_reply(reader: &mut Reader<'_>) -> Result<char> {
        let part = reader.peek()?;
        let text = String::from_reply(reader)?;
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(Error::unexpected("a single character", &part)),
        }
    }
}

/// Types that convert from another type.
macro_rules! made_of {
    ($($type:ty: $of:ty;)*) => {$(
        impl FromReply for $type {
            fn from_reply(reader: &mut Reader<'_>) -> Result<Self> {
                <$of>::from_reply(reader).map(Self::from)
            }
        }
    )*};
}

made_of! {
    Box<str>: String;
    Rc<str>: String;
    Arc<str>: String;
    Cow<'_, str>: String;
    Box<[u8]>: Vec<u8>;
    Rc<[u8]>: Vec<u8>;
    Arc<[u8]>: Vec<u8>;
    Cow<'_, [u8]>: Vec<u8>;
}

impl FromReply for Vec<u8> {
    #[inline]
    fn from_reply(reader: &mut Reader<'_>) -> Result<Vec<u8>> {
        let part = reader.part()?;
        match part {
            Part::Integer(value) => Ok(value.to_string().into_bytes()),
            Part::Double(value) => Ok(value.to_string().into_bytes()),
            part => text(&part, "string").map(<[u8]>::to_vec),
        }
    }
}

impl FromReply for Bytes {
    #[inline]
    fn from_reply(reader: &mut Reader<'_>) -> Result<Bytes> {
        let part = reader.part()?;
        match part {
            Part::Integer(value) => Ok(Bytes::from(value.to_string())),
            Part::Double(value) => Ok(Bytes::from(value.to_string())),
            part => text(&part, "string").map(|text| reader.share(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reply::{FromReply, Reply};
    use crate::{Kind, Result};
    use bytes::Bytes;
    use std::borrow::Cow;
    use std::num::NonZero;
    use std::sync::Arc;

    fn read<T: FromReply>(text: &str) -> Result<T> {
        Reply::shared(Bytes::from(text.replace('|', "\r\n"))).read()
    }

    #[test]
    fn one_string_becomes_any_type_of_string() {
        for text in ["$2|ab|", "+ab|", "=6|txt:ab|"] {
            assert_eq!(&*read::<Box<str>>(text).unwrap(), "ab");
            assert_eq!(&*read::<Arc<str>>(text).unwrap(), "ab");
            assert_eq!(read::<Cow<'static, str>>(text).unwrap(), "ab");
            assert_eq!(&*read::<Box<[u8]>>(text).unwrap(), b"ab");
            assert_eq!(&*read::<Arc<[u8]>>(text).unwrap(), b"ab");
            assert_eq!(&*read::<Cow<'static, [u8]>>(text).unwrap(), b"ab");
            assert_eq!(read::<Bytes>(text).unwrap(), "ab");
        }
        assert_eq!(read::<char>("$2|\u{e9}|").unwrap(), 'é');
        assert_eq!(read::<char>("$2|ab|").unwrap_err().kind(), Kind::UnexpectedReply);
        assert_eq!(read::<Arc<str>>("*0|").unwrap_err().kind(), Kind::UnexpectedReply);
    }

    #[test]
    fn nil_is_not_a_string_a_number_or_a_character() {
        for text in ["$-1|", "_|", "*-1|"] {
            assert_eq!(read::<String>(text).unwrap_err().kind(), Kind::UnexpectedReply);
            assert_eq!(read::<Arc<str>>(text).unwrap_err().kind(), Kind::UnexpectedReply);
            assert_eq!(read::<i64>(text).unwrap_err().kind(), Kind::UnexpectedReply);
            assert_eq!(read::<char>(text).unwrap_err().kind(), Kind::UnexpectedReply);
            assert_eq!(read::<Option<Arc<str>>>(text).unwrap(), None);
            assert_eq!(read::<Option<NonZero<u32>>>(text).unwrap(), None);
            assert_eq!(read::<Option<bool>>(text).unwrap(), None);
        }
        assert_eq!(read::<Option<Arc<str>>>("$0||").unwrap().as_deref(), Some(""));
    }

    #[test]
    fn an_error_shows_the_type_and_length_of_a_value_but_not_the_value() {
        fn error<T: FromReply + std::fmt::Debug>(text: &str) -> String {
            let error = read::<T>(text).unwrap_err();
            assert_eq!(error.kind(), Kind::UnexpectedReply);
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
            error.to_string()
        }
        let but = "but the reply is";
        assert_eq!(error::<i64>("$6|secret|"), format!("expected i64, {but} a string of 6 bytes"));
        assert_eq!(error::<f64>("+secret|"), format!("expected f64, {but} a status of 6 bytes"));
        assert_eq!(
            error::<bool>("=10|txt:secret|"),
            format!("expected a Boolean, {but} a string of 6 bytes")
        );
        assert_eq!(
            error::<char>("$6|secret|"),
            format!("expected a single character, {but} a string of 6 bytes")
        );
        assert_eq!(
            error::<Vec<i64>>("$6|secret|"),
            format!("expected a list, {but} a string of 6 bytes")
        );
        assert_eq!(
            error::<Vec<i64>>("*2|:1|$6|secret|"),
            format!("expected i64, {but} a string of 6 bytes")
        );
        assert_eq!(
            error::<String>("%1|$6|secret|:1|"),
            format!("expected String, {but} a map of 1 pairs")
        );
        assert_eq!(
            error::<(String, String)>("*3|+a|+b|+secret|"),
            format!("expected a pair, {but} a list of 3 elements")
        );
        assert_eq!(
            error::<[i64; 2]>("*1|:1|"),
            format!("expected a list of this length, {but} a list of 1 elements")
        );
        assert_eq!(error::<i8>(":128|"), format!("expected i8, {but} an integer"));
        // The error text is short, no matter how long the value is.
        let long = format!("${}|{}|", 1 << 20, "x".repeat(1 << 20));
        assert!(error::<i64>(&long).len() < 100);
    }

    #[test]
    fn a_number_that_does_not_fit_is_an_error_and_not_truncated() {
        assert_eq!(read::<i8>(":127|").unwrap(), 127);
        assert!(read::<i8>(":128|").is_err());
        assert!(read::<u32>("$2|-1|").is_err());
        assert_eq!(read::<u128>("(340282366920938463463374607431768211455|").unwrap(), u128::MAX);
        assert_eq!(read::<NonZero<u64>>("$1|7|").unwrap().get(), 7);
        let error = read::<NonZero<u64>>(":0|").unwrap_err();
        assert!(error.message().contains("other than 0"), "{error}");
    }

    #[test]
    fn flags_are_read_as_servers_and_programs_write_them() {
        for text in ["#t|", ":1|", "$1|1|", "$4|true|", "+OK|"] {
            assert!(read::<bool>(text).unwrap(), "{text}");
        }
        for text in ["#f|", ":0|", "$1|0|", "$5|false|", "$-1|", "_|"] {
            assert!(!read::<bool>(text).unwrap(), "{text}");
        }
        assert!(read::<bool>("$3|yes|").is_err());
    }
}
