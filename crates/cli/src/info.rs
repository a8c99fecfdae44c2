//! The `name:value` lines of INFO and CLUSTER INFO.

/// The fields of one reply, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InfoFields(Vec<(String, String)>);

impl InfoFields {
    /// Parses the lines of a reply. Headings and lines without a colon are skipped. O(bytes).
    pub(crate) fn parse(text: &str) -> InfoFields {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let fields = lines.filter_map(|line| line.split_once(':'));
        InfoFields(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The value of a field; `None` if the server does not have it. O(fields).
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reports whether a field has this value.
    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    /// The value of a field as a number; `None` if it is missing or not a number.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// The fields whose names consist of a prefix and a rest, with the rest of their names. O(fields).
    pub(crate) fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let named = self
            .0
            .iter()
            .filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())));
        named.filter(|(rest, _)| !rest.is_empty())
    }

    /// The value of a field as a decimal number; 0 if it is missing or not a number.
    pub(crate) fn decimal(&self, name: &str) -> f64 {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }

    /// The lines `slave0:ip=…,port=…,state=…,offset=…,lag=…` of a primary.
    pub(crate) fn replicas(&self) -> Vec<ReplicaLine> {
        let numbered = self.0.iter().filter(|(name, _)| {
            let number = name.strip_prefix("slave").unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        numbered.map(|(_, value)| ReplicaLine::parse(value)).collect()
    }
}

/// The value of a part in a text such as `calls=1,usec=2`.
pub(crate) fn part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

/// A replica in its primary's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicaLine {
    pub(crate) port: i64,
    pub(crate) is_online: bool,
    /// The last offset that the replica has acknowledged, in bytes.
    pub(crate) offset: i64,
}

impl ReplicaLine {
    fn parse(value: &str) -> ReplicaLine {
        let mut line = ReplicaLine::default();
        for part in value.split(',') {
            match part.split_once('=') {
                Some(("port", port)) => line.port = port.parse().unwrap_or_default(),
                Some(("state", state)) => line.is_online = state == "online",
                Some(("offset", offset)) => line.offset = offset.parse().unwrap_or_default(),
                _ => {}
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_replicas_listed() {
        let text = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n\
                    slave0:ip=127.0.0.1,port=7003,state=online,offset=14,lag=0\r\n\
                    slave1:ip=127.0.0.1,port=7004,state=wait_bgsave,offset=0,lag=0\r\n\
                    slave_repl_offset:x\r\n";
        let fields = InfoFields::parse(text);
        assert!(fields.is("role", "master") && fields.get("slaves").is_none());
        assert_eq!(fields.number("connected_slaves"), Some(2));
        assert_eq!(fields.number("slave_repl_offset"), None);
        let replica = |port, is_online, offset| ReplicaLine { port, is_online, offset };
        assert_eq!(fields.replicas(), [replica(7003, true, 14), replica(7004, false, 0)]);
    }
}
