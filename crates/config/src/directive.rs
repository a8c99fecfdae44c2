//! One directive: its name, type, default and flags, and how a value is parsed, shown and written
//! to a file. The rows themselves are in `directives/`, next to the fields that they set.

use super::choice::Choice;
use super::choice::PubsubDefault;
use super::config::Config;
use super::value::{self, MemoryShare, SettingRejection, Text};
use super::words;

/// Access to one field of `Config`, so that a row names its field only once (see `field!`).
pub struct Field<T: 'static> {
    /// Returns the field.
    pub get: fn(&Config) -> &T,
    /// Returns the field for writing.
    pub get_mut: fn(&mut Config) -> &mut T,
}

/// Creates the `Field` of a path such as `network.port`. This is a macro because two closures must
/// name the path.
macro_rules! field {
    ($($path:ident).+) => {
        $crate::directive::Field { get: |c| &c.$($path).+, get_mut: |c| &mut c.$($path).+ }
    };
}
/// Creates the `ChoiceField` of a path to a field whose type is a `Choice`.
macro_rules! choice {
    ($($path:ident).+) => {
        $crate::directive::ChoiceField {
            get: |c| $crate::choice::Choice::word(c.$($path).+),
            set: |c, word| $crate::directive::choose(&mut c.$($path).+, word),
            list: || $crate::directive::list_of(|c| &c.$($path).+),
        }
    };
}
pub(super) use {choice, field};

/// Access to a field whose type is a `Choice`, without naming that type.
pub struct ChoiceField {
    /// Returns the current word.
    pub get: fn(&Config) -> &'static str,
    /// Sets a word, or returns the list of valid ones as the error.
    pub set: fn(&mut Config, &[u8]) -> Result<(), SettingRejection>,
    /// Returns all words, for messages.
    pub list: fn() -> String,
}

/// Sets a `Choice` from its word.
pub(super) fn choose<C: Choice>(place: &mut C, word: &[u8]) -> Result<(), SettingRejection> {
    *place = C::from_word(word).ok_or_else(|| not_one_of(&C::list()))?;
    Ok(())
}

/// Returns all words of the `Choice` in a field.
pub(super) fn list_of<C: Choice>(_: fn(&Config) -> &C) -> String {
    C::list()
}

/// Returns the error for a word that is not in the list.
pub(super) fn not_one_of(list: &str) -> SettingRejection {
    format!("argument(s) must be one of the following: {list}").into()
}

/// How a value is set: it replaces the old one or, for a directive that may have several lines,
/// adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// CONFIG SET, or the first line of this name in a load.
    Replace,
    /// Another line of this name in the same load.
    Add,
}

/// Sets a field of the configuration from the arguments of a value.
pub type SetWords = fn(&mut Config, &[Vec<u8>], Write) -> Result<(), SettingRejection>;
/// Sets a field from the arguments of a line that may only be in files.
pub type SetLine = fn(&mut Config, &[Vec<u8>], &dyn LineJudge) -> Result<(), SettingRejection>;

/// Judges lines that may only be in files and that cannot be judged from the settings alone. The
/// judge knows the commands and the rules of users.
pub trait LineJudge {
    /// Checks whether these commands can be renamed, each from the first name to the second.
    ///
    /// # Errors
    /// Returns the fault, in Redis's words.
    fn renamed_commands(&self, renamed: &[(String, String)]) -> Result<(), SettingRejection>;

    /// Checks whether a user can have these rules, given the channel permissions of new users.
    ///
    /// # Errors
    /// Returns the fault, in Redis's words.
    fn user(&self, rules: &[&[u8]], channels: PubsubDefault) -> Result<(), SettingRejection>;
}

/// Validates the bytes of a text.
pub type Check = fn(&[u8]) -> Result<(), SettingRejection>;

