//! CLIENT: listing, naming, closing, pausing and silencing connections.

use brisk_testkit::matrix::each_config_of;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, assert_reply, each_backend, each_config, wait_until};
use brisk_tests::with_workers;
use std::time::{Duration, Instant};

/// The value of `field` in the CLIENT LIST line of connection `id`.
fn listed(conn: &mut Conn, id: i64, field: &str) -> Option<String> {
    let text = conn.cmd("CLIENT LIST").text();
    let line = text.lines().find(|line| line.starts_with(&format!("id={id} ")))?;
    let mark = format!("{field}=");
    line.split(' ').find_map(|word| word.strip_prefix(&mark)).map(str::to_owned)
}

/// Waits until this number of clients is connected. The one that waited for the server's start may still be closing.
#[track_caller]
fn wait_for_clients(conn: &mut Conn, count: usize) {
    wait_until(&format!("{count} clients are connected"), || {
        conn.cmd("CLIENT LIST").text().lines().count() == count
    });
}

#[test]
fn list_and_info_have_the_same_fields_in_the_same_order() {
    // Servers after Redis 7.0 show more fields: `watch`, and those after `resp`.
    const FIELDS: [&str; 34] = [
        "id",
        "addr",
        "laddr",
        "fd",
        "name",
        "age",
        "idle",
        "flags",
        "db",
        "sub",
        "psub",
        "ssub",
        "multi",
        "watch",
        "qbuf",
        "qbuf-free",
        "argv-mem",
        "multi-mem",
        "rbs",
        "rbp",
        "obl",
        "oll",
        "omem",
        "tot-mem",
        "events",
        "cmd",
        "user",
        "redir",
        "resp",
        "lib-name",
        "lib-ver",
        "tot-net-in",
        "tot-net-out",
        "tot-cmds",
    ];
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("CLIENT SETNAME me");
        conn.cmd("SELECT 3");
        for text in [conn.cmd("CLIENT LIST").text(), conn.cmd("CLIENT INFO").text()] {
            let line = text.lines().find(|line| line.contains("name=me")).unwrap();
            let words: Vec<(&str, &str)> =
                line.split(' ').map(|word| word.split_once('=').unwrap()).collect();
            let names: Vec<&str> = words.iter().map(|w| w.0).collect();
            let later = |name: &str| {
                name == "watch"
                    || name.starts_with("lib-")
                    || name.starts_with("tot-net")
                    || name == "tot-cmds"
            };
            let known = FIELDS.iter().filter(|name| !(subject_is_redis() && later(name)));
            assert_eq!(names, known.copied().collect::<Vec<_>>());
            let value = |name| words.iter().find(|w| w.0 == name).unwrap().1;
            assert_eq!(value("db"), "3");
            assert_eq!(value("user"), "default");
            assert_eq!(value("flags"), "N");
            assert_eq!(value("multi"), "-1");
            assert_eq!(value("laddr"), server.address());
        }
        let id = conn.id();
        assert_eq!(listed(&mut conn, id, "cmd").unwrap(), "client|list");
    });
}

#[test]
fn names_are_kept_and_checked() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CLIENT GETNAME", "(nil)");
        assert_reply!(conn, "CLIENT SETNAME worker-1", "OK");
        assert_reply!(conn, "CLIENT GETNAME", "\"worker-1\"");
        assert_reply!(
            conn,
            "CLIENT SETNAME 'with blank'",
            "(error) ERR Client names cannot contain spaces, newlines or special characters."
        );
        assert_reply!(conn, "CLIENT SETNAME ''", "OK");
        assert_reply!(conn, "CLIENT GETNAME", "(nil)");
    });
}

#[test]
fn ids_only_grow() {
    each_config(|server| {
        let first = server.connect().id();
        let second = server.connect().id();
        assert!(second > first);
    });
}

