//! A command as it will be sent: its arguments, already encoded, and the traits that decide how it is routed.
//!
//! The bytes are in a buffer that each thread reuses for its commands. Once the thread has a few buffers, a command
//! allocates no memory.

use crate::arg::{Args, ToArg, ToArgs};
use crate::effects::{Effects, effects};
use crate::error::Error;
use brisk_resp::reply::encode;
use brisk_resp::slot::key_slot;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// Buffers that a thread keeps for its next commands.
const KEPT_BUFFERS_MAX: usize = 64;
/// A larger buffer is freed instead of kept.
const KEPT_BYTES_MAX: usize = 4096;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

fn borrow_buffer() -> Vec<u8> {
    let kept = BUFFERS.try_with(|buffers| buffers.borrow_mut().pop()).ok().flatten();
    kept.unwrap_or_else(|| Vec::with_capacity(128))
}

fn give_back(mut buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > KEPT_BYTES_MAX {
        return;
    }
    buffer.clear();
    // A thread that is exiting no longer keeps buffers.
    let _ = BUFFERS.try_with(|buffers| {
        let mut buffers = buffers.borrow_mut();
        if buffers.len() < KEPT_BUFFERS_MAX {
            buffers.push(buffer);
        }
    });
}

/// Properties of a command that decide how it is routed and whether it may be sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// The command does not change data, so it may be sent again, and to a replica.
    pub reads_only: bool,
    /// The command may wait for other clients, so shared connections reject it. This is also determined from the
    /// arguments.
    pub blocks: bool,
    /// The command changes the state of the connection (SELECT, MULTI, SUBSCRIBE …), so shared connections reject it.
    /// This is also determined from the arguments.
    pub binds: bool,
}

/// The name and arguments of a command, encoded. `Debug` shows the name and the number of arguments, but not the
/// values, which may be secrets.
pub struct Request {
    /// The arguments, without the header with their number.
    body: Vec<u8>,
    args: u32,
    /// How many arguments form the name.
    name_len: u8,
    /// The range of the first key in `body`.
    key: Range<u32>,
    /// The range of the most recently added keys in `body`, with the values among them.
    keys: Range<u32>,
    /// Where options are inserted, if the command has arguments after them.
    options_at: u32,
    traits: Traits,
    /// The key of another command, by which this one is routed.
    companion: Option<Box<[u8]>>,
    /// The error, if an argument could not be written.
    failure: Option<Error>,
}

impl Request {
    /// Returns a command with this name, for example `CONFIG GET`, and no further arguments yet.
    #[must_use]
    pub fn new(name: &str, traits: Traits) -> Request {
        let mut request = Request {
            body: borrow_buffer(),
            args: 0,
            name_len: 0,
            key: 0..0,
            keys: 0..0,
            options_at: u32::MAX,
            traits,
            companion: None,
            failure: None,
        };
        name.split(' ').for_each(|arg| request.arg(arg));
        request.name_len = u8::try_from(request.args).unwrap_or(u8::MAX);
        request
    }

    /// The name given to [`Request::new`], in uppercase. O(bytes).
    pub(crate) fn name(&self) -> String {
        let args = self.arguments().take(usize::from(self.name_len));
        let args: Vec<_> = args.map(String::from_utf8_lossy).collect();
        args.join(" ").to_ascii_uppercase()
    }

    /// Returns a command with this name, in upper or lower case. The client assumes that the command changes data. For
    /// commands with a function in [`crate::commands`], the client determines from the arguments whether they block or
    /// change the connection.
    #[must_use]
    pub fn named(name: &str) -> Request {
        Request::new(name, Traits::default())
    }

    /// Appends an argument. O(bytes).
    #[inline]
    pub fn arg(&mut self, arg: impl ToArg) {
        let mut args = Args { out: &mut self.body, count: self.args, failure: None };
        arg.write(&mut args);
        let Args { count, failure, .. } = args;
        self.args = count;
        self.note_failure(failure);
    }

    /// Appends several arguments. O(bytes).
    pub fn args(&mut self, args: impl ToArgs) {
        let mut encoded = Args { out: &mut self.body, count: self.args, failure: None };
        args.write_all(&mut encoded);
        let Args { count, failure, .. } = encoded;
        self.args = count;
        self.note_failure(failure);
    }

