//! Commands as users write them, compiled to bytes with places to patch.
//!
//! A command is a list of arguments. `__rand_int__` within an argument becomes a 12-digit number, drawn for each
//! occurrence in each request. `__data__` becomes a value, and in cluster mode, `{tag}` becomes a hash tag of the
//! addressed node. If values have one size, the whole request is fixed bytes, and only digits (and rarely tags) change
//! from one request to the next:
//!
//! ```text
//!  *3 $3 SET $16 key:000000000042 $3 xxx
//!                    \_ patched _/
//! ```

use super::random::Random;
use super::sizes::ValueSizes;
use super::tag::TAG_WORD;
use memchr::memmem;
use std::sync::Arc;

/// Placeholder for a number with [`DIGITS`] digits.
pub const NUMBER_WORD: &str = "__rand_int__";
/// Placeholder for a value.
pub const DATA_WORD: &str = "__data__";
/// Digits of a number.
pub const DIGITS: usize = 12;

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Number,
    Data,
    Tag,
}

/// Which placeholders are replaced; `__data__` always is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placeholders {
    /// `__rand_int__`
    pub numbers: bool,
    /// `{tag}`
    pub tags: bool,
}

/// A place in a request that contains [`DIGITS`] digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset of the first digit.
    pub at: usize,
    /// True if a number is drawn for this place. Otherwise it repeats the last drawn number (as the mark of a key in
    /// its value).
    pub drawn: bool,
}

/// The places of a request, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The places of numbers.
    pub numbers: Vec<Place>,
    /// Offsets of the text between the braces of hash tags.
    pub tags: Vec<usize>,
}

impl Places {
    /// Removes all places.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.tags.clear();
    }
}

/// The contents and sizes of values.
#[derive(Clone, Debug)]
pub struct Values {
    /// Every value is a prefix of this.
    pub data: Arc<[u8]>,
    /// The sizes of values.
    pub sizes: ValueSizes,
    /// True if values of at least [`DIGITS`] bytes begin with the number of their key, so that a reply shows to which
    /// key the value belongs.
    pub marked: bool,
}

/// One command, ready to be written into request buffers.
#[derive(Clone, Debug)]
pub struct Template {
    words: Vec<Vec<Part>>,
    /// True for an inline request, which has no headers.
    inline: bool,
    values: Values,
    /// The whole request with its places, if all its values have one size.
    whole: Option<(Vec<u8>, Places)>,
}

impl Template {
    /// Compiles a command with these arguments.
    #[must_use]
    pub fn new<W: AsRef<[u8]>>(words: &[W], replaced: Placeholders, values: &Values) -> Template {
        let words = words.iter().map(|word| parts(word.as_ref(), replaced)).collect();
        Template::compiled(words, false, values)
    }

    /// Compiles an inline request, without RESP headers.
    #[must_use]
    pub fn inline(line: &str, values: &Values) -> Template {
        Template::compiled(vec![parts(line.as_bytes(), Placeholders::default())], true, values)
    }

    fn compiled(words: Vec<Vec<Part>>, inline: bool, values: &Values) -> Template {
        let mut template = Template { words, inline, values: values.clone(), whole: None };
        let has_data = template.words.iter().flatten().any(|part| *part == Part::Data);
        if let Some(size) = values.sizes.fixed().or((!has_data).then_some(0)) {
            let (mut bytes, mut places) = (Vec::new(), Places::default());
            template.write(&mut bytes, &mut places, || size);
            template.whole = Some((bytes, places));
        }
        template
    }

    /// The request and its places, if requests differ only in digits and tags.
    #[must_use]
    pub fn whole(&self) -> Option<(&[u8], &Places)> {
        self.whole.as_ref().map(|(bytes, places)| (bytes.as_slice(), places))
    }

    /// Reports whether it contains a hash tag.
    #[must_use]
    pub fn is_tagged(&self) -> bool {
        self.words.iter().flatten().any(|part| *part == Part::Tag)
    }

    /// Appends one request to `out` and its places to `places`.
    pub fn append(&self, out: &mut Vec<u8>, places: &mut Places, random: &mut Random) {
        match &self.whole {
            Some((bytes, own)) => {
                let base = out.len();
                out.extend_from_slice(bytes);
                let numbers = own.numbers.iter();
                places.numbers.extend(numbers.map(|place| Place { at: base + place.at, ..*place }));
                places.tags.extend(own.tags.iter().map(|at| base + at));
            }
            None => self.write(out, places, || self.values.sizes.draw(random)),
        }
    }

