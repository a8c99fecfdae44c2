//! Steps measure a command's work. Their number decides, before a command runs, whether the command
//! counts as long.

/// A command with at least this number of steps is long. A step takes about 0.1 µs: looking up or
/// adding an element, or reading a thousand bytes. A command that is not long therefore takes at
/// most about a millisecond.
pub(crate) const LONG_STEPS_MIN: usize = 10_000;

/// Bytes that count as one step.
pub(crate) const BYTES_PER_STEP: usize = 1000;
