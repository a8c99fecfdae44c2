//! Which versions of etcd are supported.

use crate::error::CoordinatorError;
use crate::setting::Endpoint;
use serde_json::Value;

/// Checks the response to `GET /version`.
pub(super) fn check(
    endpoint: &Endpoint,
    status: Option<u16>,
    body: &str,
) -> Result<(), CoordinatorError> {
    let endpoint = endpoint.to_string();
    let response: Value = serde_json::from_str(body).unwrap_or_default();
    let version = response.get("etcdserver").and_then(Value::as_str).unwrap_or_default();
    let Some(numbers) = numbers_of(version).filter(|_| status == Some(200)) else {
        let why = "it does not state its version: is this the client address of etcd?".to_owned();
        return Err(CoordinatorError::InvalidResponse { endpoint, why });
    };
    match refusal(numbers) {
        None => Ok(()),
        Some(why) => {
            Err(CoordinatorError::UnsupportedVersion { endpoint, version: version.to_owned(), why })
        }
    }
}

/// Major, minor and patch; what follows a hyphen or a plus sign is ignored.
fn numbers_of(version: &str) -> Option<(u32, u32, u32)> {
    let release = version.split(['-', '+']).next()?;
    let mut parts = release.split('.').map(|part| part.parse().ok());
    let numbers = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(numbers)
}

fn refusal(version: (u32, u32, u32)) -> Option<&'static str> {
    if version < (3, 4, 22) {
        return Some("earlier versions can lose consistency; use 3.4.22 or later");
    }
    let is_corrupting = ((3, 5, 0)..=(3, 5, 2)).contains(&version);
    is_corrupting.then_some("3.5.0 to 3.5.2 can corrupt data; use 3.5.3 or later")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_version(version: &str) -> Result<(), CoordinatorError> {
        let endpoint = Endpoint { host: "a".to_owned(), port: 1 };
        let body = format!("{{\"etcdserver\":\"{version}\",\"etcdcluster\":\"3.4.0\"}}");
        check(&endpoint, Some(200), &body)
    }

    #[test]
    fn known_bad_versions_are_rejected_by_name() {
        for good in ["3.4.22", "3.4.23", "3.5.3", "3.5.17-rc.1", "3.6.0", "4.0.0"] {
            assert!(check_version(good).is_ok(), "{good}");
        }
        for bad in ["2.3.8", "3.3.27", "3.4.0", "3.4.21", "3.5.0", "3.5.1", "3.5.2"] {
            let text = check_version(bad).unwrap_err().to_string();
            assert!(text.contains(bad) && text.contains("a:1"), "{text}");
        }
        for malformed in ["", "3.4", "3.4.x", "3.4.22.1", "v3.4.22"] {
            let error = check_version(malformed).unwrap_err();
            assert!(matches!(error, CoordinatorError::InvalidResponse { .. }), "{malformed}");
        }
    }
}
