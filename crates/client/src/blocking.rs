//! How long a blocking command may wait, read from its arguments.

use crate::effects::block_millis;
use crate::request::Request;
use std::time::Duration;

/// The position and unit of a command's timeout argument.
#[derive(Clone, Copy)]
enum TimeoutArgument {
    LastSeconds,
    FirstSeconds,
    LastMillis,
    /// After the argument BLOCK, before STREAMS.
    BlockMillis,
}

/// How long a command may wait on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockLimit {
    Within(Duration),
    Unlimited,
}

/// The timeout in the arguments; `None` if the command does not block, or if its timeout is invalid. O(arguments).
pub(crate) fn block_limit(request: &Request) -> Option<BlockLimit> {
    let mut args = request.arguments();
    let position = timeout_argument(args.next()?)?;
    let arg = match position {
        TimeoutArgument::FirstSeconds => args.next(),
        TimeoutArgument::LastSeconds | TimeoutArgument::LastMillis => args.last(),
        TimeoutArgument::BlockMillis => block_millis(args),
    };
    let number: f64 = std::str::from_utf8(arg?).ok()?.parse().ok()?;
    let seconds = match position {
        TimeoutArgument::FirstSeconds | TimeoutArgument::LastSeconds => number,
        TimeoutArgument::LastMillis | TimeoutArgument::BlockMillis => number / 1000.0,
    };
    if seconds == 0.0 {
        return Some(BlockLimit::Unlimited);
    }
    Duration::try_from_secs_f64(seconds).ok().map(BlockLimit::Within)
}

fn timeout_argument(name: &[u8]) -> Option<TimeoutArgument> {
    const TIMEOUT_ARGUMENTS: &[(&str, TimeoutArgument)] = &[
        ("BLPOP", TimeoutArgument::LastSeconds),
        ("BRPOP", TimeoutArgument::LastSeconds),
        ("BLMOVE", TimeoutArgument::LastSeconds),
        ("BRPOPLPUSH", TimeoutArgument::LastSeconds),
        ("BZPOPMIN", TimeoutArgument::LastSeconds),
        ("BZPOPMAX", TimeoutArgument::LastSeconds),
        ("BLMPOP", TimeoutArgument::FirstSeconds),
        ("BZMPOP", TimeoutArgument::FirstSeconds),
        ("WAIT", TimeoutArgument::LastMillis),
        ("WAITAOF", TimeoutArgument::LastMillis),
        ("XREAD", TimeoutArgument::BlockMillis),
        ("XREADGROUP", TimeoutArgument::BlockMillis),
    ];
    let is_this =
        |(known, _): &&(&str, TimeoutArgument)| known.as_bytes().eq_ignore_ascii_case(name);
    TIMEOUT_ARGUMENTS.iter().find(is_this).map(|(_, position)| *position)
}

/// How long these requests, executed one after another, may take in total: the sum of their blocking timeouts, plus
/// `margin`. Unlimited without a margin. `None` if none of them blocks.
pub(crate) fn limit(requests: &[Request], margin: Option<Duration>) -> Option<BlockLimit> {
    let mut sum = None;
    for request in requests {
        match block_limit(request) {
            None => {}
            Some(BlockLimit::Unlimited) => return Some(BlockLimit::Unlimited),
            Some(BlockLimit::Within(time)) => {
                sum = Some(sum.unwrap_or(Duration::ZERO).saturating_add(time));
            }
        }
    }
    Some(match (sum?, margin) {
        (sum, Some(margin)) => BlockLimit::Within(sum.saturating_add(margin)),
        (_, None) => BlockLimit::Unlimited,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::*;

    fn millis(request: &Request) -> Option<u128> {
        block_limit(request).map(|limit| match limit {
            BlockLimit::Within(time) => time.as_millis(),
            BlockLimit::Unlimited => 0,
        })
    }

    #[test]
    fn each_blocking_command_has_a_timeout_argument() {
        assert_eq!(millis(blpop::<(), ()>("k", 1.5).request()), Some(1500));
        assert_eq!(millis(blpop::<(), ()>("k", 0).request()), Some(0));
        assert_eq!(
            millis(blmpop::<(), ()>(2, ["BLOCK", "k"], types::Side::Left).request()),
            Some(2000)
        );
        assert_eq!(millis(wait(1, 250).request()), Some(250));
        assert_eq!(millis(waitaof(1, 0, 250).request()), Some(250));
        assert_eq!(millis(xread_block::<()>(70, "k", "$").count(3).request()), Some(70));
        assert_eq!(millis(xread::<()>(["BLOCK", "5"], ["0", "0"]).request()), None);
        assert_eq!(millis(blpop::<(), ()>("k", "soon").request()), None);
        assert_eq!(millis(blpop::<(), ()>("k", -1).request()), None);
        assert_eq!(millis(get::<()>("k").request()), None);
        let mut raw = Request::named("bzpopmin");
        raw.args(["k", "3"]);
        assert_eq!(millis(&raw), Some(3000));
    }

    #[test]
    fn every_command_that_is_known_to_wait_is_known_here() {
        for name in crate::commands::BLOCKING {
            assert!(timeout_argument(name.as_bytes()).is_some(), "{name}");
        }
    }

    #[test]
    fn several_wait_one_after_the_other() {
        let margin = Some(Duration::from_secs(3));
        let pop = |seconds: u32| blpop::<(), ()>("k", seconds).into_request();
        let sum = limit(&[pop(1), get::<()>("k").into_request(), pop(2)], margin);
        assert_eq!(sum, Some(BlockLimit::Within(Duration::from_secs(6))));
        assert_eq!(limit(&[pop(1), pop(0)], margin), Some(BlockLimit::Unlimited));
        assert_eq!(limit(&[pop(1)], None), Some(BlockLimit::Unlimited));
        assert_eq!(limit(&[get::<()>("k").into_request()], margin), None);
    }
}