#[test]
fn kill_closes_the_selected_client() {
    each_config(|server| {
        let [mut killer, mut by_id, mut by_address, mut kept] = server.connections();
        let id = by_id.id();
        assert_reply!(killer, &format!("CLIENT KILL ID {id}"), "(integer) 1");
        by_id.read_to_end();
        let other = by_address.id();
        let address = listed(&mut killer, other, "addr").unwrap();
        assert_reply!(killer, &format!("CLIENT KILL {address}"), "OK");
        by_address.read_to_end();
        assert_reply!(killer, &format!("CLIENT KILL ID {id}"), "(integer) 0");
        assert_reply!(killer, "CLIENT KILL 1.2.3.4:5", "(error) ERR No such client");
        kept.assert_in_step();
    });
}

#[test]
fn kill_may_close_the_caller_after_its_reply() {
    each_config(|server| {
        let mut conn = server.connect();
        let id = conn.id();
        conn.send(&format!("CLIENT KILL ID {id} SKIPME no"));
        assert_eq!(conn.read_to_end(), b":1\r\n");
    });
}

#[test]
fn kill_closes_all_that_fit_every_filter_on_all_workers() {
    for workers in [1, 2] {
        each_backend(
            || with_workers(workers),
            |server| {
                let mut killer = server.connect();
                let mut victims: [Conn; 8] = server.connections();
                victims.iter_mut().for_each(Conn::assert_in_step);
                let mut local = server.connect_unix();
                local.assert_in_step();
                wait_for_clients(&mut killer, 10);
                let address = server.address();
                assert_reply!(killer, "CLIENT KILL LADDR 127.0.0.1:1", "(integer) 0");
                assert_reply!(killer, "CLIENT KILL TYPE pubsub", "(integer) 0");
                assert_reply!(killer, "CLIENT KILL TYPE replica USER default", "(integer) 0");
                let all = format!("CLIENT KILL LADDR {address} USER default TYPE normal");
                assert_reply!(killer, &all, "(integer) 8");
                // When the reply arrives, no client lists these connections any more, even if they are not closed yet.
                assert_eq!(killer.cmd("CLIENT LIST").text().lines().count(), 2);
                assert_reply!(killer, &all, "(integer) 0");
                for victim in &mut victims {
                    assert_eq!(victim.read_to_end(), b"");
                }
                let socket = format!("{}:0", server.unix_socket().display());
                assert_eq!(local.cmd("CLIENT INFO").text().matches(&socket).count(), 2);
                assert_reply!(killer, &format!("CLIENT KILL ADDR {socket}"), "(integer) 1");
                assert_eq!(local.read_to_end(), b"");
                killer.send("CLIENT KILL TYPE normal SKIPME no");
                assert_eq!(killer.read_to_end(), b":1\r\n");
            },
        );
    }
}

#[test]
fn nothing_of_a_killed_client_is_executed_any_more() {
    each_config(|server| {
        let [mut killer, mut victim] = server.connections();
        let id = victim.id();
        assert_reply!(killer, &format!("CLIENT KILL ID {id}"), "(integer) 1");
        let _ = victim.try_cmd("SET k v");
        victim.read_to_end();
        assert_reply!(killer, "EXISTS k", "(integer) 0");
    });
}

