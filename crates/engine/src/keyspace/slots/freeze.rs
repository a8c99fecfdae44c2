//! Frozen slots: writers wait while a long command computes something from the slot's values.
//!
//! A mark freezes a slot. The thread that finishes a computation removes the mark, even if other
//! computations have set it too. That is safe, because blocking writers is only an optimization
//! (see [`crate::call::long`]).

use crate::base::number::Digits;
use crate::keyspace::keys::Keys;
use crate::keyspace::marks::FROZEN;
use crate::keyspace::{Key, SlotId};
use crate::types::Value;
use crate::types::View;
use brisk_structures::chunked::ChunkedBytes;
use brisk_structures::entry::ValueRef;

impl Keys<'_> {
    /// Makes commands that write to the slot wait until [`Keys::thaw`].
    pub(crate) fn freeze(&mut self, slot: SlotId) {
        self.mark(slot, FROZEN);
    }

    /// Unfreezes all slots that are held.
    pub(crate) fn thaw(&mut self) {
        self.each_held(|guard| {
            let marks = guard.marks() & !FROZEN;
            guard.set_marks(marks);
        });
    }

    /// Reports whether a held slot is frozen.
    #[inline]
    pub(crate) fn is_frozen(&self) -> bool {
        self.any_mark(FROZEN)
    }

    /// The current values of keys.
    pub(crate) fn views(&self, keys: &[Key<'_>]) -> Vec<View> {
        keys.iter().map(|key| self.view(key)).collect()
    }

    /// The current value of a key, which may be of any type. Large values are shared, not copied.
    pub(crate) fn view(&self, key: &Key<'_>) -> View {
        let entry = self.find(key)?;
        Some(match entry.value() {
            ValueRef::Object(value) => value.clone(),
            ValueRef::Bytes(bytes) => Value::Str(ChunkedBytes::from(bytes)),
            ValueRef::Int(number) => Value::Str(ChunkedBytes::from(Digits::new().format(number))),
        })
    }
}
