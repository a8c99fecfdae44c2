//! Moving to Brisk and back, as described in `docs/moving-from-redis.md`. A client writes throughout, and each of its
//! writes exists in the end. (C4, D1)

use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of records between two steps.
const RECORDS: u64 = 200;

/// A client that appends numbers to a list on the current target.
struct Client {
    goes_to: Mutex<String>,
    written: AtomicU64,
    ends: AtomicBool,
}

impl Client {
    fn run(&self) {
        let place = || self.goes_to.lock().expect("no panic").clone();
        let mut conn = Conn::tcp(&place());
        let mut next = 1;
        while !self.ends.load(Ordering::SeqCst) {
            let reply = conn.cmd(&format!("RPUSH records {next}")).to_string();
            if reply.starts_with("(integer)") {
                self.written.store(next, Ordering::SeqCst);
                next += 1;
            } else {
                // The record was not written, because the server is no longer the primary.
                assert!(reply.starts_with("(error) READONLY"), "{reply}");
                conn = Conn::tcp(&place());
            }
        }
    }

    fn wait_for_more(&self) {
        let before = self.written.load(Ordering::SeqCst);
        wait_until("the client to go on", || {
            self.written.load(Ordering::SeqCst) >= before + RECORDS
        });
    }
}

fn follows(replica: &Server) {
    replica.wait_for_info("master_link_status", |status| status == "up");
}

/// Step 3: writes are paused on one server, the other catches up and becomes the primary, and the clients switch to it.
fn go_over(client: &Client, from: &Server, to: &Server) {
    let (mut old, mut new) = (from.connect(), to.connect());
    assert_reply!(old, "CLIENT PAUSE 100000 WRITE", "OK");
    wait_until("it to have everything", || {
        from.info("master_repl_offset") == to.info("slave_repl_offset")
    });
    assert_reply!(new, "REPLICAOF NO ONE", "OK");
    *client.goes_to.lock().expect("no panic") = to.address();
    // Step 4: the waiting commands are rejected by the old server, and sent again to the new one.
    assert_reply!(old, &format!("REPLICAOF 127.0.0.1 {}", to.port()), "OK");
    assert_reply!(old, "CLIENT UNPAUSE", "OK");
    follows(from);
}

#[test]
fn moving_from_redis_to_brisk_and_back_loses_no_write() {
    let old = Launch::redis().set("repl-diskless-sync-delay", "0").start();
    let mut conn = old.connect();
    conn.cmd("DEBUG POPULATE 5000 key 100");
    let client = Client {
        goes_to: Mutex::new(old.address()),
        written: AtomicU64::new(0),
        ends: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| client.run());
        client.wait_for_more();
        let new = Launch::subject()
            .set("replicaof", &format!("127.0.0.1 {}", old.port()))
            .set("repl-diskless-sync-delay", "0")
            .start();
        follows(&new);
        client.wait_for_more();
        go_over(&client, &old, &new);
        client.wait_for_more();
        // The old server continued with a partial synchronization.
        assert_eq!((new.info("sync_full"), new.info("sync_partial_ok")), ("0".into(), "1".into()));
        let full = old.info("sync_full");
        go_over(&client, &new, &old);
        client.wait_for_more();
        assert_eq!(old.info("sync_full"), full);
        // Then switch once more, with a single command.
        assert_reply!(
            old.connect(),
            &format!("FAILOVER TO 127.0.0.1 {} TIMEOUT 60000", new.port()),
            "OK"
        );
        new.wait_for_info("role", |role| role == "master");
        *client.goes_to.lock().expect("no panic") = new.address();
        client.wait_for_more();
        client.ends.store(true, Ordering::SeqCst);
        writer.join().expect("no panic");
        follows(&old);
        let written = client.written.load(Ordering::SeqCst);
        let wanted: Vec<String> = (1..=written).map(|number| number.to_string()).collect();
        let records = new.connect().cmd("LRANGE records 0 -1");
        let present: Vec<String> = records.elements().iter().map(|one| one.text()).collect();
        assert_eq!(present, wanted);
        wait_until("the same digest", || {
            let [mut one, mut other] = [old.connect(), new.connect()];
            one.cmd("DEBUG DIGEST").text() == other.cmd("DEBUG DIGEST").text()
        });
    });
}
