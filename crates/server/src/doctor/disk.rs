//! Checks the directory of the data files: whether it is writable, its free space, its file system, and the duration of
//! a durable write.

use super::machine::Machine;
use brisk_config::choice::AppendFsync;
use brisk_config::{Config, os_reason};
use brisk_findings::{Finding, amount};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of test writes, and the size of each in bytes.
const TRIES: usize = 16;
const TRY_BYTES: usize = 4096;
/// A write that takes longer than this is slow. A typical server disk takes a fraction of this time; a disk without a
/// write cache takes about this long.
const SLOW: Duration = Duration::from_millis(20);
/// If there is less free space than this, any workload will use it up quickly.
const ROOM_BYTES_MIN: u64 = 1 << 30;

pub(super) fn check(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    let dir = config.process.dir.as_path();
    let keeps = config.persistence.appendonly || !config.persistence.save.is_empty();
    findings.extend(file_system(&machine.mounts, dir, keeps));
    match rustix::fs::statvfs(dir) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            findings.push(room(free, config, keeps));
        }
        Err(errno) => {
            let why = os_reason(&io::Error::from(errno));
            findings.push(Finding::note("room", format!("{}: {why}", dir.display())));
        }
    }
    findings.push(match try_disk(dir) {
        Ok(times) => speed(times, config),
        Err(error) => unwritable(dir, &error, keeps),
    });
}

/// Returns the type of the file system that contains a path, from the lines of `/proc/self/mountinfo`.
fn type_of<'m>(mounts: &'m str, path: &Path) -> Option<&'m str> {
    let lines = mounts.lines().filter_map(|line| {
        // A dash separates the type from the fields before it, whose number varies.
        let (mount, kind) = line.split_once(" - ")?;
        // Blanks in a path are escaped as octal numbers.
        let point = mount.split(' ').nth(4)?.replace("\\040", " ");
        path.starts_with(&point).then(|| (point.len(), kind.split(' ').next()))
    });
    // If there are several mounts on the same directory, only the last one is visible.
    lines.max_by_key(|(len, _)| *len)?.1
}

fn file_system(mounts: &str, dir: &Path, keeps: bool) -> Option<Finding> {
    let kind = type_of(mounts, dir)?;
    let what = format!("{} is on {kind}", dir.display());
    Some(match kind {
        _ if !keeps => Finding::ok("file system", what),
        "tmpfs" | "ramfs" => Finding::problem("file system", what)
            .means("Data saved there is lost when the machine stops.")
            .todo("set dir to a directory on a disk"),
        "overlay" | "aufs" => Finding::warning("file system", what)
            .means("The files belong to a container and are deleted with it.")
            .todo("mount a volume there, or set dir to one"),
        "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "vboxsf" => Finding::warning("file system", what)
            .means("Every fsync goes over the network and fails when the network does.")
            .todo("set dir to a local directory"),
        _ => Finding::ok("file system", what),
    })
}

fn room(free: u64, config: &Config, keeps: bool) -> Finding {
    let what = format!("{} free for {}", amount(free), config.process.dir.to_string_lossy());
    let maxmemory = config.memory.maxmemory;
    let does_log = config.persistence.appendonly;
    // A rewrite keeps the old file until the new file is complete.
    let wanted = if does_log { maxmemory.saturating_mul(2) } else { maxmemory };
    let todo = "free disk space there, or set dir to another disk";
    if !keeps {
        Finding::ok("room", what)
    } else if does_log && free < ROOM_BYTES_MIN {
        Finding::problem("room", what)
            .means("The append-only file grows with every change; when the disk is full, writes are rejected.")
            .todo(todo)
    } else if free < wanted.max(ROOM_BYTES_MIN) {
        Finding::warning(
            "room",
            format!("{what}; {} may be needed", amount(wanted.max(ROOM_BYTES_MIN))),
        )
        .means("The disk has no space for a snapshot or rewrite when maxmemory is used up.")
        .todo(todo)
    } else {
        Finding::ok("room", what)
    }
}

