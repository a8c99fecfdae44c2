//! The argument of a handler: an entry of a stream and the number of its deliveries.

use crate::arg::{Args, ToArg, ToArgs};
use crate::error::{Error, Kind, Result};
use crate::reply::{FromReply, Reader, Reply};
use brisk_resp::reply::encode;
use brisk_resp::reply::read::Part;
use bytes::Bytes;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The ID of an entry. The IDs in a stream increase in the order in which the entries were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Milliseconds since 1970, unless the client that added the entry chose another ID.
    pub ms: u64,
    /// The sequence number within the millisecond.
    pub seq: u64,
}

impl Id {
    /// The largest ID before this one. 0-0 has no predecessor and is returned unchanged.
    pub(super) fn before(self) -> Id {
        match (self.ms, self.seq) {
            (0, 0) => self,
            (ms, 0) => Id { ms: ms - 1, seq: u64::MAX },
            (ms, seq) => Id { ms, seq: seq - 1 },
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Id> {
        let (ms, seq) = text.split_once('-').unwrap_or((text, "0"));
        match (ms.parse(), seq.parse()) {
            (Ok(ms), Ok(seq)) => Ok(Id { ms, seq }),
            _ => {
                let text = format!("a string of {} bytes is not a stream ID", text.len());
                Err(Error::new(Kind::Invalid, text))
            }
        }
    }
}

impl FromReply for Id {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Id> {
        let part = reader.part()?;
        let text = part.as_bytes().and_then(|text| std::str::from_utf8(text).ok());
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| Error::unexpected("a stream ID", &part))
    }
}

impl ToArg for Id {
    fn write(&self, args: &mut Args<'_>) {
        args.push(self.to_string().as_bytes());
    }
}

impl ToArgs for Id {
    fn write_all(&self, args: &mut Args<'_>) {
        self.write(args);
    }

    fn count(&self) -> usize {
        1
    }
}

/// Names and values, in the order in which they were added. A name may occur twice.
pub(super) type Fields = Arc<[(Bytes, Bytes)]>;

/// An entry of a stream, delivered to this consumer. Cheap to clone. `Debug` shows the number of fields, but not their
/// values, which may be secrets.
#[derive(Clone)]
pub struct Message {
    pub(super) id: Id,
    pub(super) fields: Fields,
    pub(super) deliveries: u64,
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("id", &self.id)
            .field("fields", &self.fields.len())
            .field("deliveries", &self.deliveries)
            .finish()
    }
}

impl Message {
    /// Returns the ID.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns all fields, as they are in the stream.
    #[must_use]
    pub fn fields(&self) -> &[(Bytes, Bytes)] {
        &self.fields
    }

    /// Returns the number of deliveries, including this one, as counted by the server. It is 1 at first, and larger
    /// after a failure or a takeover. If it is larger than 1, the work may already have been done, in part or
    /// completely.
    #[must_use]
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// Returns the value of the first field with this name. O(bytes).
    ///
    /// ```no_run
    /// # fn example(m: brisk::consumer::Message) -> brisk::Result<()> {
    /// let amount: u64 = m.field("amount")?;
    /// let note: Option<String> = m.field("note")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Kind::Missing`] if the field does not exist and `T` is not an `Option`; [`Kind::UnexpectedReply`] if the value
    /// cannot be converted to `T`.
    pub fn field<T: FromReply>(&self, name: &str) -> Result<T> {
        let value = self.raw_field(name.as_bytes());
        let mut text = Vec::new();
        match value {
            Some(value) => encode::bulk(&mut text, value),
            None => text.extend_from_slice(b"$-1\r\n"),
        }
        let read = Reply::small(&text).unwrap_or_else(|| Reply::shared(text.into())).read();
        match read {
            Err(_) if value.is_none() => {
                Err(Error::new(Kind::Missing, format!("entry {} has no field '{name}'", self.id)))
            }
            read => read,
        }
    }

