//! A clean Debian in a directory. It has everything that a freshly installed machine has, and nothing from this
//! machine.
//!
//! `debootstrap` creates it once, from the release that this machine runs and the mirror that its apt uses. It is kept
//! as an archive in the target directory and unpacked for each use. Programs in it have separate process and mount
//! namespaces and an isolated network, and end with it. So they cannot connect to a server on this machine, and cannot
//! leave one running. Packages that documents install from Debian are in its apt cache.

use super::{output, run};
use anyhow::{Context, Result, bail};
use brisk_testkit::server::workspace_root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages that documents install from Debian, in addition to our own.
const FETCHED: &[&str] = &["redis-server", "curl", "logrotate", "procps"];
/// Programs that this machine needs.
const NEEDED: &[&str] = &["debootstrap", "unshare", "chroot", "ip", "tar"];
/// The path of this program in the chroot.
const OURSELVES: &str = "run/checks";
/// The `PATH` of programs in the chroot.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A clean Debian that contains our packages in its directory `/root`, but not installed.
#[derive(Debug)]
pub(crate) struct Clean {
    root: PathBuf,
}

/// The reason why this machine cannot create a clean Debian, if there is one.
pub(crate) fn skip_reason() -> Option<String> {
    if !output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0") {
        return Some("only the superuser may make one".to_owned());
    }
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|name| Command::new(name).arg("--version").output().is_err())
        .copied()
        .collect();
    if !missing.is_empty() {
        return Some(format!("these programs are missing: {}", missing.join(", ")));
    }
    if let Err(error) =
        run(Command::new("unshare").args(["--mount", "--pid", "--net", "--fork", "true"]))
    {
        return Some(format!("the kernel refuses namespaces: {error:#}"));
    }
    mirror().err().map(|error| format!("{error:#}"))
}

impl Clean {
    /// Creates a clean Debian in the directory `name` next to the release. It contains the packages of the release.
    pub(crate) fn make(release: &Path, name: &str) -> Result<Clean> {
        let directory = release.parent().context("a release is in a directory")?.join("chroot");
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        let base = base(&directory)?;
        let root = directory.join(name);
        remove(&root)?;
        fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        let clean = Clean { root };
        run(Command::new("tar").arg("-xf").arg(base).arg("-C").arg(&clean.root))?;
        for entry in fs::read_dir(release)? {
            let path = entry?.path();
            if let (true, Some(name)) =
                (path.extension().is_some_and(|e| e == "deb"), path.file_name())
            {
                fs::copy(&path, clean.root.join("root").join(name))?;
            }
        }
        Ok(clean)
    }

    /// The path of a file in the clean Debian.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Runs a task of this program in the clean Debian's process, mount and network namespaces.
    pub(crate) fn run(&self, task: &str, words: &[&str]) -> Result<bool> {
        // Copy the running program, not the file at its path: cargo may have rebuilt it since, and then the original
        // file is gone.
        let ourselves = self.root.join(OURSELVES);
        fs::copy("/proc/self/exe", &ourselves).context("cannot copy this program")?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]);
        command.args(["--propagation", "private", "--"]);
        command.arg(&ourselves).args(["inside", task]).arg(&self.root).args(words);
        Ok(command.status().context("cannot run unshare")?.success())
    }
}

impl Drop for Clean {
    fn drop(&mut self) {
        let _ = remove(&self.root);
    }
}

fn remove(root: &Path) -> Result<()> {
    if root.exists() {
        // Stay on one file system, so that nothing that is mounted there by mistake is deleted.
        run(Command::new("rm").args(["-rf", "--one-file-system"]).arg(root))?;
    }
    Ok(())
}

/// The archive of a clean Debian. It is created if it does not exist.
fn base(directory: &Path) -> Result<PathBuf> {
    let (suite, mirror) = mirror()?;
    let archive = directory.join(format!("{suite}-{}.tar", FETCHED.join("-")));
    if archive.exists() {
        return Ok(archive);
    }
    let root = directory.join("base");
    remove(&root)?;
    run(Command::new("debootstrap")
        .args(["--variant=minbase", "--include=ca-certificates"])
        .args([&suite])
        .arg(&root)
        .arg(&mirror)
        .stdout(std::process::Stdio::null()))?;
    for file in ["etc/resolv.conf", "etc/hosts"] {
        fs::copy(Path::new("/").join(file), root.join(file)).context(file)?;
    }
    let apt = |words: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(&root).args([
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "--quiet",
            "--quiet",
        ]);
        run(command.args(words).stdout(std::process::Stdio::null()))
    };
    apt(&["update"])?;
    // Packages stay in the cache when they are installed.
    fs::write(root.join("etc/apt/apt.conf.d/keep"), "APT::Keep-Downloaded-Packages \"true\";\n")?;
    let mut words = vec!["install", "--yes", "--download-only"];
    words.extend(FETCHED);
    apt(&words)?;
    let unfinished = archive.with_extension("part");
    run(Command::new("tar").arg("-cf").arg(&unfinished).arg("-C").arg(&root).arg("."))?;
    fs::rename(&unfinished, &archive)?;
    remove(&root)?;
    Ok(archive)
}

