//! Steps: the measure of a command's work, by which it is classified as long before it runs.

/// A command with at least this number of steps is long. A step takes about 0.1 µs: looking up or
/// adding an element, or reading a thousand bytes. So a command that is not long takes at most
/// about a millisecond.
pub(crate) const LONG_STEPS_MIN: usize = 10_000;

/// Bytes that count as one step.
pub(crate) const BYTES_PER_STEP: usize = 1000;
