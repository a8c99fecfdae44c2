//! Responses that no healthy etcd sends: a server in the test stands in for etcd and sends damaged responses.

use crate::subject::{open_endpoints, registration};
use brisk_coordinate::Coordinator;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::etcd::{EtcdCoordinator, EtcdOptions};
use brisk_coordinate::values::{
    ChangeOutcome, Claim, Lease, LeaseId, LeaseTtl, Revision, TopologyChange,
};
use brisk_testkit::random::Random;
use brisk_testkit::wait::wait_until;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Makes the response to a request from the request's path.
type Responder = Box<dyn FnMut(&str) -> Vec<u8> + Send>;

/// A server on the loopback interface. It ends with the test's process.
struct FakeEtcd {
    address: String,
    responder: Arc<Mutex<Responder>>,
}

impl FakeEtcd {
    fn start(responder: impl FnMut(&str) -> Vec<u8> + Send + 'static) -> FakeEtcd {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let responder: Arc<Mutex<Responder>> = Arc::new(Mutex::new(Box::new(responder)));
        let shared = Arc::clone(&responder);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let responder = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &responder));
            }
        });
        FakeEtcd { address, responder }
    }

    fn set(&self, responder: impl FnMut(&str) -> Vec<u8> + Send + 'static) {
        *self.responder.lock().expect("no panic") = Box::new(responder);
    }

    fn open(&self) -> EtcdCoordinator {
        open_endpoints(std::slice::from_ref(&self.address), false, &EtcdOptions::default())
    }
}

/// Responds to one request. The connection then ends, as it would if the member had crashed.
fn serve(stream: TcpStream, responder: &Mutex<Responder>) {
    let mut reader = BufReader::new(stream);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim_end();
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        } else if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.parse().expect("a length");
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let response = responder.lock().expect("no panic")(&path);
    let _ = reader.get_mut().write_all(&response);
}