#[test]
fn kill_and_list_reject_unknown_options() {
    each_config(|server| {
        let mut conn = server.connect();
        for (words, error) in [
            ("KILL ID x", "ERR client-id should be greater than 0"),
            ("KILL ID 0", "ERR client-id should be greater than 0"),
            ("KILL TYPE x", "ERR Unknown client type 'x'"),
            ("KILL USER x", "ERR No such user 'x'"),
            ("KILL ID 1 SKIPME", "ERR syntax error"),
            ("KILL ID 1 SKIPME maybe", "ERR syntax error"),
            ("KILL NO 1", "ERR syntax error"),
            ("LIST TYPE x", "ERR Unknown client type 'x'"),
            ("LIST TYPE primary", "ERR Unknown client type 'primary'"),
            ("LIST TYPE", "ERR syntax error"),
            ("LIST ID", "ERR syntax error"),
            ("LIST ID x", "ERR Invalid client ID"),
            ("LIST TYPE normal ID 1", "ERR syntax error"),
            ("UNBLOCK x", "ERR value is not an integer or out of range"),
            ("UNBLOCK x y", "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
            ("NOSUCH", "ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP."),
            ("ID x", "ERR wrong number of arguments for 'client|id' command"),
        ] {
            assert_reply!(conn, &format!("CLIENT {words}"), format!("(error) {error}"));
        }
        assert_reply!(conn, "CLIENT", "(error) ERR wrong number of arguments for 'client' command");
        if !subject_is_redis() {
            // The reference version does not have this option.
            let age = "(error) ERR maxage should be greater than 0";
            assert_reply!(conn, "CLIENT KILL MAXAGE 0", age);
            let age = "(error) ERR maxage is not an integer or out of range";
            assert_reply!(conn, "CLIENT KILL MAXAGE x", age);
            assert_reply!(conn, "CLIENT KILL MAXAGE 100000 SKIPME no", "(integer) 0");
        }
    });
}

#[test]
fn list_shows_the_selected_clients() {
    each_config(|server| {
        let [mut first, mut second, mut third] = server.connections();
        let ids = [first.id(), second.id(), third.id()];
        wait_for_clients(&mut first, 3);
        let shown = |conn: &mut Conn, words: &str| -> Vec<i64> {
            let text = conn.cmd(&format!("CLIENT LIST {words}")).text();
            let id = |line: &str| line.split(' ').next()?.strip_prefix("id=")?.parse().ok();
            text.lines().filter_map(id).collect()
        };
        let [a, b, c] = ids;
        assert_eq!(shown(&mut first, &format!("ID {c} {a} 999999 {a} -1")), [c, a, a]);
        assert_eq!(shown(&mut first, "TYPE master"), [0i64; 0]);
        let mut sorted = ids;
        sorted.sort_unstable();
        assert_eq!(shown(&mut first, "TYPE normal"), sorted);
        let text = first.cmd(&format!("CLIENT LIST ID {b}")).text();
        assert!(text.contains(" cmd=client|id "), "{text}");
    });
}

#[test]
fn the_caller_sees_its_own_state() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.send_raw(b"ECHO abc\r\n*2\r\n$6\r\nCLIENT\r\n$4\r\nINFO\r\n");
        assert_eq!(conn.reply().text(), "abc");
        let info = conn.reply().text();
        for field in [" argv-mem=10 ", " cmd=client|info ", " idle=0 ", " obl=9 "] {
            assert!(info.contains(field), "{field} in {info}");
        }
        let resp = format!(" resp={}", server.resp());
        assert!(info.contains(&resp), "{info}");
    });
}

#[test]
fn output_that_a_client_does_not_take_is_shown() {
    each_config(|server| {
        let [mut control, mut reader] = server.connections();
        let id = reader.id();
        let value = vec![b'x'; 10_000_000];
        assert_eq!(control.call(&[&b"SET"[..], b"k", &value]).to_string(), "OK");
        let metric = |conn: &mut Conn, field: &str| listed(conn, id, field).unwrap();
        let taken = |conn: &mut Conn| metric(conn, "omem") == "0" && metric(conn, "events") == "r";
        assert!(taken(&mut control));
        for _ in 0..4 {
            reader.send("GET k");
        }
        wait_until("output is left", || {
            let kept: u64 = metric(&mut control, "omem").parse().unwrap();
            kept > 1_000_000 && metric(&mut control, "events").contains('w')
        });
        for _ in 0..4 {
            assert_eq!(reader.reply().text().len(), value.len());
        }
        wait_until("the output is taken", || taken(&mut control));
    });
}