/// A value with a syntax of its own.
pub struct Special {
    /// The valid values, in a few words.
    pub form: &'static str,
    /// Returns the value for CONFIG GET.
    pub get: fn(&Config) -> String,
    /// Sets the value from the split arguments.
    pub set: SetWords,
    /// Returns the arguments of each line for CONFIG REWRITE; if there are none, the directive is
    /// left out of the file.
    pub lines: fn(&Config) -> Vec<String>,
}

/// The type of a directive's value.
pub enum Kind {
    /// `yes` or `no`.
    Switch(Field<bool>),
    /// A decimal number within inclusive bounds.
    Integer { field: Field<i64>, min: i64, max: i64 },
    /// An amount of memory within inclusive bounds, in bytes or with a unit.
    Memory { field: Field<u64>, min: u64, max: u64 },
    /// An amount of memory or a percentage up to 100.
    MemoryShare(Field<MemoryShare>),
    /// A file mode in octal, 0 to 0777.
    Mode(Field<u32>),
    /// One word of a list.
    Choice(ChoiceField),
    /// Any bytes that pass the check.
    Text { field: Field<Text>, check: Check },
    /// Exactly one argument with its own syntax.
    One(Special),
    /// Any number of arguments; a single one is split at each space.
    Many(Special),
    /// Only allowed in files; CONFIG GET, SET and REWRITE do not know it.
    FileOnly(SetLine),
    /// Another file to read at this position.
    Include,
}

impl Kind {
    /// Returns the valid values in a few words, for administrators.
    pub fn form(&self) -> String {
        match self {
            Kind::Switch(_) => "yes or no".to_owned(),
            Kind::Integer { min, max, .. } => match (*min, *max) {
                (min, INT_MAX | LONG_MAX) if min <= i64::from(i32::MIN) => "number".to_owned(),
                (min, INT_MAX | LONG_MAX) => format!("number, at least {min}"),
                (min, max) => format!("number, {min} to {max}"),
            },
            Kind::Memory { min, max, .. } => match (*min, *max) {
                (0, SIZE_MAX..) => "memory".to_owned(),
                (min, SIZE_MAX..) => format!("memory, at least {}", value::memory_text(min)),
                (min, max) => {
                    let (min, max) = (value::memory_text(min), value::memory_text(max));
                    format!("memory, {min} to {max}")
                }
            },
            Kind::MemoryShare(_) => "memory, or a percentage, for example 5%".to_owned(),
            Kind::Mode(_) => "octal number, 0 to 777".to_owned(),
            Kind::Choice(choice) => format!("one of {}", (choice.list)()),
            Kind::Text { .. } => "text".to_owned(),
            Kind::One(special) | Kind::Many(special) => special.form.to_owned(),
            Kind::FileOnly(_) => "arguments".to_owned(),
            Kind::Include => "path".to_owned(),
        }
    }
}

/// The state of a directive's implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupportStatus {
    /// The server acts on it.
    InForce,
    /// Stored and shown; the feature that it controls is not implemented yet.
    Planned,
    /// Stored and shown so that existing files load; it never has an effect.
    Ignored,
}

/// A row of the table of directives.
pub struct Directive {
    /// The name, in lower case.
    pub name: &'static str,
    /// Another name. CONFIG GET shows both, CONFIG REWRITE writes `name`.
    pub alias: Option<&'static str>,
    /// Describes the directive to administrators in one or two sentences; a row without them does
    /// not compile.
    pub about: &'static str,
    /// The default, in the form that CONFIG SET accepts.
    pub default: &'static str,
    /// Type and field.
    pub kind: Kind,
    /// Can only be set at startup.
    pub immutable: bool,
    /// Like `immutable`, but setting it to the value that CONFIG GET shows is allowed and changes
    /// nothing. This is for programs that set everything they have read, except the directives that
    /// are immutable in Redis. Setting it under its alias, which is Redis's name, is rejected.
    pub fixed: bool,
    /// CONFIG GET shows it only if its exact name is requested.
    pub hidden: bool,
    /// CONFIG SET needs `enable-protected-configs`.
    pub protected: bool,
    /// CONFIG SET is rejected while a dataset is being loaded, because loading depends on the
    /// value.
    pub settled_while_loading: bool,
    /// The value is a secret, which must not appear in SLOWLOG, MONITOR and logs.
    pub sensitive: bool,
    /// All bytes of the value are read. Values of other directives end at the first NUL, as in
    /// Redis.
    pub binary: bool,
    /// The state of the directive's implementation.
    pub support_status: SupportStatus,
    /// Why the directive has no effect; empty if it is in force.
    pub reason: &'static str,
}

