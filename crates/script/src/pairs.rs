//! Iterates over a table's pairs one at a time. Other work may happen between two pairs.

use mlua::{Function, Lua, Result, Table, Value};
use std::vec;

/// Maximum number of pairs that all open tables together collect. The interpreter cannot create
/// more than about a million references, and each pair takes two.
pub(crate) const COLLECTED_MAX: usize = 10_000;

/// The key under which the original `next` is kept, as it was before any script ran.
const NEXT_KEY: &str = "brisk.pairs.next";

/// The remaining pairs of a table.
pub(crate) struct Pairs {
    collected: vec::IntoIter<(Value, Value)>,
    /// The table and the last collected key, if more keys follow it.
    after: Option<(Table, Value)>,
}

impl Pairs {
    /// Returns the pairs of `table` from the first of `collected` on. `is_part` is true if the
    /// table has more.
    pub(crate) fn new(table: &Table, collected: Vec<(Value, Value)>, is_part: bool) -> Pairs {
        let last = collected.last().filter(|_| is_part).map(|(key, _)| key.clone());
        let after = last.map(|key| (table.clone(), key));
        Pairs { collected: collected.into_iter(), after }
    }

    /// Returns the next pair, if there is one. `next` is Lua's own function of that name, and
    /// `collected` counts the pairs that all tables have collected.
    pub(crate) fn following(
        &mut self,
        next: &Function,
        collected: &mut usize,
    ) -> Result<Option<(Value, Value)>> {
        if let Some(pair) = self.collected.next() {
            *collected -= 1;
            return Ok(Some(pair));
        }
        let Some((table, key)) = &mut self.after else { return Ok(None) };
        let (found, value): (Value, Value) = next.call((&*table, &*key))?;
        if found.is_nil() {
            return Ok(None);
        }
        key.clone_from(&found);
        Ok(Some((found, value)))
    }
}

/// Returns Lua's function `next`. Must be called once before any script runs.
pub(crate) fn next(lua: &Lua) -> Result<Function> {
    if let Some(next) = lua.named_registry_value::<Option<Function>>(NEXT_KEY)? {
        return Ok(next);
    }
    let next: Function = lua.globals().raw_get("next")?;
    lua.set_named_registry_value(NEXT_KEY, &next)?;
    Ok(next)
}
