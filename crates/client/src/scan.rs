//! Iterating over keys, hashes, sets and sorted sets page by page: SCAN, HSCAN, SSCAN, ZSCAN.
//!
//! A cursor is valid only on the server that returned it, so an iteration stays on one server. The elements of a key
//! are read from its primary. In a cluster, the caller of an iteration over all keys chooses the node.

use crate::arg::ToArg;
use crate::client::{Client, Cluster};
use crate::command::{Command, Target};
use crate::error::{Error, Kind, Result};
use crate::reply::FromReply;
use crate::request::{Request, Traits};
use crate::session::Session;
use crate::wait::block_on;
use std::fmt;
use std::marker::PhantomData;
use std::vec;

const READS: Traits = Traits { reads_only: true, blocks: false, binds: false };

/// An iteration over all keys, or over all elements of a key. [`Client::scan_keys`], [`Client::scan_hash`] and similar
/// methods return one.
///
/// Elements that exist from the first page to the last are returned at least once. Elements that are added or removed
/// during the iteration may or may not be returned, and some elements may be returned twice. Each page is one command,
/// and its cost depends on the [count](Scan::count). No command is sent before the first call to [`next`](Scan::next)
/// or [`page`](Scan::page). If you drop a future of these methods, nothing is lost: the next call requests the page
/// again.
///
/// ```no_run
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// let mut users = db.scan_keys::<String>().pattern("user:*").kind("hash").count(500);
/// while let Some(key) = users.next().await? {
///     let mut fields = db.scan_hash::<String, String>(&key);
///     while let Some((field, value)) = fields.next().await? {
///         println!("{key}: {field} = {value}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// To use an iteration as a `Stream` of another library (this crate depends on none):
///
/// ```no_run
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// use futures_util::{TryStreamExt, stream};
/// let users = db.scan_keys::<String>().pattern("user:*");
/// let users = stream::try_unfold(users, async |mut users| {
///     Ok::<_, brisk::Error>(users.next().await?.map(|key| (key, users)))
/// });
/// let users: Vec<String> = users.try_collect().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is sent before an element is requested"]
pub struct Scan<'a, C, T, W = Elements> {
    target: &'a C,
    /// The command's arguments up to the cursor.
    begin: Request,
    options: Options,
    /// The cursor of the current page.
    at: u64,
    /// The cursor of the next page; `None` after the last one.
    next: Option<u64>,
    page: vec::IntoIter<T>,
    of: PhantomData<W>,
}

impl<C, T, W> fmt::Debug for Scan<'_, C, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("command", &self.begin)
            .field("at", &self.at)
            .field("next", &self.next)
            .field("unread", &self.page.len())
            .finish_non_exhaustive()
    }
}

/// An iteration over keys; [`kind`](Scan::kind) limits it to one type.
#[derive(Clone, Copy, Debug)]
pub struct Keys(());

/// An iteration over the elements of a key.
#[derive(Clone, Copy, Debug)]
pub struct Elements(());

#[derive(Clone, Debug, Default)]
struct Options {
    pattern: Option<Request>,
    kind: Option<Request>,
    count: Option<u64>,
}

/// An argument, encoded once for several requests.
fn option(name: &str, value: impl ToArg) -> Option<Request> {
    let mut request = Request::new(name, READS);
    request.arg(value);
    Some(request)
}