pub(super) const INT_MAX: i64 = i32::MAX as i64;
pub(super) const LONG_MAX: i64 = i64::MAX;
/// Redis stores most sizes in signed numbers, and the limit appears in error texts.
pub(super) const SIZE_MAX: u64 = i64::MAX as u64;

/// The message for a line that no directive accepts.
pub(super) const BAD_DIRECTIVE: &str = "Bad directive or wrong number of arguments";
const WRONG_COUNT: SettingRejection = SettingRejection::Borrowed("wrong number of arguments");

impl Directive {
    pub(super) const fn new(name: &'static str, default: &'static str, kind: Kind) -> Self {
        Self {
            name,
            alias: None,
            about: "",
            default,
            kind,
            immutable: false,
            fixed: false,
            hidden: false,
            protected: false,
            settled_while_loading: false,
            sensitive: false,
            binary: false,
            support_status: SupportStatus::InForce,
            reason: "",
        }
    }

    pub(super) const fn switch(
        name: &'static str,
        default: &'static str,
        field: Field<bool>,
    ) -> Self {
        Self::new(name, default, Kind::Switch(field))
    }

    pub(super) const fn integer(
        name: &'static str,
        default: &'static str,
        (min, max): (i64, i64),
        field: Field<i64>,
    ) -> Self {
        Self::new(name, default, Kind::Integer { field, min, max })
    }

    pub(super) const fn memory(
        name: &'static str,
        default: &'static str,
        (min, max): (u64, u64),
        field: Field<u64>,
    ) -> Self {
        Self::new(name, default, Kind::Memory { field, min, max })
    }

    pub(super) const fn choice(
        name: &'static str,
        default: &'static str,
        field: ChoiceField,
    ) -> Self {
        Self::new(name, default, Kind::Choice(field))
    }

    pub(super) const fn text(
        name: &'static str,
        default: &'static str,
        field: Field<Text>,
    ) -> Self {
        Self::new(name, default, Kind::Text { field, check: |_| Ok(()) })
    }

    pub(super) const fn checked_text(
        name: &'static str,
        default: &'static str,
        field: Field<Text>,
        check: Check,
    ) -> Self {
        Self::new(name, default, Kind::Text { field, check })
    }

    pub(super) const fn file_only(name: &'static str, set: SetLine) -> Self {
        Self::new(name, "", Kind::FileOnly(set))
    }

    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    pub(super) const fn immutable(mut self) -> Self {
        self.immutable = true;
        self
    }

    pub(super) const fn fixed(mut self) -> Self {
        self.fixed = true;
        self
    }

    pub(super) const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    pub(super) const fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    pub(super) const fn settled_while_loading(mut self) -> Self {
        self.settled_while_loading = true;
        self
    }

    pub(super) const fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    pub(super) const fn binary(mut self) -> Self {
        self.binary = true;
        self
    }

    /// Marks the directive as not implemented, for this reason.
    pub(super) const fn planned(mut self, reason: &'static str) -> Self {
        self.support_status = SupportStatus::Planned;
        self.reason = reason;
        self
    }

    /// Marks the directive as never having an effect, for this reason.
    pub(super) const fn ignored(mut self, reason: &'static str) -> Self {
        self.support_status = SupportStatus::Ignored;
        self.reason = reason;
        self
    }