    fn write(&self, out: &mut Vec<u8>, places: &mut Places, mut size: impl FnMut() -> usize) {
        if !self.inline {
            out.extend_from_slice(format!("*{}\r\n", self.words.len()).as_bytes());
        }
        // True if a number precedes, whose digits can mark a value.
        let mut numbered = false;
        for word in &self.words {
            // Each value in an argument has its own size. The sizes are drawn before the header is written.
            let sizes: Vec<usize> =
                word.iter().map(|part| if *part == Part::Data { size() } else { 0 }).collect();
            if !self.inline {
                let len: usize = word.iter().zip(&sizes).map(|(part, &size)| part.len(size)).sum();
                out.extend_from_slice(format!("${len}\r\n").as_bytes());
            }
            for (part, &size) in word.iter().zip(&sizes) {
                match part {
                    Part::Bytes(bytes) => out.extend_from_slice(bytes),
                    Part::Number => {
                        places.numbers.push(Place { at: out.len(), drawn: true });
                        out.extend_from_slice(&[b'0'; DIGITS]);
                        numbered = true;
                    }
                    Part::Tag => {
                        places.tags.push(out.len() + 1);
                        out.extend_from_slice(TAG_WORD.as_bytes());
                    }
                    Part::Data => {
                        let marked = self.values.marked && numbered && size >= DIGITS;
                        let mut data = &self.values.data[..size];
                        if marked {
                            places.numbers.push(Place { at: out.len(), drawn: false });
                            out.extend_from_slice(&[b'0'; DIGITS]);
                            data = &data[DIGITS..];
                        }
                        out.extend_from_slice(data);
                    }
                }
            }
            out.extend_from_slice(b"\r\n");
        }
    }
}

impl Part {
    fn len(&self, size: usize) -> usize {
        match self {
            Part::Bytes(bytes) => bytes.len(),
            Part::Number => DIGITS,
            Part::Data => size,
            Part::Tag => TAG_WORD.len(),
        }
    }
}

fn parts(word: &[u8], replaced: Placeholders) -> Vec<Part> {
    let placeholders = [
        (DATA_WORD, Part::Data, true),
        (NUMBER_WORD, Part::Number, replaced.numbers),
        (TAG_WORD, Part::Tag, replaced.tags),
    ];
    let mut parts = Vec::new();
    let mut rest = word;
    loop {
        let found = placeholders.iter().filter(|(.., is_replaced)| *is_replaced).filter_map(
            |(text, part, _)| Some((memmem::find(rest, text.as_bytes())?, part, text.len())),
        );
        let Some((at, part, len)) = found.min_by_key(|(at, ..)| *at) else { break };
        if at > 0 {
            parts.push(Part::Bytes(rest[..at].to_vec()));
        }
        parts.push(part.clone());
        rest = &rest[at + len..];
    }
    if !rest.is_empty() {
        parts.push(Part::Bytes(rest.to_vec()));
    }
    parts
}

/// Writes the last `2 * pairs` digits of `number`, and leaves the other digits unchanged. Numbers below a bound differ
/// only in their last digits, and places initially contain zeros, so the leading digits need not be written each time.
#[inline]
pub fn write_digits(out: &mut [u8; DIGITS], mut number: u64, pairs: usize) {
    const PAIRS: [[u8; 2]; 100] = {
        let mut pairs = [[0; 2]; 100];
        let mut i = 0;
        while i < 100 {
            pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
            i += 1;
        }
        pairs
    };
    for place in out.as_chunks_mut::<2>().0.iter_mut().rev().take(pairs) {
        *place = PAIRS[(number % 100) as usize];
        number /= 100;
    }
}

/// The number of digit pairs that numbers below `bound` need.
#[must_use]
pub const fn pairs_below(bound: u64) -> usize {
    let (mut rest, mut pairs) = (bound.saturating_sub(1), 0);
    while rest > 0 && pairs < DIGITS / 2 {
        rest /= 100;
        pairs += 1;
    }
    pairs
}

