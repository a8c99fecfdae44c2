//! The TTL options of SET, GETEX, SETEX and PSETEX, and the expiry time that they result in.

use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::Ctx;
use crate::command::args::Args;
use crate::keyspace::UnixMs;

/// The TTL options of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ttl<'a> {
    Unsaid,
    Keep,
    Persist,
    /// The number as text. It is parsed after all options.
    Given(TtlUnit, &'a [u8]),
}

/// The command whose options are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TtlForm {
    /// With KEEPTTL.
    Set,
    /// With PERSIST.
    Getex,
}

/// The meaning of a TTL argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TtlUnit {
    Seconds,
    Milliseconds,
    UnixSeconds,
    UnixMilliseconds,
}

impl<'a> Ttl<'a> {
    /// Parses the option `word`, which was just taken, and its number if it needs one. Returns a
    /// syntax error if it is not a TTL option of the command or contradicts an earlier one.
    /// Repetition is allowed.
    pub(super) fn read(&mut self, words: TtlForm, word: &[u8], args: &mut Args<'a>) -> Result<()> {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let said = if words == TtlForm::Set && is("KEEPTTL") {
            Ttl::Keep
        } else if words == TtlForm::Getex && is("PERSIST") {
            Ttl::Persist
        } else {
            let unit = TtlUnit::named(word).ok_or(CommandError::Syntax)?;
            Ttl::Given(unit, args.bytes()?)
        };
        let agrees = match (*self, said) {
            (Ttl::Unsaid, _) => true,
            (Ttl::Given(before, _), Ttl::Given(now, _)) => before == now,
            (before, said) => before == said,
        };
        *self = said;
        if agrees { Ok(()) } else { Err(CommandError::Syntax) }
    }
}

impl TtlUnit {
    fn named(word: &[u8]) -> Option<TtlUnit> {
        let names = [
            ("EX", TtlUnit::Seconds),
            ("PX", TtlUnit::Milliseconds),
            ("EXAT", TtlUnit::UnixSeconds),
            ("PXAT", TtlUnit::UnixMilliseconds),
        ];
        let found = names.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, unit)| *unit)
    }

    /// The expiry time that `number` means. Returns an error if it is not an integer, not positive,
    /// or too large in milliseconds.
    pub(super) fn deadline(self, ctx: &Ctx<'_, '_>, number: &[u8]) -> Result<UnixMs> {
        let number = parse_i64(number).ok_or(CommandError::NotAnInteger)?;
        let unit_ms = match self {
            TtlUnit::Seconds | TtlUnit::UnixSeconds => 1000,
            TtlUnit::Milliseconds | TtlUnit::UnixMilliseconds => 1,
        };
        let since_ms = match self {
            TtlUnit::Seconds | TtlUnit::Milliseconds => ctx.now().0 as i64,
            TtlUnit::UnixSeconds | TtlUnit::UnixMilliseconds => 0,
        };
        let after = (number > 0).then_some(number).and_then(|number| number.checked_mul(unit_ms));
        let at = after.and_then(|after| after.checked_add(since_ms));
        at.map(|at| UnixMs(at as u64)).ok_or_else(|| ctx.invalid_expire())
    }
}
