//! Names of cipher suites and protocol versions. The names of OpenSSL and IANA are accepted for
//! those that `rustls` supports.
//!
//! `rustls` has only suites with forward secrecy and authenticated encryption. Names of whole
//! groups (`HIGH`, `DEFAULT`) therefore mean all of them, and excluding a group of weak suites
//! (`!aNULL`) excludes nothing.

use super::TlsError;
use rustls::crypto::ring::cipher_suite as suite;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, version};

/// TLS 1.2 suites with their OpenSSL names and their IANA names.
const TLS12: [(&str, &str, SupportedCipherSuite); 6] = [
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// TLS 1.3 suites, which have the same names in OpenSSL and at IANA.
const TLS13: [(&str, SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", suite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// Groups that contain every TLS 1.2 suite that we support.
const EVERYTHING: [&str; 9] =
    ["DEFAULT", "ALL", "HIGH", "ECDHE", "EECDH", "kEECDH", "kECDHE", "AEAD", "TLSv1.2"];
/// Groups that contain none of our suites. Excluding them changes nothing.
const NOTHING: [&str; 27] = [
    "aNULL", "eNULL", "NULL", "ADH", "AECDH", "MEDIUM", "LOW", "EXP", "EXPORT", "RC4", "RC2",
    "DES", "3DES", "MD5", "SHA", "SHA1", "PSK", "SRP", "DSS", "aDSS", "CAMELLIA", "SEED", "IDEA",
    "ARIA", "kRSA", "kDHE", "DH",
];

const UNKNOWN: &str = "not a supported cipher (supported are AES-GCM and ChaCha20-Poly1305 with \
     ECDHE for TLS 1.2, and TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256 and \
     TLS_CHACHA20_POLY1305_SHA256 for TLS 1.3)";

/// `tls-ciphers`: the TLS 1.2 suites in the configured order; all for an empty list.
pub(super) fn tls12(list: &str) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    let directive = "tls-ciphers";
    let all = || TLS12.iter().map(|(_, _, suite)| *suite);
    if list.trim().is_empty() {
        return Ok(all().collect());
    }
    let mut chosen: Vec<SupportedCipherSuite> = Vec::new();
    let mut banned: Vec<SupportedCipherSuite> = Vec::new();
    for word in list.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        if word == "@STRENGTH" {
            continue;
        }
        let (excludes, name) = match word.strip_prefix(['!', '-']) {
            Some(name) => (true, name),
            None => (false, word.strip_prefix('+').unwrap_or(word)),
        };
        let named: Vec<SupportedCipherSuite> = if EVERYTHING.contains(&name) {
            all().collect()
        } else if excludes && NOTHING.contains(&name) {
            Vec::new()
        } else {
            let found = TLS12.iter().find(|(openssl, iana, _)| *openssl == name || *iana == name);
            let (_, _, suite) = found.ok_or_else(|| TlsError::Word {
                directive,
                word: name.to_owned(),
                reason: UNKNOWN,
            })?;
            vec![*suite]
        };
        if excludes {
            chosen.retain(|suite| !named.contains(suite));
            if word.starts_with('!') {
                banned.extend(named);
            }
        } else {
            add(&mut chosen, named, &banned);
        }
    }
    if chosen.is_empty() {
        return Err(TlsError::Nothing { directive, reason: "no cipher is left" });
    }
    Ok(chosen)
}

/// `tls-ciphersuites`: the TLS 1.3 suites in the configured order; all for an empty list.
pub(super) fn tls13(list: &str) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    let directive = "tls-ciphersuites";
    if list.trim().is_empty() {
        return Ok(TLS13.iter().map(|(_, suite)| *suite).collect());
    }
    let mut chosen = Vec::new();
    for word in list.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        let found = TLS13.iter().find(|(name, _)| *name == word);
        let (_, suite) = found.ok_or_else(|| TlsError::Word {
            directive,
            word: word.to_owned(),
            reason: UNKNOWN,
        })?;
        add(&mut chosen, vec![*suite], &[]);
    }
    if chosen.is_empty() {
        return Err(TlsError::Nothing { directive, reason: "no cipher is left" });
    }
    Ok(chosen)
}

