//! Commands of the group `generic` as methods of shared connections.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::client::Client;
use crate::command::Command;
use crate::commands;
use crate::commands::options;

/// Commands of the group `generic`.
impl Client {
    /// Copies the value and the TTL of a key to another key or database.
    ///
    /// `COPY source destination [DB destination-db] [REPLACE]`
    pub fn copy(
        &self,
        source: impl ToArg,
        destination: impl ToArg,
    ) -> Command<&Client, bool, options::Copy> {
        commands::copy(source, destination).on(self)
    }

    /// Deletes keys.
    ///
    /// `DEL key …`
    pub fn del(&self, keys: impl ToArgs) -> Command<&Client, i64> {
        commands::del(keys).on(self)
    }

    /// Returns a serialized value, for RESTORE.
    ///
    /// `DUMP key`
    pub fn dump<T>(&self, key: impl ToArg) -> Command<&Client, Option<T>> {
        commands::dump(key).on(self)
    }

    /// Counts the given keys that exist.
    ///
    /// `EXISTS key …`
    pub fn exists(&self, keys: impl ToArgs) -> Command<&Client, i64> {
        commands::exists(keys).on(self)
    }

    /// Sets the TTL of a key in seconds.
    ///
    /// `EXPIRE key seconds [NX | XX | GT | LT]`
    pub fn expire(
        &self,
        key: impl ToArg,
        seconds: impl ToArg,
    ) -> Command<&Client, bool, options::Expire> {
        commands::expire(key, seconds).on(self)
    }

    /// Sets the expiry time of a key to a Unix time in seconds.
    ///
    /// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`
    pub fn expireat(
        &self,
        key: impl ToArg,
        unix_time_seconds: i64,
    ) -> Command<&Client, bool, options::Expireat> {
        commands::expireat(key, unix_time_seconds).on(self)
    }

    /// Returns the expiry time of a key as a Unix time in seconds.
    ///
    /// `EXPIRETIME key`
    pub fn expiretime(&self, key: impl ToArg) -> Command<&Client, i64> {
        commands::expiretime(key).on(self)
    }

    /// Returns all keys that match a pattern.
    ///
    /// `KEYS pattern`
    pub fn keys<T>(&self, pattern: impl ToArg) -> Command<&Client, Vec<T>> {
        commands::keys(pattern).on(self)
    }

    /// Moves keys to another server. The reply is `OK`, or `NOKEY` if none of the keys exists.
    ///
    /// `MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [[AUTH password] | [AUTH2 username
    /// password]] [KEYS key …]`
    pub fn migrate(
        &self,
        host: impl ToArg,
        port: impl ToArg,
        key: impl ToArg,
        destination_db: impl ToArg,
        timeout: impl ToArg,
    ) -> Command<&Client, String, options::Migrate> {
        commands::migrate(host, port, key, destination_db, timeout).on(self)
    }

    /// Moves a key to another database unless it exists there.
    ///
    /// `MOVE key db`
    pub fn move_to(&self, key: impl ToArg, db: impl ToArg) -> Command<&Client, bool> {
        commands::move_to(key, db).on(self)
    }

    /// Returns the encoding of a value.
    ///
    /// `OBJECT ENCODING key`
    pub fn object_encoding(&self, key: impl ToArg) -> Command<&Client, Option<String>> {
        commands::object_encoding(key).on(self)
    }

