//! If a server is down for a long time, the memory of the commands that wait for it is bounded. This test is a separate
//! executable, because it measures the memory of the process.

use brisk::{Budget, Client, Kind, Lanes, WhenFull};
use brisk_testkit::proxy::{Disconnect, Proxy};
use brisk_testkit::server::Launch;
use std::time::Duration;

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<usize> = status.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.expect("resident pages") * 4096
}

#[test]
fn an_outage_costs_no_more_than_the_budget() {
    const BUDGET: usize = 16 << 20;
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let db = Client::builder(&link.address())
            .lanes(Lanes::Count(1))
            .budget(Budget::bytes(BUDGET).when_full(WhenFull::Fail))
            .timeout(Duration::from_millis(200));
        let db = db.connect().await.unwrap();
        link.refuse(true);
        link.cut(Disconnect::Reset);
        let value = vec![b'x'; 1000];
        let calls = |round: usize| -> Vec<_> {
            let call = |n| db.raw::<()>("SET").key(format!("{round}:{n}")).arg(&value);
            (0..24_000).map(call).map(Box::pin).collect()
        };
        // First, measure the memory that the callers themselves need.
        drop(calls(0));
        let before = resident_bytes();
        let (mut refused, mut over) = (0, 0);
        for round in 1..5 {
            let mut calls = calls(round);
            // Each call is polled once and later dropped, as if its caller had given up.
            for call in &mut calls {
                if let std::task::Poll::Ready(Err(error)) = futures_util::poll!(call) {
                    refused += usize::from(error.kind() == Kind::Overloaded);
                }
            }
            let last = db.raw::<()>("SET").key("last").arg(1).await.unwrap_err();
            over += usize::from(matches!(last.kind(), Kind::Timeout(_)));
        }
        let grown = resident_bytes().saturating_sub(before);
        eprintln!("note: {refused} refused, {over} timed out, {grown} bytes more");
        assert!(refused > 0 && over > 0);
        // The budget includes the bookkeeping for each request. The rest is memory that the system's allocator keeps.
        assert!(grown < BUDGET + BUDGET / 10, "{grown}");
        link.refuse(false);
        db.raw::<()>("SET").key("after").arg(1).timeout(Duration::from_secs(20)).await.unwrap();
    });
}
