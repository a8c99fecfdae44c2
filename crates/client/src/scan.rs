//! Walking through keys, hashes, sets and sorted sets page by page: SCAN, HSCAN, SSCAN, ZSCAN.
//!
//! A cursor belongs to the server that gave it, so a walk is one server's: elements of a key are asked of its primary,
//! and in a cluster who walks through all keys says which node's.

use crate::arg::ToArg;
use crate::client::{Client, Cluster};
use crate::command::{Command, Target};
use crate::error::{Error, Kind, Result};
use crate::reply::FromReply;
use crate::request::{Request, Traits};
use crate::session::Session;
use crate::wait::block_on;
use std::marker::PhantomData;
use std::vec;

const READS: Traits = Traits { reads_only: true, blocks: false, binds: false };

/// A walk through all keys, or all elements of a key; made by [`Client::scan_keys`] and its like.
///
/// What is there from the first page to the last is given at least once; what comes or goes meanwhile, perhaps;
/// and some maybe twice. A page is one command, and costs as much as its [count](Scan::count). Nothing is sent
/// before something is asked for. A future that is dropped loses nothing: its page is asked for again.
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
/// To use it as a `Stream` of any library (this crate depends on none):
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
#[must_use = "nothing is sent before something is asked for"]
#[derive(Debug)]
pub struct Scan<'a, C, T, W = Elements> {
    target: &'a C,
    /// The command's words up to the cursor.
    begin: Request,
    options: Options,
    /// Where the page that is at hand begins.
    at: u64,
    /// Where the next one does; `None` behind the last.
    next: Option<u64>,
    page: vec::IntoIter<T>,
    of: PhantomData<W>,
}

/// A walk through keys, which may be asked for one [kind](Scan::kind).
#[derive(Clone, Copy, Debug)]
pub struct Keys(());

/// A walk through the elements of a key.
#[derive(Clone, Copy, Debug)]
pub struct Elements(());

#[derive(Clone, Debug, Default)]
struct Options {
    pattern: Option<Request>,
    kind: Option<Request>,
    count: Option<u64>,
}

/// A word, kept for several requests.
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

    /// Only what matches this pattern.
    pub fn pattern(mut self, pattern: impl ToArg) -> Self {
        self.options.pattern = option("MATCH", pattern);
        self
    }

    /// About so many elements are looked at for a page. The server's default is 10; some hundreds are faster.
    pub fn count(mut self, count: u64) -> Self {
        self.options.count = Some(count);
        self
    }

    /// Goes on where another walk was, see [`Scan::cursor`]. Pattern, kind and key have to be the same.
    pub fn from_cursor(mut self, cursor: u64) -> Self {
        self.at = cursor;
        self.next = Some(cursor);
        self.page = Vec::new().into_iter();
        self
    }

    /// From where a walk gives all that this one has not given yet, on the same server: the page at hand begins
    /// there, or the next one if all of that was given. `None` if there is nothing more.
    #[must_use]
    pub fn cursor(&self) -> Option<u64> {
        if self.page.as_slice().is_empty() { self.next } else { Some(self.at) }
    }

    /// The next element; `None` behind the last.
    ///
    /// # Errors
    /// The server's, or the connection's; then the walk can go on all the same.
    /// [`Kind::UnexpectedReply`](crate::Kind::UnexpectedReply) if `T` does not fit.
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

    /// The rest of the page at hand, or the next page, which may be empty; `None` behind the last.
    ///
    /// # Errors
    /// As [`Scan::next`].
    pub async fn page(&mut self) -> Result<Option<Vec<T>>> {
        match self.page.as_slice().is_empty() {
            true => self.fetch().await,
            false => Ok(Some(std::mem::take(&mut self.page).collect())),
        }
    }

    /// As [`Scan::next`], on this thread and without a runtime.
    ///
    /// # Errors
    /// As [`Scan::next`].
    pub fn wait_next(&mut self) -> Result<Option<T>> {
        block_on(Box::pin(self.next()))
    }

    /// As [`Scan::page`], on this thread and without a runtime.
    ///
    /// # Errors
    /// As [`Scan::next`].
    pub fn wait_page(&mut self) -> Result<Option<Vec<T>>> {
        block_on(Box::pin(self.page()))
    }

    /// Asks for the next page. A cursor is one server's.
    async fn fetch(&mut self) -> Result<Option<Vec<T>>> {
        let Some(cursor) = self.next else { return Ok(None) };
        let is_of_all = self.begin.first_key().is_none();
        if is_of_all && self.target.cluster().is_some_and(Cluster::is_sharded) {
            let text = "a walk through all keys is one server's: take one of each of `primaries()`";
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
            option.words().for_each(|word| request.arg(word));
        }
        if let Some(count) = self.options.count {
            request.arg("COUNT");
            request.arg(count);
        }
        request
    }
}

macro_rules! walks {
    ($owner:ty, $about:literal) => {
        #[doc = $about]
        impl $owner {
            /// Walks through all keys of the database; see [`Scan`] for what is promised. In a cluster each
            /// node has a part of the keys: one walk of each of [`Client::primaries`]; else
            /// [`Kind::Invalid`](crate::Kind::Invalid).
            pub fn scan_keys<T: FromReply>(&self) -> Scan<'_, $owner, T, Keys> {
                Scan::new(self, Request::new("SCAN", READS))
            }

            /// Walks through the fields of a hash, with their values.
            pub fn scan_hash<F: FromReply, V: FromReply>(
                &self,
                key: impl ToArg,
            ) -> Scan<'_, $owner, (F, V)> {
                Scan::new(self, of("HSCAN", key))
            }

            /// Walks through the members of a set.
            pub fn scan_set<T: FromReply>(&self, key: impl ToArg) -> Scan<'_, $owner, T> {
                Scan::new(self, of("SSCAN", key))
            }

            /// Walks through the members of a sorted set, with their scores.
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

walks!(Client, "Walks that take many requests.");
walks!(Session, "Walks that take many requests.");

impl<C: Target, T: FromReply> Scan<'_, C, T, Keys> {
    /// Only keys of this type, as TYPE names it: `string`, `hash` …
    pub fn kind(mut self, kind: impl ToArg) -> Self {
        self.options.kind = option("TYPE", kind);
        self
    }
}
