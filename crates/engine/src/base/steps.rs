//! Steps, by which it is judged before whether something takes long.

/// From so many steps on a command is long. A step is what takes about 0.1 µs: an element looked up
/// or added, a thousand bytes read. So what is not long takes about a millisecond.
pub(crate) const LONG_STEPS_MIN: usize = 10_000;

/// Bytes that count as one step.
pub(crate) const BYTES_PER_STEP: usize = 1000;