impl<'a, C: Target, T: FromReply, W> Scan<'a, C, T, W> {
    fn new(target: &'a C, begin: Request) -> Scan<'a, C, T, W> {
        Scan {
            target,
            begin,
            options: Options::default(),
            at: 0,
            next: Some(0),
            page: Vec::new().into_iter(),
            of: PhantomData,
        }
    }

    /// Returns only elements that match this pattern.
    pub fn pattern(mut self, pattern: impl ToArg) -> Self {
        self.options.pattern = option("MATCH", pattern);
        self
    }

    /// Sets how many elements the server examines per page, approximately. The server's default is 10. A count of a few
    /// hundred is faster.
    pub fn count(mut self, count: u64) -> Self {
        self.options.count = Some(count);
        self
    }

    /// Starts at the cursor of another iteration, see [`Scan::cursor`]. Pattern, kind and key must be the same as in
    /// that iteration.
    pub fn from_cursor(mut self, cursor: u64) -> Self {
        self.at = cursor;
        self.next = Some(cursor);
        self.page = Vec::new().into_iter();
        self
    }

    /// Returns a cursor for [`Scan::from_cursor`], valid on the same server. An iteration from that cursor returns all
    /// elements that this iteration has not returned yet. It begins with the current page, or with the next page if the
    /// current one has been returned completely. `None` after the last page.
    #[must_use]
    pub fn cursor(&self) -> Option<u64> {
        if self.page.as_slice().is_empty() { self.next } else { Some(self.at) }
    }

    /// Returns the next element; `None` after the last.
    ///
    /// # Errors
    /// Errors of the server or the connection, after which you can continue the iteration.
    /// [`Kind::UnexpectedReply`](crate::Kind::UnexpectedReply) if an element cannot be converted to `T`.
    pub async fn next(&mut self) -> Result<Option<T>> {
        loop {
            if let Some(element) = self.page.next() {
                return Ok(Some(element));
            }
            match self.fetch().await? {
                Some(page) => self.page = page.into_iter(),
                None => return Ok(None),
            }
        }
    }

    /// Returns the rest of the current page, or the next page, which may be empty; `None` after the last.
    ///
    /// # Errors
    /// Those of [`Scan::next`].
    pub async fn page(&mut self) -> Result<Option<Vec<T>>> {
        match self.page.as_slice().is_empty() {
            true => self.fetch().await,
            false => Ok(Some(std::mem::take(&mut self.page).collect())),
        }
    }

    /// Like [`Scan::next`], but blocks this thread. No runtime is needed.
    ///
    /// # Errors
    /// Those of [`Scan::next`].
    pub fn wait_next(&mut self) -> Result<Option<T>> {
        block_on(Box::pin(self.next()))
    }

    /// Like [`Scan::page`], but blocks this thread. No runtime is needed.
    ///
    /// # Errors
    /// Those of [`Scan::next`].
    pub fn wait_page(&mut self) -> Result<Option<Vec<T>>> {
        block_on(Box::pin(self.page()))
    }

    /// Requests the next page. A cursor is valid on only one server.
    async fn fetch(&mut self) -> Result<Option<Vec<T>>> {
        let Some(cursor) = self.next else { return Ok(None) };
        let is_of_all = self.begin.first_key().is_none();
        if is_of_all && self.target.cluster().is_some_and(Cluster::is_sharded) {
            let text =
                "an iteration over all keys runs on one server: iterate on each of `primaries()`";
            return Err(Error::new(Kind::Invalid, text));
        }
        let command: Command<(), (u64, Vec<T>)> = Command::new(self.request(cursor));
        let (next, page) = command.on(self.target).await?;
        self.at = cursor;
        self.next = (next != 0).then_some(next);
        Ok(Some(page))
    }

    fn request(&self, cursor: u64) -> Request {
        let mut request = self.begin.clone();
        request.arg(cursor);
        for option in [&self.options.pattern, &self.options.kind].into_iter().flatten() {
            option.arguments().for_each(|arg| request.arg(arg));
        }
        if let Some(count) = self.options.count {
            request.arg("COUNT");
            request.arg(count);
        }
        request
    }
}

macro_rules! scans {
    ($owner:ty, $about:literal) => {
        #[doc = $about]
        impl $owner {
            /// Iterates over all keys of the database; see [`Scan`] for the guarantees. In a cluster, each node has a
            /// part of the keys, so start one iteration on each of [`Client::primaries`]. On the client of the whole
            /// cluster, the iteration fails with [`Kind::Invalid`](crate::Kind::Invalid).
            pub fn scan_keys<T: FromReply>(&self) -> Scan<'_, $owner, T, Keys> {
                Scan::new(self, Request::new("SCAN", READS))
            }

            /// Iterates over the fields of a hash, with their values.
            pub fn scan_hash<F: FromReply, V: FromReply>(
                &self,
                key: impl ToArg,
            ) -> Scan<'_, $owner, (F, V)> {
                Scan::new(self, of("HSCAN", key))
            }

            /// Iterates over the members of a set.
            pub fn scan_set<T: FromReply>(&self, key: impl ToArg) -> Scan<'_, $owner, T> {
                Scan::new(self, of("SSCAN", key))
            }

            /// Iterates over the members of a sorted set, with their scores.
            pub fn scan_sorted_set<T: FromReply>(
                &self,
                key: impl ToArg,
            ) -> Scan<'_, $owner, (T, f64)> {
                Scan::new(self, of("ZSCAN", key))
            }
        }
    };
}

fn of(name: &str, key: impl ToArg) -> Request {
    let mut request = Request::new(name, READS);
    request.key(key);
    request
}

scans!(Client, "Iterations that take many requests.");
scans!(Session, "Iterations that take many requests.");

impl<C: Target, T: FromReply> Scan<'_, C, T, Keys> {
    /// Returns only keys of this type, named as in the reply to TYPE: `string`, `hash` …
    pub fn kind(mut self, kind: impl ToArg) -> Self {
        self.options.kind = option("TYPE", kind);
        self
    }
}
