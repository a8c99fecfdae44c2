//! Calls etcd's members: chooses the member, the time limit and the token, and interprets the response.

use super::connection::{EtcdConnection, ExchangeError, WaitLimit};
use super::http::ResponseParser;
use super::messages::{self, MessageError};
use super::tls::EtcdTls;
use super::version;
use crate::coordinator::CALL_MAX;
use crate::error::CoordinatorError;
use crate::setting::{ENDPOINTS_MAX, Endpoint};
use crate::stop::StopFlag;
use brisk_structures::poison::EvenPoisoned as _;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of unused connections that are kept: for the lease, the controller, the watch and its probes, and for
/// commands.
const IDLE_MAX: usize = 4;
/// Pause after all endpoints have failed.
const ROUND_PAUSE: Duration = Duration::from_millis(100);
/// Maximum bytes of an error text that are shown.
const SHOWN_BYTES_MAX: usize = 300;

/// The time limits of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallLimits {
    /// For the first endpoint, including the time to connect. Each further endpoint gets twice the time of the previous
    /// one, since etcd as a whole may be slow.
    pub(super) endpoint: Duration,
    /// For all endpoints.
    pub(super) total: Duration,
}

impl CallLimits {
    /// For reads. The client gives up on a stopped member after 1.5 s; an election takes about 2 s.
    pub(super) const READ: CallLimits =
        CallLimits { endpoint: Duration::from_millis(1_500), total: CALL_MAX };
    /// For writes.
    pub(super) const WRITE: CallLimits =
        CallLimits { endpoint: Duration::from_secs(3), total: CALL_MAX };

    /// Returns these limits, reduced for a call that must end within `limit`. Two endpoints can be tried within it, the
    /// second for twice as long as the first, so that a stopped endpoint does not take all of the time.
    pub(super) fn within(self, limit: Duration) -> CallLimits {
        CallLimits { endpoint: self.endpoint.min(limit / 3), total: self.total.min(limit) }
    }
}

/// States whether a request may be sent again if its outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    Safe,
    Never,
}

/// A failed call.
#[derive(Debug, Clone)]
pub(super) struct CallError {
    pub(super) error: CoordinatorError,
    /// True if etcd may have applied the request, or may still do so.
    pub(super) may_have_happened: bool,
    next: NextStep,
}

impl CallError {
    /// An error that all endpoints would return.
    pub(super) const fn final_error(error: CoordinatorError) -> CallError {
        CallError { error, may_have_happened: false, next: NextStep::GiveUp }
    }

    /// An error that another endpoint might not return.
    pub(super) const fn other_endpoint(error: CoordinatorError) -> CallError {
        CallError { error, may_have_happened: true, next: NextStep::OtherEndpoint }
    }
}

/// The next step after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    /// All endpoints would return the same error.
    GiveUp,
    OtherEndpoint,
    /// Get a new token and try the same endpoint again.
    Authenticate,
}

/// The endpoints to which no connection could be made, each with the reason.
#[derive(Debug, Default)]
pub(super) struct UnreachableEndpoints(Vec<String>);

impl UnreachableEndpoints {
    /// Notes the error of one endpoint. There are at most as many endpoints as a setting can have, but their reasons
    /// may change.
    pub(super) fn note(&mut self, error: &CoordinatorError) {
        if let CoordinatorError::Unreachable(why) = error
            && !self.0.contains(why)
            && self.0.len() < ENDPOINTS_MAX
        {
            self.0.push(why.clone());
        }
    }

    /// The number of noted errors.
    pub(super) const fn count(&self) -> usize {
        self.0.len()
    }

    /// The error with all of these endpoints, if it says that the last of them is unreachable.
    pub(super) fn named_by(&self, error: CoordinatorError) -> CoordinatorError {
        match error {
            CoordinatorError::Unreachable(_) if !self.0.is_empty() => {
                CoordinatorError::Unreachable(self.0.join(", "))
            }
            other => other,
        }
    }
}

/// A user of etcd.
#[derive(Clone)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({})", self.user)
    }
}

/// The endpoints with their connections.
#[derive(Debug)]
pub(super) struct EtcdClient {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) tls: Option<EtcdTls>,
    pub(super) credentials: Option<Credentials>,
    pub(super) stop: StopFlag,
    /// The endpoint that replied last.
    pub(super) current: AtomicUsize,
    pub(super) idle: Mutex<Vec<(usize, EtcdConnection)>>,
    pub(super) token: Mutex<Option<String>>,
}

