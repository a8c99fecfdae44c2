//! Random fields of a hash.

use super::{Fields, Hash, Text, text};
use std::collections::BTreeSet;

impl Hash {
    /// Shows one field with its value, each as likely as the others; `below(n)` gives a random
    /// number below `n`. Shows nothing if there is none. O(1) expected; compact encodings O(n).
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

    /// Shows `count` different fields with their values, or all if there are not so many; every
    /// choice is equally likely, the order is not random.
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
                // Floyd's choice of distinct numbers.
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
