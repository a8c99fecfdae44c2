//! The current configuration: CONFIG GET and CONFIG SET.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::choice::Protection;
use super::config::Config;
use super::directive::{Directive, Write};
use super::error::{ConfigError, Rejection, RewriteError};
use super::file::Included;
use super::rewrite::{self, Added, Replacement};
use super::value::Text;
use super::{directives, glob};

/// The origin of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// True if the client is on this machine, for directives that are protected with `local`.
    pub local: bool,
    /// True while a dataset is being loaded.
    pub while_loading: bool,
}

/// Owns the current configuration and the path of its file.
#[derive(Debug)]
pub struct Store {
    current: Arc<Config>,
    file: Option<PathBuf>,
    included: Included,
}

impl Store {
    /// Creates a store for `config`. `file` is the absolute path for CONFIG REWRITE.
    pub fn new(config: Config, file: Option<PathBuf>) -> Self {
        Self::loaded(config, file, Included::default())
    }

    /// Like [`Self::new`], with the settings of the files that `file` includes.
    pub(super) fn loaded(config: Config, file: Option<PathBuf>, included: Included) -> Self {
        Self { current: Arc::new(config), file, included }
    }

    /// Returns the arguments of the `user` lines in included files.
    pub fn included_users(&self) -> &[Vec<Text>] {
        &self.included.config.security.users
    }

    /// Returns the current configuration.
    pub fn current(&self) -> Arc<Config> {
        Arc::clone(&self.current)
    }

    /// Returns the absolute path of the file with which the server was started.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Changes settings from inside the server (REPLICAOF, a lowered `maxclients`) without checks:
    /// the caller must use only values that the rows allow.
    pub fn adopt(&mut self, change: impl FnOnce(&mut Config)) {
        let config = Arc::make_mut(&mut self.current);
        change(config);
        config.normalize();
    }

    /// CONFIG GET: returns names and values of all settings that match one of `patterns`, each name
    /// once.
    ///
    /// A name without pattern characters is matched ignoring case, also against hidden directives,
    /// and is returned as it was written. O(patterns × directives).
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found: BTreeMap<&'static str, (Vec<u8>, &Directive)> = BTreeMap::new();
        for pattern in patterns {
            if glob::is_pattern(pattern) {
                for row in directives::all().filter(|row| row.is_setting() && !row.hidden) {
                    for name in row.names().filter(|n| glob::matches(pattern, n.as_bytes(), true)) {
                        found.entry(name).or_insert_with(|| (name.into(), row));
                    }
                }
            } else if let Some(row) = directives::find(pattern).filter(|row| row.is_setting()) {
                let same = |name: &&str| name.as_bytes().eq_ignore_ascii_case(pattern);
                if let Some(name) = row.names().find(same) {
                    found.entry(name).or_insert_with(|| (pattern.to_vec(), row));
                }
            }
        }
        found.into_values().map(|(name, row)| (name, row.show(&self.current))).collect()
    }

    /// CONFIG SET: applies all of `pairs` or none, and returns the names of the directives that
    /// changed.
    ///
    /// First every name is checked, then every value is set in a copy, then `apply(old, new)` puts
    /// the copy into effect. If `apply` fails, it must leave the server as it was with the old
    /// configuration.
    ///
    /// # Errors
    /// Returns the first pair that is not accepted, in Redis's words.
    pub fn set(
        &mut self,
        pairs: &[(&[u8], &[u8])],
        caller: Caller,
        apply: &mut dyn FnMut(&Config, &Config) -> Result<(), Rejection>,
    ) -> Result<Vec<&'static str>, ConfigError> {
        let mut rows = Vec::with_capacity(pairs.len());
        for (index, (name, _)) in pairs.iter().enumerate() {
            let row = directives::find(name)
                .filter(|row| row.is_setting())
                .ok_or_else(|| ConfigError::Unknown { name: name.to_vec() })?;
            self.may_set(row, name, caller).map_err(|reason| refused(name, reason))?;
            if row.settled_while_loading && caller.while_loading {
                return Err(ConfigError::Loading);
            }
            // Names are compared as written: a directive may appear together with its alias, and
            // the last one wins, as in Redis.
            if pairs[..index].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                return Err(refused(name, "duplicate parameter"));
            }
            rows.push(row);
        }
        let mut new = Config::clone(&self.current);
        for (row, (name, value)) in rows.iter().zip(pairs) {
            let take = |config: &mut Config| {
                row.set(config, &[value.to_vec()], Write::Replace)
                    .map_err(|reason| ConfigError::Refused { name: known(row, name), reason })
            };
            if row.fixed {
                let mut requested = Config::clone(&self.current);
                take(&mut requested)?;
                if row.show(&requested) != row.show(&self.current) {
                    return Err(refused(name, IMMUTABLE));
                }
                // CONFIG GET may not show the stored value: for `threads 0` it shows the real
                // number.
                continue;
            }
            take(&mut new)?;
        }
        new.normalize();
        apply(&self.current, &new).map_err(|Rejection { directive, reason }| {
            let blamed = rows.iter().position(|row| row.name == directive);
            let name =
                blamed.map_or_else(|| directive.to_owned(), |at| known(rows[at], pairs[at].0));
            ConfigError::Refused { name, reason }
        })?;
        let mut changed: Vec<_> = rows
            .iter()
            .filter(|row| row.show(&self.current) != row.show(&new))
            .map(|row| row.name)
            .collect();
        changed.sort_unstable();
        changed.dedup();
        self.current = Arc::new(new);
        Ok(changed)
    }

    fn may_set(&self, row: &Directive, name: &[u8], caller: Caller) -> Result<(), &'static str> {
        // Only this name is Brisk's own; all other names are Redis's.
        let is_own = row.fixed && name.eq_ignore_ascii_case(row.name.as_bytes());
        if row.immutable || row.fixed && !is_own {
            return Err(IMMUTABLE);
        }
        let allowed = match self.current.security.enable_protected_configs {
            Protection::No => false,
            Protection::Yes => true,
            Protection::Local => caller.local,
        };
        if row.protected && !allowed {
            return Err("can't set protected config");
        }
        Ok(())
    }

    /// CONFIG REWRITE: updates the file, and keeps comments and the order of lines. `replacements`
    /// are lines that the configuration does not own (`user`). A directive that included files set
    /// is left out, unless its value differs from theirs.
    ///
    /// The new text is written to a temporary file, synced, and renamed over the old file: a crash
    /// leaves one of the two intact.
    ///
    /// # Errors
    /// Fails if there is no file, or if the file system returns an error; the old file is then
    /// unchanged.
    pub fn rewrite(&self, replacements: &[Replacement], added: Added) -> Result<(), RewriteError> {
        let file = self.file.as_deref().ok_or(RewriteError::NoFile)?;
        rewrite::rewrite(file, &self.current, &self.included, replacements, added)
            .map_err(|error| RewriteError::Io { reason: super::special::os_reason(&error) })
    }
}

const IMMUTABLE: &str = "can't set immutable config";

/// Returns the name of a directive, or its alias, in the directive's own spelling.
fn known(row: &Directive, name: &[u8]) -> String {
    let mut names = row.names();
    names.find(|known| known.as_bytes().eq_ignore_ascii_case(name)).unwrap_or(row.name).to_owned()
}

fn refused(name: &[u8], reason: &'static str) -> ConfigError {
    ConfigError::Refused { name: String::from_utf8_lossy(name).into_owned(), reason: reason.into() }
}
