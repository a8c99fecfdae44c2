//! A user: its state, passwords and permissions.

use super::rule::{RuleError, Vocabulary};
use super::selector::{Selector, fits_channel};
use brisk_config::choice::PubsubDefault;
use brisk_config::quote;
use std::borrow::Cow;
use std::hint::black_box;

/// The SHA-256 of a password. The password itself is never stored.
pub type Hash = [u8; 32];

/// Returns the hash of a password.
pub fn hash_of(password: &[u8]) -> Hash {
    let digest = ring::digest::digest(&ring::digest::SHA256, password);
    let mut hash = Hash::default();
    hash.copy_from_slice(digest.as_ref());
    hash
}

/// Compares in constant time, so that the time does not reveal the number of equal bytes.
fn is_same_hash(known: &Hash, given: &Hash) -> bool {
    let difference = known.iter().zip(given).fold(0, |sum, (a, b)| sum | black_box(a ^ b));
    black_box(difference) == 0
}

/// A user's state and permissions. Plain data: sessions share it, so it is never changed, only
/// replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    enabled: bool,
    /// True if any password is accepted.
    nopass: bool,
    sanitizes_payload: bool,
    passwords: Vec<Hash>,
    /// The first one is the root selector: the rules outside of parentheses.
    selectors: Vec<Selector>,
    unrestricted: bool,
}

/// Why a list of rules was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetError {
    /// The parenthesis that this rule opens is not closed.
    Unmatched(Vec<u8>),
    /// This rule is invalid.
    Rule(Vec<u8>, RuleError),
}

impl User {
    /// Creates a user that cannot even log in yet.
    pub fn new(channels: PubsubDefault) -> User {
        User {
            enabled: false,
            nopass: false,
            sanitizes_payload: true,
            passwords: Vec::new(),
            selectors: vec![Selector::new(channels)],
            unrestricted: false,
        }
    }

    /// Creates the initial default user: all permissions, without a password.
    pub fn almighty(vocabulary: Vocabulary<'_>) -> User {
        let mut user = User::new(vocabulary.channels);
        for rule in ["+@all", "~*", "&*", "on", "nopass"] {
            let applied = user.apply(rule.as_bytes(), vocabulary);
            debug_assert!(applied.is_ok(), "{rule}");
        }
        user
    }

    /// Creates a user without any permissions.
    pub fn unprivileged() -> User {
        User::new(PubsubDefault::ResetChannels)
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub fn needs_no_password(&self) -> bool {
        self.nopass
    }

    /// Returns true if a connection may act as this user without authenticating.
    pub fn is_open(&self) -> bool {
        self.enabled && self.nopass
    }

    /// Returns true if no checks are necessary.
    pub fn is_unrestricted(&self) -> bool {
        self.unrestricted
    }

    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    pub fn passwords(&self) -> &[Hash] {
        &self.passwords
    }

    /// Returns true if the user can log in with this password.
    pub fn admits_password(&self, password: &[u8]) -> bool {
        if !self.enabled || self.nopass {
            return self.enabled;
        }
        let given = hash_of(password);
        // Every hash is compared, even after one has matched.
        self.passwords.iter().fold(false, |any, known| any | is_same_hash(known, &given))
    }

    /// Applies `requirepass`: only this password, or no password if it is empty.
    pub fn set_only_password(&mut self, password: &[u8]) {
        self.passwords.clear();
        self.nopass = password.is_empty();
        if !password.is_empty() {
            self.passwords.push(hash_of(password));
        }
    }

    /// Returns a copy with all rules applied, or the error of the first invalid rule.
    pub fn changed(&self, rules: &[&[u8]], vocabulary: Vocabulary<'_>) -> Result<User, SetError> {
        let rules = merge_selectors(rules).map_err(|at| SetError::Unmatched(rules[at].to_vec()))?;
        let mut user = self.clone();
        for rule in rules {
            user.apply(&rule, vocabulary)
                .map_err(|error| SetError::Rule(rule.into_owned(), error))?;
        }
        Ok(user)
    }

    /// Applies one rule; `(…)` is one rule. If it returns an error, nothing has changed.
    pub fn apply(&mut self, rule: &[u8], vocabulary: Vocabulary<'_>) -> Result<(), RuleError> {
        self.apply_inner(rule, vocabulary)?;
        self.unrestricted = self.selectors.iter().any(Selector::is_unrestricted);
        Ok(())
    }

    fn apply_inner(&mut self, rule: &[u8], vocabulary: Vocabulary<'_>) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"" => {}
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"skip-sanitize-payload" => self.sanitizes_payload = false,
            b"sanitize-payload" => self.sanitizes_payload = true,
            b"nopass" => {
                self.nopass = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.nopass = false;
                self.passwords.clear();
            }
            b"clearselectors" => self.selectors.truncate(1),
            b"reset" => *self = User::new(vocabulary.channels),
            _ => return self.apply_longer(rule, vocabulary),
        }
        Ok(())
    }

