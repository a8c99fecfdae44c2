//! Users in files: `aclfile`, `user` lines, CONFIG REWRITE; and `rename-command`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::port::Port;
use brisk_testkit::server::{brisk_binary, redis_binary, subject_is_redis};
use brisk_testkit::{Conn, Launch, assert_reply};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A directory that is removed at the end of the test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("brisk-acl-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn program(arguments: &[&str]) -> Command {
    let program =
        if subject_is_redis() { redis_binary() } else { brisk_binary().unwrap().to_owned() };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A server started with a configuration file.
struct FromFile(Child);

impl FromFile {
    fn start(file: &Path, port: &Port) -> (FromFile, Conn) {
        let port = port.number().to_string();
        let mut command = program(&[file.to_str().unwrap(), "--port", &port, "--save", ""]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let server = FromFile(child);
        (server, Conn::when_loaded(&format!("127.0.0.1:{port}")))
    }
}

impl Drop for FromFile {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, which must fail. Returns its output.
fn failed_start(arguments: &[&str]) -> String {
    let port = Port::claim();
    let port = port.number().to_string();
    let arguments = [&["--port", &port, "--save", ""], arguments].concat();
    let Output { status, stdout, stderr } = program(&arguments).output().unwrap();
    assert!(!status.success(), "{arguments:?}");
    format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr))
}

#[test]
fn an_aclfile_is_loaded_at_startup_and_reloaded_completely_or_not_at_all() {
    let dir = Dir::new("load");
    let text = "user default on nopass ~* &* +@all\nuser alice on >pw ~a* +get (+set ~b)\n";
    let file = dir.write("users.acl", text);
    let server = Launch::subject().set("aclfile", file.to_str().unwrap()).start();
    let [mut admin, mut alice, mut bob] = server.connections();
    assert_reply!(alice, "AUTH alice pw", "OK");
    assert_reply!(alice, "GET a", "(nil)");
    assert_reply!(alice, "SET b 1", "OK");
    admin.cmd("ACL SETUSER bob on nopass +@all");
    assert_reply!(bob, "AUTH bob x", "OK");

    // If a file contains an error, none of it is applied.
    fs::write(&file, "user alice on >pw\nuser carol on +nosuch\nuser carol on\n").unwrap();
    let errors = admin.cmd("ACL LOAD").to_string();
    for part in [
        "users.acl:2: Error in applying operation '+nosuch': Unknown command or category name",
        "WARNING: Duplicate user 'carol' found on line 3.",
        "no change to the previously active ACL rules was performed",
    ] {
        assert!(errors.contains(part), "{errors}");
    }
    assert_reply!(admin, "ACL USERS", "1) \"alice\"\n2) \"bob\"\n3) \"default\"");
    assert_reply!(bob, "PING", "PONG");

    // Users that are not in the file are removed.
    fs::write(&file, "user alice on >pw ~a* +get +ping\n").unwrap();
    assert_reply!(admin, "ACL LOAD", "OK");
    assert_reply!(admin, "ACL USERS", "1) \"alice\"\n2) \"default\"");
    assert_eq!(bob.read_to_end(), b"");
    if !subject_is_redis() {
        // Redis 7.0 also closes the connections of users that stay.
        assert_reply!(alice, "PING", "PONG");
        assert!(alice.cmd("SET b 1").is_error());
    }
    fs::remove_file(&file).unwrap();
    let error = admin.cmd("ACL LOAD").to_string();
    assert!(error.contains("Error loading ACLs, opening file '"), "{error}");
    assert!(error.contains("': No such file or directory"), "{error}");
}

#[test]
fn acl_save_writes_what_acl_load_reads() {
    let dir = Dir::new("save");
    let file = dir.write("users.acl", "");
    let server = Launch::subject().set("aclfile", file.to_str().unwrap()).start();
    let mut admin = server.connect();
    admin.cmd("ACL SETUSER alice on >pw ~a* %R~b &news +@read -get (+set ~c)");
    admin.cmd("ACL SETUSER bob reset");
    let before = admin.cmd("ACL LIST").to_string();
    assert_reply!(admin, "ACL SAVE", "OK");
    admin.cmd("ACL DELUSER alice");
    admin.cmd("ACL SETUSER bob on");
    assert_reply!(admin, "ACL LOAD", "OK");
    assert_eq!(admin.cmd("ACL LIST").to_string(), before);
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written.lines().count(), 3, "{written}");
    assert!(!written.contains("pw"), "{written}");
    // Nothing else is left in the directory.
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 1);
}

