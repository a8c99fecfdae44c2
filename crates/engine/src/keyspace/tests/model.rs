//! Random operations on the keyspace and on a map; both must agree after each operation.

use super::*;
use crate::keyspace::expire::Sweeper;
use std::collections::HashMap;

const DATABASES: u64 = 2;
const NAMES: u64 = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    value: Vec<u8>,
    deadline: Option<u64>,
}

#[derive(Default)]
struct Model {
    held: HashMap<(u32, String), Held>,
}

impl Model {
    fn expire(&mut self, now: u64) {
        self.held.retain(|_, held| held.deadline.is_none_or(|at| at > now));
    }
}

struct Pair {
    world: World,
    model: Model,
    random: Random,
    sweeper: Sweeper,
    now: u64,
}

impl Pair {
    fn draw(&mut self) -> (u32, String) {
        let db = self.random.below(DATABASES) as u32;
        (db, name(self.random.below(NAMES) as usize))
    }

    fn step(&mut self) {
        if self.random.below(3) == 0 {
            self.now += self.random.below(40);
            self.world.env.set_now(UnixMs(self.now));
        }
        self.model.expire(self.now);
        match self.random.below(100) {
            0..30 => self.set(),
            30..50 => self.change_deadline(),
            50..60 => self.delete(),
            60..80 => self.rename_move_or_copy(),
            80..95 => self.sweep(),
            95..98 => self.swap(),
            98 => self.flush(),
            _ => self.random_key(),
        }
        let place = self.draw();
        self.compare(&place);
    }

    fn set(&mut self) {
        let (db, name) = self.draw();
        let size = [3, 100, 70_000][self.random.below(3) as usize];
        let value = vec![b'a' + self.random.below(26) as u8; size];
        let at = self.now + 1 + self.random.below(300);
        let before = self.model.held.get(&(db, name.clone())).and_then(|held| held.deadline);
        let (overwrite, deadline) = match self.random.below(3) {
            0 => (Overwrite::Persist, None),
            1 => (Overwrite::KeepDeadline, before),
            _ => (Overwrite::ExpireAt(UnixMs(at)), Some(at)),
        };
        self.world.with(DbIndex::of(db), &[name.as_bytes()], |keys, found| {
            keys.set_string(&found[0], &value, overwrite, "set");
        });
        self.model.held.insert((db, name), Held { value, deadline });
    }

    fn change_deadline(&mut self) {
        let (db, name) = self.draw();
        let at = self.now + 1 + self.random.below(300);
        let persist = self.random.below(3) == 0;
        let done = self.world.with(DbIndex::of(db), &[name.as_bytes()], |keys, found| {
            let Some(mut entry) = keys.open_any_mut(&found[0]) else { return false };
            if persist {
                entry.persist();
            } else {
                entry.expire_at(UnixMs(at));
            }
            true
        });
        let held = self.model.held.get_mut(&(db, name));
        assert_eq!(done, held.is_some());
        if let Some(held) = held {
            held.deadline = (!persist).then_some(at);
        }
    }

    fn delete(&mut self) {
        let (db, name) = self.draw();
        let deleted = self.world.with(DbIndex::of(db), &[name.as_bytes()], |keys, found| {
            let deleted = keys.delete(&found[0]);
            assert_eq!(keys.dirty(), u64::from(deleted));
            deleted
        });
        assert_eq!(deleted, self.model.held.remove(&(db, name)).is_some());
    }

