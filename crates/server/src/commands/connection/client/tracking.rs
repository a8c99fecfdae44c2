//! CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO: client-side caching.

use super::{ROW, on_or_off};
use brisk_engine::command::{Arg, Scope, Spec};
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::tracking::session;
use brisk_node::tracking::{Tracker, TrackingMode};

pub(super) const TRACKING: Command = Command {
    spec: Spec {
        name: "tracking",
        summary: "Enables or disables invalidation messages for keys that the connection has read.",
        since: "6.0.0",
        complexity: "O(1), and O(N) in the number of prefixes.",
        arity: -3,
        args: &[
            Arg::one_of("status", &[Arg::token("on", "ON"), Arg::token("off", "OFF")]),
            Arg::integer("client-id").after("REDIRECT").optional(),
            Arg::string("prefix").after("PREFIX").optional().multiple().multiple_token(),
            Arg::token("bcast", "BCAST").optional(),
            Arg::token("optin", "OPTIN").optional(),
            Arg::token("optout", "OPTOUT").optional(),
            Arg::token("noloop", "NOLOOP").optional(),
        ],
        // The first use marks all slots, so the command must not hold slots.
        scope: Scope::EachSlot,
        ..ROW
    },
    run: tracking,
    subcommands: &[],
};

/// The options of CLIENT TRACKING.
#[derive(Default)]
struct Wanted<'a> {
    redirect: u64,
    broadcast: bool,
    optin: bool,
    optout: bool,
    noloop: bool,
    prefixes: Vec<&'a [u8]>,
}

fn tracking(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let switch = args.bytes()?;
    let wanted = Wanted::of_words(call, args)?;
    if on_or_off(switch)? {
        let mode = wanted.mode(call.session.push.tracker())?;
        let tracker = Tracker::new(mode, wanted.noloop, wanted.redirect);
        let mut prefixes = wanted.prefixes;
        if prefixes.is_empty() && mode == TrackingMode::Broadcast {
            prefixes.push(b"");
        }
        session::begin_tracking(call.core, call.session, tracker, prefixes.into_iter());
    } else {
        session::end_tracking(call.core, call.session);
    }
    Ok(call.reply.ok())
}

