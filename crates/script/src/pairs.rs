//! A table's pairs, one after the other, with anything else between them.

use mlua::{Function, Lua, Result, Table, Value};
use std::vec;

/// How many pairs of all tables that are open together are collected. The interpreter cannot give
/// out more than about a million references, and each pair takes two.
pub(crate) const COLLECTED_MAX: usize = 10_000;

/// Where `next` is kept, as it was before any script ran.
const NEXT_KEY: &str = "brisk.pairs.next";

/// What is left of a table's pairs.
pub(crate) struct Pairs {
    collected: vec::IntoIter<(Value, Value)>,
    /// The table and the last key of those that were collected, if more follow it.
    after: Option<(Table, Value)>,
}

impl Pairs {
    /// The pairs of `table` from the first of `collected` on, which `is_part` says are not all.
    pub(crate) fn new(table: &Table, collected: Vec<(Value, Value)>, is_part: bool) -> Pairs {
        let last = collected.last().filter(|_| is_part).map(|(key, _)| key.clone());
        let after = last.map(|key| (table.clone(), key));
        Pairs { collected: collected.into_iter(), after }
    }

    /// The next pair, if there is one; `next` is Lua's own function of that name, and `collected`
    /// counts what all tables have collected.
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

/// Lua's function `next`. To be asked for once before any script runs.
pub(crate) fn next(lua: &Lua) -> Result<Function> {
    if let Some(next) = lua.named_registry_value::<Option<Function>>(NEXT_KEY)? {
        return Ok(next);
    }
    let next: Function = lua.globals().raw_get("next")?;
    lua.set_named_registry_value(NEXT_KEY, &next)?;
    Ok(next)
}
