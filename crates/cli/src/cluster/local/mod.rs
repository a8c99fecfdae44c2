//! `start-local` and `stop-local`: a cluster of processes on this machine, in one directory.
//!
//! ```text
//! DIR/start-local.conf   size and first port; locked while a brisk-cli starts or stops the cluster
//! DIR/coordinator/       the topology, which the nodes keep: `cluster-coordinator local:`
//! DIR/<port>/            the working directory of a node
//! DIR/<port>/brisk.conf  its settings, written once
//! DIR/<port>/brisk.log, brisk.pid, nodes.conf and data
//! ```
//!
//! | file | about |
//! |---|---|
//! | here | the directory, its size and its nodes |
//! | `process.rs` | the process of a node: start, look at, end |
//! | `readiness.rs` | whether a node serves |
//! | `start.rs`, `stop.rs` | the two commands |

mod process;
mod readiness;
mod start;
mod stop;

pub(super) use start::run as start;
pub(super) use stop::run as stop;

use super::count;
use crate::link::plain;
use crate::options::LocalOptions;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The default of `--dir`.
const DIRECTORY: &str = "./brisk-cluster";
/// The file that records the size and the ports of the cluster.
const LAYOUT_FILE: &str = "start-local.conf";
/// Maximum size of this file, which contains three short lines and a comment.
const LAYOUT_BYTES_MAX: u64 = 4096;
/// Maximum number of nodes of a cluster. Each node is a process with its own threads and memory.
const NODES_MAX: usize = 100;

/// The size of a cluster and its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocalLayout {
    /// Number of primaries. Each serves a part of the slots.
    shards: usize,
    /// Number of replicas per primary.
    replicas: usize,
    /// The port of the first node; the others have the ports after it.
    port: u16,
}

impl LocalLayout {
    /// The layout that the options specify. Missing options are taken from `earlier`, or are the defaults.
    ///
    /// # Errors
    /// An error text, if a number is invalid or out of range.
    fn new(options: &LocalOptions, earlier: Option<LocalLayout>) -> Result<LocalLayout, String> {
        let earlier = earlier.unwrap_or(LocalLayout { shards: 3, replicas: 1, port: 7000 });
        let shards = size("--nodes", options.nodes.as_deref(), 1, earlier.shards)?;
        let replicas = size("--replicas", options.replicas.as_deref(), 0, earlier.replicas)?;
        let nodes = shards.saturating_mul(replicas.saturating_add(1));
        if nodes > NODES_MAX {
            return Err(format!(
                "{} with {} each are {nodes} nodes; at most {NODES_MAX} can run on one machine",
                count(shards, "shard"),
                count(replicas, "replica")
            ));
        }
        let port = number("--port", options.port.as_deref())?;
        let port = port.unwrap_or_else(|| i64::from(earlier.port));
        let last = port.saturating_add(nodes as i64 - 1);
        match (u16::try_from(port), u16::try_from(last)) {
            (Ok(port), Ok(_)) if port > 0 => Ok(LocalLayout { shards, replicas, port }),
            _ => Err(format!("ports {port} to {last} are not between 1 and 65535")),
        }
    }

    fn nodes(self) -> usize {
        self.shards * (self.replicas + 1)
    }

    fn ports(self) -> impl Iterator<Item = u16> {
        (0..self.nodes()).map(move |at| self.port + at as u16)
    }

    /// `3 shards with 1 replica each`
    fn describe(self) -> String {
        let shards = count(self.shards, "shard");
        let each = if self.shards == 1 { "" } else { " each" };
        format!("{shards} with {}{each}", count(self.replicas, "replica"))
    }

    fn to_text(self) -> String {
        let LocalLayout { shards, replicas, port } = self;
        format!(
            "# Written by brisk-cli --cluster start-local. Editing it does not change the size of the cluster.\n\
             nodes {shards}\nreplicas {replicas}\nport {port}\n"
        )
    }

    fn parse(text: &str) -> Option<LocalLayout> {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let line = lines.find(|(known, _)| *known == name);
            line.map(|(_, value)| Some(value.trim().to_owned()))
        };
        let options = LocalOptions {
            nodes: value("nodes")?,
            replicas: value("replicas")?,
            port: value("port")?,
            ..LocalOptions::default()
        };
        LocalLayout::new(&options, None).ok()
    }
}

/// The value of an option as a number.
fn number(option: &str, given: Option<&str>) -> Result<Option<i64>, String> {
    let parse =
        |text: &str| text.parse().map_err(|_| format!("{option}: '{text}' is not a number"));
    given.map(parse).transpose()
}

/// The value of an option that is at least `least`; `default` if the option is not given.
fn size(option: &str, given: Option<&str>, least: i64, default: usize) -> Result<usize, String> {
    let Some(number) = number(option, given)? else { return Ok(default) };
    let size = usize::try_from(number).ok().filter(|_| number >= least);
    size.ok_or_else(|| format!("{option} must be at least {least}"))
}

/// A cluster in a directory. While this value exists, no other `brisk-cli` can start or stop the cluster.
#[derive(Debug)]
struct LocalCluster {
    /// The absolute path of the directory.
    dir: PathBuf,
    layout: LocalLayout,
    /// True if the directory was just created for the cluster.
    is_new: bool,
    _lock: File,
}

/// A node of the cluster.
#[derive(Clone, Debug)]
struct LocalNode {
    port: u16,
    dir: PathBuf,
}

