//! Builds the programs, the files derived from them, the packages, the archive, and the checksums.
//!
//! Everything of a release is in `target/package`. The files of the Debian packages other than programs are in
//! `package` next to the programs, where the packages' metadata expects them.

use super::programs::{self, PROGRAMS, Program};
use super::{manual, output, run, sbom, settings};
use crate::cargo::cargo;
use anyhow::{Context, Result, bail};
use brisk_testkit::server::workspace_root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of cargo-deb to install if it is missing.
const CARGO_DEB: &str = "3.8.0";
/// Other files of the project that the archive contains.
const PAPERS: &[&str] = &[
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "CHANGELOG.md",
    "docs/install.md",
    "docs/quick-start.md",
    "docs/moving-from-redis.md",
    "docs/faq.md",
    "docs/durability.md",
    "docs/replication.md",
    "docs/cluster.md",
    "docs/security.md",
    "docs/monitoring.md",
    "docs/console.md",
    "docs/backup.md",
    "docs/upgrades.md",
    "docs/capacity.md",
    "docs/limits.md",
    "docs/troubleshooting.md",
    "docs/tools.md",
    "docs/analyze.md",
    "docs/compatibility.md",
    "docs/glossary.md",
    "packaging/brisk-server.service",
    "packaging/brisk-server-cluster.conf",
    "packaging/kubernetes/brisk-cluster.yaml",
    "packaging/brisk.sysusers",
    "packaging/brisk.tmpfiles",
    "packaging/logrotate",
    "packaging/Containerfile",
];

/// The built release.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) directory: PathBuf,
    /// The server's package.
    pub(crate) server: PathBuf,
    /// The tools' package.
    pub(crate) tools: PathBuf,
}

/// The directories of a build.
struct Places {
    /// The directory of the programs.
    programs: PathBuf,
    /// The directory of the files that are derived from them.
    derived: PathBuf,
    release: PathBuf,
    tools: PathBuf,
}

