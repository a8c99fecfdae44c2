//! The limits of control groups. A container or service may have less memory and CPU time than the host. Both versions
//! of the cgroup interface are read, from the process's own group up to the root.

use std::path::Path;

/// Limits below the resources of the host, if any.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Limits {
    /// Memory in bytes.
    pub(super) memory: Option<u64>,
    /// CPU time as a number of CPUs.
    pub(super) processors: Option<f64>,
}

/// In version 1, a limit above this number of bytes means no limit.
const NO_LIMIT: u64 = 1 << 60;
/// Maximum number of nested groups that are read.
const DEPTH_MAX: usize = 64;

/// Returns the limits of the process whose `/proc/self/cgroup` has the contents `own`. Files are read below `root`.
pub(super) fn limits(root: &Path, own: &str) -> Limits {
    let mut limits = Limits::default();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let has = |name: &str| controllers.split(',').any(|controller| controller == name);
        if controllers.is_empty() {
            for directory in upwards(&root.join("sys/fs/cgroup"), group) {
                lower(&mut limits.memory, number(&directory, "memory.max"));
                let text = std::fs::read_to_string(directory.join("cpu.max")).unwrap_or_default();
                lower(&mut limits.processors, share(&text));
            }
        } else if has("memory") {
            for directory in upwards(&root.join("sys/fs/cgroup/memory"), group) {
                let bytes = number(&directory, "memory.limit_in_bytes");
                lower(&mut limits.memory, bytes.filter(|bytes| *bytes < NO_LIMIT));
            }
        } else if has("cpu") {
            let hierarchy = root.join("sys/fs/cgroup").join(controllers);
            for directory in upwards(&hierarchy, group) {
                let quota = number(&directory, "cpu.cfs_quota_us");
                let period = number(&directory, "cpu.cfs_period_us").filter(|period| *period > 0);
                let both = quota.zip(period);
                lower(
                    &mut limits.processors,
                    both.map(|(quota, period)| quota as f64 / period as f64),
                );
            }
        }
    }
    limits
}

/// Returns the directories of a group and of all its ancestors. Within a container, the path may be the path outside of
/// the container.
fn upwards(hierarchy: &Path, group: &str) -> Vec<std::path::PathBuf> {
    let whole = hierarchy.join(group.trim_start_matches('/'));
    let inside =
        whole.ancestors().take(DEPTH_MAX).take_while(|directory| directory.starts_with(hierarchy));
    inside.map(Path::to_owned).collect()
}

fn lower<N: PartialOrd>(limit: &mut Option<N>, other: Option<N>) {
    if let Some(other) = other
        && limit.as_ref().is_none_or(|limit| other < *limit)
    {
        *limit = Some(other);
    }
}

/// Parses the number in a file. `max` and -1 mean no limit.
fn number(directory: &Path, file: &str) -> Option<u64> {
    std::fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok()
}

/// Parses `quota period`, or `max period`.
fn share(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::TempDir;
    use std::fs;

    fn put(root: &TempDir, path: &str, text: &str) {
        let path = root.path(path);
        let directory = path.parent().expect("a file has a directory");
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, text))
            .expect("a new directory");
    }

    #[test]
    fn the_lowest_limit_of_a_group_and_those_above_it_counts() {
        let root = TempDir::new();
        put(&root, "sys/fs/cgroup/a/memory.max", "1073741824\n");
        put(&root, "sys/fs/cgroup/a/b/memory.max", "max\n");
        put(&root, "sys/fs/cgroup/a/cpu.max", "max 100000\n");
        put(&root, "sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
        let found = limits(&root.path(""), "0::/a/b\n");
        assert_eq!(found, Limits { memory: Some(1 << 30), processors: Some(1.5) });
        // Test a container that sees only its own group.
        put(&root, "sys/fs/cgroup/memory.max", "4096\n");
        assert_eq!(limits(&root.path(""), "0::/../x\n").memory, Some(4096));
    }

    #[test]
    fn limits_of_version_1_are_read_including_its_values_for_no_limit() {
        let root = TempDir::new();
        put(&root, "sys/fs/cgroup/memory/d/memory.limit_in_bytes", "9223372036854771712\n");
        put(&root, "sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us", "-1\n");
        put(&root, "sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_period_us", "100000\n");
        let own = "4:memory:/d\n3:cpu,cpuacct:/d\n1:name=systemd:/d\n";
        assert_eq!(limits(&root.path(""), own), Limits::default());
        put(&root, "sys/fs/cgroup/memory/d/memory.limit_in_bytes", "536870912\n");
        put(&root, "sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us", "50000\n");
        let found = limits(&root.path(""), own);
        assert_eq!(found, Limits { memory: Some(512 << 20), processors: Some(0.5) });
        assert_eq!(limits(&root.path(""), "nonsense\n:\n::\n"), Limits::default());
    }
}