#[test]
fn libraries_may_say_what_they_are() {
    if subject_is_redis() {
        return; // later than the reference
    }
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CLIENT SETINFO LIB-NAME lib(with_plus)", "OK");
        assert_reply!(conn, "CLIENT SETINFO lib-ver 1.2.3", "OK");
        let info = conn.cmd("CLIENT INFO").text();
        assert!(info.contains(" lib-name=lib(with_plus) lib-ver=1.2.3 "), "{info}");
        assert_reply!(
            conn,
            "CLIENT SETINFO lib-ver 'a b'",
            "(error) ERR lib-ver cannot contain spaces, newlines or special characters."
        );
        assert_reply!(conn, "CLIENT SETINFO x y", "(error) ERR Unrecognized option 'x'");
        // RESET resets the connection, but not the facts about the library.
        assert_reply!(conn, "RESET", "RESET");
        assert!(conn.cmd("CLIENT INFO").text().contains(" lib-name=lib(with_plus) "));
        assert_reply!(conn, "CLIENT SETINFO LIB-NAME ''", "OK");
        assert!(conn.cmd("CLIENT INFO").text().contains(" lib-name= "));
    });
}

#[test]
fn no_touch_is_shown_in_the_flags_and_ends_with_reset() {
    if subject_is_redis() {
        return; // later than the reference
    }
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CLIENT NO-TOUCH on", "OK");
        assert!(conn.cmd("CLIENT INFO").text().contains(" flags=T "));
        assert_reply!(conn, "CLIENT NO-TOUCH x", "(error) ERR syntax error");
        assert_reply!(conn, "RESET", "RESET");
        assert!(conn.cmd("CLIENT INFO").text().contains(" flags=N "));
    });
}

#[test]
fn no_touch_leaves_access_clocks_alone_but_for_touch() {
    if subject_is_redis() {
        return; // later than the reference
    }
    each_config(|server| {
        let [mut quiet, mut loud] = server.connections();
        let lfu = "CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 0";
        assert_reply!(loud, lfu, "OK");
        assert_reply!(loud, "SET k v", "OK");
        // After a change of policy, all counters are reset. Accesses are not counted until this is complete.
        let before = loud.cmd("OBJECT FREQ k").integer();
        wait_until("accesses count", || {
            loud.cmd("GET k");
            loud.cmd("OBJECT FREQ k").integer() > before
        });
        let fresh = loud.cmd("OBJECT FREQ k").integer();
        // NO-TOUCH takes effect with the next command, even within one write.
        let replies = quiet.pipeline(&["CLIENT NO-TOUCH on", "GET k", "GET k", "OBJECT FREQ k"]);
        assert_eq!(replies[3].integer(), fresh);
        loud.cmd("GET k");
        assert_eq!(loud.cmd("OBJECT FREQ k").integer(), fresh + 1);
        quiet.cmd("GET k");
        assert_eq!(quiet.cmd("OBJECT FREQ k").integer(), fresh + 1);
        assert_reply!(quiet, "TOUCH k", "(integer) 1");
        assert_eq!(quiet.cmd("OBJECT FREQ k").integer(), fresh + 2);
        // This holds even if a slow script reads the key late.
        loud.cmd("CONFIG SET busy-reply-threshold 1");
        let slow = "local began = os.clock() while os.clock() - began < 0.1 do end \
                    return redis.call('GET', KEYS[1])";
        assert_reply!(quiet, &format!("EVAL \"{slow}\" 1 k"), "\"v\"");
        assert_eq!(quiet.cmd("OBJECT FREQ k").integer(), fresh + 2);
        let replies = quiet.pipeline(&["CLIENT NO-TOUCH off", "GET k", "OBJECT FREQ k"]);
        assert_eq!(replies[2].integer(), fresh + 3);
    });
}

