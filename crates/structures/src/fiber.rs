//! Work that runs on a stack of its own, and can be paused at any call depth and continued later.
//!
//! ```text
//!  owner: run(input) ──> body ──> … ──> pause()        owner: go_on() ──> returns from pause() …
//!            <── Paused ────────────────┘                        <── Done(output) ── end of body
//! ```
//!
//! Invariants
//!  1. `pause` switches away from the stack on which it is called. It does so only if the innermost
//!     fiber that is running on this thread is the pauser's own. There is only one innermost fiber.
//!  2. The frames on a paused stack are never dropped except by continuing the fiber.

use crate::lent::LentFn;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use std::cell::Cell;
use std::io;
use std::rc::Rc;

thread_local! {
    /// The innermost running fiber; null if there is none.
    static CURRENT: Cell<*const Pauser> = const { Cell::new(std::ptr::null()) };
}

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<O> {
    Done(O),
    /// The body has paused; [`Fiber::go_on`] continues it.
    Paused,
}

/// Pauses one fiber, from any depth within its work.
pub struct Pauser {
    leave: LentFn<()>,
}

/// A body with a stack of its own, which runs for one input after another.
pub struct Fiber<I: 'static, O: 'static> {
    /// The coroutine is resumed with an input to start a run, or with `None` to continue after a
    /// pause. `None` between two runs ends the coroutine.
    coroutine: Option<Coroutine<Option<I>, Option<O>, ()>>,
    pauser: Rc<Pauser>,
    is_paused: bool,
}

impl Pauser {
    /// Pauses the fiber and returns when it continues. Returns false immediately if the caller is
    /// not running on this fiber.
    pub fn pause(&self) -> bool {
        // 1.
        if !std::ptr::eq(CURRENT.get(), self) {
            return false;
        }
        self.leave.call().is_some()
    }
}

impl<I: 'static, O: 'static> Fiber<I, O> {
    /// Creates a fiber with a stack of `stack_bytes` bytes; the system backs only the touched pages with
    /// memory. `make` creates the body, and can give it the pauser.
    ///
    /// # Errors
    /// Fails if the system has no memory for the stack.
    pub fn new<B: FnMut(I) -> O + 'static>(
        stack_bytes: usize,
        make: impl FnOnce(&Rc<Pauser>) -> B,
    ) -> io::Result<Fiber<I, O>> {
        let stack = DefaultStack::new(stack_bytes)?;
        let pauser = Rc::new(Pauser { leave: LentFn::nothing() });
        let (mut body, leaves) = (make(&pauser), Rc::clone(&pauser));
        let coroutine = Coroutine::with_stack(stack, move |yielder, first: Option<I>| {
            let mut next = first;
            while let Some(input) = next {
                let leave = || _ = yielder.suspend(None);
                let output = leaves.leave.lend(&leave, || body(input));
                next = yielder.suspend(Some(output));
            }
        });
        Ok(Fiber { coroutine: Some(coroutine), pauser, is_paused: false })
    }

    /// Runs the body for an input. The fiber must not be paused.
    pub fn run(&mut self, input: I) -> Step<O> {
        assert!(!self.is_paused, "a fiber does one thing at a time");
        self.resume(Some(input))
    }

    /// Continues the body after a pause.
    pub fn go_on(&mut self) -> Step<O> {
        assert!(self.is_paused, "nothing is to be gone on with");
        self.resume(None)
    }

    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Returns the pauser of the body.
    pub const fn pauser(&self) -> &Rc<Pauser> {
        &self.pauser
    }

    fn resume(&mut self, input: Option<I>) -> Step<O> {
        let coroutine = self.coroutine.as_mut().expect("it is taken out at the end only");
        let _back = Back(CURRENT.replace(Rc::as_ptr(&self.pauser)));
        match coroutine.resume(input) {
            CoroutineResult::Yield(Some(output)) => {
                self.is_paused = false;
                Step::Done(output)
            }
            CoroutineResult::Yield(None) => {
                self.is_paused = true;
                Step::Paused
            }
            CoroutineResult::Return(()) => unreachable!("the body ends without an input only"),
        }
    }
}

impl<I: 'static, O: 'static> Drop for Fiber<I, O> {
    fn drop(&mut self) {
        let Some(mut coroutine) = self.coroutine.take() else { return };
        if self.is_paused {
            // 2: the stack may hold frames of foreign code, which cannot be unwound.
            std::mem::forget(coroutine);
        } else if coroutine.started() && !coroutine.done() {
            coroutine.resume(None);
        }
    }
}

/// Restores the previously running fiber, even during a panic.
struct Back(*const Pauser);

impl Drop for Back {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::{Fiber, Pauser, Step};
    use std::cell::Cell;
    use std::rc::Rc;

    const STACK_BYTES: usize = 256 * 1024;

    #[test]
    fn a_call_can_be_suspended_in_the_middle_and_resumed() {
        fn depth(pauser: &Pauser, left: u32) -> u32 {
            if left == 0 {
                assert!(pauser.pause());
                return 0;
            }
            1 + depth(pauser, left - 1)
        }
        let make = |pauser: &Rc<Pauser>| {
            let pauser = Rc::clone(pauser);
            move |n| depth(&pauser, n)
        };
        let mut fiber = Fiber::new(STACK_BYTES, make).unwrap();
        let pauser = Rc::clone(fiber.pauser());
        for n in [0, 1, 100] {
            assert!(!pauser.pause(), "nothing runs");
            assert_eq!(fiber.run(n), Step::Paused);
            assert!(fiber.is_paused() && !pauser.pause());
            assert_eq!(fiber.go_on(), Step::Done(n));
            assert!(!fiber.is_paused());
        }
    }

    /// Each pauser pauses only its own fiber, even if one fiber runs within another.
    #[test]
    fn pausing_a_nested_fiber_does_not_pause_the_outer_one() {
        let make = |outer: &Rc<Pauser>| {
            let outer = Rc::clone(outer);
            move |()| {
                let both = Rc::clone(&outer);
                let make = |inner: &Rc<Pauser>| {
                    let inner = Rc::clone(inner);
                    move |()| (both.pause(), inner.pause())
                };
                let mut within = Fiber::new(STACK_BYTES, make).unwrap();
                assert_eq!(within.run(()), Step::Paused);
                assert!(outer.pause());
                within.go_on()
            }
        };
        let mut fiber = Fiber::new(STACK_BYTES, make).unwrap();
        assert_eq!(fiber.run(()), Step::Paused);
        assert_eq!(fiber.go_on(), Step::Done(Step::Done((false, true))));
    }

    /// Dropping a fiber that is not paused drops what its body owns, even if the body never ran.
    #[test]
    fn an_idle_fiber_is_dropped_completely() {
        struct Counted(Rc<Cell<u32>>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let dropped = Rc::new(Cell::new(0));
        for runs in 0..2 {
            let counted = Counted(Rc::clone(&dropped));
            let body = move |()| _ = &counted;
            let mut fiber = Fiber::new(STACK_BYTES, |_| body).unwrap();
            (0..runs).for_each(|_| assert_eq!(fiber.run(()), Step::Done(())));
            drop(fiber);
            assert_eq!(dropped.get(), runs + 1);
        }
    }

    #[test]
    fn a_panic_propagates_to_the_caller_of_run() {
        let mut fiber = Fiber::new(STACK_BYTES, |_| |()| panic!("found")).unwrap();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fiber.run(())));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"found"));
    }
}