/// Measures several durable writes of a small file. Returns the times in ascending order.
fn try_disk(dir: &Path) -> io::Result<Vec<Duration>> {
    let path = dir.join(format!("temp-doctor-{}", std::process::id()));
    let tried = (|| {
        let mut file = File::options().write(true).create_new(true).open(&path)?;
        let mut times = Vec::with_capacity(TRIES);
        for _ in 0..TRIES {
            let began = Instant::now();
            file.write_all(&[b'x'; TRY_BYTES])?;
            file.sync_data()?;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        Ok(times)
    })();
    // The file may not exist. Only the first error is reported.
    let _ = std::fs::remove_file(&path);
    tried
}

fn unwritable(dir: &Path, error: &io::Error, keeps: bool) -> Finding {
    let what = format!("{}: {}", dir.display(), os_reason(error));
    let finding =
        if keeps { Finding::problem("disk", what) } else { Finding::warning("disk", what) };
    finding
        .means("Nothing can be saved there.")
        .todo(format!("chown and chmod it for the user of the server: ls -ld {}", dir.display()))
}

/// Judges the speed of durable writes. `times` are in ascending order.
fn speed(times: Vec<Duration>, config: &Config) -> Finding {
    let (middle, longest) = (times[times.len() / 2], times[times.len() - 1]);
    let what = format!(
        "fsync takes {:.2} ms, at most {:.2} ms in {} tries",
        middle.as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3,
        times.len()
    );
    let persistence = &config.persistence;
    if middle < SLOW || !persistence.appendonly || persistence.appendfsync == AppendFsync::No {
        return Finding::ok("disk", what);
    }
    let finding = Finding::warning("disk", what);
    match persistence.appendfsync {
        AppendFsync::Always => finding
            .means("With appendfsync always, each reply to a write waits that long.")
            .todo("set appendfsync everysec, or dir to a faster disk"),
        _ => finding
            .means("With appendfsync everysec, a busy disk may take longer than a second to sync.")
            .todo("set dir to a faster disk"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_findings::Severity::{Ok, Problem, Warning};
    use brisk_testkit::TempDir;

    /// The format of Linux 6.1, with an optional field, a blank in a name, and a mount on top of another mount.
    const MOUNTS: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        23 22 0:21 / /tmp rw,nosuid - tmpfs tmpfs rw\n\
        24 22 0:30 / /data rw - tmpfs tmpfs rw\n\
        25 22 8:2 / /data rw,noatime shared:2 master:3 - xfs /dev/sdb rw\n\
        26 22 0:40 / /mnt/my\\040share rw - nfs4 host:/x rw\n";

    #[test]
    fn the_file_system_is_that_of_the_longest_mount_point() {
        for (path, kind) in [
            ("/var/lib", Some("ext4")),
            ("/tmp/x", Some("tmpfs")),
            ("/tmpfile", Some("ext4")),
            ("/data", Some("xfs")),
            ("/mnt/my share/a", Some("nfs4")),
        ] {
            assert_eq!(type_of(MOUNTS, Path::new(path)), kind, "{path}");
        }
        assert_eq!(type_of("", Path::new("/")), None);
        let severity = |path, keeps| file_system(MOUNTS, Path::new(path), keeps).unwrap().severity;
        assert_eq!((severity("/tmp", true), severity("/tmp", false)), (Problem, Ok));
        assert_eq!((severity("/mnt/my share", true), severity("/data", true)), (Warning, Ok));
    }

    #[test]
    fn room_is_compared_with_what_may_be_written() {
        let mut config = Config::default();
        config.memory.maxmemory = 4 << 30;
        assert_eq!(room(5 << 30, &config, true).severity, Ok);
        assert_eq!(room(3 << 30, &config, true).severity, Warning);
        config.persistence.appendonly = true;
        assert_eq!(room(5 << 30, &config, true).severity, Warning);
        assert_eq!(room(1 << 20, &config, true).severity, Problem);
        assert_eq!(room(0, &config, false).severity, Ok);
    }

    #[test]
    fn a_slow_disk_matters_only_with_an_append_only_file() {
        let mut config = Config::default();
        let times = || vec![Duration::from_millis(30); 4];
        assert_eq!(speed(times(), &config).severity, Ok);
        config.persistence.appendonly = true;
        assert_eq!(speed(times(), &config).severity, Warning);
        assert_eq!(speed(vec![Duration::from_millis(2); 4], &config).severity, Ok);
    }

    #[test]
    fn testing_the_disk_leaves_no_files() {
        let dir = TempDir::new();
        assert_eq!(try_disk(&dir.path("")).unwrap().len(), TRIES);
        assert_eq!(std::fs::read_dir(dir.path("")).unwrap().count(), 0);
        let error = try_disk(&dir.path("nowhere")).unwrap_err();
        let finding = unwritable(&dir.path("nowhere"), &error, true);
        assert!(
            finding.severity == Problem && finding.what.contains("No such file"),
            "{finding:?}"
        );
    }
}
