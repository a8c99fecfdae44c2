//! `etcd-plan`: prints the configuration of etcd on the machines of a cluster, and the lines of `brisk.conf` that use
//! it.
//!
//! The files are those of Debian's package `etcd-server`. The plan is printed; nothing is changed.

use super::{Done, Task, messages};
use std::net::IpAddr;

/// The port for clients such as Brisk.
const CLIENT_PORT: u16 = 2379;
/// The port on which etcd members connect to one another.
const PEER_PORT: u16 = 2380;
/// The interval of heartbeats from etcd's leader, in milliseconds.
const HEARTBEAT_MS: u32 = 100;
/// The time without heartbeats after which members elect another leader, in milliseconds: ten heartbeats.
const ELECTION_MS: u32 = 1000;
/// The size of etcd's database at which etcd rejects writes. A cluster needs a few megabytes.
const QUOTA_BYTES: u64 = 512 << 20;
/// Accepted numbers of members. An even number would not tolerate more failures than one member less.
const MEMBERS: [usize; 2] = [3, 5];

pub(super) fn run(task: &Task<'_>) -> Done {
    match plan(&task.arguments) {
        Ok(text) => {
            messages::say(&text);
            Ok(())
        }
        Err(text) => messages::fail(&format!("[ERR] {text}\n")),
    }
}

/// The plan for these machines.
///
/// # Errors
/// A text, if the number of machines or one of their names is invalid.
fn plan(arguments: &[String]) -> Result<String, String> {
    if !MEMBERS.contains(&arguments.len()) {
        return Err(format!(
            "etcd needs 3 or 5 machines, but {} were given: 3 tolerate one failure, 5 tolerate two",
            arguments.len()
        ));
    }
    let machines =
        arguments.iter().map(|text| Machine::parse(text)).collect::<Result<Vec<_>, _>>()?;
    for (at, machine) in machines.iter().enumerate() {
        if machines[..at].iter().any(|earlier| earlier.host == machine.host) {
            return Err(format!("{} is given twice", machine.host));
        }
    }
    let mut text = INTRODUCTION.to_owned();
    for (at, machine) in machines.iter().enumerate() {
        text.push_str(&etcd_settings(&machines, at));
        text.push_str(&format!(
            "\n### {}: /etc/systemd/system/etcd.service.d/brisk.conf\n{DROP_IN}",
            machine.host
        ));
        text.push_str(&brisk_settings(&machines, machine));
    }
    text.push_str(&closing(&machines));
    Ok(text)
}

/// A machine of the plan.
struct Machine {
    /// A name or an address, without brackets.
    host: String,
    ip: Option<IpAddr>,
}

impl Machine {
    fn parse(text: &str) -> Result<Machine, String> {
        let host = text.trim_start_matches('[').trim_end_matches(']');
        let ip = host.parse().ok();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        if ip.is_none() && (host.is_empty() || !host.bytes().all(is_name)) {
            return Err(format!(
                "'{text}' is neither an address nor a host name; do not give a port"
            ));
        }
        // The last label of a host name is never a number, so this is a mistyped address.
        let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        if ip.is_none() && last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("'{text}' is not a valid IPv4 address"));
        }
        Ok(Machine { host: host.to_owned(), ip })
    }

    /// `host:port`
    fn place(&self, port: u16) -> String {
        match self.ip {
            Some(IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
            _ => format!("{}:{port}", self.host),
        }
    }

    /// The address to listen on. etcd accepts only numeric addresses here.
    fn listens_on(&self, port: u16) -> String {
        let place = if self.ip.is_some() { self.place(port) } else { format!("0.0.0.0:{port}") };
        format!("http://{place}")
    }
}

const INTRODUCTION: &str = "\
# Write these files on each machine, start etcd on all machines, then start Brisk.
#
#   apt-get install etcd-server      # 3.4.22 or later, but not 3.5.0 to 3.5.2
#   systemctl daemon-reload && systemctl restart etcd
#   systemctl restart brisk-server
";

/// Settings of the service that do not depend on the machine.
const DROP_IN: &str = "\
# etcd shares the machine with Brisk. Its writes are small, and all nodes depend on their latency.
[Service]
Restart=always
RestartSec=1
IOSchedulingClass=best-effort
IOSchedulingPriority=0
CPUWeight=500
OOMScoreAdjust=-800
";

/// The environment file that Debian's service reads.
fn etcd_settings(machines: &[Machine], at: usize) -> String {
    let machine = &machines[at];
    let number = at + 1;
    let members: Vec<String> = machines
        .iter()
        .enumerate()
        .map(|(at, one)| format!("etcd{}=http://{}", at + 1, one.place(PEER_PORT)))
        .collect();
    let mut clients = machine.listens_on(CLIENT_PORT);
    if machine.ip.is_some_and(|ip| !ip.is_loopback()) {
        clients.push_str(&format!(",http://127.0.0.1:{CLIENT_PORT}"));
    }
    let (client, peer) = (machine.place(CLIENT_PORT), machine.place(PEER_PORT));
    format!(
        "\n### {}: /etc/default/etcd\n\
         ETCD_NAME=etcd{number}\n\
         # A separate directory: the package has started a single member in the default one.\n\
         ETCD_DATA_DIR=/var/lib/etcd/brisk\n\
         ETCD_LISTEN_PEER_URLS={}\n\
         ETCD_LISTEN_CLIENT_URLS={clients}\n\
         ETCD_INITIAL_ADVERTISE_PEER_URLS=http://{peer}\n\
         ETCD_ADVERTISE_CLIENT_URLS=http://{client}\n\
         ETCD_INITIAL_CLUSTER={}\n\
         ETCD_INITIAL_CLUSTER_STATE=new\n\
         ETCD_INITIAL_CLUSTER_TOKEN=brisk\n\
         ETCD_HEARTBEAT_INTERVAL={HEARTBEAT_MS}\n\
         ETCD_ELECTION_TIMEOUT={ELECTION_MS}\n\
         ETCD_QUOTA_BACKEND_BYTES={QUOTA_BYTES}\n\
         # Removes old versions. Otherwise the database grows to its quota, and etcd rejects writes.\n\
         ETCD_AUTO_COMPACTION_MODE=periodic\n\
         ETCD_AUTO_COMPACTION_RETENTION=1h\n\
         # Brisk uses the JSON gateway. It rejects client certificates with a common name, so do not\n\
         # set ETCD_CLIENT_CERT_AUTH: use a user and a password instead.\n\
         ETCD_ENABLE_GRPC_GATEWAY=true\n",
        machine.host,
        machine.listens_on(PEER_PORT),
        members.join(","),
    )
}

