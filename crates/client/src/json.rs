//! JSON in arguments and replies (Cargo feature `json`).

use crate::arg::{Args, ToArg, ToArgs};
use crate::error::{Error, Kind, Result};
use crate::reply::{FromReply, Reader};
use brisk_resp::reply::read::Part;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that is sent as JSON in one argument, and read from JSON in a reply. Requires the Cargo feature `json`.
///
/// ```no_run
/// # async fn example(db: brisk::Client) -> brisk::Result<()> {
/// use brisk::Json;
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Order {
///     id: u64,
///     items: Vec<String>,
/// }
///
/// let order = Order { id: 7, items: vec!["tea".to_owned()] };
/// db.set("order:7", Json(&order)).await?;
/// let Json::<Order>(same) = db.get("order:7").required().await?;
/// let perhaps: Option<Json<Order>> = db.get("order:8").await?;
/// # Ok(())
/// # }
/// ```
///
/// A value that JSON cannot represent, for example a map whose keys are not strings, fails with [`Kind::Invalid`], and
/// nothing is sent. A reply that is not valid JSON for this type fails with [`Kind::UnexpectedReply`]. O(bytes), with
/// one allocation for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json<T>(pub T);

impl<T> Json<T> {
    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<T> for Json<T> {
    fn from(value: T) -> Json<T> {
        Json(value)
    }
}

pub(crate) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| {
        let text = format!("the value cannot be converted to JSON: {}", described(&error));
        Error::new(Kind::Invalid, text)
    })
}

/// Describes the error and its position, without the value. The text of a type error quotes the value, so it is
/// replaced.
fn described(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // The name of the field comes from the type, not from the value.
    if !error.is_data() || text.starts_with("missing field `") {
        return text;
    }
    format!("a value of another type at line {} column {}", error.line(), error.column())
}

pub(crate) fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| {
        let (len, why) = (json.len(), described(&error));
        let text =
            format!("the reply is not JSON of this type, but a string of {len} bytes: {why}");
        Error::new(Kind::UnexpectedReply, text)
    })
}

impl<T: Serialize> ToArg for Json<T> {
    fn write(&self, args: &mut Args<'_>) {
        match to_vec(&self.0) {
            Ok(json) => args.push(&json),
            Err(error) => args.fail(error),
        }
    }
}

impl<T: Serialize> ToArgs for Json<T> {
    fn write_all(&self, args: &mut Args<'_>) {
        self.write(args);
    }

    fn count(&self) -> usize {
        1
    }
}

impl<T: DeserializeOwned> FromReply for Json<T> {
    fn from_reply(reader: &mut Reader<'_>) -> Result<Json<T>> {
        let part = reader.part()?;
        match part {
            // Counters, and integers that a script returns.
            Part::Integer(number) => from_slice(number.to_string().as_bytes()),
            part => match part.as_bytes() {
                Some(json) => from_slice(json),
                None => Err(Error::unexpected("a string", &part)),
            },
        }
        .map(Json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;
    use crate::request::{Request, Traits};
    use std::collections::{BTreeMap, HashMap};

    fn reply(text: &str) -> Reply {
        Reply::shared(text.replace('|', "\r\n").into_bytes().into())
    }

    #[test]
    fn a_value_is_one_argument_with_its_json() {
        let mut request = Request::new("SET", Traits::default());
        request.arg(Json(BTreeMap::from([("a", [1, 2])])));
        request.args(vec![Json("é")]);
        let args: Vec<_> = request.arguments().map(String::from_utf8_lossy).collect();
        assert_eq!(args, ["SET", r#"{"a":[1,2]}"#, r#""é""#]);
        assert!(request.failure().is_none());
    }

    #[test]
    fn a_value_that_json_cannot_represent_fails_and_is_not_sent() {
        let mut request = Request::new("SET", Traits::default());
        request.arg(Json(HashMap::from([((1, 2), 3)])));
        request.arg("later");
        let failure = request.clone().failure().cloned().expect("it cannot be written");
        assert_eq!(failure.kind(), Kind::Invalid);
        assert!(
            failure.message().starts_with("the value cannot be converted to JSON"),
            "{failure}"
        );
    }

    #[test]
    fn invalid_json_is_an_error_and_a_null_is_none() {
        let read = |text| reply(text).read::<Option<Json<Vec<u8>>>>();
        assert_eq!(read("$5|[1,2]|").unwrap(), Some(Json(vec![1, 2])));
        assert_eq!(read("$-1|").unwrap(), None);
        assert_eq!(read("$4|[1,2|").unwrap_err().kind(), Kind::UnexpectedReply);
        assert_eq!(read("*0|").unwrap_err().kind(), Kind::UnexpectedReply);
        assert_eq!(reply(":5|").read::<Json<u8>>().unwrap(), Json(5));
        for (text, wanted) in [
            ("$8|\"secret\"|", "line 1 column 8"),
            ("$10|[\"secret\"]|", "line 1 column 9"),
            ("$9|[1,secret|", "expected value at line 1 column 4"),
        ] {
            let error = read(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
            assert!(error.message().ends_with(wanted), "{error}");
        }
        let deep = "[".repeat(100_000);
        let deep = format!("${}|{deep}|", deep.len());
        assert!(reply(&deep).read::<Json<serde_json::Value>>().is_err());
    }
}
