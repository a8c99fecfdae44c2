//! Tests the protocol of `epochs.rs` with loom: every interleaving and every stale value that the
//! memory model allows, with two participants.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p brisk-structures --lib model`.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{self, AtomicBool, AtomicU64, AtomicUsize, Ordering};
use loom::thread;

#[path = "epochs.rs"]
mod epochs;

use epochs::{Epochs, FIRST, OFFLINE, Word};

/// Two arrays; `current` is the index of the linked one. Freeing is a write, which loom rejects
/// while a read may be in progress.
struct World {
    epochs: Epochs<2>,
    current: AtomicUsize,
    arrays: [UnsafeCell<u32>; 2],
}

impl World {
    fn new() -> Arc<Self> {
        let word = |_| Word { seen: AtomicU64::new(OFFLINE), claimed: AtomicBool::new(false) };
        Arc::new(Self {
            epochs: Epochs {
                counter: AtomicU64::new(FIRST),
                claimed_max: AtomicUsize::new(0),
                words: std::array::from_fn(word),
            },
            current: AtomicUsize::new(0),
            arrays: [UnsafeCell::new(7), UnsafeCell::new(7)],
        })
    }

    /// The reads of a prefetch pass between two boundaries.
    fn read(&self) {
        let array = self.current.load(Ordering::Acquire);
        // SAFETY: the protocol under test is what makes this sound; loom reports if it is not.
        self.arrays[array].with(|content| assert_eq!(unsafe { *content }, 7));
    }

    /// Replaces array 0 with array 1, and frees array 0 if all participants have passed.
    fn replace(&self, boundary: impl Fn()) {
        self.current.store(1, Ordering::Release);
        let stamp = self.epochs.stamp();
        for _ in 0..2 {
            boundary();
            if self.epochs.passed_by_all() >= stamp {
                // SAFETY: as in `read`.
                self.arrays[0].with_mut(|content| unsafe { *content = 0 });
                return;
            }
            thread::yield_now();
        }
    }
}

#[test]
fn nothing_is_freed_while_a_participant_between_boundaries_reads_it() {
    loom::model(|| {
        let world = World::new();
        let index = world.epochs.claim().expect("free");
        let reader = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.read();
                world.epochs.announce_boundary(index);
                world.read();
                world.epochs.release(index);
            }
        });
        world.replace(|| ());
        reader.join().expect("no panic");
    });
}

#[test]
fn a_thread_coming_online_cannot_find_what_is_being_freed() {
    loom::model(|| {
        let world = World::new();
        let reader = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let index = world.epochs.claim().expect("free");
                world.read();
                world.epochs.offline(index);
                world.epochs.online(index);
                world.read();
                world.epochs.release(index);
            }
        });
        world.replace(|| ());
        reader.join().expect("no panic");
    });
}

#[test]
fn a_collecting_participant_frees_only_after_the_other_has_passed() {
    loom::model(|| {
        let world = World::new();
        let (mine, other) = (world.epochs.claim().expect("free"), world.epochs.claim());
        let other = other.expect("free");
        let reader = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.read();
                world.epochs.announce_boundary(other);
                world.read();
                world.epochs.release(other);
            }
        });
        world.replace(|| world.epochs.announce_boundary(mine));
        world.epochs.release(mine);
        reader.join().expect("no panic");
    });
}
