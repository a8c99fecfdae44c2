//! The patterns after BY and GET, which map an element to a key or to a field of a hash.

use crate::base::error::Result;
use crate::base::number::Digits;
use crate::commands::iteration::before_nul;
use crate::keyspace::{EntryRef, Keys, UnixMs};
use crate::types::Collection;
use crate::types::hash::Hash;
use crate::types::string::{Str, StrRef};

/// A parsed pattern.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// A text without `*`: no lookup, because the key would be the same for all elements.
    Fixed,
    /// `prefix*suffix`, or `prefix*suffix->field`.
    Key { prefix: &'a [u8], suffix: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    /// Parses a pattern. Redis searches for the marks only up to the first NUL.
    pub(super) fn new(pattern: &'a [u8]) -> Pattern<'a> {
        let searched = before_nul(pattern);
        if searched == b"#" {
            return Pattern::Element;
        }
        let Some(star) = memchr::memchr(b'*', searched) else { return Pattern::Fixed };
        let after_star = star + 1;
        let arrow = searched[after_star..].windows(2).position(|two| two == b"->");
        // An arrow at the end is part of the name.
        match arrow.map(|at| after_star + at).filter(|at| at + 2 < searched.len()) {
            Some(arrow) => Pattern::Key {
                prefix: &pattern[..star],
                suffix: &pattern[after_star..arrow],
                field: Some(&pattern[arrow + 2..]),
            },
            None => Pattern::Key {
                prefix: &pattern[..star],
                suffix: &pattern[after_star..],
                field: None,
            },
        }
    }

    /// False if all elements would have the same weight.
    pub(super) fn has_star(pattern: &[u8]) -> bool {
        before_nul(pattern).contains(&b'*')
    }

    /// Writes the name of the key for an element to `name`. Returns false if there is none.
    pub(super) fn name_key(&self, element: &[u8], name: &mut Vec<u8>) -> bool {
        let Pattern::Key { prefix, suffix, .. } = *self else { return false };
        name.clear();
        [prefix, element, suffix].into_iter().for_each(|part| name.extend_from_slice(part));
        true
    }

    /// Calls `visit` with the text for `element`, `None` if there is none. Locks the key's slot and
    /// keeps it locked, so that the command sees all keys at the same point in time. `name` is a
    /// buffer for the key's name.
    pub(super) fn look_up<R>(
        &self,
        keys: &mut Keys<'_>,
        element: &[u8],
        name: &mut Vec<u8>,
        visit: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R> {
        if !self.name_key(element, name) {
            return Ok(visit(matches!(self, Pattern::Element).then_some(element)));
        }
        let key = keys.keyspace().hasher().key(name);
        keys.lock_also(keys.db(), &key)?;
        // A key of another type has no text.
        Ok(match self.field() {
            None => show(keys.open::<Str>(&key).unwrap_or(None), visit),
            Some(field) => {
                let now = keys.env().horizon();
                show_field(keys.open::<Hash>(&key).unwrap_or(None), field, now, visit)
            }
        })
    }

    /// Calls `visit` with the text of an entry that [`Pattern::name_key`] names.
    pub(super) fn look_at<R>(
        &self,
        entry: Option<EntryRef<'_>>,
        now: UnixMs,
        visit: impl FnOnce(Option<&[u8]>) -> R,
    ) -> R {
        match self.field() {
            None => show(entry.and_then(|entry| entry.get::<Str>()), visit),
            Some(field) => {
                show_field(entry.and_then(|entry| entry.get::<Hash>()), field, now, visit)
            }
        }
    }

    fn field(&self) -> Option<&'a [u8]> {
        match *self {
            Pattern::Key { field, .. } => field,
            Pattern::Element | Pattern::Fixed => None,
        }
    }
}

fn show<R>(string: Option<StrRef<'_>>, visit: impl FnOnce(Option<&[u8]>) -> R) -> R {
    match string {
        Some(string) => visit(Some(&string.contiguous(&mut Digits::new()))),
        None => visit(None),
    }
}

fn show_field<R>(
    hash: Option<&Hash>,
    field: &[u8],
    now: UnixMs,
    visit: impl FnOnce(Option<&[u8]>) -> R,
) -> R {
    let due = |hash: &Hash| hash.deadline(field).flatten().is_some_and(|at| UnixMs(at) <= now);
    let hash = hash.filter(|hash| hash.next_deadline().is_none() || !due(hash));
    match hash.and_then(|hash| hash.get(field)) {
        Some(value) => visit(Some(value.text(&mut itoa::Buffer::new()))),
        None => visit(None),
    }
}
