//! Huge pages of memory that has small ones; on Linux.

use std::ops::Range;
use std::ptr::without_provenance_mut;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Has the kernel make huge pages at once of memory that the allocator wants in such, as far as it
/// can (Linux 6.1 and later); else it does so by and by. `mappings` is what `/proc/self/smaps`
/// tells. Where less than half of a huge page would be used, it is not made: it would take what the
/// allocator has just given back. Takes about a millisecond per huge page, in which accesses to
/// that one wait.
pub fn make_huge_pages(mappings: &str) {
    for start in places_worth_it(mappings) {
        let start = without_provenance_mut(start);
        // SAFETY: this advice changes where pages lie and nothing that can be read or written,
        // whatever is mapped there by now; failure is harmless.
        unsafe { libc::madvise(start, HUGE, libc::MADV_COLLAPSE) };
    }
}

/// Where huge pages were asked for and at least half of one would be used.
fn places_worth_it(mappings: &str) -> impl Iterator<Item = usize> {
    let places = |range: Range<usize>| {
        let whole = move |start: &usize| range.end - start >= HUGE;
        (range.start.next_multiple_of(HUGE)..range.end).step_by(HUGE).filter(whole)
    };
    wanted_huge(mappings).flat_map(places).filter(|start| resident_bytes(*start) >= HUGE / 2)
}

/// How many bytes of the place for a huge page at `start` have memory behind them; 0 if nothing is
/// mapped there any more.
fn resident_bytes(start: usize) -> usize {
    /// The smallest pages that a system has.
    const PAGE_MIN: usize = 4096;
    let mut pages = [0u8; HUGE / PAGE_MIN];
    // SAFETY: there is a byte for each page of the range, since none is smaller; what is mapped at
    // `start` is looked at by the kernel alone.
    let result =
        unsafe { libc::mincore(without_provenance_mut(start), HUGE, pages.as_mut_ptr().cast()) };
    // SAFETY: asks for a number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let resident = pages.iter().filter(|page| **page & 1 != 0).count();
    if result == 0 { resident * usize::try_from(page_bytes).unwrap_or(PAGE_MIN) } else { 0 }
}

/// The addresses that huge pages were asked for, in a text of this form: a
/// line with the addresses, lines with figures, and one with flags, of which `hg` says so.
fn wanted_huge(mappings: &str) -> impl Iterator<Item = Range<usize>> {
    let mut last = None;
    mappings.lines().filter_map(move |line| {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            return last.take().filter(|_| flags.split(' ').any(|flag| flag == "hg"));
        }
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        last = Some(address(start)?..address(end)?);
        None
    })
}

#[cfg(test)]
mod tests {
    use super::{HUGE, places_worth_it, wanted_huge};

    #[test]
    fn huge_pages_are_made_where_they_were_asked_for() {
        let mappings = "7f00-7f80 rw-p 00000000 00:00 0 \nSize: 512 kB\nAnonHugePages: 0 kB\n\
                        VmFlags: rd wr mr mw me ac sd hg \n\
                        9000-a000 r-xp 00001000 fe:00 7 /usr/lib/some-library.so-hg\n\
                        VmFlags: rd ex mr mw me \nodd line\nVmFlags: hg\n\
                        b000-c000 rw-p 0 0:0 0\nVmFlags: hg rd\n";
        assert_eq!(wanted_huge(mappings).collect::<Vec<_>>(), [0x7f00..0x7f80, 0xb000..0xc000]);
        // Of this process: nothing that it has is lost.
        let bytes = vec![7u8; 4 << 20];
        super::make_huge_pages(&std::fs::read_to_string("/proc/self/smaps").unwrap());
        assert!(bytes.iter().all(|byte| *byte == 7));
    }

    /// Pages that were given back stay given back.
    #[test]
    fn huge_pages_are_worth_it_where_much_is_used() {
        const PAGE: usize = 4096;
        let (length, access) = (4 * HUGE, libc::PROT_READ | libc::PROT_WRITE);
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping wherever the kernel likes; ended below.
        let mapping =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0) }.cast::<u8>();
        let skipped = mapping.align_offset(HUGE);
        assert!(skipped < HUGE, "not mapped");
        // SAFETY: two huge pages' places from the first boundary on are within the four mapped.
        // They are written first at one byte of the one and at each page of the other.
        let (little, much) = unsafe {
            let little = mapping.add(skipped);
            libc::madvise(mapping.cast(), length, libc::MADV_NOHUGEPAGE);
            little.write(1);
            let much = little.add(HUGE);
            (0..HUGE).step_by(PAGE).for_each(|at| much.add(at).write(1));
            (little.addr(), much.addr())
        };
        let mappings = format!("{little:x}-{:x} rw-p 0 0:0 0\nVmFlags: rd wr hg\n", much + HUGE);
        assert_eq!(places_worth_it(&mappings).collect::<Vec<_>>(), [much]);
        // SAFETY: the mapping made above; nothing refers to it any more.
        unsafe { libc::munmap(mapping.cast(), length) };
    }
}