/// The bytes of values, generated as in redis-benchmark: printable and hard to compress.
#[must_use]
pub fn value_bytes(len: usize) -> Arc<[u8]> {
    let mut state: u32 = 1234;
    let next = |_| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        b'0' + (state >> 16 & 63) as u8
    };
    (0..len).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(sizes: &str, marked: bool) -> Values {
        let sizes: ValueSizes = sizes.parse().unwrap();
        Values { data: value_bytes(sizes.max()), sizes, marked }
    }

    const NUMBERS: Placeholders = Placeholders { numbers: true, tags: false };
    const NONE: Placeholders = Placeholders { numbers: false, tags: false };

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace("\r\n", " ")
    }

    #[test]
    fn a_request_of_fixed_size_is_bytes_and_positions() {
        let template =
            Template::new(&["SET", "key:__rand_int__", "__data__"], NUMBERS, &values("3", false));
        let (bytes, places) = template.whole().unwrap();
        assert_eq!(text(bytes), "*3 $3 SET $16 key:000000000000 $3 VXK ");
        assert_eq!(places.numbers, [Place { at: 22, drawn: true }]);
        assert_eq!(&bytes[22..34], b"000000000000");
    }

    #[test]
    fn without_a_keyspace_the_placeholder_is_ordinary_text() {
        let template = Template::new(&["GET", "key:__rand_int__"], NONE, &values("3", false));
        let (bytes, places) = template.whole().unwrap();
        assert_eq!(text(bytes), "*2 $3 GET $16 key:__rand_int__ ");
        assert_eq!(*places, Places::default());
    }

    #[test]
    fn placeholders_can_be_anywhere_in_an_argument() {
        let words = ["x__data__y__rand_int____rand_int__", "__rand_int"];
        let template = Template::new(&words, NUMBERS, &values("2", false));
        let (bytes, places) = template.whole().unwrap();
        assert_eq!(text(bytes), "*2 $28 xVXy000000000000000000000000 $10 __rand_int ");
        assert_eq!(places.numbers.len(), 2);
    }

    #[test]
    fn a_hash_tag_is_a_placeholder_in_cluster_mode_only() {
        let words = ["SET", "key:{tag}:__rand_int__", "{tag}__data__"];
        let tagged = Placeholders { numbers: true, tags: true };
        let template = Template::new(&words, tagged, &values("2", false));
        let (bytes, places) = template.whole().unwrap();
        assert_eq!(text(bytes), "*3 $3 SET $22 key:{tag}:000000000000 $7 {tag}VX ");
        assert!(places.tags.iter().all(|at| &bytes[*at..*at + 3] == b"tag"), "{places:?}");
        assert_eq!((places.tags.len(), places.numbers.len()), (2, 1));
        assert!(template.is_tagged());
        let plain = Template::new(&words, NUMBERS, &values("2", false));
        assert_eq!(plain.whole().unwrap().0, bytes);
        assert!(!plain.is_tagged() && plain.whole().unwrap().1.tags.is_empty());
    }

    #[test]
    fn a_value_carries_the_number_of_its_key_if_it_has_room() {
        let words = ["SET", "key:__rand_int__", "__data__"];
        let marked = Template::new(&words, NUMBERS, &values("20", true));
        let (bytes, places) = marked.whole().unwrap();
        assert_eq!(places.numbers, [Place { at: 22, drawn: true }, Place { at: 41, drawn: false }]);
        assert_eq!(&bytes[36..41], b"$20\r\n");
        let short = Template::new(&words, NUMBERS, &values("11", true));
        assert_eq!(short.whole().unwrap().1.numbers.len(), 1);
    }

    #[test]
    fn sizes_that_vary_are_drawn_for_each_request() {
        let template = Template::new(&["SET", "k", "__data__"], NUMBERS, &values("1-9", false));
        assert!(template.whole().is_none());
        let (mut random, mut lengths) = (Random::new(1), Vec::new());
        for _ in 0..100 {
            let (mut bytes, mut places) = (Vec::new(), Places::default());
            template.append(&mut bytes, &mut places, &mut random);
            lengths.push(bytes.len());
            let len = bytes.len() - "*3  $3  SET  $1  k  $N    ".len();
            assert_eq!(bytes[bytes.len() - len - 5], b'0' + len as u8, "{}", text(&bytes));
        }
        lengths.sort_unstable();
        lengths.dedup();
        assert_eq!(lengths.len(), 9);
    }

    #[test]
    fn as_many_digits_are_written_as_a_keyspace_needs() {
        for (keyspace, number, wanted) in [
            (1, 0, "000000000000"),
            (100, 42, "000000000042"),
            (101, 100, "000000000100"),
            (1_000_000_000_000, 987_654_321_012, "987654321012"),
            (u64::MAX, 7_987_654_321_012, "987654321012"),
        ] {
            let mut out = [b'0'; DIGITS];
            write_digits(&mut out, number, pairs_below(keyspace));
            assert_eq!(out, wanted.as_bytes());
        }
        assert_eq!(
            (pairs_below(0), pairs_below(1), pairs_below(2), pairs_below(101)),
            (0, 0, 1, 2)
        );
    }

    #[test]
    fn inline_requests_are_a_line() {
        let template = Template::inline("PING", &values("3", false));
        assert_eq!(template.whole().unwrap().0, b"PING\r\n");
    }
}