impl EtcdClient {
    /// The next endpoint to try.
    pub(super) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed) % self.endpoints.len()
    }

    /// Leaves an endpoint that has failed.
    pub(super) fn leave(&self, at: usize) {
        let next = (at + 1) % self.endpoints.len();
        _ = self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Calls one endpoint after the other until one responds.
    pub(super) fn call(
        &self,
        path: &str,
        body: &Value,
        limits: CallLimits,
        repeat: Repeat,
    ) -> Result<Value, CallError> {
        let body = body.to_string();
        self.call_with(limits, repeat, |at, limit| self.call_at(at, path, &body, limit))
    }

    /// Runs an operation at one endpoint after the other until it succeeds.
    pub(super) fn call_with<T>(
        &self,
        limits: CallLimits,
        repeat: Repeat,
        operation: impl Fn(usize, &WaitLimit) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let end = Instant::now() + limits.total;
        let mut endpoint_limit = limits.endpoint;
        let mut was_sent = false;
        let mut failures = 0;
        let mut earlier: Option<CallError> = None;
        let mut unreachable = UnreachableEndpoints::default();
        loop {
            let at = self.current();
            let left = end.saturating_duration_since(Instant::now());
            let limit = WaitLimit::new(endpoint_limit.min(left), &self.stop);
            let failed = match operation(at, &limit) {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            was_sent |= failed.may_have_happened;
            unreachable.note(&failed.error);
            // An attempt that the total limit cut short says less than the previous attempt.
            let was_cut_short = left < endpoint_limit && Instant::now() >= end;
            let failed = if was_cut_short { earlier.unwrap_or(failed) } else { failed };
            let error = unreachable.named_by(failed.error);
            let failed = CallError { error, may_have_happened: was_sent, ..failed };
            let is_final = failed.next == NextStep::GiveUp
                || (repeat == Repeat::Never && was_sent)
                || Instant::now() >= end;
            if is_final {
                self.leave(at);
                return Err(failed);
            }
            self.leave(at);
            endpoint_limit = endpoint_limit.saturating_mul(2);
            failures += 1;
            if failures % self.endpoints.len() == 0 {
                // If no endpoint can be reached, the caller decides when to try again.
                if !was_sent || self.stop.pause(ROUND_PAUSE) {
                    return Err(failed);
                }
            }
            earlier = Some(failed);
        }
    }

    /// Calls one endpoint; a token that has expired is replaced once.
    pub(super) fn call_at(
        &self,
        at: usize,
        path: &str,
        body: &str,
        limit: &WaitLimit,
    ) -> Result<Value, CallError> {
        let token = self.token_at(at, limit)?;
        match self.post(at, path, body, token.as_deref(), limit) {
            Err(failed) if failed.next == NextStep::Authenticate => {
                self.forget_token(token.as_deref());
                let token = self.token_at(at, limit)?;
                self.post(at, path, body, token.as_deref(), limit)
            }
            other => other,
        }
    }

    /// The token of the user; `None` without credentials, or if etcd has no authentication.
    pub(super) fn token_at(
        &self,
        at: usize,
        limit: &WaitLimit,
    ) -> Result<Option<String>, CallError> {
        let Some(credentials) = &self.credentials else { return Ok(None) };
        if let Some(token) = &*self.token.lock().even_poisoned() {
            return Ok(Some(token.clone()));
        }
        let body = json!({"name": credentials.user, "password": credentials.password}).to_string();
        let response = match self.post(at, "/v3/auth/authenticate", &body, None, limit) {
            // Authentication does not change the store.
            Err(CallError { error: CoordinatorError::Rejected(why), .. })
                if why.contains("authentication is not enabled") =>
            {
                return Ok(None);
            }
            Err(failed) => return Err(CallError { may_have_happened: false, ..failed }),
            Ok(response) => response,
        };
        let token = messages::text(&response, "token").map_err(|error| self.misread(at, error))?;
        *self.token.lock().even_poisoned() = Some(token.to_owned());
        Ok(Some(token.to_owned()))
    }

    pub(super) fn forget_token(&self, token: Option<&str>) {
        let mut present = self.token.lock().even_poisoned();
        if present.as_deref() == token {
            *present = None;
        }
    }

    /// Drops the token, so that the next call authenticates again.
    pub(super) fn forget_any_token(&self) {
        *self.token.lock().even_poisoned() = None;
    }

    /// Checks that a member responds at all, on a connection that no stream uses.
    pub(super) fn probe(&self, at: usize, limit: &WaitLimit) -> Result<(), CallError> {
        // Opening a new connection includes an exchange, which shows that the member responds.
        self.idle.lock().even_poisoned().retain(|(of, _)| *of != at);
        self.connect(at, limit).map(drop)
    }

    /// One exchange with one endpoint.
    fn post(
        &self,
        at: usize,
        path: &str,
        body: &str,
        token: Option<&str>,
        limit: &WaitLimit,
    ) -> Result<Value, CallError> {
        let mut connection = self.connect(at, limit)?;
        let request = self.request(at, path, body, token, "");
        let parser = connection.exchange(&request, limit);
        let mut parser = parser.map_err(|error| self.lost(at, path, &error, limit))?;
        if parser.keeps_alive() {
            let mut idle = self.idle.lock().even_poisoned();
            idle.truncate(IDLE_MAX - 1);
            idle.insert(0, (at, connection));
        }
        self.read_response(at, &mut parser)
    }

    /// A kept connection, or a new one to a member whose version is supported.
    pub(super) fn connect(
        &self,
        at: usize,
        limit: &WaitLimit,
    ) -> Result<EtcdConnection, CallError> {
        let kept = {
            let mut idle = self.idle.lock().even_poisoned();
            idle.iter().position(|(of, _)| *of == at).map(|found| idle.remove(found).1)
        };
        match kept {
            Some(kept) if kept.is_open() => return Ok(kept),
            _ => {}
        }
        let endpoint = &self.endpoints[at];
        let opened = EtcdConnection::open(endpoint, self.tls.as_ref(), limit);
        let mut connection = opened.map_err(|error| self.not_sent(at, &error, limit))?;
        let request = format!("GET /version HTTP/1.1\r\nHost: {endpoint}\r\n\r\n");
        let response = connection.exchange(request.as_bytes(), limit);
        let mut response = response.map_err(|error| self.not_sent(at, &error, limit))?;
        let body = String::from_utf8_lossy(response.body()).into_owned();
        version::check(endpoint, response.status(), &body).map_err(|error| CallError {
            error,
            may_have_happened: false,
            next: NextStep::OtherEndpoint,
        })?;
        if !response.keeps_alive() {
            let opened = EtcdConnection::open(endpoint, self.tls.as_ref(), limit);
            return opened.map_err(|error| self.not_sent(at, &error, limit));
        }
        Ok(connection)
    }

    /// The bytes of a request. `headers` are further header lines, each with its line end.
    pub(super) fn request(
        &self,
        at: usize,
        path: &str,
        body: &str,
        token: Option<&str>,
        headers: &str,
    ) -> Vec<u8> {
        // A token comes from etcd; a token with a line break would add headers.
        let token = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
        let authorization = token.map(|token| format!("Authorization: {token}\r\n"));
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{}{headers}\r\n{body}",
            self.endpoints[at],
            body.len(),
            authorization.unwrap_or_default(),
        )
        .into_bytes()
    }

    /// The JSON of a complete response, or the meaning of its error.
    pub(super) fn read_response(
        &self,
        at: usize,
        parser: &mut ResponseParser,
    ) -> Result<Value, CallError> {
        let status = parser.status().unwrap_or_default();
        let body = std::mem::take(parser.body());
        if status == 200 {
            // The request may have been applied even if its response is not understood.
            return serde_json::from_slice(&body).map_err(|_| self.misread(at, MessageError::Json));
        }
        let response: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        Err(self.meaning(at, status, &response, &text))
    }

    /// The meaning of an error from the gateway. The codes are those of gRPC.
    pub(super) fn meaning(
        &self,
        at: usize,
        status: u16,
        response: &Value,
        body: &str,
    ) -> CallError {
        let endpoint = self.endpoints[at].to_string();
        let code = messages::number(response, "code").unwrap_or_default();
        let code = code.max(messages::number(response, "grpc_code").unwrap_or_default());
        let error = messages::text(response, "error").unwrap_or_default();
        let message = messages::text(response, "message").unwrap_or_default();
        let text = [message, error, body].into_iter().find(|text| !text.is_empty());
        let text: String = text.unwrap_or_default().chars().take(SHOWN_BYTES_MAX).collect();
        let of = |error, may_have_happened, next| CallError { error, may_have_happened, next };
        let final_error = CallError::final_error;
        if text.contains("CommonName") {
            return final_error(CoordinatorError::CommonName);
        }
        let is_token_refused = ["invalid auth token", "user name is empty", "auth store is old"]
            .iter()
            .any(|refusal| text.contains(refusal));
        match (status, code) {
            _ if is_token_refused => {
                let can_repeat = self.credentials.is_some();
                let next = if can_repeat { NextStep::Authenticate } else { NextStep::GiveUp };
                of(CoordinatorError::Unauthorized(text), false, next)
            }
            (_, 16 | 7) => final_error(CoordinatorError::Unauthorized(text)),
            // A canceled watch has an error text but no code.
            _ if ["authentication failed", "permission denied"]
                .iter()
                .any(|r| text.contains(r)) =>
            {
                final_error(CoordinatorError::Unauthorized(text))
            }
            (404, 0) => {
                of(CoordinatorError::NoGateway { endpoint }, false, NextStep::OtherEndpoint)
            }
            (_, 5) if text.contains("lease not found") => final_error(CoordinatorError::LeaseLost),
            // etcd applies the request that exceeds the quota and then reports this error.
            (_, 8) if text.contains("database space exceeded") => {
                of(CoordinatorError::NoSpace, true, NextStep::GiveUp)
            }
            (_, 8) => of(CoordinatorError::Rejected(text), false, NextStep::OtherEndpoint),
            _ if text.contains("no leader") => {
                of(CoordinatorError::NoLeader(endpoint), true, NextStep::OtherEndpoint)
            }
            // Unknown, deadline exceeded, cancelled, aborted, internal, unavailable, data loss.
            (_, 1 | 2 | 4 | 10 | 13 | 14 | 15) | (500..=599, _) => {
                let why = format!("{endpoint}: {text}");
                of(CoordinatorError::NoLeader(why), true, NextStep::OtherEndpoint)
            }
            _ => final_error(CoordinatorError::Rejected(text)),
        }
    }

    /// The error for a response that was not understood.
    pub(super) fn misread(&self, at: usize, error: MessageError) -> CallError {
        let endpoint = self.endpoints[at].to_string();
        CallError {
            error: CoordinatorError::InvalidResponse { endpoint, why: error.to_string() },
            may_have_happened: true,
            next: NextStep::OtherEndpoint,
        }
    }

    fn not_sent(&self, at: usize, error: &ExchangeError, limit: &WaitLimit) -> CallError {
        let failed = self.lost(at, "connect", error, limit);
        let error = match failed.error {
            CoordinatorError::TimedOut { .. } | CoordinatorError::ConnectionLost(_) => {
                CoordinatorError::Unreachable(format!("{}: {error}", self.endpoints[at]))
            }
            other => other,
        };
        CallError { error, may_have_happened: false, next: failed.next }
    }

    /// The error for an exchange that had begun.
    pub(super) fn lost(
        &self,
        at: usize,
        path: &str,
        error: &ExchangeError,
        limit: &WaitLimit,
    ) -> CallError {
        let endpoint = &self.endpoints[at];
        let of = |error, may_have_happened, next| CallError { error, may_have_happened, next };
        let other = NextStep::OtherEndpoint;
        match error {
            ExchangeError::Stopped => of(CoordinatorError::Stopped, true, NextStep::GiveUp),
            ExchangeError::NotSent(why) => {
                of(CoordinatorError::Unreachable(format!("{endpoint}: {why}")), false, other)
            }
            ExchangeError::TimedOut => {
                let what = format!("{path} at {endpoint}");
                let limit = limit.budget;
                of(CoordinatorError::TimedOut { what, limit }, true, other)
            }
            ExchangeError::Lost(why) => {
                of(CoordinatorError::ConnectionLost(format!("{endpoint}: {why}")), true, other)
            }
            ExchangeError::Http(why) => {
                let (endpoint, why) = (endpoint.to_string(), why.to_string());
                of(CoordinatorError::InvalidResponse { endpoint, why }, true, other)
            }
        }
    }
}
