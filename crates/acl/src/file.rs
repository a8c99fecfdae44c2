//! The text of an ACL file: a line `user <name> <rules…>` for each user.

use super::rule::{DEFAULT_USER, RuleError, Vocabulary, has_spaces};
use super::user::{User, merge_selectors};
use std::collections::BTreeMap;

/// Users by name.
pub type Users = BTreeMap<Box<[u8]>, User>;

/// Maximum size in bytes of an ACL file that is read.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Parses the users of an ACL file. `name` is the file's name, for messages.
///
/// # Errors
/// If there are faults, returns all of them in one line, and no users.
pub fn parse(name: &[u8], text: &[u8], vocabulary: Vocabulary<'_>) -> Result<Users, Vec<u8>> {
    let mut users = Users::new();
    let mut errors = Vec::new();
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = trim(line, b" \t\r\n");
        if !line.is_empty() {
            let place = [name, b":", (at + 1).to_string().as_bytes()].concat();
            parse_line(&place, at + 1, line, vocabulary, &mut users, &mut errors);
        }
    }
    if errors.is_empty() {
        return Ok(users);
    }
    errors.extend_from_slice(
        b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
    );
    Err(errors)
}

fn parse_line(
    place: &[u8],
    number: usize,
    line: &[u8],
    vocabulary: Vocabulary<'_>,
    users: &mut Users,
    errors: &mut Vec<u8>,
) {
    let mut complain = |parts: &[&[u8]]| errors.extend(parts.concat());
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [b"user", name, rules @ ..] = words.as_slice() else {
        complain(&[place, b" should start with user keyword followed by the username. "]);
        return;
    };
    if has_spaces(name) {
        complain(&[b"'", place, b": username '", name, b"' contains invalid characters. "]);
        return;
    }
    if users.contains_key(*name) {
        let number = number.to_string();
        let number = number.as_bytes();
        complain(&[b"WARNING: Duplicate user '", name, b"' found on line ", number, b". "]);
        return;
    }
    let mut user = User::new(vocabulary.channels);
    match merge_selectors(rules) {
        Err(_) => complain(&[place, b": Unmatched parenthesis in selector definition."]),
        Ok(rules) => {
            let mut is_reported = false;
            for rule in &rules {
                let rule = trim(rule, b"\t\r\n");
                let Err(error) = user.apply(rule, vocabulary) else { continue };
                let why = error.to_string();
                let why = why.as_bytes();
                if error == RuleError::Unknown {
                    // Names of commands are not secret.
                    let doing: &[u8] = b": Error in applying operation '";
                    complain(&[place, doing, rule, b"': ", why, b". "]);
                } else if !std::mem::replace(&mut is_reported, true) {
                    complain(&[place, b": ", why, b". "]);
                }
            }
        }
    }
    users.insert((*name).into(), user);
}

/// Returns the text of an ACL file with these users.
pub fn write<'u>(users: impl Iterator<Item = (&'u [u8], &'u User)>) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, user) in users {
        text.extend_from_slice(&line(name, user));
        text.push(b'\n');
    }
    text
}

/// Returns the line of one user, also for ACL LIST.
pub fn line(name: &[u8], user: &User) -> Vec<u8> {
    [b"user ", name, b" ", &user.describe()].concat()
}

/// Adds the default user, with all permissions, to a file that does not define it.
pub fn with_default(mut users: Users, vocabulary: Vocabulary<'_>) -> Users {
    let default = DEFAULT_USER.as_bytes();
    users.entry(default.into()).or_insert_with(|| User::almighty(vocabulary));
    users
}

fn trim<'t>(mut text: &'t [u8], of: &[u8]) -> &'t [u8] {
    while let [first, rest @ ..] = text
        && of.contains(first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && of.contains(last)
    {
        text = rest;
    }
    text
}