#[test]
fn without_an_aclfile_there_is_nothing_to_load_or_save() {
    let server = Launch::subject().start();
    let mut admin = server.connect();
    for command in ["ACL LOAD", "ACL SAVE"] {
        let error = admin.cmd(command).to_string();
        let text = "(error) ERR This Redis instance is not configured to use an ACL file. You may \
            want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE \
            (assuming you have a Redis configuration file set) in order to store users in the \
            Redis configuration.";
        assert_eq!(error, text);
    }
}

#[test]
fn a_server_with_wrong_users_does_not_start() {
    let dir = Dir::new("wrong");
    let bad = dir.write("bad.acl", "user alice on +nosuch\n");
    let good = dir.write("good.acl", "user alice on\n");
    let [bad, good] = [&bad, &good].map(|path| path.to_str().unwrap());
    for (arguments, said) in [
        (&["--aclfile", bad][..], "bad.acl:1: Error in applying operation '+nosuch'"),
        (&["--aclfile", "/nowhere/users.acl"], "Error loading ACLs, opening file"),
        (
            &["--aclfile", good, "--user", "bob", "on"],
            "please define either an ACL file or declare",
        ),
        (
            &["--user", "bob", "on", "+nosuch"],
            "Error loading ACL rule '+nosuch' for the user named 'bob'",
        ),
        (&["--user", "bob", "--user", "bob"], "Duplicate user found"),
        (&["--user", "bob", "on", "nonsense"], "Error in user declaration '"),
        (&["--user", "bob", "on", "(+get"], "FATAL CONFIG FILE ERROR"),
        (&["--rename-command", "nosuch", "x"], "No such command in rename-command"),
        (&["--rename-command", "get", "set"], "Target command name already exists"),
    ] {
        let output = failed_start(arguments);
        assert!(output.contains(said), "{arguments:?}: {output}");
    }
}

#[test]
fn user_lines_make_users_and_config_rewrite_writes_them() {
    let (dir, port) = (Dir::new("rewrite"), Port::claim());
    let text = "# kept\nuser default on nopass ~* &* +@all\nuser alice on >pw ~a (+get ~b)\n";
    let file = dir.write("server.conf", text);
    let shown = {
        let (_server, mut admin) = FromFile::start(&file, &port);
        assert_reply!(admin, "ACL USERS", "1) \"alice\"\n2) \"default\"");
        admin.cmd("ACL SETUSER bob on nopass ~\"x\\\"y\" +@all -config|set &c");
        admin.cmd("ACL SETUSER alice +set");
        assert_reply!(admin, "CONFIG REWRITE", "OK");
        admin.cmd("ACL LIST").to_string()
    };
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# kept\n") && !written.contains("pw"), "{written}");
    assert_eq!(written.matches("\nuser ").count(), 3, "{written}");
    if !subject_is_redis() {
        // Redis 7.0 does not quote the pattern, so it cannot read its own file.
        let (_server, mut admin) = FromFile::start(&file, &port);
        assert_eq!(admin.cmd("ACL LIST").to_string(), shown);
    }
}

/// Redis writes all users to the main file, and then fails to start with "Duplicate user found".
#[test]
fn config_rewrite_leaves_users_of_an_included_file_where_they_are() {
    if subject_is_redis() {
        return;
    }
    let (dir, port) = (Dir::new("included"), Port::claim());
    let included =
        "user alice on >pw ~a (+get ~b)\nuser carol on nopass +@all\nuser dave on +get\n";
    let included = dir.write("users.conf", included);
    let file = dir.write("server.conf", &format!("include {}\n", included.display()));
    let shown = {
        let (_server, mut admin) = FromFile::start(&file, &port);
        assert_reply!(admin, "CONFIG REWRITE", "OK");
        let written = fs::read_to_string(&file).unwrap();
        let users: Vec<&str> = written.lines().filter(|line| line.starts_with("user ")).collect();
        assert_eq!(users.len(), 1, "{written}");
        assert!(users[0].starts_with("user default "), "{written}");
        admin.cmd("ACL SETUSER bob on nopass ~x +@all");
        admin.cmd("ACL SETUSER alice +set");
        assert_reply!(admin, "ACL DELUSER dave", "(integer) 1");
        for _ in 0..2 {
            assert_reply!(admin, "CONFIG REWRITE", "OK");
        }
        admin.cmd("ACL LIST").to_string()
    };
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written.matches("\nuser ").count(), 4, "{written}");
    assert!(!written.contains("\nuser carol "), "{written}");
    for _ in 0..2 {
        let (_server, mut admin) = FromFile::start(&file, &port);
        // To override the included line, a deleted user gets a line that does not allow logging in.
        assert_reply!(
            admin,
            "ACL DRYRUN dave GET k",
            "\"User dave has no permissions to run the 'get' command\""
        );
        assert!(admin.cmd("AUTH dave x").is_error());
        assert_reply!(admin, "CONFIG REWRITE", "OK");
        assert_reply!(admin, "ACL DELUSER dave", "(integer) 1");
        assert_eq!(admin.cmd("ACL LIST").to_string(), shown);
    }
}

