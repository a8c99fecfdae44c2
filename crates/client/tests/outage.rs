//! If a server is down for a long time, the memory of the commands that wait for it is bounded. This test is a separate
//! executable, because it counts allocations.

use brisk::{Budget, Client, Kind, Lanes, WhenFull};
use brisk_testkit::proxy::{Disconnect, Proxy};
use brisk_testkit::server::Launch;
use std::time::Duration;

#[test]
fn an_outage_costs_no_more_than_the_budget() {
    const BUDGET: usize = 16 << 20;
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    let value = vec![b'x'; 1000];
    // One thread executes everything, because allocations are counted by thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let db = runtime.block_on(async {
        let db = Client::builder(&link.address())
            .lanes(Lanes::Count(1))
            .budget(Budget::bytes(BUDGET).when_full(WhenFull::Fail))
            .timeout(Duration::from_millis(200));
        db.connect().await.unwrap()
    });
    link.refuse(true);
    link.cut(Disconnect::Reset);
    let calls = |round: usize| -> Vec<_> {
        let call = |n| db.raw::<()>("SET").key(format!("{round}:{n}")).arg(&value);
        (0..24_000).map(call).map(Box::pin).collect()
    };
    let (mut refused, mut over, mut most) = (0, 0, 0);
    let outage = allocation_counter::measure(|| {
        for round in 1..5 {
            let mut calls = calls(round);
            // Each call is polled once and later dropped, as if its caller had given up.
            let polled = allocation_counter::measure(|| {
                runtime.block_on(async {
                    for call in &mut calls {
                        if let std::task::Poll::Ready(Err(error)) = futures_util::poll!(call) {
                            refused += usize::from(error.kind() == Kind::Overloaded);
                        }
                    }
                });
            });
            most = polled.bytes_current.max(most);
            let last = runtime.block_on(db.raw::<()>("SET").key("last").arg(1));
            over += usize::from(matches!(last.unwrap_err().kind(), Kind::Timeout(_)));
        }
    });
    let kept = outage.bytes_current;
    eprintln!(
        "note: {refused} refused, {over} timed out, at most {most} bytes more, {kept} bytes more afterwards"
    );
    assert!(refused > 0 && over > 0);
    // The budget includes the bookkeeping for each request.
    let budget = i64::try_from(BUDGET).unwrap();
    assert!((budget / 2..budget + budget / 20).contains(&most), "{most}");
    assert!(kept < budget + budget / 20, "{kept}");
    link.refuse(false);
    runtime.block_on(async {
        db.raw::<()>("SET").key("after").arg(1).timeout(Duration::from_secs(20)).await.unwrap();
    });
}
