//! The state of a command that is observed, and the calls to its observers.

use super::{Call, ObservedServer, Outcome, Token};
use crate::command::{SendPlan, State, Target};
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::request::Request;
use brisk_resp::reply::read::Part;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The state of a command, and its observers.
#[derive(Debug, Default)]
pub(crate) struct ObservedState {
    state: State,
    observation: Option<Box<Observation>>,
}

impl ObservedState {
    /// Like [`State::poll`], but also calls the observers.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        target: &impl Target,
        plan: &SendPlan<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Reply>> {
        match target.observed(plan) {
            None => self.state.poll(target, plan, cx),
            Some(observed) => self.poll_observed(observed, target, plan, cx),
        }
    }

    #[cold]
    fn poll_observed(
        &mut self,
        observed: &Arc<ObservedServer>,
        target: &impl Target,
        plan: &SendPlan<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Reply>> {
        if matches!(self.state, State::New) && !plan.requests.is_empty() {
            self.observation = Some(Box::new(Observation::begin(observed, plan)));
        }
        let polled = self.state.poll(target, plan, cx);
        match &polled {
            Poll::Ready(result) => {
                if let Some(mut observation) = self.observation.take() {
                    observation.end(result);
                }
            }
            Poll::Pending if matches!(self.state, State::Full { .. }) => {
                if let Some(observation) = &mut self.observation {
                    observation.wait_for_room();
                }
            }
            Poll::Pending => {}
        }
        polled
    }
}

/// A command that has started and has no outcome yet.
#[derive(Debug)]
struct Observation {
    observed: Arc<ObservedServer>,
    name: String,
    commands: usize,
    begun: Instant,
    waits_for_room: bool,
    /// One token per observer. Empty once the outcome has been reported.
    tokens: Vec<Token>,
}

impl Observation {
    fn begin(observed: &Arc<ObservedServer>, plan: &SendPlan<'_>) -> Observation {
        let (name, commands) = name(plan.requests);
        let mut observation = Observation {
            observed: Arc::clone(observed),
            name,
            commands,
            begun: Instant::now(),
            waits_for_room: false,
            tokens: Vec::new(),
        };
        let call = observation.call();
        let mut tokens = Vec::new();
        observed.each(|observer| tokens.push(observer.command_started(&call)));
        observation.tokens = tokens;
        observation
    }

    fn call(&self) -> Call<'_> {
        Call { name: &self.name, commands: self.commands, endpoint: &self.observed.endpoint }
    }

    fn wait_for_room(&mut self) {
        if !std::mem::replace(&mut self.waits_for_room, true) {
            self.observed.each(|observer| observer.queue_full(&self.call()));
        }
    }

    fn end(&mut self, result: &Result<Reply>) {
        match result {
            Err(error) => self.report(Outcome::Failed(error)),
            Ok(reply) => match first_error(reply) {
                Some(error) => self.report(Outcome::Failed(&error)),
                None => self.report(Outcome::Ok),
            },
        }
    }

    fn report(&mut self, outcome: Outcome<'_>) {
        let time = self.begun.elapsed();
        let mut tokens = std::mem::take(&mut self.tokens).into_iter();
        let call = self.call();
        self.observed.each(|observer| {
            if let Some(token) = tokens.next() {
                observer.command_finished(&call, token, time, outcome);
            }
        });
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.tokens.is_empty() {
            self.report(Outcome::Dropped);
        }
    }
}

/// The name that observers receive for these requests, and the number of commands.
fn name(requests: &[Request]) -> (String, usize) {
    let (kind, requests) = match requests {
        [one] => return (one.name(), 1),
        [multi, commands @ .., exec] if multi.name() == "MULTI" && exec.name() == "EXEC" => {
            ("MULTI", commands)
        }
        commands => ("PIPELINE", commands),
    };
    let first = requests.first().map(Request::name).unwrap_or_default();
    let name = match requests.iter().all(|request| request.name() == first) {
        true => format!("{kind} {first}").trim_end().to_owned(),
        false => kind.to_owned(),
    };
    (name, requests.len())
}

/// The first error among the replies to one or several requests.
fn first_error(reply: &Reply) -> Option<Error> {
    let mut reader = reply.reader();
    while !reader.is_at_end() {
        if let Part::Error(message) = reader.peek().ok()? {
            return Some(Error::server(message));
        }
        reader.skip().ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Traits;

    #[test]
    fn several_commands_are_named_after_their_common_name() {
        let named = |names: &[&str]| {
            let request = |name: &&str| Request::new(name, Traits::default());
            name(&names.iter().map(request).collect::<Vec<_>>())
        };
        assert_eq!(named(&["GET"]), ("GET".into(), 1));
        assert_eq!(named(&["config get"]), ("CONFIG GET".into(), 1));
        assert_eq!(named(&["GET", "GET"]), ("PIPELINE GET".into(), 2));
        assert_eq!(named(&["GET", "SET"]), ("PIPELINE".into(), 2));
        assert_eq!(named(&["MULTI", "SET", "SET", "EXEC"]), ("MULTI SET".into(), 2));
        assert_eq!(named(&["MULTI", "SET", "GET", "EXEC"]), ("MULTI".into(), 2));
        assert_eq!(named(&["MULTI", "EXEC"]), ("MULTI".into(), 0));
    }
}
