//! The sparse form: runs of equal registers, and changes to individual registers.

use super::{Corrupt, Mark, REGISTERS};

/// The longest runs and the highest value that the opcodes can express.
const ZERO_MAX: usize = 64;
const XZERO_MAX: usize = 1 << 14;
const VAL_MAX: usize = 4;
const VALUE_MAX: u8 = 32;

/// Number of opcodes that are checked for joinable neighbors after a change. The change touches at
/// most three opcodes and the one before them.
const JOIN_MAX: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opcode {
    Zero,
    XZero,
    Val,
}

impl Opcode {
    fn of(byte: u8) -> Opcode {
        match byte >> 6 {
            0 => Opcode::Zero,
            1 => Opcode::XZero,
            _ => Opcode::Val,
        }
    }

    const fn len(self) -> usize {
        match self {
            Opcode::XZero => 2,
            Opcode::Zero | Opcode::Val => 1,
        }
    }
}

/// Consecutive registers with the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) value: u8,
    pub(super) len: usize,
}

/// An iterator over opcodes. Returns an error if the last one is cut off.
pub(super) struct Opcodes<'a>(&'a [u8]);

impl<'a> Opcodes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Opcodes<'a> {
        Opcodes(bytes)
    }
}

impl Iterator for Opcodes<'_> {
    type Item = (Opcode, Result<Run, Corrupt>);

    fn next(&mut self) -> Option<Self::Item> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        let low = usize::from(byte & 0x3f);
        let opcode = Opcode::of(byte);
        let run = match opcode {
            Opcode::Zero => Run { value: 0, len: low + 1 },
            Opcode::Val => Run { value: (byte >> 2 & 0x1f) + 1, len: (low & 3) + 1 },
            Opcode::XZero => {
                let Some((&second, rest)) = rest.split_first() else {
                    return Some((opcode, Err(Corrupt)));
                };
                self.0 = rest;
                Run { value: 0, len: (low << 8 | usize::from(second)) + 1 }
            }
        };
        Some((opcode, Ok(run)))
    }
}

/// Appends the opcodes of `len` zero registers.
pub(super) fn push_zeros(bytes: &mut Vec<u8>, len: usize) {
    debug_assert!(len <= XZERO_MAX);
    match len.checked_sub(1) {
        None => {}
        Some(less) if len <= ZERO_MAX => bytes.push(less as u8),
        Some(less) => bytes.extend([0x40 | (less >> 8) as u8, less as u8]),
    }
}

fn push_run(bytes: &mut Vec<u8>, run: Run) {
    if run.value == 0 {
        push_zeros(bytes, run.len);
    } else if run.len > 0 {
        bytes.push(val(run.value, run.len));
    }
}

fn val(value: u8, len: usize) -> u8 {
    0x80 | (value - 1) << 2 | (len - 1) as u8
}

/// The position of a register.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) value: u8,
    /// The previous opcode, for joining.
    before: Option<usize>,
    at: usize,
    opcode: Opcode,
    run: Run,
    /// The first register of the run.
    first: usize,
}

/// Finds the run that contains register `index`.
pub(super) fn find(opcodes: &[u8], index: usize) -> Result<Found, Corrupt> {
    let (mut first, mut at, mut before) = (0, 0, None);
    for (opcode, run) in Opcodes::new(opcodes) {
        let run = run?;
        if index < first + run.len {
            return Ok(Found { value: run.value, before, at, opcode, run, first });
        }
        first += run.len;
        before = Some(at);
        at += opcode.len();
    }
    Err(Corrupt)
}

/// Sets a register whose value is lower than the mark's rank, in the sparse form that starts at
/// byte `start`. Returns false, with nothing changed, if that form cannot express it or would
/// exceed `bytes_max`.
pub(super) fn set(
    bytes: &mut Vec<u8>,
    start: usize,
    mark: Mark,
    bytes_max: usize,
) -> Result<bool, Corrupt> {
    if mark.rank > VALUE_MAX {
        return Ok(false);
    }
    let found = find(&bytes[start..], mark.index)?;
    let at = start + found.at;
    if found.run.len == 1 && found.opcode != Opcode::XZero {
        bytes[at] = val(mark.rank, 1);
    } else {
        let last = found.first + found.run.len - 1;
        let mut opcodes = Vec::with_capacity(5);
        push_run(&mut opcodes, Run { len: mark.index - found.first, ..found.run });
        opcodes.push(val(mark.rank, 1));
        push_run(&mut opcodes, Run { len: last - mark.index, ..found.run });
        let len = bytes.len() + opcodes.len() - found.opcode.len();
        if len > bytes.len() && len > bytes_max {
            return Ok(false);
        }
        bytes.splice(at..at + found.opcode.len(), opcodes);
    }
    join(bytes, start + found.before.unwrap_or(0));
    Ok(true)
}

/// Joins adjacent runs with the same value, from `at` on.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOIN_MAX {
        let Some(&byte) = bytes.get(at) else { return };
        let opcode = Opcode::of(byte);
        if opcode == Opcode::Val
            && let Some(&next) = bytes.get(at + 1)
            && Opcode::of(next) == Opcode::Val
            && next >> 2 == byte >> 2
        {
            let len = usize::from(byte & 3) + usize::from(next & 3) + 2;
            if len <= VAL_MAX {
                bytes[at + 1] = val((byte >> 2 & 0x1f) + 1, len);
                bytes.remove(at);
                continue;
            }
        }
        at += opcode.len();
    }
}

const _: () = assert!(REGISTERS <= XZERO_MAX, "one opcode holds all registers of an empty form");
