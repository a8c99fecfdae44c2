//! Converts memory from small to huge pages, on Linux.

use std::ops::Range;
use std::ptr::without_provenance_mut;

/// Size of a huge page in bytes.
const HUGE: usize = 2 << 20;

/// Makes the kernel immediately collapse memory for which the allocator has requested huge pages
/// (Linux 6.1 and later). Without this, the kernel does it gradually. `mappings` is the content of
/// `/proc/self/smaps`.
///
/// A huge page is not created if less than half of it would be used, because it would take back
/// memory that the allocator has just released. Each huge page takes about a millisecond, during
/// which accesses to it wait.
pub fn make_huge_pages(mappings: &str) {
    for start in places_worth_it(mappings) {
        let start = without_provenance_mut(start);
        // SAFETY: this advice changes where pages are located, but nothing that can be read or
        // written, regardless of what is mapped there now. Failure is harmless.
        unsafe { libc::madvise(start, HUGE, libc::MADV_COLLAPSE) };
    }
}

/// Returns the addresses where huge pages were requested and at least half of one would be used.
fn places_worth_it(mappings: &str) -> impl Iterator<Item = usize> {
    let places = |range: Range<usize>| {
        let whole = move |start: &usize| range.end - start >= HUGE;
        (range.start.next_multiple_of(HUGE)..range.end).step_by(HUGE).filter(whole)
    };
    wanted_huge(mappings).flat_map(places).filter(|start| resident_bytes(*start) >= HUGE / 2)
}

/// Returns how many bytes of the huge page at `start` are backed by memory; 0 if nothing is mapped
/// there now.
fn resident_bytes(start: usize) -> usize {
    /// The smallest page size of any system.
    const PAGE_MIN: usize = 4096;
    let mut pages = [0u8; HUGE / PAGE_MIN];
    // SAFETY: there is a byte for each page of the range, since no page is smaller. Only the kernel
    // looks at what is mapped at `start`.
    let result =
        unsafe { libc::mincore(without_provenance_mut(start), HUGE, pages.as_mut_ptr().cast()) };
    // SAFETY: this call only returns a number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let resident = pages.iter().filter(|page| **page & 1 != 0).count();
    if result == 0 { resident * usize::try_from(page_bytes).unwrap_or(PAGE_MIN) } else { 0 }
}

/// Returns the address ranges for which huge pages were requested. For each range, the text has a
/// line with the addresses, lines with counters, and a line with flags. The flag `hg` marks a
/// request.
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
    fn huge_pages_are_created_where_they_were_requested() {
        let mappings = "7f00-7f80 rw-p 00000000 00:00 0 \nSize: 512 kB\nAnonHugePages: 0 kB\n\
                        VmFlags: rd wr mr mw me ac sd hg \n\
                        9000-a000 r-xp 00001000 fe:00 7 /usr/lib/some-library.so-hg\n\
                        VmFlags: rd ex mr mw me \nodd line\nVmFlags: hg\n\
                        b000-c000 rw-p 0 0:0 0\nVmFlags: hg rd\n";
        assert_eq!(wanted_huge(mappings).collect::<Vec<_>>(), [0x7f00..0x7f80, 0xb000..0xc000]);
        // With the mappings of this process, no data is lost.
        let bytes = vec![7u8; 4 << 20];
        super::make_huge_pages(&std::fs::read_to_string("/proc/self/smaps").unwrap());
        assert!(bytes.iter().all(|byte| *byte == 7));
    }

    /// Released pages stay released.
    #[test]
    fn huge_pages_are_worth_it_where_much_memory_is_used() {
        const PAGE: usize = 4096;
        let (length, access) = (4 * HUGE, libc::PROT_READ | libc::PROT_WRITE);
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice; unmapped below.
        let mapping =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0) }.cast::<u8>();
        let skipped = mapping.align_offset(HUGE);
        assert!(skipped < HUGE, "not mapped");
        // SAFETY: two huge pages that start at the first boundary are within the four mapped. One
        // byte of the first page and each small page of the second are written first.
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
        // SAFETY: the mapping from above; nothing refers to it now.
        unsafe { libc::munmap(mapping.cast(), length) };
    }
}
