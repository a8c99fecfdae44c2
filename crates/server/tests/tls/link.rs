//! Tests of a replica that follows its primary over an encrypted connection (`tls-replication`).

use super::certificates::Authority;
use super::client::Site;
use brisk_testkit::{Launch, Server, assert_reply, wait_until};

fn replica(site: &Site, launch: Launch, authority_file: &str) -> Server {
    launch
        .set("tls-replication", "yes")
        .set("tls-ca-cert-file", authority_file)
        .set("replicaof", &format!("127.0.0.1 {}", site.port.number()))
        .start()
}

#[test]
fn a_dataset_and_the_stream_after_it_arrive_over_an_encrypted_link() {
    for (streams, form) in [("yes", "swapdb"), ("no", "on-empty-db"), ("yes", "disabled")] {
        comes_by_an_encrypted_link(streams, form);
    }
}

fn comes_by_an_encrypted_link(streams: &str, form: &str) {
    let site = Site::new();
    let launch = site.launch().set("repl-diskless-sync-delay", "0");
    let primary = launch.set("repl-diskless-sync", streams).start();
    let mut conn = primary.connect();
    assert_reply!(conn, "DEBUG POPULATE 2000 key 10000", "OK");
    let value = "v".repeat(300_000);
    assert_reply!(conn, &format!("SET before {value}"), "OK");
    let other = Site::new();
    let launch = other.launch().set("repl-diskless-load", form);
    let replica = replica(&site, launch, &site.authority_file);
    replica.wait_for_info("master_link_status", |status| status == "up");
    for number in 0..100 {
        assert_reply!(conn, &format!("SET after:{number} {value}"), "OK");
    }
    let mut replica_conn = replica.connect();
    let whole = format!("\"{value}\"");
    wait_until("all of it", || replica_conn.cmd("GET after:99").to_string() == whole);
    assert_eq!(replica_conn.cmd("GET before").to_string(), whole);
    // The acknowledgements of the replica reach the primary.
    assert_reply!(conn, "WAIT 1 30000", "(integer) 1");
}

#[test]
fn a_primary_with_an_untrusted_certificate_is_not_followed() {
    let site = Site::new();
    let _primary = site.launch().start();
    let other = Site::new();
    let stranger = other.dir.write("stranger.crt", &Authority::new("a stranger").pem);
    let replica = replica(&site, other.launch(), &stranger);
    wait_until("it is refused", || replica.log().contains("invalid peer certificate"));
    assert_eq!(replica.info("master_link_status"), "down");
}