#[test]
fn nothing_is_tracked() {
    each_config(|server| {
        let mut conn = server.connect();
        assert_reply!(conn, "CLIENT GETREDIR", "(integer) -1");
        let info = conn.cmd("CLIENT TRACKINGINFO");
        assert_eq!(info.field("flags").unwrap().elements()[0].text(), "off");
        assert_eq!(info.field("redirect").unwrap().integer(), -1);
        assert!(info.field("prefixes").unwrap().elements().is_empty());
    });
}

#[test]
fn pause_write_lets_reads_pass() {
    each_config(|server| {
        let [mut control, mut writer, mut reader] = server.connections();
        assert_reply!(control, "CLIENT PAUSE 100000 WRITE", "OK");
        writer.send("SET k v");
        wait_until("the writer waits", || control.info("blocked_clients") == "1");
        assert_reply!(reader, "GET k", "(nil)");
        assert!(!writer.has_reply_within(Duration::from_millis(50)));
        assert_reply!(control, "CLIENT UNPAUSE", "OK");
        assert_eq!(writer.reply().to_string(), "OK");
        assert_reply!(reader, "GET k", "\"v\"");
    });
}

#[test]
fn pause_all_ends_by_itself() {
    each_config(|server| {
        let [mut control, mut other] = server.connections();
        assert_reply!(control, "CLIENT PAUSE 50", "OK");
        assert_reply!(other, "PING", "PONG"); // waits for the end of the pause
    });
}

#[test]
fn reply_off_and_skip_silence_exactly_what_they_say() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.send_raw(b"CLIENT REPLY SKIP\r\nECHO a\r\nECHO b\r\n");
        conn.expect_bytes(b"$1\r\nb\r\n");
        conn.send_raw(b"CLIENT REPLY OFF\r\nECHO c\r\nSET k v\r\nCLIENT REPLY ON\r\nGET k\r\n");
        conn.expect_bytes(b"+OK\r\n$1\r\nv\r\n");
        conn.send_raw(b"CLIENT REPLY SKIP\r\nRESET\r\nECHO d\r\nCLIENT REPLY OFF\r\nRESET\r\n");
        conn.expect_bytes(b"$1\r\nd\r\n+RESET\r\n");
        assert_reply!(conn, "CLIENT REPLY x", "(error) ERR syntax error");
    });
}

#[test]
fn no_evict_is_shown_in_the_flags() {
    each_config(|server| {
        let mut conn = server.connect();
        let id = conn.id();
        assert_reply!(conn, "CLIENT NO-EVICT on", "OK");
        assert_eq!(listed(&mut conn, id, "flags").unwrap(), "e");
        assert_reply!(conn, "CLIENT NO-EVICT off", "OK");
        assert_eq!(listed(&mut conn, id, "flags").unwrap(), "N");
        assert_reply!(conn, "CLIENT NO-EVICT x", "(error) ERR syntax error");
    });
}

#[test]
fn the_idle_timeout_spares_monitors_and_paused_clients() {
    each_config_of(
        || with_workers(2),
        |server| {
            let [mut idle, mut monitor, mut paused] = server.connections();
            idle.assert_in_step();
            assert_reply!(monitor, "MONITOR", "OK");
            assert_reply!(server.connect(), "CLIENT PAUSE 100000 WRITE", "OK");
            paused.send("SET k v");
            // Other commands use new connections. A connection that is kept may be idle for a second too, for example
            // while the system repeats the SYN of the next one.
            assert_reply!(server.connect(), "CONFIG SET timeout 1", "OK");
            wait_until("the idle connection is closed", || {
                server.connect().cmd("CLIENT LIST").text().lines().count() == 3
            });
            assert_eq!(idle.read_to_end(), b"");
            assert_reply!(server.connect(), "CLIENT UNPAUSE", "OK");
            assert_eq!(paused.reply().to_string(), "OK");
        },
    );
}

