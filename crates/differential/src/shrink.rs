//! Reduces a failing stream to a short one by delta debugging: removes ever smaller chunks of units.

use super::arena::Arena;
use super::difference::Difference;
use super::generate::Unit;
use anyhow::Result;
use std::time::{Duration, Instant};

/// The shortest stream found within `limit` that still shows a difference of the same kind. Each attempt starts with an
/// empty keyspace.
pub fn shrink(
    arena: &mut Arena<'_>,
    units: Vec<Unit>,
    seen: &Difference,
    limit: Duration,
) -> Result<Vec<Unit>> {
    let give_up = Instant::now() + limit;
    let mut kept = units;
    // Commands after the difference cannot matter.
    if let Some((index, found)) = arena.first_difference(&kept)?
        && found.kind == seen.kind
    {
        kept = through(kept, index);
    }
    let mut chunk = kept.len().div_ceil(2);
    while chunk > 0 && Instant::now() < give_up {
        let mut start = 0;
        let mut removed = false;
        while start < kept.len() && kept.len() > 1 && Instant::now() < give_up {
            let end = (start + chunk).min(kept.len());
            let without: Vec<Unit> = [&kept[..start], &kept[end..]].concat();
            match arena.first_difference(&without)? {
                Some((index, found)) if found.kind == seen.kind => {
                    kept = through(without, index);
                    removed = true;
                }
                _ => start = end,
            }
        }
        // When chunks are single units, repeat until a whole round removes nothing.
        chunk = if chunk > 1 { chunk / 2 } else { usize::from(removed) };
    }
    Ok(kept)
}

/// The units up to the one that contains command `index`.
pub fn through(mut units: Vec<Unit>, index: usize) -> Vec<Unit> {
    let mut commands = 0;
    let needed = units.iter().take_while(|unit| {
        let before = commands;
        commands += unit.len();
        before <= index
    });
    let needed = needed.count();
    units.truncate(needed);
    units
}
