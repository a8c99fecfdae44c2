//! Commands of the group `list` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::{options, types};
use crate::session::Session;

/// Commands of the group `list`.
impl Session {
    /// Moves an element from one list to another. Blocks until there is one.
    ///
    /// `BLMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout`
    pub fn blmove<T>(
        &self,
        source: impl ToArg,
        destination: impl ToArg,
        from: types::Side,
        to: types::Side,
        timeout: impl ToArg,
    ) -> Command<&Session, Option<T>> {
        commands::blmove(source, destination, from, to, timeout).on(self)
    }

    /// Removes and returns elements at an end of the first list that is not empty. Blocks until there is one. The
    /// reply is the key and the elements, or null after the timeout.
    ///
    /// `BLMPOP timeout numkeys key … <LEFT | RIGHT> [COUNT count]`
    pub fn blmpop<K, T>(
        &self,
        timeout: impl ToArg,
        keys: impl ToArgs,
        side: types::Side,
    ) -> Command<&Session, Option<(K, Vec<T>)>, options::Blmpop> {
        commands::blmpop(timeout, keys, side).on(self)
    }

    /// Removes and returns the first element of a list. Blocks until there is one. The reply is the key and the
    /// element, or null after the timeout.
    ///
    /// `BLPOP key … timeout`
    pub fn blpop<K, T>(
        &self,
        keys: impl ToArgs,
        timeout: impl ToArg,
    ) -> Command<&Session, Option<(K, T)>> {
        commands::blpop(keys, timeout).on(self)
    }

    /// Removes and returns the last element of a list. Blocks until there is one. The reply is the key and the
    /// element, or null after the timeout.
    ///
    /// `BRPOP key … timeout`
    pub fn brpop<K, T>(
        &self,
        keys: impl ToArgs,
        timeout: impl ToArg,
    ) -> Command<&Session, Option<(K, T)>> {
        commands::brpop(keys, timeout).on(self)
    }

    /// Returns an element by its index.
    ///
    /// `LINDEX key index`
    pub fn lindex<T>(&self, key: impl ToArg, index: impl ToArg) -> Command<&Session, Option<T>> {
        commands::lindex(key, index).on(self)
    }

    /// Inserts an element before or after the first one that equals a value.
    ///
    /// `LINSERT key <BEFORE | AFTER> pivot element`
    pub fn linsert(
        &self,
        key: impl ToArg,
        side: types::Place,
        pivot: impl ToArg,
        element: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::linsert(key, side, pivot, element).on(self)
    }

    /// Returns the length of a list.
    ///
    /// `LLEN key`
    pub fn llen(&self, key: impl ToArg) -> Command<&Session, i64> {
        commands::llen(key).on(self)
    }

    /// Moves an element from an end of one list to an end of another.
    ///
    /// `LMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT>`
    pub fn lmove<T>(
        &self,
        source: impl ToArg,
        destination: impl ToArg,
        from: types::Side,
        to: types::Side,
    ) -> Command<&Session, Option<T>> {
        commands::lmove(source, destination, from, to).on(self)
    }

    /// Removes and returns elements at an end of the first list that is not empty. The reply is the key and the
    /// elements, or null if all lists are empty.
    ///
    /// `LMPOP numkeys key … <LEFT | RIGHT> [COUNT count]`
    pub fn lmpop<K, T>(
        &self,
        keys: impl ToArgs,
        side: types::Side,
    ) -> Command<&Session, Option<(K, Vec<T>)>, options::Lmpop> {
        commands::lmpop(keys, side).on(self)
    }

    /// Removes and returns elements at the front of a list.
    ///
    /// `LPOP key [count]`
    pub fn lpop<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>, options::Lpop> {
        commands::lpop(key).on(self)
    }

    /// Returns the indexes of elements that equal a value.
    ///
    /// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`
    pub fn lpos(
        &self,
        key: impl ToArg,
        element: impl ToArg,
    ) -> Command<&Session, Option<i64>, options::Lpos> {
        commands::lpos(key, element).on(self)
    }

    /// Adds elements at the front of a list.
    ///
    /// `LPUSH key element …`
    pub fn lpush(&self, key: impl ToArg, elements: impl ToArgs) -> Command<&Session, i64> {
        commands::lpush(key, elements).on(self)
    }

    /// Adds elements at the front of a list only if the list exists.
    ///
    /// `LPUSHX key element …`
    pub fn lpushx(&self, key: impl ToArg, elements: impl ToArgs) -> Command<&Session, i64> {
        commands::lpushx(key, elements).on(self)
    }

    /// Returns the elements between two indexes.
    ///
    /// `LRANGE key start stop`
    pub fn lrange<T>(
        &self,
        key: impl ToArg,
        start: impl ToArg,
        stop: impl ToArg,
    ) -> Command<&Session, Vec<T>> {
        commands::lrange(key, start, stop).on(self)
    }

    /// Removes elements that equal a value.
    ///
    /// `LREM key count element`
    pub fn lrem(
        &self,
        key: impl ToArg,
        count: impl ToArg,
        element: impl ToArg,
    ) -> Command<&Session, i64> {
        commands::lrem(key, count, element).on(self)
    }

    /// Replaces an element by its index.
    ///
    /// `LSET key index element`
    pub fn lset(
        &self,
        key: impl ToArg,
        index: impl ToArg,
        element: impl ToArg,
    ) -> Command<&Session, ()> {
        commands::lset(key, index, element).on(self)
    }

    /// Keeps the elements between two indexes and removes all others.
    ///
    /// `LTRIM key start stop`
    pub fn ltrim(
        &self,
        key: impl ToArg,
        start: impl ToArg,
        stop: impl ToArg,
    ) -> Command<&Session, ()> {
        commands::ltrim(key, start, stop).on(self)
    }

    /// Removes and returns elements at the back of a list.
    ///
    /// `RPOP key [count]`
    pub fn rpop<T>(&self, key: impl ToArg) -> Command<&Session, Option<T>, options::Rpop> {
        commands::rpop(key).on(self)
    }

    /// Adds elements at the back of a list.
    ///
    /// `RPUSH key element …`
    pub fn rpush(&self, key: impl ToArg, elements: impl ToArgs) -> Command<&Session, i64> {
        commands::rpush(key, elements).on(self)
    }

    /// Adds elements at the back of a list only if the list exists.
    ///
    /// `RPUSHX key element …`
    pub fn rpushx(&self, key: impl ToArg, elements: impl ToArgs) -> Command<&Session, i64> {
        commands::rpushx(key, elements).on(self)
    }
}