/// Builds a release.
#[expect(clippy::print_stdout, reason = "the list of files is the output of the command")]
pub(super) fn build() -> Result<Release> {
    let machine = machine()?;
    let metadata = sbom::metadata(&machine)?;
    let target =
        metadata["target_directory"].as_str().context("cargo names no target directory")?;
    let target = Path::new(target);
    let places = Places {
        programs: target.join("release"),
        derived: target.join("release/package"),
        release: target.join("package"),
        tools: target.join("tools"),
    };
    build_programs()?;
    for directory in [&places.derived, &places.release] {
        if directory.exists() {
            fs::remove_dir_all(directory).with_context(|| directory.display().to_string())?;
        }
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    let built = output(
        Command::new("git").args(["log", "-1", "--format=%cI"]).current_dir(workspace_root()),
    )
    .unwrap_or_default();
    derive(&places)?;
    let bill = serde_json::to_vec_pretty(&sbom::bill(&metadata, built.trim())?)?;
    write(&places.derived.join("brisk.cdx.json"), &bill)?;
    write(&places.release.join("brisk.cdx.json"), &bill)?;
    let deb = cargo_deb(&places.tools)?;
    let server = debian(&deb, "brisk-server", &places)?;
    let tools = debian(&deb, "brisk-cli", &places)?;
    archive(&places, &machine, built.trim())?;
    checksums(&places.release)?;
    println!("{}", output(Command::new("ls").arg("-l").arg(&places.release))?.trim_end());
    Ok(Release { directory: places.release, server, tools })
}

/// Builds the server alone, as the README's command does, and then the tools. So the server does not get features of
/// shared crates that only the tools need, and users who have already built the server do not build it again.
fn build_programs() -> Result<()> {
    let (server, tools): (Vec<_>, Vec<_>) =
        PROGRAMS.iter().map(|program| program.package).partition(|&name| name == "brisk-server");
    for packages in [server, tools] {
        let mut words = vec!["build", "--release", "--quiet", "--locked"];
        words.extend(packages.iter().flat_map(|&name| ["--package", name]));
        if !cargo(&words)? {
            bail!("the programs cannot be built");
        }
    }
    Ok(())
}

/// The target triple for which programs are built.
fn machine() -> Result<String> {
    let text = output(Command::new("rustc").arg("-vV").current_dir(workspace_root()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("rustc does not name the host")
}

/// Generates the configuration file, the manual pages and the completions.
fn derive(places: &Places) -> Result<()> {
    let defaults = programs::default_settings(&places.programs)?;
    let changes = workspace_root().join("packaging/packaged.conf");
    let changes = fs::read_to_string(&changes).context("packaging/packaged.conf")?;
    let derived = &places.derived;
    write(&derived.join("brisk.conf"), settings::packaged(&defaults, &changes)?.as_bytes())?;
    let (pages, completions) = (derived.join("man"), derived.join("completions"));
    for directory in [&pages, &completions] {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    write(&pages.join("brisk.conf.5"), settings::page(&defaults).as_bytes())?;
    for program in PROGRAMS {
        let name = program.name;
        let help = program.help(&places.programs)?;
        let others: Vec<String> = PROGRAMS
            .iter()
            .filter(|other| other.name != name)
            .map(|other| format!("{}(1)", manual::escaped(other.name)))
            .collect();
        let page = match program.own_text(&places.programs, &["--man"])? {
            Some(page) => page,
            None => manual::page(program, &help, &others.join(", ")),
        };
        write(&pages.join(format!("{name}.1")), page.as_bytes())?;
        let mut words = manual::words(&help);
        if name == "brisk-server" {
            words.extend(settings::names(&defaults).into_iter().map(|name| manual::Word {
                word: format!("--{name}"),
                value: Some("value".to_owned()),
                about: String::new(),
            }));
        }
        let shells: [(&str, String, manual::Completion); 3] = [
            ("bash", format!("{name}.bash"), manual::bash),
            ("zsh", format!("_{name}"), manual::zsh),
            ("fish", format!("{name}.fish"), manual::fish),
        ];
        for (shell, file, made) in shells {
            let text = match program.own_text(&places.programs, &["--completions", shell])? {
                Some(text) => text,
                None => made(name, &words),
            };
            write(&completions.join(file), text.as_bytes())?;
        }
    }
    Ok(())
}

/// The program that builds Debian packages: the installed one, or one that is installed in `tools`.
fn cargo_deb(tools: &Path) -> Result<PathBuf> {
    let fetched = tools.join("bin/cargo-deb");
    for path in [Path::new("cargo-deb"), &fetched] {
        if Command::new(path).arg("--version").output().is_ok_and(|out| out.status.success()) {
            return Ok(path.to_owned());
        }
    }
    let root = tools.display().to_string();
    let version = format!("cargo-deb@{CARGO_DEB}");
    if !cargo(&["install", "--quiet", "--locked", "--root", &root, &version])? {
        bail!("cargo-deb cannot be fetched: `cargo install --locked {version}`");
    }
    Ok(fetched)
}

/// Builds the package that a crate's metadata describes. Returns its path.
fn debian(deb: &Path, package: &str, places: &Places) -> Result<PathBuf> {
    let mut command = Command::new(deb);
    command.arg("deb").current_dir(workspace_root());
    command
        .args(["--quiet", "--no-build", "--fast", "--package", package, "--output"])
        .arg(&places.release);
    let path = output(&mut command)?;
    let path = path.lines().last().context("cargo-deb names no package")?;
    Ok(PathBuf::from(path.trim()))
}

/// Builds the archive for systems without Debian packages. The same sources give the same bytes.
fn archive(places: &Places, machine: &str, built: &str) -> Result<()> {
    let name = format!("brisk-{}-{machine}", Program::version());
    let directory = places.derived.join(&name);
    fs::create_dir_all(directory.join("bin")).context("archive")?;
    for program in PROGRAMS {
        let to = directory.join("bin").join(program.name);
        fs::copy(places.programs.join(program.name), &to).context(program.name)?;
        run(Command::new("strip").arg("--strip-debug").arg(&to))?;
    }
    for part in ["man", "completions", "brisk.conf"] {
        run(Command::new("cp").arg("-r").arg(places.derived.join(part)).arg(&directory))?;
    }
    // The pictures of the pages.
    run(Command::new("cp").arg("-r").arg(workspace_root().join("docs/images")).arg(&directory))?;
    for paper in PAPERS {
        let name = Path::new(paper).file_name().context("a paper without a name")?;
        fs::copy(workspace_root().join(paper), directory.join(name)).context(*paper)?;
    }
    let file = places.release.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-czf"]).arg(file);
    if !built.is_empty() {
        tar.arg(format!("--mtime={built}"));
    }
    run(tar.arg("-C").arg(&places.derived).arg(name))
}

/// Writes SHA256SUMS for all files of the release, in the format of `sha256sum --check`.
fn checksums(directory: &Path) -> Result<()> {
    let mut names: Vec<_> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    names.sort();
    let sums = output(Command::new("sha256sum").args(&names).current_dir(directory))?;
    write(&directory.join("SHA256SUMS"), sums.as_bytes())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paper_exists() {
        let missing: Vec<_> =
            PAPERS.iter().filter(|p| !workspace_root().join(p).is_file()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
