//! The longest common subsequence of two byte strings, 64 positions at a time.
//!
//! `L(i, j)` is the length for the first `i` bytes of `a` and the first `j` of `b`. In row `i`, `L`
//! grows by 0 or 1 from each `j` to the next, so a row can be stored as bits: 0 where `L` grows.
//! All bits of a row follow from the previous row with one addition, whose carry runs along the
//! row:
//!
//! ```text
//! hit  = row & mask           mask: bit j is set where b[j] is the byte a[i]
//! next = (row + hit) | (row & !mask)
//! ```
//!
//! If several subsequences are longest, the result is the one that Redis chooses. Going backward
//! from the end, equal bytes match. Otherwise `a` is shortened if that keeps the length and
//! shortening `b` does not; else `b` is shortened. Where bytes differ, `a` is shortened exactly if
//! the row grows at `j`.
//!
//! Costs: O(a * b / 64) time, twice that with positions. Memory: [`TABLE_BYTES_MAX`] of rows or one
//! row, whichever is more, and masks smaller than both strings together.

/// Rows are kept up to this amount of memory. Other rows are computed again, block by block, when
/// they are needed.
const TABLE_BYTES_MAX: usize = 32 << 20;

/// A run of bytes that both strings contain, starting at `a` in the first and at `b` in the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) len: usize,
}

/// The length of the longest common subsequence.
pub(super) fn common_len(a: &[u8], b: &[u8]) -> usize {
    let masks = Masks::new(a, b);
    let mut row = masks.first_row();
    for &byte in a {
        advance_in_place(&mut row, masks.of(byte));
    }
    // Bits beyond `b` never match and stay 1.
    row.iter().map(|bits| bits.count_zeros() as usize).sum()
}

/// The runs of the longest common subsequence, the last one first.
pub(super) fn common_matches(a: &[u8], b: &[u8]) -> Vec<Match> {
    matches_within(a, b, TABLE_BYTES_MAX)
}

fn matches_within(a: &[u8], b: &[u8], table_bytes_max: usize) -> Vec<Match> {
    let mut matches: Vec<Match> = Vec::new();
    if a.is_empty() || b.is_empty() {
        return matches;
    }
    let mut rows = Rows::new(a, b, table_bytes_max);
    let (mut i, mut j) = (a.len(), b.len());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j) = (i - 1, j - 1);
            match matches.last_mut() {
                Some(last) if last.a == i + 1 && last.b == j + 1 => {
                    *last = Match { a: i, b: j, len: last.len + 1 };
                }
                _ => matches.push(Match { a: i, b: j, len: 1 }),
            }
        } else if rows.grows(i, j) {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    matches
}

/// The positions of each byte of `a` in `b`.
struct Masks {
    /// Number of words per row.
    words: usize,
    /// The row of `bits` for each byte.
    rows: [u8; 256],
    bits: Vec<u64>,
}

impl Masks {
    fn new(a: &[u8], b: &[u8]) -> Masks {
        let words = b.len().div_ceil(64).max(1);
        let mut known = [false; 256];
        let mut rows = [0; 256];
        let mut count = 0;
        for &byte in a {
            if !known[usize::from(byte)] {
                known[usize::from(byte)] = true;
                rows[usize::from(byte)] = count as u8;
                count += 1;
            }
        }
        let mut bits = vec![0; count * words];
        for (at, &byte) in b.iter().enumerate() {
            if known[usize::from(byte)] {
                bits[usize::from(rows[usize::from(byte)]) * words + at / 64] |= 1 << (at % 64);
            }
        }
        Masks { words, rows, bits }
    }

    fn first_row(&self) -> Vec<u64> {
        vec![u64::MAX; self.words]
    }

    #[inline]
    fn of(&self, byte: u8) -> &[u64] {
        &self.bits[usize::from(self.rows[usize::from(byte)]) * self.words..][..self.words]
    }
}

#[inline]
fn next_word(old: u64, mask: u64, carry: bool) -> (u64, bool) {
    let (sum, carry) = old.carrying_add(old & mask, carry);
    (sum | (old & !mask), carry)
}