    /// Returns the name and, if there is one, the alias.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.name), self.alias].into_iter().flatten()
    }

    pub(super) fn is_include(&self) -> bool {
        matches!(self.kind, Kind::Include)
    }

    /// Returns true if CONFIG GET and SET know the directive.
    pub fn is_setting(&self) -> bool {
        !matches!(self.kind, Kind::FileOnly(_) | Kind::Include)
    }

    /// Sets the directive from the arguments of a line.
    ///
    /// # Errors
    /// Returns the error in Redis's words. `config` may then be partly changed, so callers work on
    /// a copy.
    pub fn set(
        &self,
        config: &mut Config,
        words: &[Vec<u8>],
        write: Write,
    ) -> Result<(), SettingRejection> {
        let cut_each = |words: &[Vec<u8>]| -> Vec<Vec<u8>> {
            words.iter().map(|word| self.significant(word).to_vec()).collect()
        };
        match &self.kind {
            Kind::Many(special) => match words {
                // One argument may hold several values: `CONFIG SET save "900 1"`, `--save "900
                // 1"`.
                [] => (special.set)(config, &[], write),
                [one] if one.is_empty() => (special.set)(config, &[], write),
                [one] => {
                    let parts: Vec<_> = one.split(|b| *b == b' ').map(<[u8]>::to_vec).collect();
                    (special.set)(config, &cut_each(&parts), write)
                }
                several => (special.set)(config, &cut_each(several), write),
            },
            Kind::FileOnly(_) | Kind::Include => Err(BAD_DIRECTIVE.into()),
            _ => match words {
                [word] => self.set_one(config, word, write),
                _ => Err(WRONG_COUNT),
            },
        }
    }

    /// Returns the part of an argument that is read.
    fn significant<'w>(&self, word: &'w [u8]) -> &'w [u8] {
        if self.binary { word } else { value::until_nul(word) }
    }

    fn set_one(
        &self,
        config: &mut Config,
        word: &[u8],
        write: Write,
    ) -> Result<(), SettingRejection> {
        let until_nul = value::until_nul(word);
        match &self.kind {
            Kind::Switch(field) => {
                *(field.get_mut)(config) = switch(until_nul)?;
            }
            Kind::Integer { field, min, max } => {
                let number = value::integer(word).ok_or(SettingRejection::Borrowed(
                    "argument couldn't be parsed into an integer",
                ))?;
                *(field.get_mut)(config) = within(number, *min, *max)?;
            }
            Kind::Memory { field, min, max } => {
                let bytes = value::memory(until_nul)
                    .ok_or(SettingRejection::Borrowed("argument must be a memory value"))?;
                *(field.get_mut)(config) = within(bytes, *min, *max)?;
            }
            Kind::MemoryShare(field) => *(field.get_mut)(config) = memory_share(word)?,
            Kind::Mode(field) => *(field.get_mut)(config) = file_mode(until_nul)?,
            Kind::Choice(field) => (field.set)(config, until_nul)?,
            Kind::Text { field, check } => {
                let text = self.significant(word);
                check(text)?;
                *(field.get_mut)(config) = Text::from(text);
            }
            Kind::One(special) => (special.set)(config, &[until_nul.to_vec()], write)?,
            Kind::Many(_) | Kind::FileOnly(_) | Kind::Include => {}
        }
        Ok(())
    }

    /// Returns the value as CONFIG GET shows it; empty if the directive is not a setting.
    pub fn show(&self, config: &Config) -> Vec<u8> {
        match &self.kind {
            Kind::Switch(field) => yes_no(*(field.get)(config)).into(),
            Kind::Integer { field, .. } => (field.get)(config).to_string().into(),
            Kind::Memory { field, .. } => (field.get)(config).to_string().into(),
            Kind::MemoryShare(field) => match *(field.get)(config) {
                MemoryShare::Bytes(bytes) => bytes.to_string().into(),
                MemoryShare::Percent(percent) => format!("{percent}%").into(),
            },
            Kind::Mode(field) => format!("{:o}", (field.get)(config)).into(),
            Kind::Choice(field) => (field.get)(config).into(),
            Kind::Text { field, .. } => (field.get)(config).as_bytes().to_vec(),
            Kind::One(special) | Kind::Many(special) => (special.get)(config).into(),
            Kind::FileOnly(_) | Kind::Include => Vec::new(),
        }
    }

    /// Returns true if the directive's value is the one in `defaults`. A directive that is only
    /// allowed in files has no value.
    pub(super) fn is_default(&self, config: &Config, defaults: &Config) -> bool {
        self.lines(config) == self.lines(defaults)
    }

    /// Returns the arguments of each line that sets this value in a file, quoted where necessary.
    pub(super) fn lines(&self, config: &Config) -> Vec<String> {
        let one = match &self.kind {
            Kind::One(special) | Kind::Many(special) => return (special.lines)(config),
            Kind::FileOnly(_) | Kind::Include => return Vec::new(),
            Kind::Text { field, .. } => words::quote((field.get)(config).as_bytes()),
            Kind::Memory { field, .. } => value::memory_text(*(field.get)(config)),
            Kind::MemoryShare(field) => match *(field.get)(config) {
                MemoryShare::Bytes(bytes) => value::memory_text(bytes),
                MemoryShare::Percent(percent) => format!("{percent}%"),
            },
            _ => String::from_utf8_lossy(&self.show(config)).into_owned(),
        };
        vec![one]
    }

    /// Returns the arguments of each line that sets the default in a file; `defaults` is the
    /// default configuration.
    pub fn default_lines(&self, defaults: &Config) -> Vec<String> {
        match &self.kind {
            // The default of `dir` is the working directory at startup, so the default is taken
            // from the row.
            Kind::One(_) if self.default.is_empty() => vec![words::quote(b"")],
            Kind::One(_) => vec![self.default.to_owned()],
            _ => self.lines(defaults),
        }
    }
}

