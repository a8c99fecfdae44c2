//! Replies that mean "not here" or "not now": the command was not executed, and is sent to another node, or again
//! later.

use super::map::Member;
use crate::command::{Grouping, SendPlan};
use crate::error::{Code, Error};
use crate::reply::Reply;
use brisk_resp::reply::read::{Part, ReplyReader};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A command is redirected at most this number of times. Including the pauses, this many redirections take longer than
/// a failover.
pub(crate) const HOPS_MAX: u8 = 64;
/// The number of redirections that are followed without a pause. The limit prevents a tight loop between two nodes that
/// redirect to each other.
const HOPS_AT_ONCE: u8 = 4;
/// The first and the longest pause before a command is sent again.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
const PAUSE_LONGEST: Duration = Duration::from_millis(500);

/// The state of a command that may be redirected.
#[derive(Debug, Default)]
pub(crate) struct RedirectState {
    /// How many times the command was sent again because its connection was lost.
    pub(crate) replays: u8,
    /// How many times the command was redirected.
    pub(crate) hops: u8,
    pauses: u8,
    /// True if a redirection has set the target, which overrides the map.
    pub(crate) has_target: bool,
    /// True if ASKING must be sent before the command.
    pub(crate) needs_asking: bool,
    /// True if the command must not go to a replica.
    pub(crate) to_primary: bool,
    /// When the command began. Set only if there are several nodes.
    pub(crate) began: Option<Instant>,
    /// The node to which the command is being sent, or was sent.
    pub(crate) at: Option<Arc<Member>>,
    /// The last error that redirected the command.
    pub(crate) last_rejection: Option<Error>,
}

/// When a redirected command is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    Now,
    After(Duration),
}

impl RedirectState {
    /// The state of a command that shares the time limit of an earlier one, which began at `began`.
    pub(crate) fn continued(began: Option<Instant>, to_primary: bool) -> RedirectState {
        RedirectState { began, to_primary, ..RedirectState::default() }
    }

    pub(crate) fn is_first_attempt(&self) -> bool {
        self.hops == 0 && self.replays == 0
    }

    /// Routes the command by the map again.
    pub(crate) fn route_by_map(&mut self) {
        (self.has_target, self.needs_asking, self.at) = (false, false, None);
    }

    /// Sends the command to this node.
    pub(crate) fn set_target(&mut self, member: Arc<Member>, needs_asking: bool) {
        (self.has_target, self.needs_asking, self.at) = (true, needs_asking, Some(member));
    }

    /// Counts a redirection. Returns when the command is sent again; `None` if there were too many redirections.
    pub(crate) fn count_hop(&mut self, waits: bool) -> Option<Retry> {
        if self.hops >= HOPS_MAX {
            return None;
        }
        self.hops += 1;
        if !waits && self.hops <= HOPS_AT_ONCE {
            return Some(Retry::Now);
        }
        let pause = PAUSE_FIRST * (1 << self.pauses.min(7));
        self.pauses = self.pauses.saturating_add(1);
        Some(Retry::After(pause.min(PAUSE_LONGEST)))
    }

    /// The command's own replies, without the reply to ASKING.
    pub(crate) fn own_replies(&self, reply: Reply) -> Reply {
        if !self.needs_asking {
            return reply;
        }
        let rest = after_first(reply.as_bytes());
        Reply::small(rest).unwrap_or_else(|| Reply::shared(reply.reader().share(rest)))
    }
}

fn after_first(bytes: &[u8]) -> &[u8] {
    let mut reader = ReplyReader::new(bytes);
    match reader.skip() {
        Ok(()) => reader.rest(),
        Err(_) => &[],
    }
}

/// The error with which a node rejected the requests without executing any. `None` if the node may have executed one,
/// or if each of several commands has its own result. O(1) for replies that are not errors.
pub(crate) fn rejection<'a>(
    reply: &'a Reply,
    plan: &SendPlan<'_>,
    needs_asking: bool,
) -> Option<&'a [u8]> {
    let bytes = reply.as_bytes();
    let bytes = if needs_asking { after_first(bytes) } else { bytes };
    match plan.grouping {
        Grouping::Transaction => of_transaction(bytes),
        _ if plan.requests.len() == 1 => error(bytes),
        // In a cluster, each request of a batch is redirected separately; elsewhere a batch stays together.
        Grouping::Separate => of_batch(bytes, plan),
        Grouping::Routed => None,
    }
}

/// The text of an error reply that means that nothing was executed.
#[inline]
pub(crate) fn error(reply: &[u8]) -> Option<&[u8]> {
    let text = reply.strip_prefix(b"-")?;
    let text = text.strip_suffix(b"\r\n").unwrap_or(text);
    is_retryable(Code::of(text)).then_some(text)
}

fn is_retryable(code: Code) -> bool {
    matches!(
        code,
        Code::Moved
            | Code::Ask
            | Code::TryAgain
            | Code::ClusterDown
            | Code::ReadOnly
            | Code::MasterDown
            | Code::Loading
    )
}

