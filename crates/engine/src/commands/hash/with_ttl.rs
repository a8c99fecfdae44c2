//! HGETEX, HSETEX: read or set fields along with their TTL, as in Redis 8.

use super::deadline::{ExpireUnit, FieldEffect, FieldList, exists, expire_args};
use crate::base::error::{CommandError, Result};
use crate::base::number::{Digits, parse_i64};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{Key, UnixMs};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::hash::{FieldDeadline, Hash};

/// The options before FIELDS.
#[derive(Default)]
struct Options<'a> {
    ttl: Ttl<'a>,
    condition: Option<Condition>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Ttl<'a> {
    #[default]
    Unsaid,
    Keep,
    Persist,
    /// The number as text. It is parsed after all options.
    Given(ExpireUnit, &'a [u8]),
}

/// The condition under which HSETEX sets fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    None,
    All,
}

/// The option names of one of the two commands.
struct OptionNames {
    sets: bool,
}

impl OptionNames {
    /// Takes the options, FIELDS and the number. The remaining arguments are the fields.
    fn parse<'a>(&self, ctx: &Ctx<'_, '_>, args: &mut Args<'a>) -> Result<Options<'a>> {
        let mut options = Options::default();
        loop {
            if args.take("FIELDS") {
                return self.count(ctx, args).map(|()| options);
            }
            if self.sets && (args.take("FNX") || args.take("FXX")) {
                let word = args.argument(args.position() - 1);
                let none = word.eq_ignore_ascii_case(b"FNX");
                let said = if none { Condition::None } else { Condition::All };
                if options.condition.replace(said).is_some() {
                    let text = "ERR Only one of FXX or FNX arguments can be specified";
                    return Err(CommandError::text(text));
                }
                continue;
            }
            let said = self.ttl(args)?;
            if options.ttl != Ttl::Unsaid {
                let other = if self.sets { "KEEPTTL" } else { "PERSIST" };
                return Err(CommandError::text(format!(
                    "ERR Only one of EX, PX, EXAT, PXAT or {other} arguments can be specified"
                )));
            }
            options.ttl = said.number(args)?;
        }
    }

    /// Takes the next argument, which must be a TTL option.
    fn ttl<'a>(&self, args: &mut Args<'a>) -> Result<Ttl<'a>> {
        const UNITS: [(&str, i64, bool); 4] =
            [("EX", 1000, true), ("PX", 1, true), ("EXAT", 1000, false), ("PXAT", 1, false)];
        for (name, ms_per_unit, from_now) in UNITS {
            if args.take(name) {
                return Ok(Ttl::Given(ExpireUnit { ms_per_unit, from_now }, b""));
            }
        }
        if self.sets && args.take("KEEPTTL") {
            return Ok(Ttl::Keep);
        }
        if !self.sets && args.take("PERSIST") {
            return Ok(Ttl::Persist);
        }
        Err(match args.optional() {
            Some(word) => CommandError::text_with("ERR unknown argument: ", word),
            None => CommandError::text("ERR missing FIELDS argument"),
        })
    }

    fn count(&self, ctx: &Ctx<'_, '_>, args: &mut Args<'_>) -> Result<()> {
        let words = if self.sets { 2 } else { 1 };
        if args.remaining() < 1 + words {
            return Err(ctx.wrong_arity());
        }
        let number = parse_i64(args.bytes()?).and_then(|number| i32::try_from(number).ok());
        let number = number.filter(|number| *number >= 1);
        let number = number.ok_or(CommandError::text("ERR invalid number of fields"))?;
        if number as usize * words != args.remaining() {
            return Err(ctx.wrong_arity());
        }
        Ok(())
    }
}

impl<'a> Ttl<'a> {
    /// Takes the number that the option needs.
    fn number(self, args: &mut Args<'a>) -> Result<Ttl<'a>> {
        let Ttl::Given(counting, _) = self else { return Ok(self) };
        let missing = || CommandError::text("ERR missing expire time");
        args.optional().map(|number| Ttl::Given(counting, number)).ok_or_else(missing)
    }

    fn deadline(self, ctx: &Ctx<'_, '_>) -> Result<Option<u64>> {
        match self {
            Ttl::Given(counting, number) => counting.deadline(ctx, number).map(Some),
            Ttl::Unsaid | Ttl::Keep | Ttl::Persist => Ok(None),
        }
    }
}

fn hgetex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    exists(ctx, &key)?;
    let options = OptionNames { sets: false }.parse(ctx, args)?;
    let deadline = options.ttl.deadline(ctx)?;
    let fields = FieldList::rest(args);
    let is_past = deadline.is_some_and(|at| ctx.has_passed(UnixMs(at)));
    let reply = &mut ctx.reply;
    reply.array(fields.len());
    let mut effect = FieldEffect::default();
    let event = if deadline.is_some() { "hexpire" } else { "hpersist" };
    let found = ctx.keys.update::<Hash, _>(&key, |hash, _| {
        for field in fields.iter() {
            match hash.get(field) {
                Some(value) => reply.item(value),
                None => {
                    reply.null();
                    continue;
                }
            };
            match (options.ttl, deadline) {
                (Ttl::Persist, _) if hash.deadline(field).flatten().is_some() => {
                    hash.set_deadline(field, None);
                    effect.changed.push(field);
                }
                (_, Some(_)) if is_past => {
                    hash.remove(field);
                    effect.removed.push(field);
                }
                (_, Some(deadline)) => {
                    hash.set_deadline(field, Some(deadline));
                    effect.changed.push(field);
                }
                (_, None) => {}
            }
        }
        Ok(effect.edit(event))
    })?;
    if found.is_none() {
        fields.iter().for_each(|_| _ = ctx.reply.null());
    }
    effect.propagate(ctx, &key, |words| match deadline {
        Some(deadline) => expire_args(words, &key, deadline),
        None => words.extend([b"HPERSIST".to_vec(), key.bytes.to_vec()]),
    });
    Ok(Outcome::Replied)
}

