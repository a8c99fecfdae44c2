//! INFO server: general information about this process.

use super::View;
use brisk_config::choice::{Choice, Supervised};
use brisk_config::directives::network::Network;
use brisk_observe::text::Text;
use brisk_observe::version::{BRISK_VERSION, REDIS_VERSION};
use std::sync::OnceLock;

/// The largest value of the LRU clock that Redis shows, in seconds: 24 bits.
const LRU_CLOCK_MAX: u64 = (1 << 24) - 1;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let (shared, process) = (view.shared, &view.config.process);
    text.word("redis_version", REDIS_VERSION);
    text.word("brisk_version", BRISK_VERSION);
    text.word("redis_git_sha1", "00000000");
    text.word("redis_git_dirty", "0");
    text.word("redis_build_id", "0000000000000000");
    let is_cluster = shared.cluster.state().is_some();
    text.word("redis_mode", if is_cluster { "cluster" } else { "standalone" });
    text.word("os", operating_system());
    text.number("arch_bits", u64::from(usize::BITS));
    let counter = brisk_reactor::clock().uses_counter();
    text.word("monotonic_clock", if counter { "X86 TSC" } else { "POSIX clock_gettime" });
    let waits_with = if backend(view) == "io_uring" { "io_uring" } else { "epoll" };
    text.word("multiplexing_api", waits_with);
    text.word("atomicvar_api", "c11-builtin");
    // The value that Redis shows if it was not compiled with gcc.
    text.word("gcc_version", "0.0.0");
    text.number("process_id", u64::from(process_id()));
    let manager = if shared.process.is_supervised { process.supervised } else { Supervised::No };
    text.word("process_supervised", manager.word());
    text.word("run_id", &shared.process.run_id);
    text.signed("tcp_port", view.config.network.port);
    text.number("server_time_usec", brisk_reactor::unix_us());
    let uptime = shared.process.started.elapsed().as_secs();
    text.number("uptime_in_seconds", uptime);
    text.number("uptime_in_days", uptime / (24 * 60 * 60));
    text.signed("hz", process.hz);
    text.signed("configured_hz", process.hz);
    text.number("lru_clock", (view.now_ms / 1000) & LRU_CLOCK_MAX);
    text.word("executable", executable());
    let store = shared.settings.store();
    text.word("config_file", store.file().and_then(|file| file.to_str()).unwrap_or_default());
    text.number("io_threads_active", 0);
    if let Some(waiting) = shared.process.shutdown.waiting() {
        let left = waiting.until_ms.cast_signed().saturating_sub(view.now_ms.cast_signed());
        text.signed("shutdown_in_milliseconds", left);
    }
    listeners(&view.config.network, view.config.tls.port, text);
}

/// Writes the configured listeners for clients, with the numbers that Redis 7.2 assigns to each type. The admin lane is
/// not for clients, so it is omitted.
fn listeners(network: &Network, tls_port: i64, text: &mut Text) {
    let addresses = network.bind.iter().map(String::as_str);
    if network.port > 0 {
        listener("listener0", ":name=tcp", addresses.clone(), Some(network.port), text);
    }
    if !network.unixsocket.is_empty() {
        let path = network.unixsocket.to_string_lossy();
        listener("listener1", ":name=unix", std::iter::once(&*path), None, text);
    }
    if tls_port > 0 {
        listener("listener2", ":name=tls", addresses, Some(tls_port), text);
    }
}

fn listener<'a>(
    key: &str,
    name: &str,
    addresses: impl Iterator<Item = &'a str>,
    port: Option<i64>,
    text: &mut Text,
) {
    text.push(key);
    text.push(name);
    for address in addresses {
        text.push(",bind=");
        text.push(address);
    }
    if let Some(port) = port {
        text.push(",port=");
        text.push_number(port.unsigned_abs());
    }
    text.end();
}

/// Returns the name of the workers' back end, as `Reactor::backend_name` does.
pub(super) fn backend(view: &View<'_>) -> &'static str {
    view.shared.process.backend()
}

/// Returns the names of system, release and machine, which are read only once.
fn operating_system() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let read = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
            text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
        };
        format!("{} {} {}", read("ostype"), read("osrelease"), std::env::consts::ARCH)
    })
}

/// Returns the process id. The id is cached, because the library makes a system call each time.
fn process_id() -> u32 {
    static ID: OnceLock<u32> = OnceLock::new();
    *ID.get_or_init(std::process::id)
}

/// Returns the path of this program, which is read only once.
fn executable() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let path = std::env::current_exe();
        path.map_or_else(|_| String::new(), |path| path.to_string_lossy().into_owned())
    })
}
