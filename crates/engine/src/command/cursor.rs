//! A position in a request's arguments, for parsers that the handler and the search for keys share.
//!
//! If keys come after options, only the command's own parser knows which argument is a key. The parser uses a cursor,
//! so that the same code serves both: the search for keys ([`crate::command::Finder`]), which has only the arguments,
//! and the handler, which gets its cursor from [`crate::command::args::Args::cursor`].

/// The arguments starting at one position. `word` returns argument `i` of `argc`; 0 is the command's name.
pub struct Cursor<W> {
    word: W,
    argc: usize,
    next: usize,
}

impl<'w, W: Fn(usize) -> &'w [u8]> Cursor<W> {
    /// A cursor before argument `next`.
    pub fn new(word: W, argc: usize, next: usize) -> Cursor<W> {
        Cursor { word, argc, next: next.min(argc) }
    }

    /// The index of the next argument.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Number of arguments not yet taken.
    pub fn remaining(&self) -> usize {
        self.argc - self.next
    }

    /// Takes the next argument if there is one.
    pub fn optional(&mut self) -> Option<&'w [u8]> {
        (self.next < self.argc).then(|| {
            self.next += 1;
            (self.word)(self.next - 1)
        })
    }

    /// Takes the next `N` arguments, or none if there are fewer.
    pub fn take<const N: usize>(&mut self) -> Option<[&'w [u8]; N]> {
        let first = self.next;
        (self.remaining() >= N).then(|| {
            self.next += N;
            std::array::from_fn(|at| (self.word)(first + at))
        })
    }

    /// Takes `count` arguments and returns their indices, or takes none if there are fewer.
    pub fn take_range(&mut self, count: usize) -> Option<std::ops::Range<usize>> {
        let first = self.next;
        (self.remaining() >= count).then(|| {
            self.next += count;
            first..self.next
        })
    }
}
