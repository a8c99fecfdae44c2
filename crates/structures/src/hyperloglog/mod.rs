//! HyperLogLog: estimates the number of distinct elements with a standard error of 0.81 %, in at
//! most 12 KiB.
//!
//! The bytes are in Redis's own format, since clients read and write them as strings. The result of
//! each operation is the same as that of Redis, byte for byte.
//!
//! ```text
//!  "HYLL"  encoding  3 unused   cached count, 8 bytes LE        registers
//! +------+----------+---------+------------------------------+-------------+
//! |      | 0 dense  |         | top bit set: out of date     |     ...     |
//! |      | 1 sparse |         |                              |             |
//! +------+----------+---------+------------------------------+-------------+
//!
//!  dense:   16384 registers of 6 bits, the first in the low bits of the first byte
//!  sparse:  00xxxxxx                x + 1 registers are zero            (ZERO)
//!           01xxxxxx yyyyyyyy       xy + 1 registers are zero           (XZERO)
//!           1vvvvvxx                x + 1 registers are v + 1           (VAL)
//! ```
//!
//! The bytes may come from untrusted input. Every walk checks its position, and a sparse form that
//! does not cover the registers is [`Corrupt`]. Nothing here panics on invalid bytes.
//!
//! Costs: dense add O(1), sparse add O(bytes), count O(registers).

mod dense;
mod estimate;
mod sparse;

use estimate::estimate;
use sparse::{Opcodes, Run};

/// Number of registers. The low 14 bits of an element's hash select one.
pub const REGISTERS: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 14;
/// Number of the remaining bits of the hash. A register holds at most one more than this number.
const TAIL_BITS: u32 = 64 - INDEX_BITS;
const REGISTER_BITS: usize = 6;
const HEADER_LEN: usize = 16;
const DENSE_LEN: usize = HEADER_LEN + REGISTERS * REGISTER_BITS / 8;
const MAGIC: &[u8] = b"HYLL";
const ENCODING_AT: usize = 4;
const COUNT_AT: usize = 8;
/// The seed with which Redis hashes elements; the registers depend on it.
const SEED: u64 = 0xadc8_3b19;

/// The registers of several HyperLogLogs combined: the highest value of each.
pub type Registers = [u8; REGISTERS];

/// The sparse form does not cover exactly all registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Dense,
    Sparse,
}

/// Returns the form of a HyperLogLog; `None` if the bytes are not one.
pub fn form(bytes: &[u8]) -> Option<Form> {
    if bytes.len() < HEADER_LEN || !bytes.starts_with(MAGIC) {
        return None;
    }
    match bytes[ENCODING_AT] {
        0 if bytes.len() == DENSE_LEN => Some(Form::Dense),
        1 => Some(Form::Sparse),
        _ => None,
    }
}

/// Creates a HyperLogLog without elements.
pub fn empty() -> Vec<u8> {
    let mut bytes = header(Form::Sparse);
    sparse::push_zeros(&mut bytes, REGISTERS);
    bytes
}

fn header(form: Form) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[ENCODING_AT] = match form {
        Form::Dense => 0,
        Form::Sparse => 1,
    };
    bytes
}

/// The effect of an element: register `index` becomes at least `rank`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub index: usize,
    pub rank: u8,
}

impl Mark {
    pub fn of(element: &[u8]) -> Mark {
        let hash = murmur_hash_64a(element, SEED);
        // The bit above the tail ends the search for a one.
        let tail = hash >> INDEX_BITS | 1 << TAIL_BITS;
        Mark { index: hash as usize % REGISTERS, rank: tail.trailing_zeros() as u8 + 1 }
    }
}

/// Returns true if the mark would change anything. The bytes must have a [`form`].
pub fn would_change(bytes: &[u8], mark: Mark) -> Result<bool, Corrupt> {
    match form(bytes) {
        Some(Form::Dense) => Ok(register(&bytes[HEADER_LEN..], mark.index) < mark.rank),
        Some(Form::Sparse) => Ok(sparse::find(&bytes[HEADER_LEN..], mark.index)?.value < mark.rank),
        None => Err(Corrupt),
    }
}

