//! The page of the console in a real browser. The protocol below the page is tested in `console.rs`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::port::Port;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::wait::{DEADLINE, holds_within};
use brisk_testkit::{Launch, Server, TempDir, wait_until};
use brisk_tests::browser::Browser;
use brisk_tests::with_workers;
use serde_json::json;
use std::collections::BTreeSet;

/// The views by the names of their tabs.
const VIEWS: [&str; 8] =
    ["Overview", "Commands", "Clients", "Keys", "Memory", "Replication", "Persistence", "Prompt"];

/// A width of a phone, in CSS pixels.
const PHONE_WIDTH: u32 = 390;

/// A server with a console, and a browser that has opened its page.
struct Console {
    browser: Browser,
    server: Server,
    launch: Launch,
    /// Problems that a test causes deliberately contain one of these texts.
    expected_problems: Vec<String>,
    http: Port,
}

impl Console {
    /// Opens the page with `http` or `https`. `None` if this machine has no browser, or if the tests run against a real
    /// Redis, which has no console.
    #[track_caller]
    fn open(scheme: &str, launch: Launch) -> Option<Console> {
        if subject_is_redis() {
            return None;
        }
        let mut browser = Browser::start()?;
        let http = Port::claim();
        let launch = launch.set("http-port", &http.number().to_string());
        let launch = launch.set("http-console", "write");
        let server = launch.clone().start();
        browser.navigate(&format!("{scheme}://127.0.0.1:{}/", http.number()));
        Some(Console { browser, server, launch, expected_problems: Vec::new(), http })
    }

    #[track_caller]
    fn log_in(&mut self, user: &str, password: &str) {
        self.browser.fill("form.login input[name=user]", user);
        self.browser.fill("form.login input[name=password]", password);
        self.browser.press("Enter");
    }

    #[track_caller]
    fn wait_until_live(&mut self) {
        self.browser.wait_for("shows('#state', 'live')");
    }

    /// Opens a view by its tab.
    #[track_caller]
    fn view(&mut self, name: &str) {
        self.browser.click("#views [role=tab]", Some(name));
        self.browser.wait_for(&format!("shows('#views [aria-selected=true]', '{name}')"));
    }

    /// Opens the list of keys, and waits until it has this number of rows.
    #[track_caller]
    fn keys(&mut self, rows: usize) {
        self.view("Keys");
        self.browser.wait_for(&format!("count('main tbody tr') === {rows}"));
    }

    /// Runs a line at the prompt, which must be open, and waits until the text is in the output after it.
    #[track_caller]
    fn run(&mut self, line: &str, expected: &str) {
        self.browser.fill(".prompt input", line);
        self.browser.press("Enter");
        let expected = json!(expected);
        self.browser
            .wait_for(&format!("visible('.log .entry').at(-1)?.textContent.includes({expected})"));
        // A further command can be entered.
        self.browser.wait_for("count('.prompt input:not([readonly])') === 1");
    }

    /// Saves the open dialog, and waits until the page has read the key again: it then replaces the element that shows
    /// the value.
    #[track_caller]
    fn save(&mut self, element: &str) {
        self.browser.evaluate(&format!("void find('{element}').setAttribute('data-before', '')"));
        self.browser.click("dialog button", Some("Save"));
        self.browser
            .wait_for(&format!("!find('dialog') && count('{element}:not([data-before])') === 1"));
    }

    /// Checks that the page has thrown no exception, has not violated its content security policy, and has not failed
    /// to load anything.
    #[track_caller]
    fn close(mut self) {
        let mut problems = self.browser.take_problems();
        problems
            .retain(|problem| !self.expected_problems.iter().any(|text| problem.contains(text)));
        assert_eq!(problems, Vec::<String>::new());
    }
}

/// A server whose default user needs a password, and which has another user with all permissions.
fn with_users() -> Launch {
    with_workers(2).set("requirepass", "secret").set("user", "alice on >wonderland ~* &* +@all")
}

