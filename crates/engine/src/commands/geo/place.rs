//! GEOADD, GEODIST, GEOHASH, GEOPOS: single places.

use super::{place_of, point, reply_distance, reply_point, unit_m};
use crate::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::ctx::{Command, Ctx};
use crate::error::{CommandError, Result};
use crate::number::Digits;
use crate::reply::Outcome;
use crate::types::sorted_set::{AddRules, Added};
use crate::types::{Edit, SortedSet};

fn geoadd(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (mut rules, mut count_changed) = (AddRules::default(), false);
    loop {
        if args.take("NX") {
            rules.only_new = true;
        } else if args.take("XX") {
            rules.only_existing = true;
        } else if args.take("CH") {
            count_changed = true;
        } else {
            break;
        }
    }
    let first = args.position();
    let words = args.remaining();
    if words == 0 || !words.is_multiple_of(3) || rules.only_new && rules.only_existing {
        return Err(CommandError::Syntax);
    }
    let numbers = (first..args.argc()).step_by(3);
    let numbers = numbers.map(|at| Ok(point(args.word(at), args.word(at + 1))?.number()));
    let numbers = numbers.collect::<Result<Vec<u64>>>()?;
    let (new, changed) = ctx.keys.upsert::<SortedSet, _>(&key, |set, limits| {
        let (mut new, mut changed) = (0, 0);
        for (place, number) in numbers.iter().enumerate() {
            let member = args.word(first + 3 * place + 2);
            let added = set.add(member, *number as f64, &rules, limits)?;
            new += u64::from(matches!(added, Added::New(_)));
            changed += u64::from(matches!(added, Added::Changed(_)));
        }
        Ok(Edit::new((new, changed), new + changed, "zadd"))
    })?;
    if new + changed > 0 {
        // Scores, so that replicas need not compute alike.
        ctx.keys.propagate(|| {
            let options = args.words().take(first).skip(1).map(<[u8]>::to_vec);
            let mut words = vec![b"ZADD".to_vec()];
            words.extend(options);
            for (place, number) in numbers.iter().enumerate() {
                words.push(Digits::new().format(*number as i64).to_vec());
                words.push(args.word(first + 3 * place + 2).to_vec());
            }
            words
        });
    }
    Ok(ctx.reply.integer((if count_changed { new + changed } else { new }) as i64))
}

fn geodist(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (from, to) = (args.bytes()?, args.bytes()?);
    let unit_m = match args.remaining() {
        0 => 1.0,
        1 => unit_m(args.bytes()?)?,
        _ => return Err(CommandError::Syntax),
    };
    let set = ctx.keys.open::<SortedSet>(&key)?;
    let place = |member| set.and_then(|set| set.score(member)).map(place_of);
    Ok(match (place(from), place(to)) {
        (Some(from), Some(to)) => reply_distance(&mut ctx.reply, from.distance_m(to) / unit_m),
        _ => ctx.reply.null(),
    })
}

fn geohash(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    ctx.reply.array(args.remaining());
    while let Some(member) = args.optional() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => ctx.reply.bulk(&place_of(score).text()),
            None => ctx.reply.null(),
        };
    }
    Ok(Outcome::Replied)
}

fn geopos(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    ctx.reply.array(args.remaining());
    while let Some(member) = args.optional() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => reply_point(&mut ctx.reply, place_of(score)),
            None => {
                ctx.reply.null_array();
            }
        }
    }
    Ok(Outcome::Replied)
}

const GEOADD: Command = Command {
    spec: Spec {
        name: "geoadd",
        group: Group::Geo,
        summary: "Adds places, or moves them.",
        since: "3.2.0",
        complexity: "O(log(N))",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[
            Arg::key("key"),
            Arg::one_of("condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")])
                .since("6.2.0")
                .optional(),
            Arg::token("change", "CH").since("6.2.0").optional(),
            Arg::block(
                "longitude_latitude_member",
                &[Arg::double("longitude"), Arg::double("latitude"), Arg::string("member")],
            )
            .multiple(),
        ],
        history: &[("6.2.0", "Has the options `CH`, `NX` and `XX`.")],
        ..Spec::EMPTY
    },
    run: geoadd,
    subcommands: &[],
};

const GEODIST: Command = Command {
    spec: Spec {
        name: "geodist",
        group: Group::Geo,
        summary: "Measures the distance between two places.",
        since: "3.2.0",
        complexity: "O(log(N))",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("member1"),
            Arg::string("member2"),
            Arg::one_of(
                "unit",
                &[
                    Arg::token("m", "M"),
                    Arg::token("km", "KM"),
                    Arg::token("ft", "FT"),
                    Arg::token("mi", "MI"),
                ],
            )
            .optional(),
        ],
        ..Spec::EMPTY
    },
    run: geodist,
    subcommands: &[],
};

const GEOHASH: Command = Command {
    spec: Spec {
        name: "geohash",
        group: Group::Geo,
        summary: "Encodes places as standard geohash strings.",
        since: "3.2.0",
        complexity: "O(log(N))",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::string("member").multiple()],
        ..Spec::EMPTY
    },
    run: geohash,
    subcommands: &[],
};

const GEOPOS: Command = Command {
    spec: Spec {
        name: "geopos",
        group: Group::Geo,
        summary: "Reads the coordinates of places.",
        since: "3.2.0",
        complexity: "O(N)",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key"), Arg::string("member").multiple()],
        ..Spec::EMPTY
    },
    run: geopos,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[GEOADD, GEODIST, GEOHASH, GEOPOS];
