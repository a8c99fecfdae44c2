//! The life cycle of a package in a clean Debian: it is installed, run, restarted, upgraded, removed and purged.

use super::chroot::{Clean, Inside, skip_reason};
use super::release::Release;
use super::run;
use crate::outcome::Outcome;
use anyhow::{Context, Result, bail};
use brisk_testkit::Conn;
use std::fs;
use std::process::Command;

const ADDRESS: &str = "127.0.0.1:6379";
const SETTINGS: &str = "/etc/brisk/brisk.conf";

/// Installs the packages of a release in a clean Debian, and checks each step.
#[expect(clippy::print_stdout, reason = "why nothing is checked is the output of the command")]
pub(super) fn check(release: &Release) -> Result<Outcome> {
    if let Some(why) = skip_reason() {
        println!("package: NOT CHECKED in a clean Debian: {why}");
        return Ok(Outcome::Skipped);
    }
    let clean = Clean::make(&release.directory, "lifetime")?;
    fs::copy(&release.server, clean.path("root/server.deb"))?;
    fs::copy(&release.tools, clean.path("root/tools.deb"))?;
    clean.run("lifetime", &[]).map(Outcome::from)
}

/// Runs the steps, as the first process in the clean Debian.
#[expect(clippy::print_stdout, reason = "each step that holds is the output of the command")]
pub(super) fn inside(debian: &Inside) -> Result<bool> {
    for (what, step) in STEPS {
        step(debian).with_context(|| format!("package: {what}"))?;
        println!("package: {what}: holds");
    }
    Ok(true)
}

type Step = fn(&Inside) -> Result<()>;

const STEPS: &[(&str, Step)] = &[
    ("installed, it runs as its own user", installed),
    ("a restart keeps data", restarted),
    ("logrotate rotates its log", rotated),
    ("an upgrade keeps data and changed settings", upgraded),
    ("removed, it leaves data and settings", removed),
    ("installed again, it has its data", installed_again),
    ("purged, it leaves nothing", purged),
];

fn installed(debian: &Inside) -> Result<()> {
    debian.shell("dpkg --install ./server.deb ./tools.deb")?;
    must_be("active", &debian.shell("systemctl is-active brisk-server")?)?;
    must_be("enabled", &debian.shell("systemctl is-enabled brisk-server")?)?;
    must_be("PONG", &debian.shell("brisk-cli ping")?)?;
    must_be("PONG", &debian.shell("brisk-cli -s /run/brisk/brisk.sock ping")?)?;
    let pid = debian.shell("cat /run/units/brisk-server.service.pid")?;
    let status = format!("/proc/{pid}");
    must_be("brisk brisk", &debian.shell(&format!("stat --format='%U %G' {status}"))?)?;
    for (path, owner) in [
        ("/var/lib/brisk", "brisk brisk 750"),
        ("/var/log/brisk", "brisk brisk 750"),
        ("/etc/brisk", "brisk brisk 750"),
        (SETTINGS, "brisk brisk 640"),
        ("/run/brisk/brisk.sock", "brisk brisk 770"),
        ("/usr/bin/brisk-server", "root root 755"),
    ] {
        must_be(owner, &debian.shell(&format!("stat --format='%U %G %a' {path}"))?)
            .with_context(|| path.to_owned())?;
    }
    must_be("/usr/sbin/nologin", &debian.shell("getent passwd brisk | cut -d: -f7")?)?;
    for program in super::programs::PROGRAMS {
        let name = program.name;
        debian.shell(&format!("test -x /usr/bin/{name}"))?;
        debian.shell(&format!("bash -n /usr/share/bash-completion/completions/{name}"))?;
        // A minimal Debian omits manual pages at installation, so check that the packages list them.
        debian.shell(&format!("dpkg --listfiles brisk-server brisk-tools | grep -q /{name}.1"))?;
    }
    // Check that scripts work although memory cannot be writable and executable, and that settings can be saved.
    let mut conn = Conn::try_tcp(ADDRESS)?;
    must_be(
        "(integer) 55",
        &conn.try_cmd("EVAL 'local s=0 for i=1,10 do s=s+i end return s' 0")?.to_string(),
    )?;
    must_be("OK", &conn.try_cmd("CONFIG SET timeout 77")?.to_string())?;
    must_be("OK", &conn.try_cmd("CONFIG REWRITE")?.to_string())?;
    must_be("timeout 77", &debian.shell(&format!("grep ^timeout {SETTINGS}"))?)
}

