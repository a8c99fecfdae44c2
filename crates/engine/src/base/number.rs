//! Reading and writing integers exactly as Redis does.

pub use brisk_structures::decimal::{decimal_len, parse_i64};

/// An integer's decimal digits, on the stack.
#[derive(Default)]
pub struct Digits(itoa::Buffer);

impl Digits {
    pub fn new() -> Digits {
        Digits(itoa::Buffer::new())
    }
    #[inline]
    pub fn format(&mut self, number: i64) -> &[u8] {
        self.0.format(number).as_bytes()
    }
}