    /// Keeps the first failure.
    #[inline]
    fn note_failure(&mut self, failure: Option<Error>) {
        if failure.is_some() && self.failure.is_none() {
            self.failure = failure;
        }
    }

    /// The error, if an argument could not be written.
    #[inline]
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Appends an argument that is a key. The first key selects the connection, and in a cluster the node.
    #[inline]
    pub fn key(&mut self, key: impl ToArg) {
        let at = self.body.len();
        self.arg(key);
        self.note_key(at);
    }

    /// Appends arguments that are keys.
    pub fn keys(&mut self, keys: impl ToArgs) {
        let at = self.body.len();
        self.args(keys);
        self.note_key(at);
    }

    /// Records that the bytes at `at` begin with an encoded key.
    #[inline]
    fn note_key(&mut self, at: usize) {
        if let (Ok(from), Ok(to)) = (u32::try_from(at), u32::try_from(self.body.len())) {
            // Adjacent keys are one range.
            let is_next = !self.keys.is_empty() && self.keys.end == from;
            self.keys = if is_next { self.keys.start } else { from }..to;
        }
        if !self.key.is_empty() {
            return;
        }
        let Some(header) = self.body.get(at..).filter(|rest| !rest.is_empty()) else { return };
        let Some(end) = header.iter().position(|byte| *byte == b'\r') else { return };
        let digits = header[1..end].iter();
        let len = digits.fold(0, |len: usize, digit| len * 10 + usize::from(digit - b'0'));
        let begin = at + end + 2;
        // A key beyond 4 GiB is sent, but not used for routing.
        if let (Ok(from), Ok(to)) = (u32::try_from(begin), u32::try_from(begin + len)) {
            self.key = from..to;
        }
    }

    /// Routes this command as if it had this key.
    pub(crate) fn goes_with(&mut self, key: &[u8]) {
        self.companion = Some(key.into());
    }

    /// Marks the position of options. Arguments that are added later come after the options.
    pub fn end_of_options(&mut self) {
        self.options_at = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
    }

    /// Adds the arguments of an option, before the arguments that follow the options. O(bytes of the arguments that
    /// follow).
    pub fn option(&mut self, write: impl FnOnce(&mut Request)) {
        let at = self.options_at as usize;
        if at >= self.body.len() {
            return write(self);
        }
        let end = self.body.len();
        write(self);
        let written = self.body.len() - end;
        self.body[at..].rotate_right(written);
        let moved = u32::try_from(written).unwrap_or(u32::MAX);
        let back = u32::try_from(end - at).unwrap_or(u32::MAX);
        self.options_at = self.options_at.saturating_add(moved);
        // `write` itself may have recorded keys, whose positions now have to move.
        let shift = |range: &Range<u32>| match range.start as usize {
            start if range.is_empty() || start < at => range.clone(),
            start if start < end => {
                range.start.saturating_add(moved)..range.end.saturating_add(moved)
            }
            _ => range.start - back..range.end - back,
        };
        (self.key, self.keys) = (shift(&self.key), shift(&self.keys));
    }

    /// The first key, if any.
    #[must_use]
    pub fn first_key(&self) -> Option<&[u8]> {
        if self.key.is_empty() {
            return self.companion.as_deref();
        }
        self.body.get(self.key.start as usize..self.key.end as usize)
    }

    /// The arguments as the server will see them, beginning with the name.
    pub fn arguments(&self) -> impl Iterator<Item = &[u8]> {
        strings_of(&self.body)
    }

    /// The number of arguments, including the name.
    pub(crate) fn argument_count(&self) -> u32 {
        self.args
    }

    /// The first argument.
    pub(crate) fn verb(&self) -> &[u8] {
        self.arguments().next().unwrap_or_default()
    }

    /// The key that selects the node of a cluster: the first key, or the channel of SPUBLISH.
    #[inline]
    pub(crate) fn routing_key(&self) -> Option<&[u8]> {
        self.first_key().or_else(|| {
            let is_published = self.args == 3 && self.verb().eq_ignore_ascii_case(b"SPUBLISH");
            if is_published { self.arguments().nth(1) } else { None }
        })
    }

    /// The slot of the routing key.
    pub(crate) fn slot(&self) -> Option<u16> {
        self.routing_key().map(key_slot)
    }