/// The first rejection in a batch, if no command was executed, or if all commands may be executed again.
fn of_batch<'a>(replies: &'a [u8], plan: &SendPlan<'_>) -> Option<&'a [u8]> {
    let only_reads = plan.requests.iter().all(|request| request.traits().reads_only);
    if !only_reads && error(replies).is_none() {
        return None;
    }
    let replies = super::split::cut(replies)?;
    let is_rejected = |reply: &&[u8]| error(reply).is_some();
    if !only_reads && !replies.iter().all(is_rejected) {
        return None;
    }
    replies.into_iter().find_map(error)
}

/// The first rejection in a transaction, if no command was executed.
fn of_transaction(replies: &[u8]) -> Option<&[u8]> {
    let replies = super::split::cut(replies)?;
    let text = |reply: &&[u8]| match ReplyReader::new(reply).part() {
        Ok(Part::Error(text)) => Some(Code::of(text)),
        _ => None,
    };
    let (multi, exec) = (replies.first()?, replies.last()?);
    let is_executed = match text(multi) {
        // MULTI succeeded, so the reply to EXEC applies to the whole transaction.
        None => !text(exec).is_some_and(|code| code == Code::ExecAbort || is_retryable(code)),
        // Without MULTI, each command was executed separately.
        Some(_) => !replies.iter().all(|reply| error(reply).is_some()),
    };
    if is_executed {
        return None;
    }
    replies.iter().find_map(|reply| error(reply))
}

/// The slot, host and port in `MOVED 3999 127.0.0.1:6381`, or in ASK.
pub(crate) fn target(text: &[u8]) -> Option<(u16, &str, u16)> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ').skip(1);
    let slot = words.next()?.parse().ok()?;
    // An IPv6 address contains colons.
    let (host, port) = words.next()?.rsplit_once(':')?;
    (slot < brisk_resp::slot::SLOTS).then_some(())?;
    Some((slot, host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_are_parsed_even_if_the_host_is_empty_or_contains_colons() {
        assert_eq!(target(b"MOVED 3999 127.0.0.1:6381"), Some((3999, "127.0.0.1", 6381)));
        assert_eq!(target(b"ASK 1 :6381"), Some((1, "", 6381)));
        assert_eq!(target(b"MOVED 1 ::1:7"), Some((1, "::1", 7)));
        for text in ["MOVED", "MOVED 1", "MOVED 16384 h:1", "MOVED x h:1", "MOVED 1 h:70000"] {
            assert_eq!(target(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn only_errors_that_say_that_nothing_was_executed_lead_to_a_retry() {
        assert_eq!(error(b"-MOVED 1 h:1\r\n"), Some(&b"MOVED 1 h:1"[..]));
        assert_eq!(error(b"-TRYAGAIN later\r\n"), Some(&b"TRYAGAIN later"[..]));
        assert_eq!(error(b"-ERR MOVED\r\n"), None);
        assert_eq!(error(b"+MOVED 1 h:1\r\n"), None);
        assert_eq!(error(b"$8\r\n-MOVED 1\r\n"), None);
    }

    #[test]
    fn a_transaction_is_retried_if_none_of_it_was_executed() {
        let of = |text: &str| {
            let bytes = text.replace('|', "\r\n").into_bytes();
            of_transaction(&bytes).map(|text| String::from_utf8_lossy(text).into_owned())
        };
        let moved = Some("MOVED 1 h:1".to_owned());
        assert_eq!(of("+OK|-MOVED 1 h:1|-MOVED 1 h:1|-EXECABORT no|"), moved);
        assert_eq!(of("+OK|+QUEUED|-MOVED 1 h:1|"), moved);
        assert_eq!(of("+OK|+QUEUED|*1|-MOVED 1 h:1|"), None);
        assert_eq!(of("+OK|-ERR what|-EXECABORT no|"), None);
        assert_eq!(of("-NOPERM no|:1|-ERR EXEC without MULTI|"), None);
        assert_eq!(of("+OK|-MOVED 1 h:1|*0|"), None);
        // All commands were rejected, including MULTI.
        assert_eq!(of("-LOADING a|-LOADING b|-LOADING c|").as_deref(), Some("LOADING a"));
        // MULTI was rejected and a command was executed.
        assert_eq!(of("-LOADING a|:1|-ERR EXEC without MULTI|"), None);
        assert_eq!(of("-LOADING a|:1|-LOADING c|"), None);
    }

    #[test]
    fn redirections_are_bounded_and_pause_increasingly() {
        let mut redirects = RedirectState::default();
        assert_eq!(redirects.count_hop(false), Some(Retry::Now));
        assert_eq!(redirects.count_hop(true), Some(Retry::After(PAUSE_FIRST)));
        let mut hops = 2;
        let mut last = Retry::Now;
        while let Some(retry) = redirects.count_hop(false) {
            (hops, last) = (hops + 1, retry);
        }
        assert_eq!((hops, last), (HOPS_MAX, Retry::After(PAUSE_LONGEST)));
    }
}