/// The release of Debian that this machine runs, and the mirror that its apt uses.
fn mirror() -> Result<(String, String)> {
    let os = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let value = |key: &str| {
        let line = os.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_matches('"').to_owned())
    };
    if value("ID=").as_deref() != Some("debian") {
        bail!("this machine does not run Debian");
    }
    let suite = value("VERSION_CODENAME=").context("/etc/os-release names no release")?;
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(directory) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(directory.filter_map(|entry| Some(entry.ok()?.path())));
    }
    let found = files
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .find_map(|text| mirror_in(&text, &suite));
    Ok((suite, found.context("apt's sources name no mirror of this release")?))
}

/// The mirror in an apt sources file, in the one-line format or as stanzas.
fn mirror_in(text: &str, suite: &str) -> Option<String> {
    let in_lines = text.lines().find_map(|line| {
        let line = line.trim().strip_prefix("deb ")?;
        let line = if line.starts_with('[') { line.split_once(']')?.1 } else { line };
        let mut words = line.split_whitespace();
        let uri = words.next()?;
        (words.next()? == suite).then(|| uri.to_owned())
    });
    in_lines.or_else(|| {
        text.split("\n\n").find_map(|paragraph| {
            let value = |key: &str| {
                let line = paragraph.lines().find_map(|line| line.strip_prefix(key))?;
                Some(line.split_whitespace().collect::<Vec<_>>())
            };
            let fits = value("Types:")?.contains(&"deb") && value("Suites:")?.contains(&suite);
            fits.then(|| value("URIs:")?.first().map(|&uri| uri.to_owned())).flatten()
        })
    })
}

/// A task that runs as the first process in the chroot.
pub(crate) fn inside(words: &[String]) -> Result<bool> {
    let [task, root, words @ ..] = words else { bail!("inside: task and root are missing") };
    let root = Path::new(root);
    let inner = Inside { root: root.to_owned() };
    run(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    run(Command::new("mount").args(["--bind"]).arg(root).arg(root))?;
    run(Command::new("mount").args(["-t", "proc", "proc"]).arg(root.join("proc")))?;
    let terminals = root.join("dev/pts");
    run(Command::new("mount")
        .args(["-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts"])
        .arg(terminals))?;
    // Packages check for this directory to detect a service manager.
    fs::create_dir_all(root.join("run/systemd/system"))?;
    // This directory is also in apt's `PATH`.
    let systemctl = root.join("usr/bin/systemctl");
    fs::write(&systemctl, format!("#!/bin/sh\nexec /{OURSELVES} systemctl \"$@\"\n"))?;
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755))?;
    match task.as_str() {
        "lifetime" => super::lifetime::inside(&inner),
        "document" => crate::documents::inside(&inner, words),
        _ => bail!("inside: no task {task}"),
    }
}

/// The clean Debian from the viewpoint of its first process.
#[derive(Debug)]
pub(crate) struct Inside {
    root: PathBuf,
}

impl Inside {
    /// The path of a file in the clean Debian.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A command in the clean Debian, with a minimal environment, in root's home directory.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.root).args(["env", "--ignore-environment", "--chdir=/root"]);
        command.args([&format!("PATH={PATH}"), "HOME=/root", "TERM=dumb", "LC_ALL=C.UTF-8"]);
        command.args(["DEBIAN_FRONTEND=noninteractive"]).args(words).current_dir(workspace_root());
        command
    }

    /// Runs a shell command in the clean Debian. It must succeed.
    pub(crate) fn shell(&self, line: &str) -> Result<String> {
        output(&mut self.command(&["bash", "-euc", line])).with_context(|| line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_found_in_lines_and_in_paragraphs() {
        let lines =
            "# x\ndeb [signed-by=/k] http://a/x other main\ndeb http://b/debian trixie main\n";
        assert_eq!(mirror_in(lines, "trixie").as_deref(), Some("http://b/debian"));
        assert_eq!(mirror_in(lines, "other").as_deref(), Some("http://a/x"));
        let paragraphs = "Types: deb-src\nURIs: http://s\nSuites: trixie\n\n\
                          Types: deb deb-src\nURIs: http://c/debian\nSuites: trixie trixie-updates\n";
        assert_eq!(mirror_in(paragraphs, "trixie").as_deref(), Some("http://c/debian"));
        assert_eq!(mirror_in(paragraphs, "bookworm"), None);
    }
}