#[test]
fn idle_connections_are_closed_after_the_timeout() {
    each_config(|server| {
        let (mut idle, mut busy) = (server.connect(), Conn::tcp(&server.address()));
        idle.assert_in_step();
        let list = format!("CLIENT LIST ID {}", idle.id());
        let mut last_sent = Instant::now();
        assert_reply!(busy, "CONFIG SET timeout 1", "OK");
        wait_until("the idle connection is closed", || {
            let sent = Instant::now();
            match busy.try_cmd(&list) {
                Ok(reply) => {
                    last_sent = sent;
                    reply.text().is_empty()
                }
                Err(error) => {
                    // On a loaded machine, this client may be idle for a second too.
                    assert!(last_sent.elapsed() >= Duration::from_secs(1), "{error}");
                    (last_sent, busy) = (Instant::now(), Conn::tcp(&server.address()));
                    false
                }
            }
        });
        assert_eq!(idle.read_to_end(), b"");
    });
}

/// The counters of client `id` that servers after the reference version show: bytes in, bytes out, and commands.
fn traffic(conn: &mut Conn, id: i64) -> [u64; 3] {
    let list = conn.cmd(&format!("CLIENT LIST ID {id}")).text();
    ["tot-net-in=", "tot-net-out=", "tot-cmds="].map(|mark| {
        let value = list.split_whitespace().find_map(|word| word.strip_prefix(mark));
        value.and_then(|value| value.parse().ok()).expect("a number")
    })
}

#[test]
fn bytes_and_commands_of_each_client_are_counted() {
    if subject_is_redis() {
        return; // later than the reference
    }
    each_config(|server| {
        let [mut watcher, mut conn] = server.connections();
        let id = conn.id();
        let mut before = traffic(&mut watcher, id);
        // Sent bytes are counted after the kernel has accepted them, so the client may receive them before they are
        // counted.
        let mut grown = |watcher: &mut Conn, sent: usize| {
            let mut now = before;
            wait_until("what was sent is counted", || {
                now = traffic(watcher, id);
                now[1] - before[1] >= sent as u64
            });
            assert_eq!(now[1] - before[1], sent as u64);
            let [received, commands] = [now[0] - before[0], now[2] - before[2]];
            before = now;
            (received, commands)
        };
        conn.cmd("PING");
        assert_eq!(grown(&mut watcher, 7), (14, 1));
        conn.send_raw(b"PING\r\nPING\r\nNONSENSE\r\nECHO ab\r\n");
        let replies: Vec<String> = (0..4).map(|_| conn.reply().to_string()).collect();
        assert_eq!(replies[3], "\"ab\"");
        let sent = 7 + 7 + replies[2].len() - "(error) ".len() + 3 + 8;
        // Unknown commands are not counted as commands.
        assert_eq!(grown(&mut watcher, sent), (31, 3));
        // Commands of scripts and of transactions are counted for the client.
        conn.cmd("EVAL \"return redis.call('ping')\" 0");
        assert_eq!(grown(&mut watcher, 7).1, 2);
        conn.pipeline(&["MULTI", "PING", "EXEC"]);
        assert_eq!(grown(&mut watcher, 5 + 9 + 4 + 7).1, 3);
        // A blocking command is counted when its wait ends. Its bytes are counted when they arrive.
        conn.send("BLPOP list 0");
        wait_until("it waits", || {
            watcher.cmd(&format!("CLIENT LIST ID {id}")).text().contains(" flags=b ")
        });
        assert_eq!(grown(&mut watcher, 0), (32, 0));
        watcher.cmd("RPUSH list element");
        conn.reply();
        assert_eq!(grown(&mut watcher, 4 + 10 + 13), (0, 1));
        // Messages are output too.
        conn.cmd("SUBSCRIBE channel");
        let before = traffic(&mut watcher, id)[1];
        watcher.cmd("PUBLISH channel m");
        conn.reply();
        wait_until("the message is counted", || traffic(&mut watcher, id)[1] > before);
    });
}
