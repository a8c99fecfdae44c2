//! The dense form: consecutive registers of six bits, low bits first. Bulk operations read and
//! write eight registers at a time, which are six bytes.

use super::Registers;

/// Visits all registers, eight at a time, one byte each.
#[inline]
pub(super) fn each(packed: &[u8], mut visit: impl FnMut(u64)) {
    for &[a, b, c, d, e, f] in packed.as_chunks::<6>().0 {
        visit(spread(u64::from_le_bytes([a, b, c, d, e, f, 0, 0])));
    }
}

/// Raises each register in `into` to that in `packed` if the latter is higher.
pub(super) fn merge(packed: &[u8], into: &mut Registers) {
    let mut eights = into.as_chunks_mut::<8>().0.iter_mut();
    each(packed, |values| {
        let Some(into) = eights.next() else { return };
        *into = greater(u64::from_le_bytes(*into), values).to_le_bytes();
    });
}

/// Returns the higher of each pair of corresponding bytes. No byte may have its highest bit set.
#[inline]
fn greater(a: u64, b: u64) -> u64 {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // If the byte of a is not less, its high bit remains set, and then becomes the seven bits below
    // it.
    let not_less = ((a | HIGH) - b) & HIGH;
    let mask = not_less - (not_less >> 7);
    b ^ (a ^ b) & mask
}

/// Writes all registers.
pub(super) fn write(packed: &mut [u8], registers: &Registers) {
    let eights = registers.as_chunks::<8>().0;
    for (six, eight) in packed.as_chunks_mut::<6>().0.iter_mut().zip(eights) {
        let [a, b, c, d, e, f, ..] = gather(u64::from_le_bytes(*eight)).to_le_bytes();
        *six = [a, b, c, d, e, f];
    }
}

/// Spreads 48 bits over eight bytes, six bits each.
#[inline]
fn spread(bits: u64) -> u64 {
    let x = bits & 0x00ff_ffff | (bits & 0xffff_ff00_0000) << 8;
    let x = x & 0x0000_0fff_0000_0fff | (x & 0x00ff_f000_00ff_f000) << 4;
    x & 0x003f_003f_003f_003f | (x & 0x0fc0_0fc0_0fc0_0fc0) << 2
}

/// The reverse of [`spread`]; the high bits of each byte are ignored.
#[inline]
fn gather(bytes: u64) -> u64 {
    let x = bytes & 0x003f_003f_003f_003f | bytes >> 2 & 0x0fc0_0fc0_0fc0_0fc0;
    let x = x & 0x0000_0fff_0000_0fff | x >> 4 & 0x00ff_f000_00ff_f000;
    x & 0x00ff_ffff | x >> 8 & 0xffff_ff00_0000
}
