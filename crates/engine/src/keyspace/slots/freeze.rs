//! Frozen slots: commands that write wait while something is computed from values there.
//!
//! A slot is frozen by a mark. Whoever finishes the computation takes the mark back, for all who
//! set it: that others are kept from writing only helps (see [`crate::call::long`]).

use crate::base::number::Digits;
use crate::keyspace::keys::Keys;
use crate::keyspace::marks::FROZEN;
use crate::keyspace::{Key, SlotId};
use crate::types::Value;
use crate::types::View;
use brisk_structures::chunked::ChunkedBytes;
use brisk_structures::entry::ValueRef;

impl Keys<'_> {
    /// Keeps commands that write from the slot until [`Keys::thaw`].
    pub(crate) fn freeze(&mut self, slot: SlotId) {
        self.mark(slot, FROZEN);
    }

    /// Lets them have all slots that are held.
    pub(crate) fn thaw(&mut self) {
        self.each_held(|guard| {
            let marks = guard.marks() & !FROZEN;
            guard.set_marks(marks);
        });
    }

    /// Whether one of the slots that are held is frozen.
    #[inline]
    pub(crate) fn is_frozen(&self) -> bool {
        self.any_mark(FROZEN)
    }

    /// The values of keys as they are now.
    pub(crate) fn views(&self, keys: &[Key<'_>]) -> Vec<View> {
        keys.iter().map(|key| self.view(key)).collect()
    }

    /// The value of a key as it is now, of whatever type, shared where it is large.
    pub(crate) fn view(&self, key: &Key<'_>) -> View {
        let entry = self.find(key)?;
        Some(match entry.value() {
            ValueRef::Object(value) => value.clone(),
            ValueRef::Bytes(bytes) => Value::Str(ChunkedBytes::from(bytes)),
            ValueRef::Int(number) => Value::Str(ChunkedBytes::from(Digits::new().format(number))),
        })
    }
}