impl<'a> Wanted<'a> {
    fn of_words(call: &Call<'_>, args: &mut Args<'a>) -> Result<Wanted<'a>> {
        let mut wanted = Wanted::default();
        while let Some(option) = args.optional() {
            match option.to_ascii_uppercase().as_slice() {
                b"REDIRECT" if args.remaining() > 0 => {
                    if wanted.redirect != 0 {
                        let text = "ERR A client can only redirect to a single other client";
                        return Err(CommandError::text(text));
                    }
                    let id = parse_i64(args.bytes()?).ok_or(CommandError::NotAnInteger)?;
                    let id = u64::try_from(id).unwrap_or(0);
                    if call.core.shared.clients.find(id).is_none() {
                        let text = "ERR The client ID you want redirect to does not exist";
                        return Err(CommandError::text(text));
                    }
                    wanted.redirect = id;
                }
                b"BCAST" => wanted.broadcast = true,
                b"OPTIN" => wanted.optin = true,
                b"OPTOUT" => wanted.optout = true,
                b"NOLOOP" => wanted.noloop = true,
                b"PREFIX" if args.remaining() > 0 => wanted.prefixes.push(args.bytes()?),
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(wanted)
    }

    /// Validates the options in Redis's order, against each other and against the session's current
    /// mode.
    fn mode(&self, now: Option<&Tracker>) -> Result<TrackingMode> {
        let is = |mode| now.is_some_and(|tracker| tracker.mode() == mode);
        let refuse = |text| Err(CommandError::text(text));
        if !self.broadcast && !self.prefixes.is_empty() {
            return refuse("ERR PREFIX option requires BCAST mode to be enabled");
        }
        if now.is_some() && is(TrackingMode::Broadcast) != self.broadcast {
            return refuse(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, \
                 and then re-enabling it with a different mode.",
            );
        }
        if self.broadcast && (self.optin || self.optout) {
            return refuse("ERR OPTIN and OPTOUT are not compatible with BCAST");
        }
        if self.optin && self.optout {
            return refuse("ERR You can't specify both OPTIN mode and OPTOUT mode");
        }
        if self.optin && is(TrackingMode::OptOut) || self.optout && is(TrackingMode::OptIn) {
            return refuse(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, \
                 and then re-enabling it with a different mode.",
            );
        }
        self.check_overlaps(now)?;
        Ok(match (self.broadcast, self.optin, self.optout) {
            (true, ..) => TrackingMode::Broadcast,
            (_, true, _) => TrackingMode::OptIn,
            (_, _, true) => TrackingMode::OptOut,
            _ => TrackingMode::Read,
        })
    }

    /// Checks that no two prefixes of the client match the same key. O(prefixes squared), as in Redis.
    fn check_overlaps(&self, now: Option<&Tracker>) -> Result<()> {
        let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
        let refuse = |prefix: &[u8], which: &str, other: &[u8]| {
            let mut text = b"ERR Prefix '".to_vec();
            text.extend_from_slice(prefix);
            text.extend_from_slice(b"' overlaps with ");
            text.extend_from_slice(which.as_bytes());
            text.extend_from_slice(b" prefix '");
            text.extend_from_slice(other);
            text.extend_from_slice(b"'. Prefixes for a single client must not overlap.");
            Err(CommandError::bytes(text))
        };
        for (at, prefix) in self.prefixes.iter().enumerate() {
            let own = now.into_iter().flat_map(|tracker| tracker.prefixes());
            if let Some(other) = own.into_iter().find(|other| overlap(other, prefix)) {
                return refuse(prefix, "an existing", other);
            }
            let mut later = self.prefixes[at + 1..].iter();
            if let Some(other) = later.find(|other| overlap(other, prefix)) {
                return refuse(prefix, "another provided", other);
            }
        }
        Ok(())
    }
}

pub(super) const CACHING: Command = Command {
    spec: Spec {
        name: "caching",
        summary: "Sets whether the keys of the connection's next command are tracked.",
        since: "6.0.0",
        arity: 3,
        args: &[Arg::one_of("mode", &[Arg::token("yes", "YES"), Arg::token("no", "NO")])],
        ..ROW
    },
    run: caching,
    subcommands: &[],
};

fn caching(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let word = args.bytes()?;
    let Some(tracker) = call.session.push.tracker_mut() else {
        return Err(CommandError::text(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    let (mode, error) = if word.eq_ignore_ascii_case(b"YES") {
        let text = "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.";
        (TrackingMode::OptIn, text)
    } else if word.eq_ignore_ascii_case(b"NO") {
        let text = "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.";
        (TrackingMode::OptOut, text)
    } else {
        return Err(CommandError::Syntax);
    };
    if tracker.mode() != mode {
        return Err(CommandError::text(error));
    }
    tracker.set_caching(true);
    // In a transaction, CLIENT CACHING applies to the commands that follow.
    session::remember_for(call.core, call.session);
    Ok(call.reply.ok())
}

pub(super) const GETREDIR: Command = Command {
    spec: Spec {
        name: "getredir",
        summary: "Returns the ID of the client that receives the invalidations of this connection.",
        since: "6.0.0",
        arity: 2,
        ..ROW
    },
    run: |call, _| {
        let redirect = call.session.push.tracker().map_or(-1, |t| t.redirect() as i64);
        Ok(call.reply.integer(redirect))
    },
    subcommands: &[],
};

pub(super) const TRACKINGINFO: Command = Command {
    spec: Spec {
        name: "trackinginfo",
        summary: "Returns the client-side caching settings of the connection.",
        since: "6.2.0",
        arity: 2,
        ..ROW
    },
    run: tracking_info,
    subcommands: &[],
};

fn tracking_info(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let (tracker, reply) = (call.session.push.tracker(), &mut call.reply);
    let is = |mode| tracker.is_some_and(|tracker| tracker.mode() == mode);
    let caching = tracker.is_some_and(|tracker| tracker.is_caching());
    let flags = [
        (true, if tracker.is_some() { "on" } else { "off" }),
        (is(TrackingMode::Broadcast), "bcast"),
        (is(TrackingMode::OptIn), "optin"),
        (is(TrackingMode::OptIn) && caching, "caching-yes"),
        (is(TrackingMode::OptOut), "optout"),
        (is(TrackingMode::OptOut) && caching, "caching-no"),
        (tracker.is_some_and(|tracker| tracker.noloop()), "noloop"),
        (tracker.is_some_and(|tracker| tracker.is_broken()), "broken_redirect"),
    ];
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.iter().filter(|(set, _)| *set).count());
    for (_, name) in flags.iter().filter(|(set, _)| *set) {
        reply.bulk(name.as_bytes());
    }
    reply.bulk(b"redirect");
    reply.integer(tracker.map_or(-1, |tracker| tracker.redirect() as i64));
    reply.bulk(b"prefixes");
    let prefixes = tracker.map(|tracker| tracker.prefixes());
    let mut outcome = reply.array(prefixes.map_or(0, |prefixes| prefixes.len()));
    for prefix in prefixes.into_iter().flatten() {
        outcome = reply.bulk(prefix);
    }
    Ok(outcome)
}
