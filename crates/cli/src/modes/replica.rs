//! `--replica`, and SYNC typed as a command: prints the replication stream of a primary.

use super::rdb::{self, Payload};
use crate::format::{self, Delimiters, Output};
use crate::link::{Link, LinkError};
use crate::screen;
use crate::session::Session;
use std::time::Duration;

/// The interval of acknowledgements, as for real replicas.
const ACKNOWLEDGED_EVERY: Duration = Duration::from_secs(1);

/// Attaches as a replica, and prints the stream until the connection ends.
pub(super) fn run(mut link: Link, _: &Session) -> i32 {
    let begun = rdb::configure(&mut link, "capa", "eof")
        .and_then(|_| rdb::configure(&mut link, "rdb-filter-only", ""))
        .and_then(|_| rdb::begin(&mut link));
    follow(&mut link, begun, true)
}

/// Prints the stream after the user has sent SYNC.
pub(crate) fn command(mut link: Link, _: &Session) {
    screen::print("Entering replica output mode...  (press Ctrl-C to quit)\n");
    let begun = rdb::payload(&mut link);
    if follow(&mut link, begun, false) != 0 {
        screen::exit(1);
    }
}

fn follow(link: &mut Link, begun: Result<Payload, String>, acknowledges: bool) -> i32 {
    match discard(link, begun) {
        Ok(()) => {}
        Err(text) => {
            screen::flush();
            screen::warn(format!("{text}\n"));
            return 1;
        }
    }
    if acknowledges {
        screen::warn("sending REPLCONF ACK 0\n");
    }
    let mut is_silent = true;
    loop {
        // A primary ignores an acknowledgement that arrives while it is still completing the snapshot.
        if acknowledges
            && is_silent
            && let Err(error) = link.send(&["REPLCONF", "ACK", "0"])
        {
            return super::lost(&error);
        }
        match link.reply_within(ACKNOWLEDGED_EVERY) {
            Ok(Some(value)) => {
                is_silent = false;
                screen::print(format::reply(&value, Output::Csv, &Delimiters::default()));
                screen::flush();
            }
            Ok(None) => {}
            Err(LinkError::Interrupted) => return 0,
            Err(error) => return super::lost(&error),
        }
    }
}

fn discard(link: &mut Link, begun: Result<Payload, String>) -> Result<(), String> {
    let payload = begun?;
    screen::warn(match &payload {
        Payload::Bytes(count) => {
            format!("SYNC with master, discarding {count} bytes of bulk transfer...\n")
        }
        Payload::UpTo(_) => {
            "SYNC with master, discarding bytes of bulk transfer until EOF marker...\n".to_owned()
        }
    });
    let count = rdb::receive(link, &payload, &mut |_| Ok(()))?;
    screen::warn(match payload {
        Payload::UpTo(_) => {
            format!("SYNC done after {count} bytes. Logging commands from master.\n")
        }
        Payload::Bytes(_) => "SYNC done. Logging commands from master.\n".to_owned(),
    });
    Ok(())
}
