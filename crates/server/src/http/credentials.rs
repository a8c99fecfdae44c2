//! Access control for the metrics: the name and password of `Authorization: Basic`.

use brisk_acl::hash_of;
use brisk_config::directives::network::Network;
use std::hint::black_box;

/// True if the header's value has the configured user and password. The duration of the check reveals nothing about the
/// password, because hashes are compared, always in full.
pub(super) fn admit(network: &Network, authorization: Option<&str>) -> bool {
    if network.http_password.is_empty() {
        return true;
    }
    let Some(given) = authorization.and_then(basic) else { return false };
    let wanted = [network.http_user.as_bytes(), b":", network.http_password.as_bytes()].concat();
    let (wanted, given) = (hash_of(&wanted), hash_of(&given));
    let differs = wanted.iter().zip(&given).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    differs == 0
}

/// Decodes the user and password of `Basic`.
fn basic(value: &str) -> Option<Vec<u8>> {
    let (scheme, rest) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    decode(rest.trim_matches(' '))
}

/// Base64 with the standard alphabet and padding (RFC 4648).
fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    if !text.len().is_multiple_of(4) || digits.len() % 4 == 1 {
        return None;
    }
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len()), 0u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xFFFF;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_as_in_the_examples_of_rfc_4648() {
        for (text, plain) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()), "{text}");
        }
        for text in ["Z", "Zg", "Zg=", "Z===", "Zm9v!", "Zm 9v", "====", "Zg==Zg=="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_right_user_with_the_right_password_is_admitted() {
        let mut network = Network { http_user: "Aladdin".into(), ..Network::default() };
        assert!(admit(&network, None));
        network.http_password = "open sesame".into();
        // The example of RFC 7617.
        assert!(admit(&network, Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")));
        assert!(admit(&network, Some("basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ==")));
        for value in
            ["", "Basic", "Basic ", "Basic QWxhZGRpbjo=", "Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]
        {
            assert!(!admit(&network, Some(value)), "{value}");
        }
        assert!(!admit(&network, None));
        network.http_user = "aladdin".into();
        assert!(!admit(&network, Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")));
    }
}
