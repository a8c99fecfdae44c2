//! DEBUG PROTOCOL: replies of each type, for tests of client libraries.

use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::core::call::Call;
use brisk_resp::Protocol;
use brisk_resp::reply::encode;

/// The value that Redis uses. It is close to pi but not meant to be pi.
#[expect(clippy::approx_constant, reason = "the digits are Redis's")]
const DOUBLE: f64 = 3.141;
/// A number that does not fit into 64 bits.
const BIG_NUMBER: &[u8] = b"1234567999999999999999999999999999999";

const WRONG_TYPE_NAME: &str = "ERR Wrong protocol type name. Please use one of the following: \
    string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false";

/// Replies with a value of the named type. If RESP2 does not have the type, RESP2 clients get it in the usual
/// substitute form.
pub(super) fn protocol(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let name = args.bytes()?.to_ascii_lowercase();
    let reply = &mut call.reply;
    let protocol = reply.protocol();
    let three = |reply: &mut brisk_engine::Reply<'_>| {
        for number in 0..3 {
            reply.integer(number);
        }
        Outcome::Replied
    };
    Ok(match name.as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(DOUBLE),
        b"null" => reply.null(),
        b"bignum" => {
            encode::big_number(reply.buffer().bytes_mut(), protocol, BIG_NUMBER);
            Outcome::Replied
        }
        b"array" => {
            reply.array(3);
            three(reply)
        }
        b"set" => {
            reply.set(3);
            three(reply)
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
            Outcome::Replied
        }
        b"attrib" => {
            if encode::attribute(reply.buffer().bytes_mut(), protocol, 1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            // The value to which the attribute belongs.
            reply.bulk(b"Some real reply following the attribute")
        }
        b"push" if protocol == Protocol::Resp2 => {
            return Err(CommandError::text("ERR RESP2 is not supported by this command"));
        }
        b"push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            // A push is not a reply, so the command must also send a reply.
            reply.bulk(b"Some real reply following the push reply")
        }
        b"verbatim" => reply.verbatim(*b"txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => return Err(CommandError::text(WRONG_TYPE_NAME)),
    })
}