/// Applies a mark to the dense form. Returns true if it changed anything.
pub fn mark_dense(bytes: &mut [u8], mark: Mark) -> bool {
    let registers = &mut bytes[HEADER_LEN..];
    let changed = register(registers, mark.index) < mark.rank;
    if changed {
        set_register(registers, mark.index, mark.rank);
    }
    changed
}

/// Applies a mark to either form. Converts to the dense form if the sparse one would exceed
/// `sparse_bytes_max` bytes, including the header, or cannot express the rank. Returns true if the
/// mark changed anything. On an error the bytes stay unchanged.
pub fn mark(bytes: &mut Vec<u8>, mark: Mark, sparse_bytes_max: usize) -> Result<bool, Corrupt> {
    if !would_change(bytes, mark)? {
        return Ok(false);
    }
    if form(bytes) == Some(Form::Sparse) {
        if sparse::set(bytes, HEADER_LEN, mark, sparse_bytes_max)? {
            outdate(bytes);
            return Ok(true);
        }
        make_dense(bytes)?;
        outdate(bytes);
    }
    Ok(mark_dense(bytes, mark))
}

/// Converts to the dense form. On an error the bytes stay unchanged.
pub fn make_dense(bytes: &mut Vec<u8>) -> Result<(), Corrupt> {
    if form(bytes) == Some(Form::Dense) {
        return Ok(());
    }
    let mut dense = header(Form::Dense);
    dense[ENCODING_AT + 1..].copy_from_slice(&bytes[ENCODING_AT + 1..HEADER_LEN]);
    dense.resize(DENSE_LEN, 0);
    let registers = &mut dense[HEADER_LEN..];
    each_run(&bytes[HEADER_LEN..], |first, run| {
        if run.value > 0 {
            (first..first + run.len).for_each(|index| set_register(registers, index, run.value));
        }
    })?;
    *bytes = dense;
    Ok(())
}

/// Calls `visit` with the runs of equal registers of the sparse form, which must cover all
/// registers.
fn each_run(opcodes: &[u8], mut visit: impl FnMut(usize, Run)) -> Result<(), Corrupt> {
    let mut first = 0;
    for (_, run) in Opcodes::new(opcodes) {
        let run = run?;
        if first + run.len > REGISTERS {
            return Err(Corrupt);
        }
        visit(first, run);
        first += run.len;
    }
    if first == REGISTERS { Ok(()) } else { Err(Corrupt) }
}

/// Raises each register in `into` to that of `bytes` if the latter is higher.
pub fn merge(bytes: &[u8], into: &mut Registers) -> Result<(), Corrupt> {
    match form(bytes) {
        Some(Form::Dense) => {
            dense::merge(&bytes[HEADER_LEN..], into);
            Ok(())
        }
        Some(Form::Sparse) => each_run(&bytes[HEADER_LEN..], |first, run| {
            for register in &mut into[first..first + run.len] {
                *register = run.value.max(*register);
            }
        }),
        None => Err(Corrupt),
    }
}

/// Returns the dense form with these registers and the other header fields of `bytes`, which must
/// have a [`form`]. O(registers).
pub fn with_registers(bytes: &[u8], registers: &Registers) -> Vec<u8> {
    let mut all = Vec::with_capacity(DENSE_LEN);
    all.extend_from_slice(&header(Form::Dense)[..=ENCODING_AT]);
    all.extend_from_slice(&bytes[ENCODING_AT + 1..HEADER_LEN]);
    all.resize(DENSE_LEN, 0);
    dense::write(&mut all[HEADER_LEN..], registers);
    all
}

/// Returns the estimated number of distinct elements.
pub fn count(bytes: &[u8]) -> Result<u64, Corrupt> {
    let mut histogram = [0u32; 64];
    match form(bytes) {
        Some(Form::Dense) => dense::each(&bytes[HEADER_LEN..], |registers| {
            for value in registers.to_le_bytes() {
                histogram[usize::from(value & 63)] += 1;
            }
        }),
        Some(Form::Sparse) => each_run(&bytes[HEADER_LEN..], |_, run| {
            histogram[usize::from(run.value)] += run.len as u32;
        })?,
        None => return Err(Corrupt),
    }
    Ok(estimate(&histogram))
}

