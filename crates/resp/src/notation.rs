//! The notation of the reference files in tests: `\r \n \t \\ \xHH`, and `{c*n}` for n times the
//! byte c.

/// Returns the bytes that a text in this notation stands for.
pub(crate) fn plain(noted: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = noted;
    while let Some(first) = rest.chars().next() {
        let (byte, times, len) = match first {
            '\\' => match &rest[1..2] {
                "r" => (b'\r', 1, 2),
                "n" => (b'\n', 1, 2),
                "t" => (b'\t', 1, 2),
                "\\" => (b'\\', 1, 2),
                "x" => (u8::from_str_radix(&rest[2..4], 16).expect("two digits"), 1, 4),
                other => panic!("unknown escape {other:?}"),
            },
            '{' => {
                let end = rest.find('}').expect("closing brace");
                (rest.as_bytes()[1], rest[3..end].parse().expect("a count"), end + 1)
            }
            ascii => (ascii as u8, 1, 1),
        };
        out.extend(std::iter::repeat_n(byte, times));
        rest = &rest[len..];
    }
    out
}
