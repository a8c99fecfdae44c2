//! Finding the keys among a command's arguments.
//!
//! The key specifications of the command's row find them. If keys come after options, the row's finder
//! ([`crate::command::Finder`]) finds them. It is the option parser of the handler. Slot locks, access control and
//! COMMAND GETKEYS all use the keys found here, so the keys that are locked and checked are those that the handler
//! uses.

use crate::command::{Begin, Find, KeyFlags, KeySpec, Spec};
use smallvec::SmallVec;

/// The keys of a request, with their positions and flags.
pub type FoundKeys = SmallVec<[FoundKey; 4]>;

/// One key of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundKey {
    pub index: usize,
    pub flags: KeyFlags,
}

/// The key specifications do not fit the arguments: a count is not a number, not positive, or too
/// large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadKeys;

/// Finds all keys. `word(i)` returns argument `i` of `argc`. O(argc).
pub fn find_keys<'w>(
    spec: &Spec,
    argc: usize,
    word: &impl Fn(usize) -> &'w [u8],
) -> Result<FoundKeys, BadKeys> {
    let mut found = FoundKeys::new();
    for key_spec in spec.keys {
        let mut flags = key_spec.flags_by_args.map_or(key_spec.flags, |flags| flags(argc, word));
        if key_spec.finder.is_some() {
            // The finder finds the keys that the specification cannot describe.
            flags.remove(KeyFlags::INCOMPLETE);
        }
        find_by(key_spec, argc, word, &mut |index| {
            found.push(FoundKey { index, flags });
        })?;
    }
    Ok(found)
}

/// Calls `found` with the index of each key whose slot must be locked. If the number of keys does not
/// fit the arguments, the handler reports it.
#[inline]
pub fn each_key<'w>(
    spec: &Spec,
    argc: usize,
    word: &impl Fn(usize) -> &'w [u8],
    mut found: impl FnMut(usize),
) {
    for key_spec in spec.keys {
        let _ = find_by(key_spec, argc, word, &mut found);
    }
}

/// Calls `found` with the index of each key that one specification finds.
#[inline]
fn find_by<'w>(
    spec: &KeySpec,
    argc: usize,
    word: &impl Fn(usize) -> &'w [u8],
    found: &mut impl FnMut(usize),
) -> Result<(), BadKeys> {
    if let Some(keys) = spec.finder.and_then(|find| find(argc, word)) {
        keys.for_each(found);
        return Ok(());
    }
    let Some(first) = begin(spec, argc, word) else { return Ok(()) };
    let (first, last, step) = match spec.find {
        Find::Unknown => return Ok(()),
        Find::Range { last, step, limit } => {
            let last = match last {
                0.. => first + last as usize,
                _ if limit <= 1 => argc - last.unsigned_abs() as usize,
                // Only the first 1/`limit` of the remaining arguments are keys, as in XREAD.
                _ => first + (argc - first) / limit as usize - last.unsigned_abs() as usize,
            };
            (first, last, step as usize)
        }
        Find::KeyNum { count_at, first: offset, step } => {
            let count_at = first + count_at as usize;
            if count_at >= argc {
                return Err(BadKeys);
            }
            let count = crate::base::number::parse_i64(word(count_at)).ok_or(BadKeys)?;
            let first = first + offset as usize;
            // Redis counts with 32 bits here. The command itself rejects an invalid count.
            let count = if count < 0 { 0 } else { count as i32 };
            let count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(BadKeys)?;
            let last = (count - 1).checked_mul(step as usize).and_then(|n| n.checked_add(first));
            (first, last.ok_or(BadKeys)?, step as usize)
        }
    };
    if last >= argc {
        return Err(BadKeys);
    }
    let mut index = first;
    while index <= last {
        found(index);
        index += step.max(1);
    }
    Ok(())
}

fn begin<'w>(spec: &KeySpec, argc: usize, word: &impl Fn(usize) -> &'w [u8]) -> Option<usize> {
    match spec.begin {
        Begin::Index(index) => (usize::from(index) < argc).then_some(usize::from(index)),
        Begin::Keyword { keyword, from } => {
            let is_it = |&i: &usize| word(i).eq_ignore_ascii_case(keyword.as_bytes());
            let at = if from >= 0 {
                (from as usize..argc.saturating_sub(1)).find(is_it)
            } else {
                let last = argc.checked_sub(from.unsigned_abs() as usize)?;
                (1..=last).rev().find(is_it)
            };
            at.map(|at| at + 1)
        }
        Begin::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// COMMAND GETKEYS of a real server behaves in the same way.
    #[test]
    fn counts_of_keys_are_taken_modulo_32_bits_unless_negative() {
        let keys = |count: &'static [u8]| {
            let words: [&[u8]; 4] = [b"zunion", count, b"a", b"b"];
            let mut found = Vec::new();
            let spec = KeySpec::counted(1);
            find_by(&spec, words.len(), &|at| words[at], &mut |at| found.push(at)).map(|()| found)
        };
        assert_eq!(keys(b"2"), Ok(vec![2, 3]));
        assert_eq!(keys(b"9007199254740993"), Ok(vec![2]));
        for count in [&b"0"[..], b"3", b"-4294967295", b"4294967296", b"2147483648", b"x"] {
            assert_eq!(keys(count), Err(BadKeys), "{}", count.escape_ascii());
        }
    }
}
