//! Taps: copies of those transactions of the stream that changed certain slots.
//!
//! A tap and a snapshot of the same slots, begun while all threads are quiesced, together give a dataset and every
//! later change to it. Readers take the bytes of a tap in the form in which [`Journal`](super::journal::Journal) hands
//! out the stream itself.

use super::effect::Effects;
use crate::base::place::{DbIndex, SlotId};
use crate::base::slot_set::SlotSet;

/// Identifies a tap of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapId(u64);

/// The reader of a tap was slower than the writers: the tap had no room for a transaction, and has dropped all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapOverflow;

#[derive(Debug)]
struct Tap {
    id: TapId,
    slots: SlotSet,
    /// Bytes that the reader has not taken yet.
    bytes: Vec<u8>,
    bytes_max: usize,
    /// The database of the last command.
    db: Option<DbIndex>,
    is_overflowed: bool,
}

/// The taps of a journal.
#[derive(Debug, Default)]
pub(super) struct Taps {
    taps: Vec<Tap>,
    begun: u64,
}

impl Taps {
    pub(super) fn begin(&mut self, slots: SlotSet, bytes_max: usize) -> TapId {
        self.begun += 1;
        let id = TapId(self.begun);
        let (bytes, db, is_overflowed) = (Vec::new(), None, false);
        self.taps.push(Tap { id, slots, bytes, bytes_max, db, is_overflowed });
        id
    }

    pub(super) fn end(&mut self, id: TapId) {
        self.taps.retain(|tap| tap.id != id);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.taps.is_empty()
    }

    /// Copies a transaction that changed `slots` to the taps of these slots. O(taps × (slots + bytes)).
    #[cold]
    pub(super) fn note(&mut self, effects: &Effects, slots: impl Iterator<Item = SlotId> + Clone) {
        for tap in self.taps.iter_mut().filter(|tap| !tap.is_overflowed) {
            if slots.clone().any(|slot| tap.slots.contains(slot)) {
                effects.write(&mut tap.bytes, &mut tap.db);
                if tap.bytes.len() > tap.bytes_max {
                    (tap.bytes, tap.is_overflowed) = (Vec::new(), true);
                }
            }
        }
    }

    /// Moves the bytes of a tap to the end of `into`. A tap that has ended has none.
    pub(super) fn take(&mut self, id: TapId, into: &mut Vec<u8>) -> Result<(), TapOverflow> {
        let Some(tap) = self.taps.iter_mut().find(|tap| tap.id == id) else { return Ok(()) };
        if tap.is_overflowed {
            return Err(TapOverflow);
        }
        into.append(&mut tap.bytes);
        Ok(())
    }
}
