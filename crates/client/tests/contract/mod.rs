//! The contract: what a program may rely on with every server, every protocol and every way to reach the server. One
//! list of cases runs over each way. The same cases also run over a bad network, where a case may end with an error of
//! certain kinds, but never with a wrong reply.
//!
//! | part | what it is |
//! |---|---|
//! | [`connection_methods`] | servers, protocols, and ways to reach them, one per row |
//! | [`values`] | cases: commands of each type |
//! | [`edges`] | cases: errors, missing and empty values, binary and large values |
//! | [`shapes`] | cases: batches, transactions, scripts, sessions, listeners |
//! | [`faults`] | the same cases over a bad network |

mod connection_methods;
mod edges;
mod faults;
mod shapes;
mod values;

use brisk::{Client, Result};
use futures_util::future::{LocalBoxFuture, join_all};
use std::future::Future;

/// A case has its own keys, all with one hash tag, and ends at the first error. It panics if an expectation is not met.
struct Case {
    name: &'static str,
    run: fn(Client, String) -> LocalBoxFuture<'static, Result<()>>,
}

/// A list of cases, one per function.
macro_rules! cases {
    ($($name:ident)*) => {
        &[$(crate::contract::Case {
            name: stringify!($name),
            run: |db, keys| Box::pin($name(db, keys)),
        }),*]
    };
}
use cases;

fn all() -> impl Iterator<Item = &'static Case> {
    [values::CASES, edges::CASES, shapes::CASES].into_iter().flatten()
}

impl Case {
    /// Runs the case with keys that no other run uses.
    fn run(&self, db: &Client, run: &str) -> LocalBoxFuture<'static, Result<()>> {
        (self.run)(db.clone(), format!("{{{}:{run}}}", self.name))
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

#[test]
fn each_case_holds_over_each_way() {
    connection_methods::each(|reached| {
        block_on(async {
            let db = reached.builder().connect().await.expect("a server");
            for case in all() {
                let ended = case.run(&db, "alone").await;
                ended.unwrap_or_else(|error| panic!("{reached}: {}: {error}", case.name));
            }
        });
    });
}

#[test]
fn all_cases_hold_concurrently_on_shared_connections() {
    connection_methods::each(|reached| {
        block_on(async {
            let db = reached.builder().connect().await.expect("a server");
            let rounds = (0..2).flat_map(|round| {
                let db = &db;
                all().map(move |case| async move {
                    (case, case.run(db, &format!("together:{round}")).await)
                })
            });
            for (case, ended) in join_all(rounds).await {
                ended.unwrap_or_else(|error| panic!("{reached}: {}: {error}", case.name));
            }
        });
    });
}
