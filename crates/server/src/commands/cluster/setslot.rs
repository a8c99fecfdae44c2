//! CLUSTER SETSLOT: the owner of a single slot.

use super::change::commit;
use super::{CHANGES, require_cluster_mode};
use brisk_cluster::change::{ChangeError, add_slots, parse_slots};
use brisk_cluster::document::Topology;
use brisk_cluster::id::NodeId;
use brisk_cluster::slots::SlotId;
use brisk_engine::command::{Arg, Spec};
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};

pub(super) const SETSLOT: Command = Command {
    spec: Spec {
        name: "setslot",
        summary: "Assigns a slot without an owner to this node.",
        arity: -4,
        args: &[
            Arg::integer("slot"),
            Arg::one_of(
                "subcommand",
                &[
                    Arg::string("node-id").after("IMPORTING"),
                    Arg::string("node-id").after("MIGRATING"),
                    Arg::string("node-id").after("NODE"),
                    Arg::token("stable", "STABLE"),
                ],
            ),
        ],
        ..CHANGES
    },
    run: set_slot,
    subcommands: &[],
};

fn set_slot(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let in_force = require_cluster_mode(call)?.in_force();
    let own = in_force.own.id;
    let known = KnownNodes { topology: in_force.topology.as_deref(), own };
    if !known.is_primary(own) {
        return Err(refusal(&ChangeError::SetslotAtReplica));
    }
    let slot = parse_slots(&[args.bytes()?]).map_err(|error| refusal(&error))?;
    let [range] = slot[..] else { return Err(refusal(&ChangeError::InvalidSlot)) };
    let (slot, action) = (range.first(), args.bytes()?);
    let is = |word: &str| action.eq_ignore_ascii_case(word.as_bytes());
    let owner = known.owner(slot);
    match args.rest().collect::<Vec<&[u8]>>()[..] {
        [_] if is("MIGRATING") && owner != Some(own) => {
            Err(refusal(&ChangeError::NotOwnSlot(slot.number())))
        }
        [_] if is("IMPORTING") && owner == Some(own) => {
            let number = slot.number();
            Err(CommandError::text(format!("ERR I'm already the owner of hash slot {number}")))
        }
        [target] if is("MIGRATING") || is("IMPORTING") => {
            known.primary(target).map_err(|error| match error {
                ChangeError::UnknownNode(_) => {
                    CommandError::text_with("ERR I don't know about node ", target)
                }
                other => refusal(&other),
            })?;
            Err(CommandError::text(UNSUPPORTED))
        }
        [target] if is("NODE") => {
            let target = known.primary(target).map_err(|error| refusal(&error))?;
            if owner == Some(target) {
                return Ok(call.reply.ok());
            }
            if owner.is_some() || target != own {
                return Err(CommandError::text(UNSUPPORTED));
            }
            commit(call, args, move |basis| {
                add_slots(basis.topology, basis.change, basis.own, &[range])
            })
        }
        [] if is("STABLE") && !known.is_migrating(slot) => Ok(call.reply.ok()),
        [] if is("STABLE") => Err(CommandError::text(UNSUPPORTED)),
        _ => Err(CommandError::text(
            "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP",
        )),
    }
}

const UNSUPPORTED: &str = "ERR Moving slots between nodes is not supported";

fn refusal(error: &ChangeError) -> CommandError {
    CommandError::text(error.to_string())
}

/// The nodes that this node knows: the members, or only itself if it is not a member.
struct KnownNodes<'t> {
    topology: Option<&'t Topology>,
    own: NodeId,
}

impl KnownNodes<'_> {
    fn visible(&self) -> Option<&Topology> {
        self.topology.filter(|topology| topology.members.contains_key(&self.own))
    }

    fn is_primary(&self, node: NodeId) -> bool {
        let shard = self.visible().and_then(|topology| topology.shard_of(node));
        shard.is_none_or(|shard| shard.primary == node)
    }

    /// The primary with this id.
    fn primary(&self, id: &[u8]) -> std::result::Result<NodeId, ChangeError> {
        let text = String::from_utf8_lossy(id);
        let unknown = || ChangeError::UnknownNode(text.clone().into_owned());
        let id: NodeId = text.parse().map_err(|_| unknown())?;
        let is_member = self.visible().is_some_and(|topology| topology.members.contains_key(&id));
        if id != self.own && !is_member {
            return Err(unknown());
        }
        if self.is_primary(id) { Ok(id) } else { Err(ChangeError::TargetIsReplica) }
    }

    /// The primary of the slot's shard.
    fn owner(&self, slot: SlotId) -> Option<NodeId> {
        let mut shards = self.visible()?.shards.iter();
        shards.find(|shard| shard.slots.contains(slot)).map(|shard| shard.primary)
    }

    fn is_migrating(&self, slot: SlotId) -> bool {
        let is_open = |topology: &Topology| {
            let mut migrations = topology.migrations.iter();
            migrations.any(|one| one.state.is_open() && one.slots.contains(slot))
        };
        self.visible().is_some_and(is_open)
    }
}