#[inline]
fn advance_in_place(row: &mut [u64], mask: &[u64]) {
    let mut carry = false;
    for (word, &mask) in row.iter_mut().zip(mask) {
        (*word, carry) = next_word(*word, mask, carry);
    }
}

#[inline]
fn advance(row: &[u64], mask: &[u64], next: &mut [u64]) {
    let mut carry = false;
    for ((&old, &mask), new) in row.iter().zip(mask).zip(next) {
        (*new, carry) = next_word(old, mask, carry);
    }
}

/// The rows of one block, and the row before each block.
struct Rows<'a> {
    a: &'a [u8],
    masks: Masks,
    /// Number of rows per block.
    per_block: usize,
    loaded: usize,
    table: Vec<u64>,
    before: Vec<u64>,
}

impl<'a> Rows<'a> {
    fn new(a: &'a [u8], b: &[u8], table_bytes_max: usize) -> Rows<'a> {
        let masks = Masks::new(a, b);
        let per_block = (table_bytes_max / size_of::<u64>() / masks.words).clamp(1, a.len());
        let table = vec![0; per_block * masks.words];
        let before = masks.first_row();
        let mut rows = Rows { a, masks, per_block, loaded: 0, table, before };
        for block in 0..a.len().div_ceil(per_block) {
            if block > 0 {
                let last = rows.table.len() - rows.masks.words;
                rows.before.extend_from_slice(&rows.table[last..]);
            }
            rows.load(block);
        }
        rows
    }

    /// Computes the rows of a block.
    fn load(&mut self, block: usize) {
        let words = self.masks.words;
        let bytes = &self.a[block * self.per_block..];
        let mut previous = &self.before[block * words..][..words];
        let mut table = self.table.as_mut_slice();
        for &byte in bytes.iter().take(self.per_block) {
            let (row, rest) = std::mem::take(&mut table).split_at_mut(words);
            advance(previous, self.masks.of(byte), row);
            (previous, table) = (row, rest);
        }
        self.loaded = block;
    }

    /// Reports whether `L(i, j)` is larger than `L(i, j - 1)`; `i` and `j` are at least 1. Cheap if
    /// called with decreasing `i`.
    #[inline]
    fn grows(&mut self, i: usize, j: usize) -> bool {
        let block = (i - 1) / self.per_block;
        if block != self.loaded {
            self.load(block);
        }
        let row = (i - 1) % self.per_block * self.masks.words;
        self.table[row + (j - 1) / 64] >> ((j - 1) % 64) & 1 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// The definition, cell by cell.
    fn matches_by_table(a: &[u8], b: &[u8]) -> (usize, Vec<(usize, usize)>) {
        let mut lens = vec![vec![0usize; b.len() + 1]; a.len() + 1];
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                lens[i][j] = if a[i - 1] == b[j - 1] {
                    lens[i - 1][j - 1] + 1
                } else {
                    lens[i - 1][j].max(lens[i][j - 1])
                };
            }
        }
        let (mut i, mut j, mut pairs) = (a.len(), b.len(), Vec::new());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                pairs.push((i, j));
            } else if lens[i - 1][j] > lens[i][j - 1] {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        (lens[a.len()][b.len()], pairs)
    }

    #[test]
    fn bits_and_table_find_the_same_subsequence_at_every_block_size() {
        let mut random = Random::seeded(11);
        for round in 0..600 {
            let mut text = |len_max: u64, letters: u64| -> Vec<u8> {
                let len = random.below(len_max + 1);
                (0..len).map(|_| b'a' + random.below(letters) as u8).collect()
            };
            let letters = 1 + round % 5;
            let (a, b) = (text(200, letters), text(200, letters));
            let (len, pairs) = matches_by_table(&a, &b);
            assert_eq!(common_len(&a, &b), len);
            for table_bytes_max in [0, 100, TABLE_BYTES_MAX] {
                let matches = matches_within(&a, &b, table_bytes_max);
                let run = |found: &Match| {
                    (0..found.len).rev().map(|n| (found.a + n, found.b + n)).collect()
                };
                let found: Vec<_> = matches
                    .iter()
                    .flat_map(|found| -> Vec<(usize, usize)> { run(found) })
                    .collect();
                assert_eq!(found, pairs);
            }
        }
    }
}
