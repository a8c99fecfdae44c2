//! Access control for the metrics: the name and password of `Authorization: Basic`.

use brisk_acl::hash_of;
use brisk_config::directives::network::Network;
use brisk_structures::base64;
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
    base64::decode(rest.trim_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

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
