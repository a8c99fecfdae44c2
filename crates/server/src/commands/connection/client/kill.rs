//! CLIENT KILL: closes one connection by its address, or all connections that match a filter.

use super::{ADMIN, Kind, ROW};
use brisk_engine::command::{Arg, Spec};
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::accounts::Account;
use brisk_node::clients::address::Address;
use brisk_node::clients::{ClientRecord, Clients};
use brisk_node::core::call::{Call, Command};
use brisk_node::run::permission;
use std::sync::Arc;

pub(super) const KILL: Command = Command {
    spec: Spec {
        name: "kill",
        summary: "Closes connections.",
        since: "2.4.0",
        complexity: "O(N) in the number of connections.",
        arity: -3,
        flags: ADMIN,
        args: &[Arg::one_of(
            "filter",
            &[
                Arg::string("ip:port").deprecated("2.8.12"),
                Arg::one_of("new-format", FILTERS).multiple(),
            ],
        )],
        history: &[
            ("2.8.12", "Accepts filters."),
            ("2.8.12", "Accepts the filter `ID`."),
            ("3.2.0", "Accepts the type `master`."),
            ("5.0.0", "Accepts the type `replica`; `slave` is still accepted."),
            ("6.2.0", "Accepts the filter `LADDR`."),
            ("7.4.0", "Accepts the filter `MAXAGE`."),
        ],
        ..ROW
    },
    run: kill,
    subcommands: &[],
};

const FILTERS: &[Arg] = &[
    Arg::integer("client-id").after("ID").optional().since("2.8.12"),
    Arg::one_of(
        "normal_master_slave_pubsub",
        &[
            Arg::token("normal", "NORMAL"),
            Arg::token("master", "MASTER").since("3.2.0"),
            Arg::token("slave", "SLAVE"),
            Arg::token("replica", "REPLICA").since("5.0.0"),
            Arg::token("pubsub", "PUBSUB"),
        ],
    )
    .after("TYPE")
    .optional()
    .since("2.8.12"),
    Arg::string("username").after("USER").optional(),
    Arg::string("ip:port").after("ADDR").optional(),
    Arg::string("ip:port").after("LADDR").optional().since("6.2.0"),
    Arg::string("yes/no").after("SKIPME").optional(),
    Arg::integer("maxage").after("MAXAGE").optional().since("7.4.0"),
];

fn kill(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() == 1 {
        let filter = Filter { address: Some(args.bytes()?), spare_caller: false, ..Filter::ALL };
        if kill_all(call, &filter) == 0 {
            return Err(CommandError::text("ERR No such client"));
        }
        return Ok(call.reply.ok());
    }
    let filter = Filter::of_words(call, args)?;
    let killed = kill_all(call, &filter);
    Ok(call.reply.count(killed))
}

/// Selects the connections to close, which must match every condition.
struct Filter<'a> {
    id: Option<u64>,
    kind: Option<Kind>,
    user: Option<Arc<Account>>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    age_ms_min: u64,
    spare_caller: bool,
}

impl<'a> Filter<'a> {
    const ALL: Filter<'static> = Filter {
        id: None,
        kind: None,
        user: None,
        address: None,
        local_address: None,
        age_ms_min: 0,
        spare_caller: true,
    };

    fn of_words(call: &Call<'_>, args: &mut Args<'a>) -> Result<Filter<'a>> {
        let mut filter = Filter::ALL;
        while let Some(option) = args.optional() {
            let value = args.bytes()?;
            match option.to_ascii_uppercase().as_slice() {
                b"ID" => {
                    let error = "ERR client-id should be greater than 0";
                    filter.id = Some(positive(value, error, error)?);
                }
                b"MAXAGE" => {
                    let seconds = positive(
                        value,
                        "ERR maxage is not an integer or out of range",
                        "ERR maxage should be greater than 0",
                    )?;
                    filter.age_ms_min = seconds.saturating_mul(1000);
                }
                b"TYPE" => filter.kind = Some(Kind::of_word(value, call.core)?),
                b"ADDR" => filter.address = Some(value),
                b"LADDR" => filter.local_address = Some(value),
                b"USER" => {
                    let no_user = || CommandError::text_around("ERR No such user '", value, "'");
                    let account = call.core.shared.accounts.find(value);
                    filter.user = Some(account.ok_or_else(no_user)?);
                }
                b"SKIPME" if value.eq_ignore_ascii_case(b"YES") => filter.spare_caller = true,
                b"SKIPME" if value.eq_ignore_ascii_case(b"NO") => filter.spare_caller = false,
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(filter)
    }

    /// Returns the clients that can match: clients with the id, the address or the user of the filter, or all clients
    /// if the filter has none of these. For an id, a TCP address, or a user other than the default user, no other
    /// client is examined.
    fn candidates(&self, clients: &Clients) -> Vec<Arc<ClientRecord>> {
        let mut candidates = match (self.id, self.address, &self.user) {
            (Some(id), ..) => clients.find(id).into_iter().collect(),
            (None, Some(address), _) => std::str::from_utf8(address)
                .map(|addr| clients.at_address(addr))
                .unwrap_or_default(),
            (None, None, Some(account)) => return account.clients(clients),
            (None, None, None) => return clients.all(),
        };
        if let Some(account) = &self.user {
            candidates.retain(|record| account.is_of(record));
        }
        candidates
    }

    fn admits(&self, record: &ClientRecord, caller: u64, now_ms: u64) -> bool {
        let fits = |wanted: Option<&[u8]>, is: &Address| wanted.is_none_or(|text| is.reads(text));
        self.id.is_none_or(|id| id == record.id)
            && self.kind.is_none_or(|kind| kind == Kind::of(record))
            && fits(self.address, &record.addr)
            && fits(self.local_address, &record.laddr)
            && now_ms.saturating_sub(record.created_ms) >= self.age_ms_min
            && !(self.spare_caller && record.id == caller)
    }
}

