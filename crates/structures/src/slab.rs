//! Slab: values in one vector, accessed by an id that detects whether its value still exists.
//!
//! An [`Id`] is an index together with the generation that the entry had when the value was
//! inserted. Removing the value increments the generation, so a stale id finds nothing instead of
//! another value. (An entry must be reused 2^32 times before an old id matches again.)
//!
//! Invariants (`check` verifies each)
//!  1. `live` lists the indices of occupied entries, each once; an occupied entry stores its rank
//!     in `live`.
//!  2. `free` lists all other entries, each once.

/// Identifies a value in a [`Slab`]. It takes 64 bits, so that event loops can carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    pub index: u32,
    pub generation: u32,
}

impl Id {
    /// Returns the generation in the upper half, the index in the lower half.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// Reverses [`Id::to_u64`].
    #[must_use]
    pub fn from_u64(id: u64) -> Self {
        Self { index: id as u32, generation: (id >> 32) as u32 }
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    /// The value and its rank in `live`.
    content: Option<(u32, T)>,
}

/// Values with generational ids. Insert, remove and get are O(1), walking is O(live values).
#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<Place<T>>,
    live: Vec<u32>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slab<T> {
    /// Creates an empty slab; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: vec![], live: vec![], free: vec![] }
    }

    /// Adds a value. Amortised O(1). Panics beyond 2^32 - 1 values.
    pub fn insert(&mut self, value: T) -> Id {
        self.insert_with(|_| value)
    }

    /// Adds the value that `make` builds from its id.
    pub fn insert_with(&mut self, make: impl FnOnce(Id) -> T) -> Id {
        let index = self.free.last().copied().unwrap_or(self.places.len() as u32);
        let generation = self.places.get(index as usize).map_or(0, |place| place.generation);
        let id = Id { index, generation };
        let content = Some((self.live.len() as u32, make(id)));
        if self.free.pop().is_some() {
            self.places[index as usize].content = content;
        } else {
            assert!(index < u32::MAX, "a slab holds fewer than 2^32 values");
            self.places.push(Place { generation, content });
        }
        self.live.push(index);
        id
    }

    /// Removes the value; `None` if it was already removed.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.generation != id.generation {
            return None;
        }
        let (rank, value) = place.content.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.index);
        self.live.swap_remove(rank as usize);
        if let Some(&moved) = self.live.get(rank as usize)
            && let Some((its_rank, _)) = &mut self.places[moved as usize].content
        {
            *its_rank = rank;
        }
        Some(value)
    }

    /// Returns the value if it still exists.
    #[inline]
    #[must_use]
    pub fn get(&self, id: Id) -> Option<&T> {
        let place = self.places.get(id.index as usize)?;
        let (_, value) = place.content.as_ref()?;
        (place.generation == id.generation).then_some(value)
    }

    /// Returns a mutable reference to the value if it still exists.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let place = self.places.get_mut(id.index as usize)?;
        let (_, value) = place.content.as_mut()?;
        (place.generation == id.generation).then_some(value)
    }

    /// Returns true if the value still exists.
    #[must_use]
    pub fn contains(&self, id: Id) -> bool {
        self.get(id).is_some()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Returns the id at `rank` in iteration order, for walks that stop and continue. Removing a
    /// value moves the last one to its rank.
    #[must_use]
    pub fn id_at(&self, rank: usize) -> Option<Id> {
        let index = *self.live.get(rank)?;
        Some(Id { index, generation: self.places[index as usize].generation })
    }

    /// Returns all values with their ids, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.live.iter().filter_map(|&index| {
            let place = &self.places[index as usize];
            let (_, value) = place.content.as_ref()?;
            Some((Id { index, generation: place.generation }, value))
        })
    }

    /// Calls `visit` with a mutable reference to every value.
    pub fn for_each_mut(&mut self, mut visit: impl FnMut(Id, &mut T)) {
        for &index in &self.live {
            let place = &mut self.places[index as usize];
            if let Some((_, value)) = &mut place.content {
                visit(Id { index, generation: place.generation }, value);
            }
        }
    }

    /// Verifies the invariants. O(entries).
    pub fn check(&self) {
        assert_eq!(self.live.len() + self.free.len(), self.places.len(), "1, 2: every place once");
        for (rank, &index) in self.live.iter().enumerate() {
            let content = &self.places[index as usize].content;
            assert!(content.as_ref().is_some_and(|(r, _)| *r as usize == rank), "1: rank");
        }
        for &index in &self.free {
            assert!(self.places[index as usize].content.is_none(), "2: a free place is occupied");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Id, Slab};
    use std::collections::HashMap;

    #[test]
    fn behaves_like_a_map_from_ids() {
        let mut slab = Slab::new();
        let mut model: HashMap<Id, u64> = HashMap::new();
        let mut removed = vec![];
        let mut random = 1u64;
        for step in 0..if cfg!(miri) { 300 } else { 5_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let victim = model.keys().nth((random >> 40) as usize % (model.len() + 1)).copied();
            match victim {
                Some(id) if random >> 33 & 3 != 0 => {
                    assert_eq!(slab.remove(id), model.remove(&id));
                    removed.push(id);
                }
                _ => {
                    for value in step..step + 3 {
                        let id = slab.insert(value);
                        assert!(model.insert(id, value).is_none(), "an id came twice");
                    }
                }
            }
            slab.check();
            assert_eq!(slab.iter().map(|(id, v)| (id, *v)).collect::<HashMap<_, _>>(), model);
        }
        assert!(removed.iter().all(|&id| !slab.contains(id) && slab.get_mut(id).is_none()));
        assert!(removed.iter().all(|&id| slab.remove(id).is_none()));
    }

    #[test]
    fn ids_survive_conversion_to_64_bits() {
        let id = Id { index: 7, generation: u32::MAX };
        assert_eq!(Id::from_u64(id.to_u64()), id);
    }

    #[test]
    fn a_round_by_rank_reaches_everything() {
        let mut slab = Slab::new();
        let ids: Vec<Id> = (0..4).map(|i| slab.insert(i)).collect();
        slab.remove(ids[1]);
        let mut reached: Vec<i32> =
            (0..slab.len()).filter_map(|rank| slab.get(slab.id_at(rank)?)).copied().collect();
        reached.sort_unstable();
        assert_eq!(reached, [0, 2, 3]);
        assert_eq!(slab.id_at(3), None);
    }
}