    /// The keys of the most recently added range, which may include the first key. Empty if that range is only the
    /// first key.
    pub(crate) fn later_keys(&self) -> impl Iterator<Item = &[u8]> {
        let range = self.keys.start as usize..self.keys.end as usize;
        let is_alone = self.keys.end == self.key.end.saturating_add(2);
        let keys = if is_alone && self.keys.start < self.key.start { 0..0 } else { range };
        // In MSETNX, each key is followed by its value.
        let step = if self.verb().eq_ignore_ascii_case(b"MSETNX") { 2 } else { 1 };
        strings_of(self.body.get(keys).unwrap_or_default()).step_by(step)
    }

    /// The traits, updated from the arguments so far. O(1) for most commands, else O(arguments).
    #[must_use]
    #[inline]
    pub fn traits(&self) -> Traits {
        let Effects { blocks, binds, .. } = self.effects();
        let Traits { reads_only, blocks: may_block, binds: may_bind } = self.traits;
        Traits { reads_only, blocks: blocks || may_block, binds: binds || may_bind }
    }

    /// Reports whether, from this request on, the server would no longer send exactly one reply to each request.
    #[inline]
    pub(crate) fn is_unpaired(&self) -> bool {
        self.effects().unpaired
    }

    #[inline]
    fn effects(&self) -> Effects {
        effects(self.arguments())
    }

    /// The encoded arguments: two commands are equal if these bytes are.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The approximate number of bytes to send.
    pub(crate) fn len(&self) -> usize {
        self.body.len() + 6
    }

    /// Appends the encoded request. O(bytes).
    #[inline]
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode::array(out, self.args as usize);
        out.extend_from_slice(&self.body);
    }
}

/// Consecutive encoded strings.
fn strings_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let end = rest.iter().position(|byte| *byte == b'\r')?;
        let len = std::str::from_utf8(rest.get(1..end)?).ok()?.parse::<usize>().ok()?;
        let arg = rest.get(end + 2..end + 2 + len)?;
        rest = rest.get(end + 4 + len..)?;
        Some(arg)
    })
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("name", &self.name())
            .field("args", &self.args)
            .field("bytes", &self.body.len())
            .field("traits", &self.traits)
            .finish_non_exhaustive()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.body));
    }
}

impl Clone for Request {
    fn clone(&self) -> Request {
        let mut body = borrow_buffer();
        body.extend_from_slice(&self.body);
        Request {
            body,
            args: self.args,
            name_len: self.name_len,
            key: self.key.clone(),
            keys: self.keys.clone(),
            options_at: self.options_at,
            traits: self.traits,
            companion: self.companion.clone(),
            failure: self.failure.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(request: &Request) -> String {
        let mut out = Vec::new();
        request.encode(&mut out);
        out.escape_ascii().to_string().replace("\\r\\n", "|")
    }

    #[test]
    fn options_precede_later_arguments_in_the_order_in_which_they_were_given() {
        let mut request = Request::new("ZADD", Traits::default());
        request.key("k");
        request.end_of_options();
        request.args((1, "m"));
        request.option(|request| request.arg("NX"));
        request.option(|request| request.args(["CH", "INCR"]));
        assert_eq!(shown(&request), "*7|$4|ZADD|$1|k|$2|NX|$2|CH|$4|INCR|$1|1|$1|m|");
        assert_eq!(request.first_key(), Some(&b"k"[..]));
    }

    #[test]
    fn a_key_after_the_options_is_found_at_its_new_position() {
        let mut request = Request::new("MIGRATE", Traits::default());
        request.end_of_options();
        request.keys(["key", "other"]);
        request.option(|request| request.arg("COPY"));
        assert_eq!(request.first_key(), Some(&b"key"[..]));
        assert_eq!(shown(&request), "*4|$7|MIGRATE|$4|COPY|$3|key|$5|other|");
    }

    #[test]
    fn a_name_of_two_words_is_two_arguments_and_an_empty_key_is_no_key() {
        let request = Request::new("CONFIG GET", Traits::default());
        assert_eq!(shown(&request), "*2|$6|CONFIG|$3|GET|");
        assert_eq!(request.first_key(), None);
        let mut request = Request::new("GET", Traits::default());
        request.key("");
        assert_eq!(request.first_key(), None);
    }
}