/// Parses a positive number. `no_number` is the error for an argument that is not a number, and `too_small` the error
/// for a number that is not positive.
fn positive(word: &[u8], no_number: &'static str, too_small: &'static str) -> Result<u64> {
    let number = parse_i64(word).ok_or_else(|| CommandError::text(no_number))?;
    let number = u64::try_from(number).ok().filter(|number| *number > 0);
    number.ok_or_else(|| CommandError::text(too_small))
}

/// Closes the connections that match the filter, and returns their number. The caller gets its reply before its own
/// connection closes. O(workers + matches) for an id, an address or a user, otherwise O(clients); see
/// [`Filter::candidates`].
fn kill_all(call: &mut Call<'_>, filter: &Filter<'_>) -> usize {
    let (caller, now_ms) = (call.session.id(), call.now().0);
    let mut killed = 0;
    for record in filter.candidates(&call.core.shared.clients) {
        if !filter.admits(&record, caller, now_ms) {
            continue;
        }
        if record.id == caller {
            call.session.close_as_killed();
        } else if !permission::close_client(call.core, &record) {
            continue;
        }
        killed += 1;
    }
    killed
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_acl::{User, Vocabulary};
    use brisk_node::clients::accounts::Accounts;
    use brisk_node::clients::testing::record;

    const CLIENTS: u64 = 10_000;
    const WORKERS: usize = 4;

    /// Ten thousand clients on several workers.
    fn crowd() -> Clients {
        let clients = Clients::new(WORKERS);
        for id in 1..=CLIENTS {
            clients.add(record(id, id as usize % WORKERS));
        }
        clients
    }

    fn ids(filter: &Filter<'_>, clients: &Clients) -> Vec<u64> {
        let mut ids: Vec<u64> = filter.candidates(clients).iter().map(|record| record.id).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn filters_by_id_and_address_match_no_other_client() {
        let clients = crowd();
        let by_id = Filter { id: Some(77), ..Filter::ALL };
        assert_eq!(ids(&by_id, &clients), [77]);
        let by_address = Filter { address: Some(b"127.0.0.1:4711"), ..Filter::ALL };
        assert_eq!(ids(&by_address, &clients), [4711]);
        let no_client = Filter { address: Some(b"127.0.0.1:10001"), ..Filter::ALL };
        assert_eq!(ids(&no_client, &clients), [0_u64; 0]);
        assert_eq!(ids(&Filter { id: Some(CLIENTS + 1), ..Filter::ALL }, &clients), [0_u64; 0]);
        assert_eq!(ids(&Filter::ALL, &clients).len(), CLIENTS as usize);
    }

    #[test]
    fn a_filter_by_user_matches_the_sessions_of_that_user_only() {
        let clients = crowd();
        let table = Box::leak(Box::new(crate::commands::table(&[]).unwrap().0));
        let vocabulary = Vocabulary { table, channels: Default::default() };
        let accounts = Accounts::new(vocabulary);
        accounts.set(b"app", User::new(vocabulary.channels), &clients);
        let account = accounts.find(b"app").unwrap();
        for id in [3, 5, 8] {
            account.join(&clients.find(id).unwrap());
        }
        let user = Some(account);
        assert_eq!(ids(&Filter { user: user.clone(), ..Filter::ALL }, &clients), [3, 5, 8]);
        let both = Filter { id: Some(5), user: user.clone(), ..Filter::ALL };
        assert_eq!(ids(&both, &clients), [5]);
        assert_eq!(ids(&Filter { id: Some(6), user, ..Filter::ALL }, &clients), [0_u64; 0]);
    }

    #[test]
    fn a_removed_client_is_not_found_and_leaves_nothing() {
        let clients = crowd();
        for id in 1..=CLIENTS {
            clients.remove(&clients.find(id).unwrap());
        }
        assert_eq!(ids(&Filter::ALL, &clients), [0_u64; 0]);
        let address = Filter { address: Some(b"127.0.0.1:9"), ..Filter::ALL };
        assert_eq!(ids(&address, &clients), [0_u64; 0]);
        clients.add(record(9, 1));
        assert_eq!(ids(&address, &clients), [9]);
    }
}