fn add(
    chosen: &mut Vec<SupportedCipherSuite>,
    named: Vec<SupportedCipherSuite>,
    banned: &[SupportedCipherSuite],
) {
    for suite in named {
        if !chosen.contains(&suite) && !banned.contains(&suite) {
            chosen.push(suite);
        }
    }
}

/// `tls-protocols`: the named versions, newest first, and the named versions that `rustls` does not
/// support. An empty list means both versions that `rustls` supports.
pub(super) fn versions(
    list: &str,
) -> Result<(Vec<&'static SupportedProtocolVersion>, Vec<&'static str>), TlsError> {
    let directive = "tls-protocols";
    let (mut tls12, mut tls13, mut old) = (false, false, Vec::new());
    for word in list.split(' ').filter(|word| !word.is_empty()) {
        match word.to_ascii_lowercase().as_str() {
            "tlsv1.3" => tls13 = true,
            "tlsv1.2" => tls12 = true,
            "tlsv1.1" => old.push("TLSv1.1"),
            "tlsv1" => old.push("TLSv1"),
            _ => {
                let reason = "none of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3";
                return Err(TlsError::Word { directive, word: word.to_owned(), reason });
            }
        }
    }
    if list.trim().is_empty() {
        (tls12, tls13) = (true, true);
    }
    let mut chosen = Vec::new();
    if tls13 {
        chosen.push(&version::TLS13);
    }
    if tls12 {
        chosen.push(&version::TLS12);
    }
    if chosen.is_empty() {
        let reason = "neither TLSv1.2 nor TLSv1.3 is named, and the server supports no others";
        return Err(TlsError::Nothing { directive, reason });
    }
    Ok((chosen, old))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<&'static str> {
        let name = |suite: &SupportedCipherSuite| {
            TLS12.iter().find(|(_, _, known)| known == suite).map(|(name, _, _)| *name)
        };
        tls12(list).unwrap().iter().filter_map(name).collect()
    }

    #[test]
    fn ciphers_are_taken_by_either_name_in_the_order_given_once_each() {
        assert_eq!(
            names(
                "ECDHE-RSA-AES128-GCM-SHA256:TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:\
                 ECDHE-RSA-AES128-GCM-SHA256"
            ),
            ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"]
        );
    }

    #[test]
    fn groups_mean_all_and_exclusions_apply_to_later_names() {
        assert_eq!(names("").len(), 6);
        assert_eq!(names("DEFAULT:!MEDIUM").len(), 6);
        let without = names("!ECDHE-RSA-AES128-GCM-SHA256:HIGH:!aNULL");
        assert_eq!(without.len(), 5);
        assert!(!without.contains(&"ECDHE-RSA-AES128-GCM-SHA256"));
        assert_eq!(names("ALL:-ECDHE:ECDHE-RSA-CHACHA20-POLY1305").len(), 1);
    }

    #[test]
    fn unsupported_names_are_rejected_by_name() {
        for list in ["AES256-SHA", "HIGH:foo", "!foo"] {
            let error = tls12(list).unwrap_err().to_string();
            let word = list.rsplit([':', '!']).next().unwrap();
            assert!(
                error.starts_with(&format!("tls-ciphers: '{word}' is not a supported cipher")),
                "{error}"
            );
        }
        assert!(tls13("TLS_AES_128_CCM_SHA256").is_err());
        assert!(tls12("ALL:!ALL").is_err());
        assert_eq!(tls13("TLS_AES_128_GCM_SHA256").unwrap().len(), 1);
    }

    #[test]
    fn old_protocols_are_reported_and_rejected_if_alone() {
        let (chosen, old) = versions("tlsv1.1 TLSv1.2").unwrap();
        assert_eq!((chosen, old), (vec![&version::TLS12], vec!["TLSv1.1"]));
        assert_eq!(versions("").unwrap().0.len(), 2);
        assert!(versions("TLSv1").is_err());
        assert!(versions("SSLv3").is_err());
    }
}
