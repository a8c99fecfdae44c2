//! Values of one part: numbers, strings, flags.

use super::{FromReply, Reader};
use crate::error::{Error, Result};
use brisk_resp::reply::read::Part;
use bytes::Bytes;
use std::str;

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
            Part::Bulk(b"1") => Ok(true),
            Part::Bulk(b"0") => Ok(false),
            part => Err(Error::unexpected("flag", &part)),
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

// No u8: a list of them is a string of bytes.
integers! { i16 u16 i32 u32 i64 u64 i128 u128 isize usize }

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
                .map_err(|_| Error::unexpected("String (no UTF-8)", &part)),
        }
    }
}

impl FromReply for Box<str> {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Box<str>> {
        String::from_reply(reader).map(String::into_boxed_str)
    }
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