fn hsetex(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let options = OptionNames { sets: true }.parse(ctx, args)?;
    exists(ctx, &key)?;
    let deadline = options.ttl.deadline(ctx)?;
    let pairs = Pairs(FieldList::rest(args));
    let keep = options.ttl == Ttl::Keep;
    let was_set = ctx.keys.upsert::<Hash, _>(&key, |hash, limits| {
        let refused = match options.condition {
            Some(Condition::None) => pairs.iter().any(|(field, _)| hash.contains(field)),
            Some(Condition::All) => pairs.iter().any(|(field, _)| !hash.contains(field)),
            None => false,
        };
        if refused {
            return Ok(Edit::unchanged(false));
        }
        hash.prepare(pairs.0.iter(), limits);
        let kept = if keep { FieldDeadline::Keep } else { FieldDeadline::Drop };
        let mut count = 0;
        for (field, value) in pairs.iter() {
            hash.set(field, value, kept, limits);
            count += 1;
        }
        Ok(Edit::new(true, count, "hset"))
    })?;
    if was_set {
        match deadline {
            Some(deadline) => expire_all(ctx, &key, &pairs, deadline)?,
            None => pairs.propagate(ctx, &key, keep.then_some(&b"KEEPTTL"[..]).into_iter()),
        }
    }
    Ok(ctx.reply.integer(i64::from(was_set)))
}

/// Sets the expiry time of all fields that were just set, or removes them if the time has passed.
fn expire_all(
    ctx: &mut Ctx<'_, '_>,
    key: &Key<'_>,
    pairs: &Pairs<'_>,
    deadline: u64,
) -> Result<()> {
    let mut effect = FieldEffect::default();
    let is_past = ctx.has_passed(UnixMs(deadline));
    ctx.keys.update::<Hash, _>(key, |hash, _| {
        for (field, _) in pairs.iter() {
            if !is_past {
                hash.set_deadline(field, Some(deadline));
                effect.changed.push(field);
            } else if hash.remove(field) {
                effect.removed.push(field);
            }
        }
        Ok(effect.edit("hexpire"))
    })?;
    if is_past {
        effect.propagate(ctx, key, |_| {});
    } else {
        let mut digits = Digits::new();
        pairs.propagate(ctx, key, [&b"PXAT"[..], digits.format(deadline as i64)].into_iter());
    }
    Ok(())
}

/// Alternating fields and values.
struct Pairs<'a>(FieldList<'a>);

impl<'a> Pairs<'a> {
    fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut words = self.0.iter();
        std::iter::from_fn(move || Some((words.next()?, words.next()?)))
    }

    /// Propagates that all fields were set, with `options` but without conditions, which were
    /// checked here.
    fn propagate<'w>(
        &self,
        ctx: &mut Ctx<'_, '_>,
        key: &Key<'_>,
        options: impl Iterator<Item = &'w [u8]>,
    ) {
        ctx.keys.propagate(|| {
            let mut words = vec![b"HSETEX".to_vec(), key.bytes.to_vec()];
            words.extend(options.map(<[u8]>::to_vec));
            words.push(b"FIELDS".to_vec());
            words.push(Digits::new().format(self.0.len() as i64 / 2).to_vec());
            words.extend(self.0.iter().map(<[u8]>::to_vec));
            words
        });
    }
}

const HGETEX: Command = Command {
    spec: Spec {
        name: "hgetex",
        group: Group::Hash,
        summary: "Returns the values of fields and sets or removes their TTL.",
        since: "8.0.0",
        complexity: "O(N) in the number of fields that are named.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::UPDATE))],
        args: &[
            Arg::key("key"),
            Arg::one_of(
                "expiration",
                &[
                    Arg::integer("seconds").after("EX"),
                    Arg::integer("milliseconds").after("PX"),
                    Arg::unix_time("unix-time-seconds").after("EXAT"),
                    Arg::unix_time("unix-time-milliseconds").after("PXAT"),
                    Arg::token("persist", "PERSIST"),
                ],
            )
            .optional(),
            FieldList::ARG,
        ],
        ..Spec::EMPTY
    },
    run: hgetex,
    subcommands: &[],
};

const HSETEX: Command = Command {
    spec: Spec {
        name: "hsetex",
        group: Group::Hash,
        summary: "Sets fields of a hash and their TTL.",
        since: "8.0.0",
        complexity: "O(N) in the number of fields that are set.",
        arity: -6,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[
            Arg::key("key"),
            Arg::one_of("condition", &[Arg::token("fnx", "FNX"), Arg::token("fxx", "FXX")])
                .optional(),
            Arg::one_of(
                "expiration",
                &[
                    Arg::integer("seconds").after("EX"),
                    Arg::integer("milliseconds").after("PX"),
                    Arg::unix_time("unix-time-seconds").after("EXAT"),
                    Arg::unix_time("unix-time-milliseconds").after("PXAT"),
                    Arg::token("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
            Arg::block(
                "fields",
                &[
                    Arg::integer("numfields"),
                    Arg::block("data", &[Arg::string("field"), Arg::string("value")]).multiple(),
                ],
            )
            .after("FIELDS"),
        ],
        ..Spec::EMPTY
    },
    run: hsetex,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[HGETEX, HSETEX];