#[test]
fn a_user_logs_in_and_a_wrong_password_shows_the_error() {
    let Some(mut console) = Console::open("http", with_users()) else { return };
    console.browser.wait_for("shows('#state', 'not logged in')");
    console.log_in("alice", "wrong");
    console.browser.wait_for("shows('form.login .message', 'WRONGPASS')");
    console.browser.wait_for("shows('#state', 'not logged in')");
    console.log_in("alice", "wonderland");
    console.wait_until_live();
    console.browser.wait_for("shows('#account', 'alice') && !find('form.login')");
    let clients = console.server.connect().pipeline(&["AUTH secret", "CLIENT LIST"])[1].text();
    assert!(
        clients.lines().any(|line| line.contains("name=console ") && line.contains("user=alice ")),
        "{clients}"
    );
    // The password must not be in the address or in the storage of the browser.
    let stored = "location.href + document.cookie + JSON.stringify([localStorage, sessionStorage])";
    let stored = console.browser.evaluate(stored);
    assert!(!stored.as_str().unwrap().contains("wonderland"), "{stored}");
    console.close();
}

#[test]
fn the_overview_shows_values_that_follow_the_load() {
    const KEYS: usize = 300;
    let Some(mut console) = Console::open("http", with_workers(2)) else { return };
    console.wait_until_live();
    let mut client = console.server.connect();
    for key in 0..KEYS {
        client.cmd(&format!("SET key:{key} value"));
    }
    console.browser.wait_for(&format!("{} === '{KEYS}'", value_of("Keys")));
    let (mut rates, mut latencies) = (BTreeSet::new(), BTreeSet::new());
    wait_until("the rate of operations and the latency to change", || {
        client.pipeline(&["SET load 1"; 1000]);
        client.pipeline(&["GET load"; 1000]);
        let operations = console.browser.evaluate(&value_of("Operations"));
        let operations = operations.as_str().unwrap().to_owned();
        // Without this client, the console itself sends about two commands per second.
        if operations.contains('k') {
            rates.insert(operations);
        }
        let latency = console.browser.evaluate(&value_of("Command time"));
        let latency = latency.as_str().unwrap().to_owned();
        if latency.ends_with('s') {
            latencies.insert(latency);
        }
        rates.len() >= 3 && !latencies.is_empty()
    });
    let titles = ["Operations", "Workers", "Memory", "Clients", "Hit rate", "Network", "Keys"];
    for title in titles {
        console.browser.wait_for(&format!("{} >= 3", points_of(title)));
    }
    client.cmd("FLUSHALL");
    console.browser.wait_for(&format!("{} === '0'", value_of("Keys")));
    console.close();
}