    fn rename_move_or_copy(&mut self) {
        let ((db, from), (other, to)) = (self.draw(), self.draw());
        if !self.model.held.contains_key(&(db, from.clone())) {
            return;
        }
        let held = self.model.held[&(db, from.clone())].clone();
        let names = [from.as_bytes(), to.as_bytes()];
        match self.random.below(3) {
            0 if from != to => {
                self.world.with(DbIndex::of(db), &names, |keys, found| {
                    keys.rename(&found[0], &found[1]);
                    assert_eq!(keys.dirty(), 1);
                });
                self.model.held.remove(&(db, from));
                self.model.held.insert((db, to), held);
            }
            1 if db != other && !self.model.held.contains_key(&(other, from.clone())) => {
                self.world.with(DbIndex::of(db), &names[..1], |keys, found| {
                    keys.lock_also(DbIndex::of(other), &found[0]).unwrap();
                    keys.move_to(&found[0], DbIndex::of(other));
                    assert_eq!(keys.dirty(), 1);
                });
                self.model.held.remove(&(db, from.clone()));
                self.model.held.insert((other, from), held);
            }
            2 if (db, &from) != (other, &to) => {
                self.world.with(DbIndex::of(db), &names, |keys, found| {
                    keys.lock_also(DbIndex::of(other), &found[1]).unwrap();
                    keys.copy_to(&found[0], DbIndex::of(other), &found[1]);
                    assert_eq!(keys.dirty(), 1);
                });
                self.model.held.insert((other, to), held);
            }
            _ => {}
        }
    }

    fn sweep(&mut self) {
        let mut budget = self.random.below(3);
        self.sweeper.cycle(&self.world.keyspace, &self.world.env, || {
            budget = budget.saturating_sub(1);
            budget > 0
        });
    }

    fn swap(&mut self) {
        let (a, b) = (self.random.below(DATABASES) as u32, self.random.below(DATABASES) as u32);
        self.world.unlocked(|keys| keys.swap(DbIndex::of(a), DbIndex::of(b)));
        let swapped = |db| {
            if db == a {
                b
            } else if db == b {
                a
            } else {
                db
            }
        };
        let held = std::mem::take(&mut self.model.held);
        self.model.held =
            held.into_iter().map(|((db, name), held)| ((swapped(db), name), held)).collect();
    }

    fn flush(&mut self) {
        let db = self.random.below(DATABASES) as u32;
        self.world.unlocked(|keys| keys.flush(DbIndex::of(db)));
        self.world.env.garbage.borrow_mut().clear();
        self.model.held.retain(|(held, _), _| *held != db);
    }

    fn random_key(&mut self) {
        let drawn = self.world.unlocked(|keys| keys.random_key());
        let any = self.model.held.keys().any(|(db, _)| *db == 0);
        assert_eq!(drawn.is_some(), any);
        if let Some(key) = drawn {
            let name = String::from_utf8(key).unwrap();
            assert!(self.model.held.contains_key(&(0, name)));
        }
    }

    fn compare(&self, place: &(u32, String)) {
        let (db, name) = place;
        let got = self.world.with(DbIndex::of(*db), &[name.as_bytes()], |keys, found| {
            keys.inspect(&found[0]).map(|entry| Held {
                value: entry.string().unwrap().to_vec(),
                deadline: entry.deadline().map(|at| at.0),
            })
        });
        assert!(got.as_ref() == self.model.held.get(place), "{place:?}");
    }

    fn compare_all(&self) {
        for db in 0..DATABASES as u32 {
            let mut got = 0;
            self.world.unlocked(|keys| {
                keys.in_db(DbIndex::of(db), |keys| {
                    keys.scan(0, u64::MAX, |entry| {
                        let name = String::from_utf8(entry.key().to_vec()).unwrap();
                        assert!(self.model.held.contains_key(&(db, name)));
                        got += 1;
                    })
                })
            });
            let want = self.model.held.iter().filter(|((held, _), entry)| {
                *held == db && entry.deadline.is_none_or(|at| at > self.now)
            });
            assert_eq!(got, want.count());
        }
    }
}

#[test]
fn random_operations_leave_what_a_map_would_hold() {
    for seed in 0..3 {
        let mut pair = Pair {
            world: World::new(),
            model: Model::default(),
            random: Random::seeded(seed),
            sweeper: Sweeper::new(0, 1),
            now: 1000,
        };
        for _ in 0..80 {
            pair.step();
            pair.world.keyspace.check();
        }
        for step in 0..5000 {
            pair.step();
            if step % 500 == 0 {
                pair.world.keyspace.check();
                pair.compare_all();
            }
        }
    }
}
