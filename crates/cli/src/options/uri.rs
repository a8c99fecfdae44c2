//! Addresses as URIs: `redis://user:password@host:port/database`, and `rediss:` for TLS. Valkey's `valkey:` and
//! `valkeys:` mean the same.

use super::Options;
use crate::quote::leading_number;

/// The schemes, and whether they mean TLS.
const SCHEMES: [(&str, bool); 4] =
    [("redis://", false), ("rediss://", true), ("valkey://", false), ("valkeys://", true)];

/// Sets the options that the address contains.
///
/// # Errors
/// A text that says why the address is invalid.
pub(super) fn apply(options: &mut Options, uri: &str) -> Result<(), String> {
    let lower = uri.to_ascii_lowercase();
    let scheme = SCHEMES.iter().find(|(scheme, _)| lower.starts_with(scheme));
    let Some((scheme, is_secure)) = scheme else { return Err("Invalid URI scheme".to_owned()) };
    options.tls |= is_secure;
    let rest = &uri[scheme.len()..];
    let rest = match rest.split_once('@') {
        Some((account, rest)) => {
            let password = match account.split_once(':') {
                Some((user, password)) => {
                    options.user = Some(decode(user)?);
                    password
                }
                None => account,
            };
            options.password = Some(decode(password)?);
            rest
        }
        None => rest,
    };
    let (place, database) = match rest.split_once('/') {
        Some((place, database)) => (place, Some(database)),
        None => (rest, None),
    };
    if !place.is_empty() {
        let (host, port) = split_place(place);
        options.host = host.to_owned();
        if let Some(port) = port {
            options.port = leading_number(port.as_bytes());
        }
    }
    if let Some(database) = database.filter(|text| !text.is_empty()) {
        options.database = leading_number(database.as_bytes());
    }
    Ok(())
}

/// Host and port. An address that contains colons is in brackets.
fn split_place(place: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match place.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    }
}

/// Decodes percent-encoding such as `%41`.
fn decode(text: &str) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (bytes.next(), bytes.next()) else {
            return Err("Incomplete URI encoding".to_owned());
        };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        match (digit(high), digit(low)) {
            (Some(high), Some(low)) => decoded.push((high * 16 + low) as u8),
            _ => return Err("Illegal character in URI encoding".to_owned()),
        }
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(uri: &str) -> Options {
        let mut options = Options::new(true);
        apply(&mut options, uri).unwrap();
        options
    }

    #[test]
    fn every_part_of_an_address_may_be_left_out() {
        let all = applied("redis://us%65r:p%40ss@h:1/2");
        assert_eq!((all.host.as_str(), all.port, all.database), ("h", 1, 2));
        assert_eq!(all.user.as_deref(), Some(&b"user"[..]));
        assert_eq!(all.password.as_deref(), Some(&b"p@ss"[..]));
        let none = applied("redis://");
        assert_eq!((none.host.as_str(), none.port, none.database), ("127.0.0.1", 6379, 0));
        assert_eq!(applied("redis://secret@h").password.as_deref(), Some(&b"secret"[..]));
        assert_eq!(applied("REDIS:///7").database, 7);
        assert!(applied("valkeys://h").tls && !applied("valkey://h").tls);
        let six = applied("rediss://[::1]:7/");
        assert_eq!((six.host.as_str(), six.port, six.tls), ("::1", 7, true));
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for uri in ["http://h", "redis://%z0@h", "redis://%4@h", ""] {
            assert!(apply(&mut Options::new(true), uri).is_err(), "{uri}");
        }
    }
}
