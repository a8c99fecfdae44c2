//! Options of the commands of the group `connection`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::types;

/// Options of `AUTH`, see [`auth`](crate::commands::auth).
#[derive(Clone, Copy, Debug)]
pub struct Auth(());

impl<C, T> Command<C, T, Auth> {
    /// `username`, since Redis 6.0.0.
    pub fn username(self, username: impl ToArg) -> Self {
        self.option(|request| request.arg(username))
    }
}

/// Options of `CLIENT DURABILITY`, see [`client_durability`](crate::commands::client_durability).
#[derive(Clone, Copy, Debug)]
pub struct ClientDurability(());

impl<C, T> Command<C, T, ClientDurability> {
    /// `MEMORY`.
    pub fn memory(self) -> Self {
        self.option(|request| request.arg("MEMORY"))
    }

    /// `LOG`.
    pub fn log(self) -> Self {
        self.option(|request| request.arg("LOG"))
    }

    /// `DISK`.
    pub fn disk(self) -> Self {
        self.option(|request| request.arg("DISK"))
    }

    /// `DEFAULT`.
    pub fn default(self) -> Self {
        self.option(|request| request.arg("DEFAULT"))
    }

    /// `REPLICAS numreplicas`.
    pub fn replicas(self, numreplicas: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("REPLICAS");
            request.arg(numreplicas);
        })
    }

    /// `TIMEOUT milliseconds`. Only after `replicas`.
    pub fn within_ms(self, milliseconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("TIMEOUT");
            request.arg(milliseconds);
        })
    }
}

/// Options of `CLIENT KILL`, see [`client_kill`](crate::commands::client_kill).
#[derive(Clone, Copy, Debug)]
pub struct ClientKill(());

impl<C, T> Command<C, T, ClientKill> {
    /// `ID client-id`, since Redis 2.8.12.
    pub fn id(self, client_id: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("ID");
            request.arg(client_id);
        })
    }

    /// `TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>`, since Redis 2.8.12.
    pub fn of_type(self, normal_master_slave_pubsub: types::KilledType) -> Self {
        self.option(|request| {
            request.arg("TYPE");
            request.arg(normal_master_slave_pubsub);
        })
    }

    /// `USER username`.
    pub fn user(self, username: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("USER");
            request.arg(username);
        })
    }

    /// `ADDR ip:port`.
    pub fn addr(self, ip_port: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("ADDR");
            request.arg(ip_port);
        })
    }

    /// `LADDR ip:port`, since Redis 6.2.0.
    pub fn laddr(self, ip_port: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LADDR");
            request.arg(ip_port);
        })
    }

    /// `SKIPME yes/no`.
    pub fn skip_me(self, yes_no: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("SKIPME");
            request.arg(yes_no);
        })
    }

    /// `MAXAGE maxage`, since Redis 7.4.0.
    pub fn max_age(self, maxage: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MAXAGE");
            request.arg(maxage);
        })
    }
}

/// Options of `CLIENT LIST`, see [`client_list`](crate::commands::client_list).
#[derive(Clone, Copy, Debug)]
pub struct ClientList(());

impl<C, T> Command<C, T, ClientList> {
    /// `TYPE <NORMAL | MASTER | REPLICA | PUBSUB>`, since Redis 5.0.0.
    pub fn of_type(self, normal_master_replica_pubsub: types::ClientType) -> Self {
        self.option(|request| {
            request.arg("TYPE");
            request.arg(normal_master_replica_pubsub);
        })
    }

    /// `ID client-id …`, since Redis 6.2.0.
    pub fn id(self, client_ids: impl ToArgs) -> Self {
        self.option(|request| {
            request.arg("ID");
            request.args(client_ids);
        })
    }
}

/// Options of `CLIENT PAUSE`, see [`client_pause`](crate::commands::client_pause).
#[derive(Clone, Copy, Debug)]
pub struct ClientPause(());

impl<C, T> Command<C, T, ClientPause> {
    /// `WRITE`, since Redis 6.2.0.
    pub fn write(self) -> Self {
        self.option(|request| request.arg("WRITE"))
    }

    /// `ALL`, since Redis 6.2.0.
    pub fn all(self) -> Self {
        self.option(|request| request.arg("ALL"))
    }
}

/// Options of `CLIENT TRACKING`, see [`client_tracking`](crate::commands::client_tracking).
#[derive(Clone, Copy, Debug)]
pub struct ClientTracking(());

impl<C, T> Command<C, T, ClientTracking> {
    /// `REDIRECT client-id`.
    pub fn redirect(self, client_id: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("REDIRECT");
            request.arg(client_id);
        })
    }

    /// `PREFIX prefix`. May be called again.
    pub fn prefix(self, prefix: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("PREFIX");
            request.arg(prefix);
        })
    }

    /// `BCAST`.
    pub fn bcast(self) -> Self {
        self.option(|request| request.arg("BCAST"))
    }

    /// `OPTIN`.
    pub fn opt_in(self) -> Self {
        self.option(|request| request.arg("OPTIN"))
    }

    /// `OPTOUT`.
    pub fn opt_out(self) -> Self {
        self.option(|request| request.arg("OPTOUT"))
    }

    /// `NOLOOP`.
    pub fn no_loop(self) -> Self {
        self.option(|request| request.arg("NOLOOP"))
    }
}

/// Options of `CLIENT UNBLOCK`, see [`client_unblock`](crate::commands::client_unblock).
#[derive(Clone, Copy, Debug)]
pub struct ClientUnblock(());

impl<C, T> Command<C, T, ClientUnblock> {
    /// `TIMEOUT`.
    pub fn as_timeout(self) -> Self {
        self.option(|request| request.arg("TIMEOUT"))
    }

    /// `ERROR`.
    pub fn error(self) -> Self {
        self.option(|request| request.arg("ERROR"))
    }
}

/// Options of `HELLO`, see [`hello`](crate::commands::hello).
#[derive(Clone, Copy, Debug)]
pub struct Hello(());

impl<C, T> Command<C, T, Hello> {
    /// `protover`.
    pub fn protover(self, protover: impl ToArg) -> Self {
        self.option(|request| request.arg(protover))
    }

    /// `AUTH username password`. Only after `protover`.
    pub fn auth(self, username: impl ToArg, password: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("AUTH");
            request.arg(username);
            request.arg(password);
        })
    }

    /// `SETNAME clientname`. Only after `protover`.
    pub fn set_name(self, clientname: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("SETNAME");
            request.arg(clientname);
        })
    }
}

/// Options of `PING`, see [`ping`](crate::commands::ping).
#[derive(Clone, Copy, Debug)]
pub struct Ping(());

impl<C, T> Command<C, T, Ping> {
    /// `message`.
    pub fn message(self, message: impl ToArg) -> Self {
        self.option(|request| request.arg(message))
    }
}