    pub(super) fn raw_field(&self, name: &[u8]) -> Option<&Bytes> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// An entry as servers deliver it. For an entry that was deleted in the meantime, the ID or the fields are null.
#[derive(Debug)]
pub(super) struct Delivered(pub(super) Option<(Id, Option<Fields>)>);

impl FromReply for Delivered {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Delivered> {
        match reader.part()? {
            Part::Null => Ok(Delivered(None)),
            part if part.len_within() == 2 => {
                let id = Id::from_reply(reader)?;
                let fields = Option::<Vec<(Bytes, Bytes)>>::from_reply(reader)?;
                Ok(Delivered(Some((id, fields.map(Fields::from)))))
            }
            part => Err(Error::unexpected("a stream entry", &part)),
        }
    }
}

/// A page of entries that were claimed.
#[derive(Debug)]
pub(super) struct Page {
    /// The start of the next page; 0-0 after the last one.
    pub(super) next: Id,
    pub(super) entries: Vec<Delivered>,
    /// Entries that had been deleted from the stream. The server no longer lists them as pending. Old servers do not
    /// report them.
    pub(super) deleted: Vec<Id>,
}

impl FromReply for Page {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Page> {
        let part = reader.part()?;
        let count = part.len_within();
        if count < 2 {
            return Err(Error::unexpected("a page of entries", &part));
        }
        let (next, entries) = (Id::from_reply(reader)?, Vec::from_reply(reader)?);
        let deleted = if count > 2 { Vec::from_reply(reader)? } else { Vec::new() };
        Ok(Page { next, entries, deleted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Reply {
        Reply::shared(text.replace('|', "\r\n").into_bytes().into())
    }

    #[test]
    fn ids_are_read_written_and_ordered() {
        let ids = ["0-0", "0-7", "5-0", "5-1", "18446744073709551615-18446744073709551615"];
        let read: Vec<Id> = ids.iter().map(|id| id.parse().unwrap()).collect();
        assert!(read.is_sorted());
        assert!(read.iter().zip(ids).all(|(id, text)| id.to_string() == text));
        assert_eq!("5".parse::<Id>().unwrap(), read[2]);
        assert_eq!(read[2].before(), Id { ms: 4, seq: u64::MAX });
        assert_eq!(read[3].before(), read[2]);
        for text in ["", "-", "a-1", "1-", "1-b", "1-2-3", "-1-1"] {
            assert_eq!(text.parse::<Id>().unwrap_err().kind(), Kind::Invalid, "{text}");
        }
    }

    #[test]
    fn fields_are_converted_to_the_requested_types() {
        let fields: Vec<(Bytes, Bytes)> =
            vec![("n".into(), "7".into()), ("n".into(), "8".into()), ("s".into(), "".into())];
        let message = Message { id: Id::default(), fields: fields.into(), deliveries: 1 };
        assert_eq!(message.field::<u32>("n").unwrap(), 7);
        assert_eq!(message.field::<String>("s").unwrap(), "");
        assert_eq!(message.field::<Option<i64>>("none").unwrap(), None);
        assert_eq!(message.field::<i64>("none").unwrap_err().kind(), Kind::Missing);
        assert_eq!(message.field::<i64>("s").unwrap_err().kind(), Kind::UnexpectedReply);
    }

    #[test]
    fn deleted_entries_are_read_in_the_format_of_each_server() {
        let text = "*3|*2|$3|1-1|*2|$1|a|$1|b|*2|$3|1-2|*-1|$-1|";
        let read: Vec<Delivered> = reply(text).read().unwrap();
        assert!(matches!(&read[0].0, Some((_, Some(fields))) if fields.len() == 1));
        assert!(matches!(&read[1].0, Some((Id { ms: 1, seq: 2 }, None))));
        assert!(read[2].0.is_none());
        let page: Page = reply("*3|$3|0-0|*0|*1|$3|9-9|").read().unwrap();
        assert_eq!((page.entries.len(), page.deleted), (0, vec![Id { ms: 9, seq: 9 }]));
        let page: Page = reply("*2|$3|4-0|*1|$-1|").read().unwrap();
        assert_eq!((page.next.ms, page.entries.len()), (4, 1));
    }
}