impl LocalCluster {
    /// Opens the cluster of a directory.
    ///
    /// # Errors
    /// A text that says why it is not the directory of a cluster, or that another `brisk-cli` is using it.
    fn open(dir: &Path) -> Result<LocalCluster, String> {
        let path = dir.join(LAYOUT_FILE);
        let mut file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(format!(
                    "{} has no cluster of start-local: {LAYOUT_FILE} is missing there",
                    dir.display()
                ));
            }
            Err(error) => return Err(failed("open", &path, &error)),
        };
        lock(&file, dir)?;
        let mut text = String::new();
        let read = Read::take(&mut file, LAYOUT_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| failed("read", &path, &error))?;
        let layout = LocalLayout::parse(&text)
            .ok_or_else(|| format!("{}: nodes, replicas or port is invalid", path.display()))?;
        let dir = absolute(dir)?;
        Ok(LocalCluster { dir, layout, is_new: false, _lock: file })
    }

    /// Opens the cluster that the options specify, or creates an empty one.
    ///
    /// # Errors
    /// An error text, for example if the directory contains other files, or a cluster of a different size.
    fn open_or_create(options: &LocalOptions) -> Result<LocalCluster, String> {
        let dir = directory(options);
        if dir.join(LAYOUT_FILE).exists() {
            let cluster = LocalCluster::open(dir)?;
            let wanted = LocalLayout::new(options, Some(cluster.layout))?;
            if wanted != cluster.layout {
                return Err(format!(
                    "{} has another cluster: {} from port {}. Name another directory with --dir, or remove \
                     this one",
                    dir.display(),
                    cluster.layout.describe(),
                    cluster.layout.port
                ));
            }
            return Ok(cluster);
        }
        let layout = LocalLayout::new(options, None)?;
        fs::create_dir_all(dir).map_err(|error| failed("create", dir, &error))?;
        let mut entries = fs::read_dir(dir).map_err(|error| failed("read", dir, &error))?;
        if entries.next().is_some() {
            return Err(format!(
                "{} has files, but no cluster of start-local: name another directory with --dir",
                dir.display()
            ));
        }
        let path = dir.join(LAYOUT_FILE);
        let mut file = File::create_new(&path).map_err(|error| failed("create", &path, &error))?;
        lock(&file, dir)?;
        let written = file.write_all(layout.to_text().as_bytes());
        written.map_err(|error| failed("write", &path, &error))?;
        Ok(LocalCluster { dir: absolute(dir)?, layout, is_new: true, _lock: file })
    }

    fn nodes(&self) -> Vec<LocalNode> {
        let node = |port: u16| LocalNode { port, dir: self.dir.join(port.to_string()) };
        self.layout.ports().map(node).collect()
    }
}

/// The directory that the options name.
fn directory(options: &LocalOptions) -> &Path {
    options.dir.as_deref().unwrap_or_else(|| Path::new(DIRECTORY))
}

fn absolute(dir: &Path) -> Result<PathBuf, String> {
    dir.canonicalize().map_err(|error| failed("find", dir, &error))
}

fn lock(file: &File, dir: &Path) -> Result<(), String> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            format!("Another brisk-cli is starting or stopping the cluster in {}", dir.display())
        }
        TryLockError::Error(error) => failed("lock", &dir.join(LAYOUT_FILE), &error),
    })
}

/// `Cannot read /path: Permission denied`
fn failed(verb: &str, path: &Path, error: &std::io::Error) -> String {
    format!("Cannot {verb} {}: {}", path.display(), plain(error))
}

/// Quotes an argument for a shell, if necessary.
fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-+,:@%=".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(nodes: usize, replicas: usize, port: i64) -> Result<LocalLayout, String> {
        let given = |number: &dyn ToString| Some(number.to_string());
        let (nodes, replicas, port) = (given(&nodes), given(&replicas), given(&port));
        LocalLayout::new(&LocalOptions { nodes, replicas, port, ..LocalOptions::default() }, None)
    }

    #[test]
    fn a_layout_is_read_as_it_was_written() {
        for layout in [layout(3, 1, 7000), layout(1, 0, 1), layout(50, 1, 65_436)] {
            let layout = layout.unwrap();
            assert_eq!(LocalLayout::parse(&layout.to_text()), Some(layout));
        }
        for text in [
            "",
            "nodes 3\nreplicas 1\n",
            "nodes x\nreplicas 1\nport 7000",
            "nodes 0\nreplicas 1\nport 7",
        ] {
            assert_eq!(LocalLayout::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_and_ports_have_bounds() {
        assert!(layout(0, 1, 7000).is_err() && layout(101, 0, 7000).is_err());
        let most = i64::MAX as usize;
        assert!(layout(most, most, 7000).is_err() && layout(usize::MAX, 0, 7000).is_err());
        assert!(layout(3, 1, 0).is_err() && layout(3, 1, 65_531).is_err());
        assert!(layout(3, 1, 65_530).is_ok() && layout(3, 1, i64::MAX).is_err());
    }

    #[test]
    fn sizes_are_described_in_words() {
        assert_eq!(layout(3, 1, 1).unwrap().describe(), "3 shards with 1 replica each");
        assert_eq!(layout(1, 2, 1).unwrap().describe(), "1 shard with 2 replicas");
        assert_eq!(layout(2, 0, 1).unwrap().describe(), "2 shards with 0 replicas each");
    }

    #[test]
    fn a_word_with_spaces_is_quoted_for_a_shell() {
        assert_eq!(shell_word("/srv/a/x-1"), "/srv/a/x-1");
        assert_eq!(shell_word("/a b/it's"), "'/a b/it'\\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