fn switch(word: &[u8]) -> Result<bool, SettingRejection> {
    if word.eq_ignore_ascii_case(b"yes") {
        Ok(true)
    } else if word.eq_ignore_ascii_case(b"no") {
        Ok(false)
    } else {
        Err("argument must be 'yes' or 'no'".into())
    }
}

fn yes_no(on: bool) -> &'static str {
    if on { "yes" } else { "no" }
}

fn within<N: PartialOrd + std::fmt::Display>(
    number: N,
    min: N,
    max: N,
) -> Result<N, SettingRejection> {
    if number < min || number > max {
        return Err(format!("argument must be between {min} and {max} inclusive").into());
    }
    Ok(number)
}

fn memory_share(word: &[u8]) -> Result<MemoryShare, SettingRejection> {
    const TOO_MUCH: SettingRejection =
        SettingRejection::Borrowed("percentage argument must be less or equal to 100");
    const NEITHER: SettingRejection =
        SettingRejection::Borrowed("argument must be a memory or percent value");
    if let Some(number) = word.strip_suffix(b"%") {
        return match value::integer(number) {
            Some(0) => Ok(MemoryShare::Bytes(0)),
            Some(percent @ 1..) => {
                let percent = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
                percent.map(MemoryShare::Percent).ok_or(TOO_MUCH)
            }
            _ => Err(NEITHER),
        };
    }
    match value::memory(value::until_nul(word)) {
        Some(bytes) if bytes <= SIZE_MAX => Ok(MemoryShare::Bytes(bytes)),
        // Redis reads this number as negative, which is how it stores percentages.
        Some(bytes) => match bytes.wrapping_neg() {
            percent @ 0..=100 => Ok(MemoryShare::Percent(percent as u8)),
            _ => Err(TOO_MUCH),
        },
        None => Err(NEITHER),
    }
}

fn file_mode(word: &[u8]) -> Result<u32, SettingRejection> {
    let octal = std::str::from_utf8(word).ok().filter(|w| w.bytes().all(|b| b.is_ascii_digit()));
    let mode = octal
        .and_then(|octal| u64::from_str_radix(octal, 8).ok())
        .ok_or(SettingRejection::Borrowed("argument couldn't be parsed as an octal number"))?;
    match u32::try_from(mode) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("argument must be between 0 and 777 inclusive".into()),
    }
}