/// The value of `cluster-coordinator`.
fn coordinator(machines: &[Machine]) -> String {
    let places: Vec<String> = machines.iter().map(|one| one.place(CLIENT_PORT)).collect();
    format!("etcd://{}", places.join(","))
}

/// Lines for `brisk.conf`.
fn brisk_settings(machines: &[Machine], machine: &Machine) -> String {
    let (bind, announce) = match machine.ip {
        Some(ip) if ip.is_loopback() => (format!("bind {ip}"), format!("cluster-announce-ip {ip}")),
        Some(ip) => (format!("bind {ip} 127.0.0.1"), format!("cluster-announce-ip {ip}")),
        None => ("bind *".to_owned(), format!("cluster-announce-hostname {}", machine.host)),
    };
    let replicas = machines.len() - 1;
    format!(
        "\n### {}: add to /etc/brisk/brisk.conf\n\
         {bind}\n\
         # One password for clients and nodes. Without one, only clients on the same machine are served.\n\
         #requirepass <password>\n\
         #masterauth <password>\n\
         cluster-enabled yes\n\
         cluster-coordinator {}\n\
         {announce}\n\
         # One primary, and a replica on each other machine.\n\
         cluster-init-shards 1\n\
         cluster-init-replicas {replicas}\n",
        machine.host,
        coordinator(machines),
    )
}

fn closing(machines: &[Machine]) -> String {
    let tolerated = (machines.len() - 1) / 2;
    let mut text = format!(
        "\n# This etcd uses neither TLS nor a password: block ports {CLIENT_PORT} and {PEER_PORT} for all \
         other machines.\n# {} members tolerate {tolerated} failed. Check etcd, and then the cluster:\n",
        machines.len(),
    );
    for machine in machines {
        text.push_str(&format!("#   curl http://{}/health\n", machine.place(CLIENT_PORT)));
    }
    let first = machines.first().map(|machine| machine.place(6379)).unwrap_or_default();
    text + &format!("#   REDISCLI_AUTH=<password> brisk-cli --cluster status {first}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(hosts: &[&str]) -> Result<String, String> {
        plan(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn each_machine_gets_its_files_and_all_members() {
        let text = planned(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]).unwrap();
        let members = "ETCD_INITIAL_CLUSTER=etcd1=http://10.0.0.1:2380,etcd2=http://10.0.0.2:2380,\
                       etcd3=http://10.0.0.3:2380\n";
        assert_eq!(text.matches(members).count(), 3);
        let line = "cluster-coordinator etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379\n";
        assert_eq!(text.matches(line).count(), 3);
        let listens = "ETCD_LISTEN_CLIENT_URLS=http://10.0.0.2:2379,http://127.0.0.1:2379\n";
        assert_eq!(text.matches(listens).count(), 1);
        assert_eq!(text.matches("cluster-init-replicas 2\n").count(), 3);
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    }

    #[test]
    fn names_are_announced_and_etcd_listens_on_numbers() {
        let text = planned(&["a.example", "b.example", "fd00::1"]).unwrap();
        assert!(text.contains("cluster-announce-hostname a.example\n"), "{text}");
        assert!(text.contains("ETCD_LISTEN_PEER_URLS=http://0.0.0.0:2380\n"), "{text}");
        assert!(text.contains("ETCD_LISTEN_PEER_URLS=http://[fd00::1]:2380\n"), "{text}");
        assert!(text.contains("etcd://a.example:2379,b.example:2379,[fd00::1]:2379\n"), "{text}");
    }

    #[test]
    fn impossible_plans_are_rejected() {
        for hosts in [&["a"][..], &["a", "b"], &["a", "b", "c", "d"]] {
            assert!(planned(hosts).unwrap_err().contains("3 or 5 machines"), "{hosts:?}");
        }
        assert_eq!(planned(&["a", "b", "a"]).unwrap_err(), "a is given twice");
        for host in ["a:2379", "", "a b", "http://a", "a\nb"] {
            assert!(planned(&["x", "y", host]).unwrap_err().contains("neither"), "{host}");
        }
        for host in ["10.0.0.333", "10.0.0", "1.2.3.4.5", "10.0.0.1.", "7", "..."] {
            let error = planned(&["x", "y", host]).unwrap_err();
            assert_eq!(error, format!("'{host}' is not a valid IPv4 address"));
        }
        assert!(planned(&["10.example", "1x", "3.x1"]).is_ok());
    }
}
