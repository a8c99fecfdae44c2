//! A map ordered by entry IDs, for pending entries. Clones share everything.

use super::id::StreamId;
use crate::sequence::{Part, Sequence};

/// Maximum number of IDs in one part.
const PART_MAX: usize = if cfg!(test) { 8 } else { 128 };

#[derive(Debug, Clone)]
struct Run<V>(Vec<(StreamId, V)>);

impl<V: Clone> Part for Run<V> {
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Values by ID. All operations are O(log n).
#[derive(Debug, Clone)]
pub struct IdMap<V> {
    runs: Sequence<Run<V>>,
}

impl<V: Clone> Default for IdMap<V> {
    fn default() -> Self {
        IdMap { runs: Sequence::new() }
    }
}

impl<V: Clone> IdMap<V> {
    pub fn len(&self) -> usize {
        self.runs.elements()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the position of the part for `id`; 0 if there are no parts.
    fn place_of(&self, id: StreamId) -> usize {
        let starts_by = |place: usize| self.runs.get(place).is_some_and(|run| run.0[0].0 <= id);
        let (mut low, mut high) = (0, self.runs.parts());
        if high > 0 && starts_by(high - 1) {
            return high - 1;
        }
        while low < high {
            let middle = low.midpoint(high);
            if starts_by(middle) { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    fn locate(&self, id: StreamId) -> Option<(usize, usize)> {
        let place = self.place_of(id);
        let at = self.runs.get(place)?.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some((place, at))
    }

    pub fn get(&self, id: StreamId) -> Option<&V> {
        let (place, at) = self.locate(id)?;
        Some(&self.runs.get(place)?.0[at].1)
    }

    /// Changes a value; `None` if it does not exist.
    pub fn update<R>(&mut self, id: StreamId, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        let (place, at) = self.locate(id)?;
        Some(self.runs.update(place, |run| change(&mut run.0[at].1)))
    }

    /// Adds or replaces a value.
    pub fn insert(&mut self, id: StreamId, value: V) {
        let place = self.place_of(id);
        let Some(run) = self.runs.get(place) else {
            self.runs.push_back(Run(vec![(id, value)]));
            return;
        };
        let (len, found) = (run.0.len(), run.0.binary_search_by_key(&id, |(id, _)| *id));
        match found {
            Ok(at) => self.runs.update(place, |run| run.0[at].1 = value),
            Err(at) if len < PART_MAX => {
                self.runs.update(place, |run| run.0.insert(at, (id, value)));
            }
            Err(at) if at == len && place + 1 == self.runs.parts() => {
                self.runs.push_back(Run(vec![(id, value)]));
            }
            Err(_) => {
                let upper = self.runs.update(place, |run| Run(run.0.split_off(PART_MAX / 2)));
                self.runs.insert(place + 1, upper);
                self.insert(id, value);
            }
        }
    }

    pub fn remove(&mut self, id: StreamId) -> Option<V> {
        let (place, at) = self.locate(id)?;
        if self.runs.get(place)?.0.len() == 1 {
            return self.runs.remove(place).0.first().map(|(_, value)| value.clone());
        }
        Some(self.runs.update(place, |run| run.0.remove(at).1))
    }

    /// Returns the IDs and values from `start` on.
    pub fn iter_from(&self, start: StreamId) -> impl Iterator<Item = (StreamId, &V)> {
        let place = self.place_of(start);
        let runs = (place..self.runs.parts()).filter_map(|place| self.runs.get(place));
        runs.flat_map(|run| run.0.iter().map(|(id, value)| (*id, value)))
            .skip_while(move |(id, _)| *id < start)
    }

    pub fn first_id(&self) -> Option<StreamId> {
        self.runs.get(0).map(|run| run.0[0].0)
    }

    pub fn last_id(&self) -> Option<StreamId> {
        let run = self.runs.get(self.runs.parts().checked_sub(1)?)?;
        run.0.last().map(|(id, _)| *id)
    }

    /// Returns the memory usage of the map in bytes, excluding the struct itself. O(1).
    pub fn allocated_bytes(&self) -> usize {
        self.runs.allocated_bytes() + self.len() * size_of::<(StreamId, V)>()
    }

    pub(super) fn check(&self) {
        self.runs.check(|run| assert!(!run.0.is_empty() && run.0.len() <= PART_MAX));
        let ids: Vec<StreamId> = self.iter_from(StreamId::MIN).map(|(id, _)| id).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert_eq!(ids.len(), self.len());
    }
}
