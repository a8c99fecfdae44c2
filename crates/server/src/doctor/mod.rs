//! `brisk-server --doctor`: checks the host and the configuration for problems before they occur.
//! Each finding describes the state, its consequence, and the remedy. `brisk-findings` prints them, and contains the
//! rules that also apply to a running server.
//!
//! | file | about |
//! |---|---|
//! | `machine` | the kernel's settings, CPUs, memory |
//! | `cgroup` | the limits of a container or service |
//! | `disk` | the directory of the data files |
//! | `settings` | the configuration alone, and compared with the host |
//!
//! Files in `/proc` and `/sys` are read below a configurable root. The checks are functions of the text of these files,
//! so that tests can pass them files of other hosts.

mod cgroup;
mod disk;
mod machine;
mod settings;

use self::machine::Machine;
use brisk_config::{Config, FileError, Store};
use brisk_findings::{Finding, report};
use std::path::Path;
use std::process::ExitCode;

/// Checks this host and a configuration, as far as it could be loaded. Prints the findings.
pub(crate) fn run(loaded: Result<Store, FileError>, as_json: bool) -> ExitCode {
    let mut findings = Vec::new();
    let config = match &loaded {
        Ok(store) => {
            let file = store.file().map_or_else(
                || "defaults and options".to_owned(),
                |file| file.display().to_string(),
            );
            findings.push(Finding::ok("configuration", format!("read: {file}")));
            (*store.current()).clone()
        }
        Err(error) => {
            findings.push(unreadable(error));
            Config::default()
        }
    };
    let machine = Machine::read(Path::new("/"));
    machine::check(&machine, &config, &mut findings);
    settings::check(&config, &machine, &mut findings);
    disk::check(&config, &machine, &mut findings);
    findings.push(io_uring(&config));
    let text = if as_json { report::json(&findings) } else { report::text(&findings) };
    // Errors, for example because of a closed pipe, are ignored.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    if report::has_problem(&findings) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The finding for a configuration with which the server does not start.
fn unreadable(error: &FileError) -> Finding {
    let text = error.to_string();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("***"));
    let what = lines.collect::<Vec<_>>().join(" ");
    Finding::problem("configuration", what)
        .means("The server does not start with it. All checks below use the defaults.")
        .todo("correct it; to list all directives: brisk-server --print-config")
}

fn io_uring(config: &Config) -> Finding {
    use brisk_config::choice::IoBackend;
    let available = match config.network.io_backend {
        IoBackend::IoUring => brisk_reactor::uring_available(),
        IoBackend::Auto | IoBackend::Epoll => brisk_reactor::batches_available(),
    };
    match (available, config.network.io_backend) {
        (Ok(()), _) => Finding::ok("io_uring", "available".to_owned()),
        (Err(why), IoBackend::IoUring) => Finding::problem("io_uring", why)
            .means("The server does not start, because io-backend requires io_uring.")
            .todo("set io-backend auto, or enable io_uring: sysctl -w kernel.io_uring_disabled=0"),
        (Err(why), IoBackend::Auto) => Finding::note("io_uring", why).means(
            "With many busy clients, the server uses more CPU time, because it makes a system \
             call for each receive and each send.",
        ),
        (Err(why), IoBackend::Epoll) => {
            Finding::note("io_uring", why).means("Not needed: io-backend uses epoll.")
        }
    }
}
