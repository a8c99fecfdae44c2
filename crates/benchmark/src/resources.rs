//! The resources of processes, and the machine that they run on, from `/proc`. The module `noise` measures other load
//! on the machine.

use brisk_dial::address::Address;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Length of a tick in `/proc/stat` and `/proc/*/stat`. The kernel's interface defines it.
pub(crate) const TICK_NS: u64 = 10_000_000;
/// The page size that is assumed for `/proc/*/statm` if the real one is unknown.
const PAGE_BYTES: u64 = 4096;

/// The resources that a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all threads, user and system, in ns: exact if the scheduler keeps statistics, otherwise in ticks of
    /// 10 ms.
    pub cpu_ns: u64,
    /// CPU time in user mode, in ns, with a resolution of 10 ms.
    pub user_ns: u64,
    /// CPU time in the kernel, in ns, with a resolution of 10 ms.
    pub system_ns: u64,
    /// Number of voluntary context switches: the process waited for something.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches: the kernel let another process run first.
    pub involuntary_switches: u64,
    /// Current resident memory.
    pub rss_bytes: u64,
}

impl Usage {
    /// The resources of a process; `None` if there is no process with this ID, or access to it is
    /// denied. O(threads).
    #[must_use]
    pub fn of(pid: u32) -> Option<Usage> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain anything; fields are counted after it.
        let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
        let tick = |i: usize| fields.get(i).and_then(|word| word.parse::<u64>().ok());
        let (user_ns, system_ns) = (tick(11)? * TICK_NS, tick(12)? * TICK_NS);
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
        let mut usage =
            Usage { user_ns, system_ns, rss_bytes: pages * PAGE_BYTES, ..Usage::default() };
        for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            usage.add_thread(&task.path());
        }
        if usage.cpu_ns == 0 {
            usage.cpu_ns = user_ns + system_ns;
        }
        Some(usage)
    }

    /// The CPU time of all children of this process that have been waited for, in ticks of 10 ms; the kernel reports no
    /// other resources of them.
    #[must_use]
    pub fn of_children() -> Option<Usage> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let mut fields = stat.rsplit(") ").next()?.split(' ').skip(13);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let (user_ns, system_ns) = (ticks()? * TICK_NS, ticks()? * TICK_NS);
        Some(Usage { cpu_ns: user_ns + system_ns, user_ns, system_ns, ..Usage::default() })
    }

    fn add_thread(&mut self, task: &Path) {
        // The thread may have ended since the listing. In this case its counters are gone.
        let schedstat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        let first = schedstat.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        self.cpu_ns += first.unwrap_or(0);
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let counter = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        self.voluntary_switches += counter("voluntary_ctxt_switches:");
        self.involuntary_switches += counter("nonvoluntary_ctxt_switches:");
    }
}

/// The machine and its kernel, in a line.
#[must_use]
pub fn machine_line() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cpus} x {model}, {} GiB, Linux {}", (kib + (1 << 19)) >> 20, kernel.trim())
}

/// The process that listens on a local address, if it is visible. O(open descriptors and listening sockets of the
/// machine).
#[must_use]
pub fn listener_of(address: &Address) -> Option<u32> {
    if !address.is_local() {
        return None;
    }
    let inodes = match address {
        Address::Tcp { resolved, .. } => listening_inodes(resolved.ip(), resolved.port()),
        Address::Unix(path) => unix_inodes(path),
    };
    if inodes.is_empty() {
        return None;
    }
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let holds = |pid: u32| {
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        entries.flatten().any(|entry| {
            let link = fs::read_link(entry.path()).unwrap_or_default();
            wanted.iter().any(|socket| link.as_os_str() == socket.as_str())
        })
    };
    let pids = fs::read_dir("/proc").ok()?.flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|&pid| holds(pid))
}

/// Inodes of the sockets that listen on this port, on this address or on all addresses.
fn listening_inodes(ip: IpAddr, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    // A connection to the unspecified address reaches the loopback address.
    let ip = match ip {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let mut inodes = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let Ok(table) = fs::File::open(table) else { continue };
        for line in BufReader::new(table).lines().skip(1) {
            let Ok(line) = line else { break };
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (Some(local), Some(state), Some(inode)) =
                (fields.get(1), fields.get(3), fields.get(9))
            else {
                continue;
            };
            // Listening sockets come first. Listing the others takes a tenth of a second, even if there are only a few,
            // because the kernel scans a table with about 100,000 entries.
            if *state != LISTEN {
                break;
            }
            let Some((host, hex_port)) = local.rsplit_once(':') else { continue };
            let fits = host.bytes().all(|digit| digit == b'0') || is_address(host, ip);
            if fits && u16::from_str_radix(hex_port, 16) == Ok(port) {
                inodes.extend(inode.parse::<u64>());
            }
        }
    }
    inodes
}

/// Reports whether an address in the kernel's notation (32-bit words in native byte order) is this address.
fn is_address(hex: &str, ip: IpAddr) -> bool {
    let spelled = |bytes: &[u8]| -> String {
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|&word| format!("{:08X}", u32::from_ne_bytes(word))).collect()
    };
    match ip {
        IpAddr::V4(ip) => {
            hex == spelled(&ip.octets()) || hex == spelled(&ip.to_ipv6_mapped().octets())
        }
        IpAddr::V6(ip) => hex == spelled(&ip.octets()),
    }
}

fn unix_inodes(path: &Path) -> Vec<u64> {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let is_it = |name: &&&str| Path::new(**name) == path || Path::new(**name) == whole;
    // The flag of listening sockets.
    const LISTENS: u64 = 0x10000;
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = u64::from_str_radix(fields.get(3)?, 16).ok()? & LISTENS != 0;
        fields.get(7).filter(is_it).filter(|_| listens)?;
        fields.get(6)?.parse().ok()
    };
    text.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn resources_and_listeners_of_a_process_are_found() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.rss_bytes > 100_000 && usage.voluntary_switches > 0, "{usage:?}");
        assert_eq!(Usage::of(u32::MAX), None);

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        assert_eq!(listener_of(&address), Some(std::process::id()));
        let any = Address::tcp("0.0.0.0", listener.local_addr().unwrap().port()).unwrap();
        assert_eq!(listener_of(&any), Some(std::process::id()));
        drop(listener);
        assert_eq!(listener_of(&address), None);
        assert_eq!(listener_of(&Address::parse("203.0.113.77:80").unwrap()), None);

        let name = format!("brisk-benchmark-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(listener_of(&Address::Unix(path.clone())), Some(std::process::id()));
        drop(listener);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_machine_is_named() {
        assert!(machine_line().contains("Linux "));
    }
}