/// Returns the estimated number of distinct elements for these registers.
pub fn count_registers(registers: &Registers) -> u64 {
    let mut histogram = [0u32; 64];
    registers.iter().for_each(|value| histogram[usize::from(*value & 63)] += 1);
    estimate(&histogram)
}

/// Returns the cached count; `None` if the registers changed after it was computed.
pub fn cached_count(bytes: &[u8]) -> Option<u64> {
    let count = u64::from_le_bytes(bytes[COUNT_AT..HEADER_LEN].try_into().ok()?);
    (count >> 63 == 0).then_some(count)
}

/// Stores the count.
pub fn cache_count(bytes: &mut [u8], count: u64) {
    bytes[COUNT_AT..HEADER_LEN].copy_from_slice(&count.to_le_bytes());
}

/// Marks the cached count as out of date.
pub fn outdate(bytes: &mut [u8]) {
    bytes[HEADER_LEN - 1] |= 1 << 7;
}

/// Returns register `index` of the dense form.
fn register(registers: &[u8], index: usize) -> u8 {
    let (at, shift) = (index * REGISTER_BITS / 8, index * REGISTER_BITS % 8);
    let next = registers.get(at + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([registers[at], next]) >> shift) as u8 & 63
}

fn set_register(registers: &mut [u8], index: usize, value: u8) {
    let (at, shift) = (index * REGISTER_BITS / 8, index * REGISTER_BITS % 8);
    let [mask_low, mask_high] = (63u16 << shift).to_le_bytes();
    let [low, high] = (u16::from(value) << shift).to_le_bytes();
    registers[at] = registers[at] & !mask_low | low;
    if mask_high != 0 {
        registers[at + 1] = registers[at + 1] & !mask_high | high;
    }
}

/// Returns the sparse form as text: `z:N` and `Z:N` for N zero registers, `v:V,N` for N registers
/// of V.
pub fn describe(bytes: &[u8]) -> Result<String, Corrupt> {
    let words: Result<Vec<String>, Corrupt> = Opcodes::new(&bytes[HEADER_LEN..])
        .map(|(opcode, run)| {
            let Run { value, len } = run?;
            Ok(match opcode {
                sparse::Opcode::Zero => format!("z:{len}"),
                sparse::Opcode::XZero => format!("Z:{len}"),
                sparse::Opcode::Val => format!("v:{value},{len}"),
            })
        })
        .collect();
    Ok(words?.join(" "))
}

/// Checks that both forms agree on a few thousand elements and that their count is accurate;
/// otherwise returns the difference as an error. Takes milliseconds.
pub fn self_test() -> Result<(), String> {
    const ELEMENTS: u64 = 20_000;
    let (mut sparse, mut dense) = (empty(), empty());
    let corrupt = |Corrupt| "a HyperLogLog of our own is corrupt".to_owned();
    make_dense(&mut dense).map_err(corrupt)?;
    for number in 0..ELEMENTS {
        let element = Mark::of(&number.to_le_bytes());
        let changed = mark(&mut sparse, element, 3000).map_err(corrupt)?;
        if changed != mark_dense(&mut dense, element) {
            return Err(format!("the forms disagree on element {number}"));
        }
    }
    let (counted, other) = (count(&sparse).map_err(corrupt)?, count(&dense).map_err(corrupt)?);
    // Four times the standard error of 0.81 %.
    if counted != other || counted.abs_diff(ELEMENTS) * 31 > ELEMENTS {
        return Err(format!("counted {counted} and {other} instead of {ELEMENTS}"));
    }
    Ok(())
}

/// `MurmurHash64A` by Austin Appleby (public domain), little endian. O(length).
fn murmur_hash_64a(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut k = u64::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}

#[cfg(test)]
mod tests;
