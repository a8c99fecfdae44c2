//! Logins that change while commands run.

use brisk::{BoxFuture, Client, Code, Credentials, Error, Kind, Lanes, Login, Rotating};
use brisk_testkit::proxy::{Disconnect, Proxy};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

#[track_caller]
fn allow(server: &Server, user: &str, password: &str) {
    let rule = format!("ACL SETUSER {user} on resetpass >{password} ~* &* +@all");
    assert_eq!(server.connect().cmd(&rule).to_string(), "OK");
}

/// The number of connections of this user.
fn connections_of(server: &Server, user: &str) -> usize {
    server.connect().cmd("CLIENT LIST").text().matches(&format!(" user={user} ")).count()
}

#[test]
fn no_command_fails_while_passwords_and_users_change() {
    for server in servers() {
        for protocol in [2, 3] {
            let user = |n: usize| format!("app-{protocol}-{}", n % 3);
            allow(&server, &user(0), "0");
            let login = Rotating::new(Login::new(user(0), "0"));
            run(async {
                let db = Client::builder(&server.address()).protocol(protocol);
                let db = db.lanes(Lanes::Count(2)).credentials(login.clone());
                let db = db.connect().await.unwrap();
                let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
                let callers: Vec<_> = (0..20)
                    .map(|caller| {
                        let (db, over, done) = (db.clone(), over.clone(), done.clone());
                        tokio::spawn(async move {
                            while !over.load(Ordering::Relaxed) {
                                db.incr(format!("n:{caller}")).await.unwrap();
                                done.fetch_add(1, Ordering::Relaxed);
                            }
                        })
                    })
                    .collect();
                wait_until("both lanes to be there", || connections_of(&server, &user(0)) == 2);
                let before: u64 = server.info("total_connections_received").parse().unwrap();
                for n in 1..8 {
                    // The next user has another password. The former user is deleted, together with its connections.
                    allow(&server, &user(n), &n.to_string());
                    login.set(Login::new(user(n), n.to_string()));
                    wait_until("the lanes to have logged in", || {
                        connections_of(&server, &user(n)) == 2
                    });
                    let removed = server.connect().cmd(&format!("ACL DELUSER {}", user(n - 1)));
                    assert_eq!(removed.integer(), 1);
                    let enough = done.load(Ordering::Relaxed) + 100;
                    wait_until("commands to go on", || done.load(Ordering::Relaxed) > enough);
                }
                over.store(true, Ordering::Relaxed);
                for caller in callers {
                    caller.await.unwrap();
                }
                let own = server.connect().cmd("CLIENT LIST").text();
                let ids = own.lines().filter(|line| line.contains(" user=app-"));
                assert_eq!(ids.count(), 2, "{own}");
                assert!(before > 0);
            });
        }
    }
}

#[test]
fn a_new_password_has_no_effect_until_the_server_accepts_it() {
    for server in servers() {
        allow(&server, "app", "first");
        allow(&server, "next", "other");
        let link = Proxy::to(&server.address());
        let login = Rotating::new(Login::new("app", "first"));
        run(async {
            let db = Client::builder(&link.address()).lanes(Lanes::Count(1));
            let db = db.credentials(login.clone()).connect().await.unwrap();
            login.set(Login::new("next", "second"));
            let failures = || {
                let stats = server.connect().cmd("INFO commandstats").text();
                let line = stats.lines().find(|line| line.starts_with("cmdstat_auth:"));
                line.is_some_and(|line| !line.contains("failed_calls=0"))
            };
            wait_until("it to be refused", failures);
            assert_eq!(db.incr("n").await.unwrap(), 1);
            assert_eq!(db.raw::<String>("ACL WHOAMI").await.unwrap(), "app");
            allow(&server, "next", "second");
            wait_until("it to be taken", || connections_of(&server, "next") == 1);
            assert_eq!(db.incr("n").await.unwrap(), 2);
            assert_eq!(link.accepted(), 1, "the connection is the same");
            // A new connection uses the new login.
            link.cut(Disconnect::Reset);
            wait_until("another connection", || link.accepted() > 1);
            assert_eq!(
                db.raw::<String>("ACL WHOAMI").timeout(Duration::from_secs(20)).await.unwrap(),
                "next"
            );
        });
    }
}

/// A source that has no login until the flag is set.
#[derive(Clone)]
struct Vault(Arc<AtomicBool>);

impl Credentials for Vault {
    fn current(&self) -> BoxFuture<'_, brisk::Result<Login>> {
        let is_open = self.0.load(Ordering::Relaxed);
        Box::pin(async move {
            match is_open {
                true => Ok(Login::password("secret")),
                false => Err(vault_is_closed()),
            }
        })
    }
}

/// An error that a program could return. It comes from an invalid address.
fn vault_is_closed() -> Error {
    Client::builder("what://is this").connect_blocking().expect_err("no address")
}

#[test]
fn each_connection_requests_the_current_login() {
    let server = Launch::subject().set("requirepass", "secret").start();
    let vault = Vault(Arc::default());
    run(async {
        let client = || Client::builder(&server.address()).credentials(vault.clone());
        assert_eq!(client().connect().await.unwrap_err().kind(), Kind::Invalid);
        vault.0.store(true, Ordering::Relaxed);
        let db = client().connect().await.unwrap();
        db.set("k", 1).await.unwrap();
        db.session().await.unwrap().set("k", 2).await.unwrap();
        let wrong = Client::builder(&server.address()).credentials(Login::new("default", "wrong"));
        let error = wrong.connect().await.unwrap_err();
        assert_eq!(error.code(), Some(Code::WrongPass));
        let without_login = Client::builder(&format!("redis://:secret@{}", server.address()));
        let without_login = without_login.credentials(Login::none()).connect().await.unwrap_err();
        assert_eq!(without_login.code(), Some(Code::NoAuth));
        assert!(!format!("{db:?} {:?}", Login::password("secret")).contains("secret"));
    });
}