#[test]
fn keys_are_listed_by_type_and_edited_without_loss() {
    let Some(mut console) = Console::open("http", with_workers(2)) else { return };
    let binary = b"\xFF\x00 /#%?<b>".as_slice();
    let mut client = console.server.connect();
    for command in [
        "SET app:string text",
        "HSET app:hash field first other second",
        "RPUSH app:list a b c",
        "SADD app:set member",
        "ZADD app:zset 1.5 member",
        "XADD app:stream * field value",
    ] {
        assert!(!client.cmd(command).is_error());
    }
    client.call(&[b"SET", binary, b"\x00\xFE\\"]);
    console.wait_until_live();
    console.keys(7);
    for kind in ["string", "hash", "list", "set", "zset", "stream"] {
        let rows = if kind == "string" { 2 } else { 1 };
        console.browser.choose("form[role=search] label:nth-of-type(3) select", kind);
        console.browser.wait_for(&format!(
            "count('main tbody tr') === {rows} && shows('main tbody tr', 'app:{kind}')
                && visible('main tbody td:nth-child(2)').every((cell) => cell.textContent === '{kind}')"
        ));
    }
    // A value of a hash. Text from the server is shown as text.
    console.browser.choose("form[role=search] label:nth-of-type(3) select", "hash");
    console.browser.wait_for("count('main tbody tr') === 1 && find('main tbody a', 'app:hash')");
    console.browser.click("main tbody a", Some("app:hash"));
    console.browser.wait_for("count('main tbody tr') === 2 && shows('main tbody tr', 'second')");
    console.browser.click("main tbody tr:nth-child(1) button", Some("Edit…"));
    console.browser.fill("dialog textarea", "<b>edited</b> \"ü\"");
    console.save("main tbody");
    console
        .browser
        .wait_for("shows('main tbody tr:nth-child(1)', '<b>edited</b>') && !find('dialog')");
    assert_eq!(client.cmd("HGET app:hash field").text(), "<b>edited</b> \"ü\"");
    assert_eq!(client.cmd("HGET app:hash other").text(), "second");
    // A key and a value that are not text.
    console.view("Keys");
    console.browser.choose("form[role=search] label:nth-of-type(3) select", "string");
    console.browser.wait_for("count('main tbody tr') === 2");
    console.browser.click("main tbody a", Some("\\xff\\x00 /#%?<b>"));
    console.browser.wait_for("shows('pre.value', '\\\\x00\\\\xfe\\\\\\\\')");
    console.browser.click("main button", Some("Edit…"));
    console.browser.wait_for("find('dialog textarea').value === '\\\\x00\\\\xfe\\\\\\\\'");
    console.save("pre.value");
    assert_eq!(client.call(&[b"GET", binary]).to_string(), r#""\x00\xfe\\""#);
    console.browser.click("main button", Some("Edit…"));
    console.browser.fill("dialog textarea", "\\xfd\\x00text");
    console.save("pre.value");
    console.browser.wait_for("shows('pre.value', '\\\\xfd\\\\x00text') && !find('dialog')");
    assert_eq!(client.call(&[b"GET", binary]).to_string(), r#""\xfd\x00text""#);
    // A value that has changed since the page read it is not overwritten.
    console.browser.click("main button", Some("Edit…"));
    console.browser.wait_for("find('dialog textarea')");
    client.call(&[b"SET", binary, b"newer"]);
    console.browser.click("dialog button", Some("Save"));
    console.browser.wait_for("shows('dialog .message', 'The value has changed')");
    assert_eq!(client.call(&[b"GET", binary]).text(), "newer");
    console.browser.press("Escape");
    console.browser.click("main button", Some("Delete…"));
    console.browser.click("dialog button", Some("Delete"));
    console.browser.wait_for("shows('main', 'has no key of this name')");
    assert_eq!(client.call(&[b"EXISTS".as_slice(), binary]).integer(), 0);
    assert_eq!(client.cmd("DBSIZE").integer(), 6);
    console.close();
}

#[test]
fn the_most_requested_keys_are_found_in_samples_of_the_requests() {
    const NAMES: &str = "visible('main tbody tr').map((row) => row.cells[0].textContent)";
    let Some(mut console) = Console::open("http", with_workers(2)) else { return };
    console.wait_until_live();
    let mut client = console.server.connect();
    console.view("Memory");
    console.browser.click("main [role=tab]", Some("Hot keys"));
    console.browser.click("main button", Some("Sample requests"));
    // Keys at every position, between pairs, after their number, and after a keyword.
    let requests = [
        "GET hot",
        "GET hot",
        "MSET left value right value",
        "EVAL 'return 1' 1 counted argument",
        "XREAD COUNT 1 STREAMS after 0",
        "OBJECT ENCODING subcommand",
        "ECHO message",
    ];
    let expected = ["after", "counted", "hot", "left", "right", "subcommand"];
    let mut names = Vec::new();
    let mut text = String::new();
    let is_found = holds_within(DEADLINE, || {
        client.pipeline(&requests);
        let shown = console.browser.evaluate(NAMES);
        names = shown
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
        let mut sorted = names.clone();
        sorted.sort();
        text = console.browser.text("main");
        sorted == expected && names[0] == "hot"
    });
    assert!(is_found, "{text}");
    console.browser.click("main button", Some("Stop sampling"));
    wait_until("the last sample to end", || {
        !client.cmd("CLIENT LIST").text().contains("name=console-monitor")
    });
    console.close();
}

#[test]
fn a_stopped_memory_scan_continues() {
    const LOAD: &str = "main .toolbar label:nth-of-type(2) select";
    let launch = with_workers(2).set("enable-debug-command", "local");
    let Some(mut console) = Console::open("http", launch) else { return };
    console.wait_until_live();
    let mut client = console.server.connect();
    assert_eq!(client.cmd("DEBUG POPULATE 49999").text(), "OK");
    client.call(&[b"SET".as_slice(), b"biggest", &vec![b'x'; 1 << 20]]);
    console.browser.wait_for(&format!("{}.startsWith('50')", value_of("Keys")));
    console.view("Memory");
    console.browser.choose(LOAD, "9");
    console.browser.click("main button", Some("Scan"));
    console.browser.wait_for("shows('main .note', 'scanning: ') && count('main tbody tr') > 0");
    console.browser.wait_for("shows('main .note', 'keys that were read so far')");
    console.browser.click("main button", Some("Stop scan"));
    console.browser.wait_for("shows('main .note', 'stopped: ') && find('main button', 'Continue')");
    console.browser.choose(LOAD, "0");
    console.browser.click("main button", Some("Continue"));
    console.browser.wait_for("shows('main .note', 'complete: 50,000 keys')");
    console.browser.wait_for("shows('main tbody tr:first-child', 'biggest')");
    console.close();
}

#[test]
fn a_filter_finds_every_element_of_a_large_hash() {
    const FIELDS: usize = 30_000;
    let Some(mut console) = Console::open("http", with_workers(2)) else { return };
    console.wait_until_live();
    let mut client = console.server.connect();
    for part in 0..FIELDS / 1000 {
        let fields = (0..1000).map(|at| format!("field:{} value", part * 1000 + at));
        client.cmd(&format!("HSET large {}", fields.collect::<Vec<_>>().join(" ")));
    }
    console.keys(1);
    console.browser.click("main tbody a", Some("large"));
    // The first event adds the editors, and with them a new view.
    console
        .browser
        .wait_for("find('main button', 'Set a field…') && shows('main .note', 'Page 1, ')");
    let mut rows_with = |filter: &str, rows: usize| {
        console.browser.fill("main input[placeholder='glob pattern']", filter);
        console.browser.press("Enter");
        let plural = if rows == 1 { "" } else { "s" };
        console.browser.wait_for(&format!("shows('main .note', 'Page 1, {rows} row{plural}')"));
        console.browser.wait_for(&format!("count('main tbody tr') === {rows}"));
    };
    // The name of one field, nine fields that are far apart, and no field.
    rows_with("field:29999", 1);
    rows_with("field:?777", 9);
    rows_with("field:*x*", 0);
    console.close();
}

#[test]
fn the_prompt_runs_and_completes_commands() {
    let Some(mut console) = Console::open("http", with_workers(2)) else { return };
    console.wait_until_live();
    console.view("Prompt");
    console.run("SET greeting \"hello, \\xff\"", "OK");
    console.run("GET greeting", "\"hello, \\xff\"");
    assert_eq!(console.server.connect().cmd("GET greeting").to_string(), r#""hello, \xff""#);
    console.run("INCR greeting", "(error) ERR value is not an integer or out of range");
    // The hint shows that the documentation for the completion has arrived.
    console.browser.fill(".prompt input", "confi");
    console.browser.wait_for("find('.hint button', 'CONFIG')");
    console.browser.press("Tab");
    console.browser.wait_for("find('.prompt input').value === 'CONFIG '");
    console.browser.type_text("ge");
    console.browser.press("Tab");
    console.browser.wait_for("find('.prompt input').value === 'CONFIG GET '");
    console.browser.wait_for("shows('.hint', 'CONFIG GET parameter')");
    console.browser.type_text("http-console");
    console.browser.press("Enter");
    console.browser.wait_for("shows('.log .entry', '\"http-console\" => \"write\"')");
    console.browser.press("ArrowUp");
    console.browser.wait_for("find('.prompt input').value === 'CONFIG GET http-console'");
    // A command that deletes everything runs only after a confirmation.
    console.browser.fill(".prompt input", "FLUSHALL");
    console.browser.press("Enter");
    console.browser.click("dialog button", Some("Cancel"));
    console.browser.wait_for("shows('.log .entry', 'Not run.')");
    assert_eq!(console.server.connect().cmd("DBSIZE").integer(), 1);
    console.browser.fill(".prompt input", "FLUSHALL");
    console.browser.press("Enter");
    console.browser.click("dialog button", Some("Run FLUSHALL"));
    console.browser.wait_for("shows('.log .entry:last-child', 'OK')");
    assert_eq!(console.server.connect().cmd("DBSIZE").integer(), 0);
    // A blocking command can be stopped, and the prompt continues.
    console.browser.fill(".prompt input", "BLPOP nothing 0");
    console.browser.press("Enter");
    console.browser.click("form.prompt button", Some("Stop"));
    console.browser.wait_for("shows('.log .entry:last-child', 'closed')");
    console.run("ECHO again", "\"again\"");
    console.close();
}

#[test]
fn a_user_with_few_permissions_sees_the_errors_of_the_server() {
    let launch = with_users().set("user", "reader on >pw ~app:* +@read");
    let Some(mut console) = Console::open("http", launch) else { return };
    let mut admin = console.server.connect();
    admin.cmd("AUTH secret");
    admin.cmd("MSET app:key visible other:key hidden");
    console.log_in("reader", "pw");
    console.browser.wait_for("shows('#state', 'connected')");
    console.browser.wait_for("shows('.health', 'permission to run INFO')");
    // The names of all keys are visible to a user that may run SCAN, their values are not.
    console.keys(2);
    console.browser.wait_for("shows('main tbody tr', 'NOPERM')");
    console.browser.click("main tbody a", Some("other:key"));
    console.browser.wait_for("shows('main .message', 'NOPERM')");
    assert!(!console.browser.text("main").contains("hidden"));
    console.keys(2);
    console.browser.click("main tbody a", Some("app:key"));
    console.browser.wait_for("shows('pre.value', 'visible')");
    for view in VIEWS {
        console.view(view);
    }
    console.browser.wait_for("shows('.hint', 'NOPERM')");
    console.run(
        "SET app:key changed",
        "(error) NOPERM User reader has no permissions to run the 'set' command",
    );
    console.run("GET other:key", "(error) NOPERM No permissions to access a key");
    console.run("GET app:key", "\"visible\"");
    // The server decides at each command.
    admin.cmd("ACL SETUSER reader +set +info +latency +slowlog");
    console.run("SET app:key changed", "OK");
    console.wait_until_live();
    console.view("Overview");
    console.browser.wait_for("count('.plot-panel') > 5");
    console.close();
}

#[test]
fn the_page_reconnects_after_a_restart_of_the_server() {
    let Some(mut console) = Console::open("http", with_users()) else { return };
    console.log_in("alice", "wonderland");
    console.wait_until_live();
    let session = format!(
        "WebSocket connection to 'ws://127.0.0.1:{}/console/session' failed",
        console.http.number()
    );
    console.expected_problems.push(session);
    let keys = value_of("Keys");
    console.browser.wait_for(&format!("{keys} === '0'"));
    console.server.kill_for_now();
    console.browser.wait_for("shows('#state', 'disconnected')");
    console.launch.start_again(&mut console.server);
    console.wait_until_live();
    console.browser.wait_for("shows('#account', 'alice')");
    let mut client = console.server.connect();
    client.cmd("AUTH secret");
    client.cmd("MSET a 1 b 2 c 3");
    console.browser.wait_for(&format!("{keys} === '3'"));
    console.view("Prompt");
    console.run("GET b", "\"2\"");
    // A server that no longer knows the password: the page requests another one.
    client.cmd("ACL SETUSER alice resetpass >other");
    client.cmd("CLIENT KILL USER alice");
    console.browser.wait_for("shows('form.login .message', 'WRONGPASS')");
    console.log_in("alice", "other");
    console.wait_until_live();
    console.close();
}

#[test]
fn the_page_works_over_tls() {
    let directory = TempDir::new();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let identity = rcgen::generate_simple_self_signed(names).unwrap();
    let write = |name: &str, text: String| {
        std::fs::write(directory.path(name), text).unwrap();
        directory.path(name).to_str().unwrap().to_owned()
    };
    let launch = with_workers(2)
        .set("http-tls", "yes")
        .set("tls-cert-file", &write("cert", identity.cert.pem()))
        .set("tls-key-file", &write("key", identity.signing_key.serialize_pem()))
        .set("tls-auth-clients", "no");
    let Some(mut console) = Console::open("https", launch) else { return };
    console.wait_until_live();
    assert_eq!(console.browser.evaluate("location.protocol"), "https:");
    console.view("Prompt");
    console.run("ECHO encrypted", "\"encrypted\"");
    console.close();
}

#[test]
fn no_view_is_wider_than_a_phone() {
    let Some(mut console) = Console::open("http", with_workers(2)) else { return };
    console.browser.set_viewport(PHONE_WIDTH, 844, true);
    let mut client = console.server.connect();
    let long = "long-name-without-a-space-".repeat(8);
    client.call(&[b"SET".as_slice(), long.as_bytes(), &[b'v'; 2000]]);
    client.call(&[b"HSET".as_slice(), b"hash", long.as_bytes(), &[b'v'; 2000]]);
    client.cmd("CONFIG SET slowlog-log-slower-than 0");
    client.call(&["GET", &long]);
    console.wait_until_live();
    for view in VIEWS {
        console.view(view);
        fits(&mut console.browser, view);
    }
    console.run(&format!("GET {long}"), "vvv");
    fits(&mut console.browser, "a long reply");
    console.keys(2);
    console.browser.wait_for("shows('main tbody tr', 'long-name')");
    fits(&mut console.browser, "a key with a long name in the list");
    for name in ["hash", long.as_str()] {
        console.browser.evaluate(&format!("void (location.hash = '#/keys/0/{name}')"));
        console.browser.wait_for(&format!("shows('main h2', '{name}') && shows('main', 'vvv')"));
        fits(&mut console.browser, name);
        console.browser.click("main button", Some("Edit…"));
        console.browser.wait_for("find('dialog textarea')");
        fits(&mut console.browser, "a dialog");
        console.browser.press("Escape");
        console.browser.wait_for("!find('dialog')");
    }
    console.close();
}

/// An expression for the panel of a plot.
fn panel(title: &str) -> String {
    let title = json!(title);
    format!("visible('.plot-panel').find((panel) => panel.textContent.startsWith({title}))")
}

/// An expression for the current value of the first line of a plot.
fn value_of(title: &str) -> String {
    format!("{}.querySelector('.plot-values strong').textContent", panel(title))
}

/// An expression for the number of points of the first line of a plot.
fn points_of(title: &str) -> String {
    let line = format!("{}.querySelector('path.line')", panel(title));
    format!("({line}?.getAttribute('d').match(/[ML]/g)?.length ?? 0)")
}

/// Checks that the document does not scroll horizontally.
#[track_caller]
fn fits(browser: &mut Browser, what: &str) {
    let widths = browser.evaluate("[innerWidth, document.documentElement.scrollWidth]");
    assert_eq!(widths[0], PHONE_WIDTH);
    assert!(widths[1].as_u64() <= Some(PHONE_WIDTH.into()), "{what}: {widths}");
}