fn restarted(debian: &Inside) -> Result<()> {
    set("one")?;
    debian.shell("systemctl restart brisk-server")?;
    holds("one")?;
    // The server also keeps its data if it is killed after SAVE has succeeded.
    set("two")?;
    let mut conn = Conn::try_tcp(ADDRESS)?;
    must_be("OK", &conn.try_cmd("SAVE")?.to_string())?;
    debian.shell(
        "kill -9 $(cat /run/units/brisk-server.service.pid); systemctl start brisk-server",
    )?;
    holds("two")
}

fn rotated(debian: &Inside) -> Result<()> {
    debian.shell("apt-get install --quiet --quiet --yes --no-install-recommends logrotate")?;
    debian.shell("logrotate --force /etc/logrotate.d/brisk-server")?;
    debian.shell("grep -q 'Ready to accept' /var/log/brisk/brisk.log.1")?;
    let mut conn = Conn::try_tcp(ADDRESS)?;
    must_be("OK", &conn.try_cmd("SAVE")?.to_string())?;
    debian.shell("grep -q 'DB saved' /var/log/brisk/brisk.log")?;
    Ok(())
}

/// Builds a later version with different settings from this one.
fn upgraded(debian: &Inside) -> Result<()> {
    let (package, directory) = (debian.path("root/server.deb"), debian.path("root/later"));
    run(Command::new("dpkg-deb").arg("--raw-extract").arg(&package).arg(&directory))?;
    let control = fs::read_to_string(directory.join("DEBIAN/control"))?;
    let version =
        control.lines().find(|line| line.starts_with("Version: ")).context("no version")?;
    let later = control.replace(version, &format!("{version}.later"));
    fs::write(directory.join("DEBIAN/control"), later)?;
    let settings = directory.join("etc/brisk/brisk.conf");
    fs::write(&settings, fs::read_to_string(&settings)? + "# A later line.\n")?;
    let package = debian.path("root/later.deb");
    let mut build = Command::new("dpkg-deb");
    run(build.args(["--root-owner-group", "-Znone", "--build"]).arg(&directory).arg(&package))?;
    set("three")?;
    debian.shell("dpkg --force-confdef --force-confold --install ./later.deb </dev/null")?;
    holds("three")?;
    debian.shell("dpkg-query --show brisk-server | grep -q later")?;
    must_be("timeout 77", &debian.shell(&format!("grep ^timeout {SETTINGS}"))?)?;
    must_be("brisk brisk 640", &debian.shell(&format!("stat --format='%U %G %a' {SETTINGS}"))?)
}

fn removed(debian: &Inside) -> Result<()> {
    set("four")?;
    debian.shell("dpkg --remove brisk-server")?;
    if Conn::try_tcp(ADDRESS).is_ok() {
        bail!("the server still runs");
    }
    debian.shell(&format!("test -s /var/lib/brisk/dump.rdb && test -s {SETTINGS}"))?;
    debian.shell("getent passwd brisk && test ! -e /usr/bin/brisk-server").map(|_| ())
}

fn installed_again(debian: &Inside) -> Result<()> {
    debian.shell("dpkg --force-confdef --force-confold --install ./later.deb </dev/null")?;
    holds("four")
}

fn purged(debian: &Inside) -> Result<()> {
    debian.shell("dpkg --purge brisk-server brisk-tools")?;
    if Conn::try_tcp(ADDRESS).is_ok() {
        bail!("the server still runs");
    }
    let left = debian.shell(
        "find / -xdev -path /proc -prune -o -path /root -prune -o -path /run/units -prune \
         -o -path /var/cache -prune -o -name '*brisk*' -print",
    )?;
    must_be("", &left)?;
    debian.shell("! getent passwd brisk && ! getent group brisk").map(|_| ())
}

fn set(value: &str) -> Result<()> {
    let reply = Conn::try_tcp(ADDRESS)?.try_cmd(&format!("SET package {value}"))?;
    must_be("OK", &reply.to_string())
}

fn holds(value: &str) -> Result<()> {
    must_be(value, &Conn::try_tcp(ADDRESS)?.try_cmd("GET package")?.to_string().replace('"', ""))
}

fn must_be(wanted: &str, found: &str) -> Result<()> {
    if wanted != found.trim() {
        bail!("wanted {wanted:?}, found {:?}", found.trim());
    }
    Ok(())
}
