//! `notify-keyspace-events`: which keyspace events are published, and how the letters are parsed
//! and shown.

use super::directive::Special;
use super::value::SettingRejection;

/// A set of notification classes and channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifyClasses(u16);

/// Every letter with its bit, in the order in which CONFIG GET shows them. `A` stands for the first
/// ten.
const LETTERS: [(u8, NotifyClasses); 14] = [
    (b'g', NotifyClasses::GENERIC),
    (b'$', NotifyClasses::STRING),
    (b'l', NotifyClasses::LIST),
    (b's', NotifyClasses::SET),
    (b'h', NotifyClasses::HASH),
    (b'z', NotifyClasses::SORTED_SET),
    (b'x', NotifyClasses::EXPIRED),
    (b'e', NotifyClasses::EVICTED),
    (b't', NotifyClasses::STREAM),
    (b'd', NotifyClasses::MODULE),
    (b'n', NotifyClasses::NEW),
    (b'K', NotifyClasses::KEYSPACE),
    (b'E', NotifyClasses::KEYEVENT),
    (b'm', NotifyClasses::MISS),
];

impl NotifyClasses {
    /// Commands on keys of any type (`g`).
    pub const GENERIC: Self = Self(1 << 0);
    /// String commands (`$`).
    pub const STRING: Self = Self(1 << 1);
    /// List commands (`l`).
    pub const LIST: Self = Self(1 << 2);
    /// Set commands (`s`).
    pub const SET: Self = Self(1 << 3);
    /// Hash commands (`h`).
    pub const HASH: Self = Self(1 << 4);
    /// Sorted set commands (`z`).
    pub const SORTED_SET: Self = Self(1 << 5);
    /// Keys that expired (`x`).
    pub const EXPIRED: Self = Self(1 << 6);
    /// Keys that were evicted (`e`).
    pub const EVICTED: Self = Self(1 << 7);
    /// Stream commands (`t`).
    pub const STREAM: Self = Self(1 << 8);
    /// Module types (`d`).
    pub const MODULE: Self = Self(1 << 9);
    /// Reads of keys that do not exist (`m`).
    pub const MISS: Self = Self(1 << 10);
    /// New keys (`n`).
    pub const NEW: Self = Self(1 << 11);
    /// Publish on `__keyspace@…` (`K`).
    pub const KEYSPACE: Self = Self(1 << 12);
    /// Publish on `__keyevent@…` (`E`).
    pub const KEYEVENT: Self = Self(1 << 13);
    /// The classes that `A` stands for.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// Returns true if any class of `other` is in this set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the raw bits, to store them in an atomic.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Parses the letters; `None` if one is unknown.
    pub fn from_letters(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self::default(), |set, letter| {
            let class = match letter {
                b'A' => Self::ALL,
                letter => LETTERS.iter().find(|(known, _)| known == letter)?.1,
            };
            Some(Self(set.0 | class.0))
        })
    }

    /// Returns the letters, with `A` instead of the ten that it stands for. As in Redis, `n` is not
    /// shown together with `A`.
    pub fn letters(self) -> String {
        let all = self.0 & Self::ALL.0 == Self::ALL.0;
        let mut out = String::new();
        if all {
            out.push('A');
        }
        for (letter, class) in LETTERS {
            let covered = all && (class.intersects(Self::ALL) || class == Self::NEW);
            if self.intersects(class) && !covered {
                out.push(char::from(letter));
            }
        }
        out
    }
}

/// The `Special` of `notify-keyspace-events`.
pub(super) const NOTIFY: Special = Special {
    form: "letters",
    get: |c| c.observe.notify.letters(),
    set: |c, words, _| {
        let letters = words.first().map_or(&[][..], Vec::as_slice);
        c.observe.notify = NotifyClasses::from_letters(letters).ok_or(
            SettingRejection::Borrowed("Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
        )?;
        Ok(())
    },
    // `n` must be written together with `A` here, although CONFIG GET hides it.
    lines: |c| {
        let classes = c.observe.notify;
        let mut letters = classes.letters();
        if classes.intersects(NotifyClasses::NEW) && !letters.contains('n') {
            letters.push('n');
        }
        vec![format!("\"{letters}\"")]
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_shown_in_the_order_of_redis() {
        for (given, shown) in [
            ("", ""),
            ("KA", "AK"),
            ("gK", "gK"),
            ("Kg$lshzxetd", "AK"),
            ("Em", "Em"),
            ("Kmn", "nKm"),
            ("KEAmn", "AKEm"),
        ] {
            let classes = NotifyClasses::from_letters(given.as_bytes());
            assert_eq!(classes.map(NotifyClasses::letters).as_deref(), Some(shown), "{given}");
        }
        assert_eq!(NotifyClasses::from_letters(b"K x"), None);
    }
}