    fn apply_longer(&mut self, rule: &[u8], vocabulary: Vocabulary<'_>) -> Result<(), RuleError> {
        match rule {
            [b'>', password @ ..] => self.add_password(hash_of(password)),
            [b'#', hash @ ..] => self.add_password(hash_of_text(hash)?),
            [b'<', password @ ..] => self.remove_password(&hash_of(password))?,
            [b'!', hash @ ..] => self.remove_password(&hash_of_text(hash)?)?,
            [b'(', words @ .., b')'] => {
                self.selectors.push(Selector::of_words(words, vocabulary)?);
            }
            _ => self.selectors[0].apply(rule, vocabulary)?,
        }
        Ok(())
    }

    fn add_password(&mut self, hash: Hash) {
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.nopass = false;
    }

    fn remove_password(&mut self, hash: &Hash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|known| known == hash);
        self.passwords.remove(at.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// Returns the flags of the user's state, as ACL GETUSER lists them.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.enabled { "on" } else { "off" }];
        if self.nopass {
            flags.push("nopass");
        }
        let sanitizes = self.sanitizes_payload;
        flags.push(if sanitizes { "sanitize-payload" } else { "skip-sanitize-payload" });
        flags
    }

    /// Returns the rules that recreate the user, with each selector as one rule.
    fn rules(&self) -> Vec<Vec<u8>> {
        let mut rules: Vec<Vec<u8>> =
            self.flags().iter().map(|flag| flag.as_bytes().into()).collect();
        rules.extend(self.passwords.iter().map(|hash| format!("#{}", hex(hash)).into_bytes()));
        for (at, selector) in self.selectors.iter().enumerate() {
            let text = selector.describe();
            if at == 0 {
                rules.extend(text.split(|byte| *byte == b' ').map(<[u8]>::to_vec));
            } else {
                rules.push([b"(", &text[..], b")"].concat());
            }
        }
        rules
    }

    /// Returns the rules as ACL LIST and an ACL file show them.
    pub fn describe(&self) -> Vec<u8> {
        self.rules().join(&b' ')
    }

    /// Returns the arguments of a `user` line in a configuration file, without the name.
    pub fn config_words(&self) -> String {
        let plain = |rule: &[u8]| {
            rule.iter().all(|byte| matches!(byte, b' '..=b'~') && !b"\"'\\".contains(byte))
        };
        let shown = self.rules().into_iter().map(|rule| {
            if plain(&rule) { String::from_utf8_lossy(&rule).into_owned() } else { quote(&rule) }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// Returns true if the user may stay subscribed to a channel, or to a pattern of channels,
    /// which must match literally. All selectors count together, as for subscriptions that exist
    /// when the rules change.
    pub fn may_keep_listening(&self, name: &[u8], is_pattern: bool) -> bool {
        self.selectors.iter().any(|selector| {
            selector.all_channels || fits_channel(&selector.channels, name, is_pattern)
        })
    }

    /// Returns true if `self` may subscribe to everything that `before` could, comparing the rules
    /// literally.
    pub fn keeps_channels_of(&self, before: &User) -> bool {
        let all = |user: &User| user.selectors.iter().any(|selector| selector.all_channels);
        let has = |pattern: &[u8]| {
            let mut known = self.selectors.iter().flat_map(|selector| &selector.channels);
            known.any(|known| **known == *pattern)
        };
        all(self)
            || (!all(before)
                && before.selectors.iter().all(|old| old.channels.iter().all(|name| has(name))))
    }
}

/// Joins the arguments of each selector into one, whether it came in one argument or in several.
/// The error is the index of a rule that opens a parenthesis without closing it.
pub fn merge_selectors<'r>(rules: &[&'r [u8]]) -> Result<Vec<Cow<'r, [u8]>>, usize> {
    let mut merged = Vec::with_capacity(rules.len());
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (at, rule) in rules.iter().enumerate() {
        if let Some((from, mut words)) = open.take() {
            words.push(b' ');
            words.extend_from_slice(rule);
            if rule.ends_with(b")") {
                merged.push(Cow::Owned(words));
            } else {
                open = Some((from, words));
            }
        } else if rule.starts_with(b"(") && !rule.ends_with(b")") {
            open = Some((at, rule.to_vec()));
        } else {
            merged.push(Cow::Borrowed(*rule));
        }
    }
    open.map_or(Ok(merged), |(at, _)| Err(at))
}

fn hash_of_text(text: &[u8]) -> Result<Hash, RuleError> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(RuleError::BadHash),
    };
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() {
        return Err(RuleError::BadHash);
    }
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(hash)
}

/// Returns the hash as 64 hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.extend(
            [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[digit as usize])),
        );
    }
    text
}
