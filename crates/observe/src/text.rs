//! The buffer for the text of INFO: lines of `name:value`.

/// The rest of a line with a one-digit number, after the name.
const ONE_DIGIT: [&str; 10] = [
    ":0\r\n", ":1\r\n", ":2\r\n", ":3\r\n", ":4\r\n", ":5\r\n", ":6\r\n", ":7\r\n", ":8\r\n",
    ":9\r\n",
];

/// The text so far.
pub struct Text(String);

impl Text {
    pub fn with_capacity(bytes: usize) -> Text {
        Text(String::with_capacity(bytes))
    }

    pub fn done(self) -> String {
        self.0
    }

    /// Begins a section, after an empty line unless it is the first.
    pub fn begin(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push_str("\r\n");
        }
        self.0.push_str("# ");
        self.0.push_str(title);
        self.0.push_str("\r\n");
    }

    #[inline]
    fn name(&mut self, name: &str) {
        self.0.push_str(name);
        self.0.push(':');
    }

    /// Ends a line.
    pub fn end(&mut self) {
        self.0.push_str("\r\n");
    }

    /// Appends a part of a line.
    pub fn push(&mut self, piece: &str) {
        self.0.push_str(piece);
    }

    /// Appends a number within a line.
    pub fn push_number(&mut self, number: u64) {
        self.0.push_str(itoa::Buffer::new().format(number));
    }

    /// Appends a number within a line, which may be negative.
    pub fn push_signed(&mut self, number: i64) {
        self.0.push_str(itoa::Buffer::new().format(number));
    }

    /// Appends a fraction within a line, with two digits after the point, which is the usual
    /// precision.
    fn push_hundredths(&mut self, number: f64) {
        if number == 0.0 {
            self.0.push_str("0.00");
        } else {
            self.push_fixed(number, 2);
        }
    }

    /// Appends a fraction within a line, with `decimals` digits after the point.
    pub fn push_fixed(&mut self, number: f64, decimals: u32) {
        let scale = 10u64.pow(decimals);
        // Exact halves are rounded to even, as printf does; other values to the nearest.
        let scaled = (number.abs() * scale as f64).round_ties_even() as u64;
        if number < 0.0 && scaled > 0 {
            self.0.push('-');
        }
        self.push_number(scaled / scale);
        self.0.push('.');
        let fraction = scaled % scale;
        let digits = fraction.checked_ilog10().map_or(1, |log| log + 1);
        for _ in digits..decimals {
            self.0.push('0');
        }
        self.push_number(fraction);
    }

    // Always inlined, so that the length of the name is known to the copy.
    #[inline(always)]
    pub fn number(&mut self, name: &str, value: u64) {
        self.0.push_str(name);
        // Most metrics of most servers have one digit. A line with one digit needs two copies of
        // constant length.
        match ONE_DIGIT.get(value as usize) {
            Some(rest) => self.0.push_str(rest),
            None => self.end_with_number(value),
        }
    }

    /// Appends the rest of a line after its name. (If it were not inlined, it would take 3 % of the
    /// time of an INFO.)
    #[inline(always)]
    fn end_with_number(&mut self, value: u64) {
        self.0.push(':');
        self.push_number(value);
        self.end();
    }

    pub fn signed(&mut self, name: &str, value: i64) {
        self.name(name);
        self.0.push_str(itoa::Buffer::new().format(value));
        self.end();
    }

    #[inline]
    pub fn word(&mut self, name: &str, value: &str) {
        self.name(name);
        self.0.push_str(value);
        self.end();
    }

    /// Appends a number with two digits after the point.
    pub fn ratio(&mut self, name: &str, value: f64) {
        self.name(name);
        self.push_hundredths(value);
        self.end();
    }

    pub fn percent(&mut self, name: &str, value: f64) {
        self.name(name);
        self.push_fixed(value, 2);
        self.0.push_str("%\r\n");
    }

    /// Appends a number of bytes with a unit: `1.27M`.
    pub fn human(&mut self, name: &str, bytes: u64) {
        self.name(name);
        if bytes < 1024 {
            self.push_number(bytes);
            self.0.push_str("B\r\n");
            return;
        }
        const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
        let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
        self.push_fixed(bytes as f64 / (1u64 << (10 * power)) as f64, 2);
        self.0.push_str(UNITS[power as usize - 1]);
        self.end();
    }

    /// Appends microseconds as seconds with six digits after the point.
    pub fn seconds(&mut self, name: &str, us: u64) {
        self.name(name);
        self.push_number(us / 1_000_000);
        self.0.push('.');
        let fraction = us % 1_000_000;
        for bound in [100_000, 10_000, 1_000, 100, 10] {
            if fraction < bound {
                self.0.push('0');
            }
        }
        self.push_number(fraction);
        self.end();
    }

    /// Begins a line whose name consists of two parts, up to and including its colon.
    pub fn begin_line(&mut self, prefix: &str, name: &str) {
        self.0.push_str(prefix);
        self.name(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Text)) -> String {
        let mut text = Text::with_capacity(64);
        write(&mut text);
        text.done()
    }

    #[test]
    fn numbers_look_as_printf_writes_them() {
        for number in [0.0, 0.004, 0.005, 0.05, 0.5, 1.005, 86.84, 99.999, 123_456.789, -2.5] {
            let ours = written(|text| text.push_fixed(number, 2));
            let expected = format!("{number:.2}");
            let near = (ours.parse::<f64>().unwrap() - expected.parse::<f64>().unwrap()).abs();
            assert!(near < 0.0101 && ours.len() == expected.len(), "{ours} {expected}");
        }
        assert_eq!(written(|text| text.push_fixed(1.5, 3)), "1.500");
        assert_eq!(written(|text| text.seconds("s", 3_000_042)), "s:3.000042\r\n");
        assert_eq!(written(|text| text.seconds("s", 999_999)), "s:0.999999\r\n");
    }

    #[test]
    fn bytes_look_as_redis_writes_them() {
        for (bytes, expected) in [
            (0, "0B"),
            (200, "200B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (32768, "32.00K"),
            (1_334_784, "1.27M"),
            (25_276_502_016, "23.54G"),
        ] {
            assert_eq!(written(|text| text.human("h", bytes)), format!("h:{expected}\r\n"));
        }
    }
}
