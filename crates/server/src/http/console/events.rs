//! The events that the server sends to consoles: once a second, the fields of INFO that have changed.
//!
//! INFO's text is generated once for all consoles, on the HTTP thread, so the cost for the workers does not depend on
//! the number of consoles. A console receives events only while the user of its session may run INFO.

use crate::info;
use brisk_acl::check;
use brisk_config::choice::Console;
use brisk_node::clients::{ClientRecord, flag};
use brisk_node::core::shared::Shared;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The last values that consoles have received.
#[derive(Default)]
pub(super) struct Events {
    fields: HashMap<String, String>,
}

impl Events {
    /// Reads INFO. Returns the changes since the last call. O(workers x commands), as for INFO.
    pub(super) fn changes(&mut self, shared: &Shared, now_ms: u64) -> String {
        let text = info::text(shared, &shared.config(), [b"everything".as_slice()].into_iter());
        let mut changed = Vec::new();
        let mut fields = HashMap::with_capacity(self.fields.len());
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            if self.fields.remove(name).is_none_or(|old| old != value) {
                changed.push((name, Some(value)));
            }
            fields.insert(name.to_owned(), value.to_owned());
        }
        // The fields that are left have disappeared.
        let gone = std::mem::replace(&mut self.fields, fields);
        changed.extend(gone.keys().map(|name| (name.as_str(), None)));
        event(now_ms, changed.into_iter(), None)
    }

    /// The first event of a console: all fields, and what the console may do.
    pub(super) fn whole(&self, shared: &Shared, now_ms: u64) -> String {
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
        event(now_ms, fields, Some(abilities(shared)))
    }
}

/// The event of a console whose user may not run INFO.
pub(super) fn denied(shared: &Shared) -> String {
    json!({ "denied": "info", "console": abilities(shared) }).to_string()
}

/// The facts about the server on which the page depends.
fn abilities(shared: &Shared) -> Value {
    let may_write = shared.config().network.http_console == Console::Write;
    json!({ "write": may_write, "version": env!("CARGO_PKG_VERSION") })
}

/// Reports whether the user of a session may run INFO now. O(permissions of the user).
pub(super) fn may_read(shared: &Shared, record: &ClientRecord) -> bool {
    if !record.has(flag::AUTHENTICATED) {
        return false;
    }
    let name = record.texts().user;
    let account = if name.is_empty() {
        Some(shared.accounts.default_account().clone())
    } else {
        shared.accounts.find(name.as_bytes())
    };
    let (Some(account), Some(row)) = (account, shared.table.find(b"info")) else { return false };
    account.is_of(record) && check(&account.user(), row, 1, &|_| b"info".as_slice()).is_ok()
}

fn event<'f>(
    now_ms: u64,
    fields: impl Iterator<Item = (&'f str, Option<&'f str>)>,
    abilities: Option<Value>,
) -> String {
    let info: Map<String, Value> =
        fields.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    let mut event = json!({ "time": now_ms, "info": info });
    if let Some(abilities) = abilities {
        event["console"] = abilities;
    }
    event.to_string()
}
