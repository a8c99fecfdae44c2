//! The patterns after BY and GET: which key, or field of a hash, goes with an element.

use crate::commands::iteration::before_nul;
use crate::error::Result;
use crate::keyspace::Keys;
use crate::number::Digits;
use crate::types::hash::Hash;
use crate::types::string::Str;

/// What a pattern makes of an element.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// A text without `*`: nothing, since it would be the same for all.
    Fixed,
    /// `prefix*suffix`, or `prefix*suffix->field`.
    Key { prefix: &'a [u8], suffix: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    /// Takes a pattern apart. Redis looks for the marks up to the first NUL only.
    pub(super) fn new(pattern: &'a [u8]) -> Pattern<'a> {
        let searched = before_nul(pattern);
        if searched == b"#" {
            return Pattern::Element;
        }
        let Some(star) = memchr::memchr(b'*', searched) else { return Pattern::Fixed };
        let behind = star + 1;
        let arrow = searched[behind..].windows(2).position(|two| two == b"->");
        // An arrow at the end belongs to the name.
        match arrow.map(|at| behind + at).filter(|at| at + 2 < searched.len()) {
            Some(arrow) => Pattern::Key {
                prefix: &pattern[..star],
                suffix: &pattern[behind..arrow],
                field: Some(&pattern[arrow + 2..]),
            },
            None => {
                Pattern::Key { prefix: &pattern[..star], suffix: &pattern[behind..], field: None }
            }
        }
    }

    /// Whether all elements would have the same weight.
    pub(super) fn has_star(pattern: &[u8]) -> bool {
        before_nul(pattern).contains(&b'*')
    }

    /// Gives `visit` what goes with `element`, `None` if there is nothing. Locks the key's slot and
    /// keeps it, so that the command sees all keys at one moment.
    pub(super) fn look_up<R>(
        &self,
        keys: &mut Keys<'_>,
        element: &[u8],
        visit: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R> {
        let (prefix, suffix, field) = match *self {
            Pattern::Element => return Ok(visit(Some(element))),
            Pattern::Fixed => return Ok(visit(None)),
            Pattern::Key { prefix, suffix, field } => (prefix, suffix, field),
        };
        let name = [prefix, element, suffix].concat();
        let key = keys.keyspace().hasher().key(&name);
        keys.lock_also(keys.db(), &key)?;
        let Some(field) = field else {
            // A key of another type has nothing to show.
            let found = keys.open::<Str>(&key).unwrap_or(None);
            return Ok(match found {
                Some(string) => visit(Some(string.as_bytes(&mut Digits::new()))),
                None => visit(None),
            });
        };
        let found = keys.open::<Hash>(&key).unwrap_or(None).and_then(|hash| hash.get(field));
        Ok(match found {
            Some(value) => visit(Some(value.text(&mut itoa::Buffer::new()))),
            None => visit(None),
        })
    }
}
