//! The allocations of a command: none to send it, and one for a received value. They are counted on one thread, which
//! runs the callers, the driver and everything else.

use brisk::{Client, Lanes};
use brisk_testkit::server::Launch;

/// After this number of commands, all buffers have reached their final size.
const WARM_UP: usize = 2000;
const COMMANDS: u64 = 1000;

#[test]
fn a_command_allocates_its_value_and_nothing_else() {
    let server = Launch::subject().start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let db = runtime.block_on(async {
        let db = Client::builder(&server.address()).lanes(Lanes::Count(1)).connect().await.unwrap();
        db.raw::<()>("SET").key("key").arg("x".repeat(64)).await.unwrap();
        for _ in 0..WARM_UP {
            db.raw::<Option<Vec<u8>>>("GET").key("key").await.unwrap();
            db.raw::<i64>("INCR").key("n").await.unwrap();
        }
        db
    });
    let counted = |work: &dyn Fn()| allocation_counter::measure(work).count_total;
    let gets = counted(&|| {
        runtime.block_on(async {
            for _ in 0..COMMANDS {
                let value: Option<Vec<u8>> = db.raw("GET").key("key").await.unwrap();
                assert_eq!(value.map(|value| value.len()), Some(64));
            }
        });
    });
    let numbers = counted(&|| {
        runtime.block_on(async {
            for _ in 0..COMMANDS {
                db.raw::<i64>("INCR").key("n").await.unwrap();
            }
        });
    });
    eprintln!("note: {gets} allocations for {COMMANDS} values, {numbers} for as many numbers");
    // From time to time, a new receive buffer is allocated.
    assert!(gets <= COMMANDS + COMMANDS / 50, "{gets}");
    assert!(numbers <= COMMANDS / 50, "{numbers}");
}