    /// Returns the logarithmic access frequency of a key.
    ///
    /// `OBJECT FREQ key`
    pub fn object_freq(&self, key: impl ToArg) -> Command<&Client, Option<i64>> {
        commands::object_freq(key).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `OBJECT HELP`
    pub fn object_help(&self) -> Command<&Client, Vec<String>> {
        commands::object_help().on(self)
    }

    /// Returns the time in seconds since the last access to a key.
    ///
    /// `OBJECT IDLETIME key`
    pub fn object_idletime(&self, key: impl ToArg) -> Command<&Client, Option<i64>> {
        commands::object_idletime(key).on(self)
    }

    /// Returns the reference count of a value.
    ///
    /// `OBJECT REFCOUNT key`
    pub fn object_refcount(&self, key: impl ToArg) -> Command<&Client, Option<i64>> {
        commands::object_refcount(key).on(self)
    }

    /// Removes the TTL of a key.
    ///
    /// `PERSIST key`
    pub fn persist(&self, key: impl ToArg) -> Command<&Client, bool> {
        commands::persist(key).on(self)
    }

    /// Sets the TTL of a key in milliseconds.
    ///
    /// `PEXPIRE key milliseconds [NX | XX | GT | LT]`
    pub fn pexpire(
        &self,
        key: impl ToArg,
        milliseconds: impl ToArg,
    ) -> Command<&Client, bool, options::Pexpire> {
        commands::pexpire(key, milliseconds).on(self)
    }

    /// Sets the expiry time of a key to a Unix time in milliseconds.
    ///
    /// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`
    pub fn pexpireat(
        &self,
        key: impl ToArg,
        unix_time_milliseconds: i64,
    ) -> Command<&Client, bool, options::Pexpireat> {
        commands::pexpireat(key, unix_time_milliseconds).on(self)
    }

    /// Returns the expiry time of a key as a Unix time in milliseconds.
    ///
    /// `PEXPIRETIME key`
    pub fn pexpiretime(&self, key: impl ToArg) -> Command<&Client, i64> {
        commands::pexpiretime(key).on(self)
    }

    /// Returns the TTL of a key in milliseconds.
    ///
    /// `PTTL key`
    pub fn pttl(&self, key: impl ToArg) -> Command<&Client, i64> {
        commands::pttl(key).on(self)
    }

    /// Returns a random key.
    ///
    /// `RANDOMKEY`
    pub fn randomkey<T>(&self) -> Command<&Client, Option<T>> {
        commands::randomkey().on(self)
    }

    /// Renames a key and replaces the destination key.
    ///
    /// `RENAME key newkey`
    pub fn rename(&self, key: impl ToArg, new_key: impl ToArg) -> Command<&Client, ()> {
        commands::rename(key, new_key).on(self)
    }

    /// Renames a key only if the destination key does not exist.
    ///
    /// `RENAMENX key newkey`
    pub fn renamenx(&self, key: impl ToArg, new_key: impl ToArg) -> Command<&Client, bool> {
        commands::renamenx(key, new_key).on(self)
    }

    /// Creates a key from a value that DUMP has serialized.
    ///
    /// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
    pub fn restore(
        &self,
        key: impl ToArg,
        ttl: impl ToArg,
        serialized_value: impl ToArg,
    ) -> Command<&Client, (), options::Restore> {
        commands::restore(key, ttl, serialized_value).on(self)
    }

    /// Iterates over the keys of the database. Start with cursor 0; the iteration is complete when the reply's
    /// cursor is 0. The elements are keys.
    ///
    /// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
    pub fn scan<T>(&self, cursor: impl ToArg) -> Command<&Client, (u64, Vec<T>), options::Scan> {
        commands::scan(cursor).on(self)
    }

    /// Sorts the elements of a list, set or sorted set, and optionally stores the result.
    ///
    /// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]`
    pub fn sort<T>(&self, key: impl ToArg) -> Command<&Client, Vec<T>, options::Sort> {
        commands::sort(key).on(self)
    }

    /// Sorts the elements of a list, set or sorted set, and optionally stores the result.
    ///
    /// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA] STORE destination`
    pub fn sort_store(
        &self,
        key: impl ToArg,
        destination: impl ToArg,
    ) -> Command<&Client, i64, options::SortStore> {
        commands::sort_store(key, destination).on(self)
    }

    /// Returns the sorted elements of a list, set or sorted set.
    ///
    /// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]`
    pub fn sort_ro<T>(&self, key: impl ToArg) -> Command<&Client, Vec<T>, options::SortRo> {
        commands::sort_ro(key).on(self)
    }

    /// Updates the access time of keys and counts those that exist.
    ///
    /// `TOUCH key …`
    pub fn touch(&self, keys: impl ToArgs) -> Command<&Client, i64> {
        commands::touch(keys).on(self)
    }

    /// Returns the TTL of a key in seconds.
    ///
    /// `TTL key`
    pub fn ttl(&self, key: impl ToArg) -> Command<&Client, i64> {
        commands::ttl(key).on(self)
    }

    /// Returns the type of a key's value.
    ///
    /// `TYPE key`
    pub fn type_of(&self, key: impl ToArg) -> Command<&Client, String> {
        commands::type_of(key).on(self)
    }

    /// Deletes keys. Another thread frees their values.
    ///
    /// `UNLINK key …`
    pub fn unlink(&self, keys: impl ToArgs) -> Command<&Client, i64> {
        commands::unlink(keys).on(self)
    }
}
