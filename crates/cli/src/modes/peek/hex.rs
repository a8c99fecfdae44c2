//! A dump of bytes: their offset, their hexadecimal digits, and the ASCII characters among them.

const BYTES_PER_LINE: usize = 16;

/// The lines of a dump, each with a line end. `offset` is the position of the first byte.
pub(super) fn dump(bytes: &[u8], offset: usize) -> String {
    let mut text = String::new();
    for (number, line) in bytes.chunks(BYTES_PER_LINE).enumerate() {
        text.push_str(&format!("{:08x} ", offset + number * BYTES_PER_LINE));
        for at in 0..BYTES_PER_LINE {
            text.push_str(if at == BYTES_PER_LINE / 2 { " " } else { "" });
            match line.get(at) {
                Some(byte) => text.push_str(&format!(" {byte:02x}")),
                None => text.push_str("   "),
            }
        }
        let shown = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' };
        text.push_str(&format!("  |{}|\n", line.iter().map(shown).collect::<String>()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_has_the_layout_of_hexdump() {
        // The output of `hexdump -C`, without its last line.
        assert_eq!(
            dump(b"brisk\x00\x01\xff0123456789", 0),
            "00000000  62 72 69 73 6b 00 01 ff  30 31 32 33 34 35 36 37  |brisk...01234567|\n\
             00000010  38 39                                             |89|\n"
        );
    }
}