#[test]
fn requirepass_is_the_password_of_the_default_user_unless_a_line_says_otherwise() {
    let server = Launch::subject().set("requirepass", "pw").start();
    let mut conn = server.connect();
    assert_reply!(conn, "PING", "(error) NOAUTH Authentication required.");
    assert_reply!(conn, "AUTH pw", "OK");
    let user = conn.cmd("ACL GETUSER default");
    assert_eq!(user.field("passwords").unwrap().elements().len(), 1);
    let line = "default on >other ~* +@all";
    let server = Launch::subject().set("requirepass", "pw").set("user", line).start();
    let mut conn = server.connect();
    assert!(conn.cmd("AUTH pw").is_error());
    assert_reply!(conn, "AUTH other", "OK");
}

#[test]
fn new_users_have_the_channels_that_the_setting_says() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    let channels = |conn: &mut Conn, user: &str| {
        conn.cmd(&format!("ACL SETUSER {user}"));
        conn.cmd(&format!("ACL GETUSER {user}")).field("channels").unwrap().text()
    };
    assert_eq!(channels(&mut conn, "a"), "");
    conn.cmd("CONFIG SET acl-pubsub-default allchannels");
    assert_eq!(channels(&mut conn, "a"), "");
    assert_eq!(channels(&mut conn, "b"), "&*");
    conn.cmd("ACL SETUSER a reset");
    assert_eq!(channels(&mut conn, "a"), "&*");
}

#[test]
fn a_renamed_command_has_its_new_name_and_rules_its_old_one() {
    let (dir, port) = (Dir::new("rename"), Port::claim());
    let text =
        "rename-command get fetch\nrename-command flushall \"\"\nrename-command config cfg\n";
    let file = dir.write("server.conf", text);
    {
        let (_server, mut conn) = FromFile::start(&file, &port);
        assert_reply!(conn, "CFG REWRITE", "OK");
    }
    let (_server, mut conn) = FromFile::start(&file, &port);
    assert_reply!(conn, "FETCH k", "(nil)");
    let unknown = "(error) ERR unknown command 'GET', with args beginning with: 'k' ";
    assert_reply!(conn, "GET k", unknown);
    assert!(conn.cmd("FLUSHALL").is_error());
    assert_reply!(conn, "FETCH", "(error) ERR wrong number of arguments for 'get' command");
    assert_reply!(conn, "CFG GET port", format!("1) \"port\"\n2) \"{}\"", port.number()));
    assert_reply!(conn, "CFG NO", "(error) ERR unknown subcommand 'NO'. Try CFG HELP.");
    assert_reply!(conn, "COMMAND INFO get", "1) (nil)");
    assert_eq!(conn.cmd("COMMAND INFO fetch").elements()[0].elements()[0].text(), "get");
    // Rules use the original names of commands, even of renamed and removed ones.
    assert_reply!(conn, "ACL SETUSER u on nopass ~* +get +flushall -config|set", "OK");
    assert!(conn.cmd("ACL SETUSER u +fetch").is_error());
    assert_reply!(conn, "ACL DRYRUN u fetch k", "OK");
    assert_reply!(conn, "ACL DRYRUN u get k", "(error) ERR Command 'get' not found");
    conn.cmd("AUTH u x");
    assert_reply!(conn, "FETCH k", "(nil)");
    let refused = conn.cmd("CFG GET port").to_string();
    assert!(refused.contains("NOPERM") && refused.contains("'config|get' command"), "{refused}");
}
