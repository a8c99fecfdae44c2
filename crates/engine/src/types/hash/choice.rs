//! Random fields of a hash.

use super::{Fields, Hash, Text, text};
use std::collections::BTreeSet;

impl Hash {
    /// Calls the visitor with one random field and its value. All fields are equally likely.
    /// `below(n)` returns a random number below `n`. The visitor is not called if there are no
    /// fields. O(1) expected; O(n) for compact encodings.
    pub fn random(
        &self,
        mut below: impl FnMut(u64) -> u64,
        visit: impl FnOnce(Text<'_>, Text<'_>),
    ) {
        match &self.0 {
            Fields::Table(table) => {
                if let Some(element) = table.random(below) {
                    visit(Text::Str(element.key), text(&element));
                }
            }
            _ => {
                let pack = self.pack();
                if pack.len() > 0
                    && let Some((field, value)) = pack.nth(below(pack.len() as u64) as usize)
                {
                    visit(field, value);
                }
            }
        }
    }

    /// Calls the visitor with `count` different fields and their values, or with all if there are
    /// fewer. Every selection is equally likely; the order is not random.
    pub fn sample(
        &self,
        count: usize,
        mut below: impl FnMut(u64) -> u64,
        mut visit: impl FnMut(Text<'_>, Text<'_>),
    ) {
        match &self.0 {
            Fields::Table(table) => {
                table.sample(count, below, |element| {
                    visit(Text::Str(element.key), text(&element));
                });
            }
            _ => {
                let len = self.len();
                if count >= len {
                    return self.each(visit);
                }
                // Floyd's selection of distinct numbers.
                let mut chosen = BTreeSet::new();
                for last in len - count..len {
                    if !chosen.insert(below(last as u64 + 1) as usize) {
                        chosen.insert(last);
                    }
                }
                let mut index = 0;
                self.each(|field, value| {
                    if chosen.contains(&index) {
                        visit(field, value);
                    }
                    index += 1;
                });
            }
        }
    }
}