fn response(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn stream(lines: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    format!("{head}{:x}\r\n{lines}\r\n0\r\n\r\n", lines.len()).into_bytes()
}

/// Responses of etcd 3.4.23 for a store whose document is `doc1` at revision 2.
fn real_response(path: &str) -> Vec<u8> {
    const HEADER: &str = r#""header":{"cluster_id":"16290230296511005681","member_id":"4335799851407160000","revision":"2","raft_term":"2"}"#;
    const KV: &str = r#"{"key":"L2JyaXNrL3RvcG9sb2d5","create_revision":"2","mod_revision":"2","version":"1","value":"ZG9jMQ=="}"#;
    match path {
        "/version" => response(r#"{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}"#),
        "/v3/kv/range" => response(&format!(r#"{{{HEADER},"kvs":[{KV}],"count":"1"}}"#)),
        "/v3/kv/txn" => response(&format!(
            r#"{{{HEADER},"succeeded":true,"responses":[{{"response_put":{{"header":{{"revision":"2"}}}}}}]}}"#
        )),
        "/v3/lease/grant" => {
            response(&format!(r#"{{{HEADER},"ID":"3657101141345711370","TTL":"3"}}"#))
        }
        "/v3/lease/keepalive" => stream(&format!(
            "{{\"result\":{{{HEADER},\"ID\":\"3657101141345711370\",\"TTL\":\"3\"}}}}\n"
        )),
        "/v3/watch" => stream(&format!(
            "{{\"result\":{{{HEADER},\"created\":true}}}}\n{{\"result\":{{{HEADER},\"events\":[{{\"kv\":{KV}}}]}}}}\n"
        )),
        _ => response(&format!("{{{HEADER}}}")),
    }
}

fn change() -> TopologyChange<'static> {
    TopologyChange { expected: Revision(1), document: b"doc1", controller: None }
}

#[test]
fn the_fake_server_replies_like_etcd() {
    let fake = FakeEtcd::start(real_response);
    let coordinator = fake.open();
    let topology = coordinator.read().unwrap();
    assert_eq!((topology.revision, topology.document), (Revision(2), Some(b"doc1".to_vec())));
    let outcome = coordinator.change(&change());
    assert!(matches!(outcome, ChangeOutcome::Changed(Revision(2))), "{outcome:?}");
    let events = coordinator.watch(Revision(1)).next(Duration::from_secs(5)).unwrap();
    assert_eq!(events.len(), 1);
}

#[test]
fn an_unsupported_version_is_rejected_by_name() {
    let fake = FakeEtcd::start(|path| match path {
        "/version" => response(r#"{"etcdserver":"3.5.1","etcdcluster":"3.5.0"}"#),
        other => real_response(other),
    });
    let coordinator = fake.open();
    let error = coordinator.read().unwrap_err();
    assert!(error.to_string().contains("etcd 3.5.1"), "{error}");
    let outcome = coordinator.change(&change());
    assert!(
        matches!(outcome, ChangeOutcome::Refused(CoordinatorError::UnsupportedVersion { .. })),
        "{outcome:?}"
    );
    let error = coordinator.watch(Revision(1)).next(Duration::from_secs(5)).unwrap_err();
    assert!(matches!(error, CoordinatorError::UnsupportedVersion { .. }), "{error}");
}

#[test]
fn a_change_with_a_damaged_response_is_unknown() {
    let damaged: [(&str, Vec<u8>); 6] = [
        ("nothing", Vec::new()),
        ("half a head", b"HTTP/1.1 200 OK\r\nConte".to_vec()),
        ("half a body", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{".to_vec()),
        ("no JSON", response("<html>")),
        ("another type", response(r#"{"succeeded":"yes"}"#)),
        ("unavailable", b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec()),
    ];
    for (name, response) in damaged {
        let fake = FakeEtcd::start(move |path| match path {
            "/v3/kv/txn" => response.clone(),
            other => real_response(other),
        });
        let outcome = fake.open().change(&change());
        assert!(matches!(outcome, ChangeOutcome::Unknown(_)), "{name}: {outcome:?}");
    }
}

#[test]
fn a_read_with_a_damaged_response_is_repeated_at_the_next_endpoint() {
    let good = FakeEtcd::start(real_response);
    for bad in ["SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"] {
        let bad = FakeEtcd::start(move |_| bad.as_bytes().to_vec());
        let addresses = [bad.address.clone(), good.address.clone()];
        let coordinator = open_endpoints(&addresses, false, &EtcdOptions::default());
        assert_eq!(coordinator.read().unwrap().revision, Revision(2));
    }
}

/// Responses to a renewal. `term` is the raft term of the read that follows the keepalive, `lease` the lease of the
/// node's key.
fn renewal_responses(term: u32, lease: &'static str) -> impl FnMut(&str) -> Vec<u8> {
    move |path| match path {
        "/v3/kv/range" => response(&format!(
            r#"{{"header":{{"revision":"2","raft_term":"{term}"}},"kvs":[{{"key":"L3g=","value":"aTEK","create_revision":"2","mod_revision":"2","lease":"{lease}"}}]}}"#
        )),
        other => real_response(other),
    }
}

#[test]
fn a_renewal_counts_only_with_a_read_of_the_own_key_in_the_same_term() {
    const LEASE: u64 = 3_657_101_141_345_711_370;
    let fake = FakeEtcd::start(renewal_responses(2, "3657101141345711370"));
    let coordinator = fake.open();
    let node = registration(1, "i1");
    let lease = Lease {
        id: LeaseId(LEASE),
        node: node.node,
        incarnation: node.incarnation,
        // The part of the TTL that one endpoint gets is long enough for a busy machine.
        ttl: LeaseTtl::at_least(Duration::from_secs(60)),
        expires_at: None,
    };
    let before = coordinator.now();
    let renewed = coordinator.renew(&lease).unwrap();
    let expires_at = renewed.expires_at.unwrap();
    // The TTL counts from the time at which the request was sent.
    assert!(expires_at >= before.after(Duration::from_secs(3)));
    assert!(expires_at <= coordinator.now().after(Duration::from_secs(3)));
    // The member that replied to the keepalive was no longer the leader.
    fake.set(renewal_responses(3, "3657101141345711370"));
    let brief = Lease { ttl: LeaseTtl::at_least(Duration::from_secs(6)), ..lease.clone() };
    let error = coordinator.renew(&brief).unwrap_err();
    assert!(matches!(error, CoordinatorError::NoLeader(_)), "{error}");
    // Another process has registered the id.
    fake.set(renewal_responses(2, "99"));
    let error = coordinator.renew(&lease).unwrap_err();
    assert!(matches!(error, CoordinatorError::LeaseLost), "{error}");
    // For a lease that has ended, etcd 3.4.23 responds to the keepalive without a TTL.
    fake.set(|path| match path {
        "/v3/lease/keepalive" => stream(
            "{\"result\":{\"header\":{\"revision\":\"2\",\"raft_term\":\"2\"},\"ID\":\"1234\"}}\n",
        ),
        other => real_response(other),
    });
    let error = coordinator.renew(&lease).unwrap_err();
    assert!(matches!(error, CoordinatorError::LeaseLost), "{error}");
}

#[test]
fn an_endless_response_ends_at_its_bound() {
    let endless = |head: &str| {
        let mut response = format!("HTTP/1.1 200 OK\r\n{head}\r\n").into_bytes();
        response.resize(20 << 20, b'x');
        response
    };
    let fake = FakeEtcd::start(move |path| match path {
        "/v3/kv/txn" | "/v3/watch" => endless("Connection: close\r\n"),
        other => real_response(other),
    });
    let coordinator = fake.open();
    let outcome = coordinator.change(&change());
    let ChangeOutcome::Unknown(error) = outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("the body has more than"), "{error}");
    let mut watch = coordinator.watch(Revision(1));
    let mut error = None;
    wait_until("the watch to give up", || {
        error = watch.next(Duration::from_secs(1)).err();
        error.is_some()
    });
    assert!(error.is_some_and(|error| error.to_string().contains("the body has more than")));
}

/// Changes, removes or inserts some bytes.
fn mutate(response: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        if response.is_empty() {
            return;
        }
        let at = random.below(response.len());
        match random.below(4) {
            0 => response[at] = random.bits() as u8,
            1 => drop(response.remove(at)),
            2 => response.insert(at, *random.pick(b"\r\n{}[]\":,0-9 \0")),
            _ => response.truncate(at + 1),
        }
    }
}

#[test]
fn mutated_responses_end_in_a_value_or_an_error() {
    let seed = u64::from(std::process::id());
    let fake = FakeEtcd::start(real_response);
    for round in 0..200 {
        let mut random = Random::derived(seed, round);
        let damaged = match round % 4 {
            0 => "/v3/kv/txn",
            1 => "/version",
            2 => random.pick(&["/v3/lease/grant", "/v3/kv/range", "/v3/lease/keepalive"]),
            _ => "/v3/watch",
        };
        let mut is_left = true;
        fake.set(move |path| {
            let mut response = real_response(path);
            if path == damaged && std::mem::take(&mut is_left) {
                mutate(&mut response, &mut random);
            }
            response
        });
        let coordinator = fake.open();
        match round % 4 {
            0 => {
                // A misread response does not mean that the change was not made.
                let outcome = coordinator.change(&change());
                let is_wrong = matches!(
                    outcome,
                    ChangeOutcome::Refused(
                        CoordinatorError::InvalidResponse { .. } | CoordinatorError::Unreachable(_)
                    )
                );
                assert!(!is_wrong, "seed {seed}, round {round}: {outcome:?}");
            }
            1 => {
                // The change must not be sent before the version is known.
                let outcome = coordinator.change(&change());
                let is_wrong = matches!(
                    outcome,
                    ChangeOutcome::Unknown(CoordinatorError::InvalidResponse { .. })
                );
                assert!(!is_wrong, "seed {seed}, round {round}: {outcome:?}");
            }
            2 => {
                let ttl = LeaseTtl::at_least(Duration::from_secs(2));
                let lease = coordinator.register(&registration(1, "i1"), ttl, Claim::Start);
                if let Ok(lease) = lease {
                    drop(coordinator.renew(&lease));
                }
            }
            _ => drop(coordinator.watch(Revision(1)).next(Duration::from_millis(1))),
        }
    }
}
