//! The users of the server, and the sessions of each user.
//!
//! An [`Account`] is a user's name with the current version of the user. Sessions keep the version that they work with.
//! **Accounts change only while all other workers are quiesced.** The worker that changes an account marks the records
//! of its sessions. Each session loads the new version before its next command (`Session::renew_user`).

use crate::clients::{ClientRecord, Clients, flag};
use arc_swap::ArcSwap;
use brisk_acl::file::{self, FILE_BYTES_MAX, Users};
use brisk_acl::{DEFAULT_USER, Journal, User, Vocabulary};
use brisk_config::choice::PubsubDefault;
use brisk_config::value::Text;
use brisk_config::{os_reason, replace_file};
use brisk_structures::poison::EvenPoisoned;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A user with its name, and the sessions that act as this user.
#[derive(Debug)]
pub struct Account {
    pub name: Box<[u8]>,
    user: ArcSwap<User>,
    /// Sessions by id. Sessions of the default user are not listed, because these may be all sessions of the server.
    clients: Mutex<HashMap<u64, Arc<ClientRecord>>>,
}

impl Account {
    fn new(name: &[u8], user: User) -> Arc<Account> {
        let user = ArcSwap::from_pointee(user);
        Arc::new(Account { name: name.into(), user, clients: Mutex::default() })
    }

    /// The current version.
    pub fn user(&self) -> Arc<User> {
        self.user.load_full()
    }

    pub fn is_default(&self) -> bool {
        *self.name == *DEFAULT_USER.as_bytes()
    }

    /// Notes that a session acts as this user from now on.
    pub fn join(&self, record: &Arc<ClientRecord>) {
        if !self.is_default() {
            lock(&self.clients).insert(record.id, Arc::clone(record));
        }
    }

    /// Notes that a session no longer acts as this user.
    pub fn leave(&self, record: &ClientRecord) {
        if !self.is_default() {
            lock(&self.clients).remove(&record.id);
        }
    }

    /// Reports whether the session acts as this user. O(1).
    pub fn is_of(&self, record: &ClientRecord) -> bool {
        if self.is_default() {
            record.is_default_user()
        } else {
            lock(&self.clients).contains_key(&record.id)
        }
    }

    /// The sessions that act as this user and are not being killed, in order of id. O(number of sessions); O(clients)
    /// for the default user.
    pub fn clients(&self, all: &Clients) -> Vec<Arc<ClientRecord>> {
        if self.is_default() {
            let mut clients = all.list();
            clients.retain(|record| record.is_default_user());
            return clients;
        }
        let alive = |record: &&Arc<ClientRecord>| !record.killed.load(Ordering::Relaxed);
        let mut clients: Vec<_> = lock(&self.clients).values().filter(alive).cloned().collect();
        clients.sort_unstable_by_key(|record| record.id);
        clients
    }

    /// Puts a new version in force. The result names the sessions to close, which may not keep their subscriptions.
    fn put(self: &Arc<Account>, user: User, all: &Clients) -> Affected {
        let before = self.user.swap(Arc::new(user));
        let user = self.user();
        let clients = self.clients(all);
        for record in &clients {
            record.set(flag::USER_CHANGED, true);
        }
        let mut to_close = Vec::new();
        if !user.keeps_channels_of(&before) {
            let ends = |record: &&Arc<ClientRecord>| !record.may_keep_listening(&user);
            to_close.extend(clients.iter().filter(ends).cloned());
        }
        let clients = clients.into_iter().map(|record| (Arc::clone(self), record)).collect();
        Affected { clients, to_close }
    }
}

/// The sessions that are affected by a change of users.
#[derive(Debug, Default)]
pub struct Affected {
    /// Sessions whose users were changed.
    pub clients: Vec<(Arc<Account>, Arc<ClientRecord>)>,
    /// Sessions to close.
    pub to_close: Vec<Arc<ClientRecord>>,
}

impl Affected {
    fn join(&mut self, other: Affected) {
        self.clients.extend(other.clients);
        self.to_close.extend(other.to_close);
    }
}

/// All accounts, and the entries of ACL LOG.
#[derive(Debug)]
pub struct Accounts {
    accounts: Mutex<BTreeMap<Box<[u8]>, Arc<Account>>>,
    default: Arc<Account>,
    /// True if a connection may act as the default user without authenticating.
    default_is_open: AtomicBool,
    journal: Mutex<Journal>,
}

impl Accounts {
    /// Creates the default user, with all permissions and no password.
    pub fn new(vocabulary: Vocabulary<'_>) -> Accounts {
        let default = Account::new(DEFAULT_USER.as_bytes(), User::almighty(vocabulary));
        let accounts = BTreeMap::from([(default.name.clone(), Arc::clone(&default))]);
        let accounts = Mutex::new(accounts);
        let default_is_open = AtomicBool::new(true);
        Accounts { accounts, default, default_is_open, journal: Mutex::default() }
    }

    /// The user of new connections.
    pub fn default_account(&self) -> &Arc<Account> {
        &self.default
    }

    /// Reports whether a connection may act as the default user without authenticating. O(1).
    #[inline]
    pub fn default_is_open(&self) -> bool {
        self.default_is_open.load(Ordering::Relaxed)
    }

    pub fn find(&self, name: &[u8]) -> Option<Arc<Account>> {
        lock(&self.accounts).get(name).cloned()
    }

    /// All accounts in order of name.
    pub fn list(&self) -> Vec<Arc<Account>> {
        lock(&self.accounts).values().cloned().collect()
    }

    /// The line that ACL LIST shows for each user.
    pub fn lines(&self) -> Vec<Vec<u8>> {
        self.list().iter().map(|account| file::line(&account.name, &account.user())).collect()
    }

    pub fn journal(&self) -> MutexGuard<'_, Journal> {
        lock(&self.journal)
    }

    /// Creates a user or replaces its permissions. All other workers are quiesced, as for every change of users. The
    /// caller passes the result to `permission::settle_users`.
    pub fn set(&self, name: &[u8], user: User, all: &Clients) -> Affected {
        let known = self.find(name);
        let affected = match known {
            Some(account) => account.put(user, all),
            None => {
                lock(&self.accounts).insert(name.into(), Account::new(name, user));
                Affected::default()
            }
        };
        self.note_default();
        affected
    }

    /// Removes a user. `None` if it does not exist. The caller must not pass the default user.
    pub fn remove(&self, name: &[u8], all: &Clients) -> Option<Affected> {
        let account = lock(&self.accounts).remove(name)?;
        account.put(User::unprivileged(), all);
        Some(Affected { clients: Vec::new(), to_close: account.clients(all) })
    }

    /// Replaces all users with the users of an aclfile. If the file has an error, changes nothing. `name` is the name
    /// of the file in the configuration.
    pub fn load(
        &self,
        name: &[u8],
        path: &Path,
        vocabulary: Vocabulary<'_>,
        all: &Clients,
    ) -> Result<Affected, Vec<u8>> {
        let text = read(path).map_err(|error| {
            let why = os_reason(&error);
            [b"Error loading ACLs, opening file '", name, b"': ", why.as_bytes()].concat()
        })?;
        let users = file::with_default(file::parse(name, &text, vocabulary)?, vocabulary);
        Ok(self.replace(users, all))
    }

    fn replace(&self, users: Users, all: &Clients) -> Affected {
        let mut affected = Affected::default();
        for account in self.list() {
            if !users.contains_key(&account.name) {
                affected.join(self.remove(&account.name, all).unwrap_or_default());
            }
        }
        for (name, user) in users {
            affected.join(self.set(&name, user, all));
        }
        affected
    }

    /// Writes all users to an aclfile. The users are first written to a temporary file, which is then renamed.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let versions: Vec<_> = self.list().iter().map(|a| (a.name.clone(), a.user())).collect();
        let text = file::write(versions.iter().map(|(name, user)| (&**name, &**user)));
        replace_file(path, &text)
    }

    /// The arguments of each `user` line that CONFIG REWRITE writes. Lines of `included` files define their users again
    /// at the next start, so an unchanged user of these files is left out. A user of these files that has been deleted
    /// gets a line that prevents clients from logging in. O(users · included).
    pub fn config_lines(&self, included: &[Vec<Text>], vocabulary: Vocabulary<'_>) -> Vec<String> {
        let is_named = |words: &&Vec<Text>, name: &[u8]| {
            words.first().is_some_and(|word| word.as_bytes() == name)
        };
        let line = |name: &[u8], user: &User| {
            format!("{} {}", brisk_config::plain_or_quoted(name), user.config_words())
        };
        let accounts = self.list();
        let mut lines = Vec::new();
        for account in &accounts {
            let (name, user) = (&*account.name, account.user());
            let words = included.iter().find(|words| is_named(words, name));
            let defined = words.and_then(|words| {
                let rules: Vec<&[u8]> = words.iter().skip(1).map(Text::as_bytes).collect();
                User::new(vocabulary.channels).changed(&rules, vocabulary).ok()
            });
            if defined.is_none_or(|defined| defined.config_words() != user.config_words()) {
                lines.push(line(name, &user));
            }
        }
        let names = included.iter().filter_map(|words| words.first());
        for name in names.map(Text::as_bytes) {
            if accounts.iter().all(|account| *account.name != *name) {
                lines.push(line(name, &User::new(PubsubDefault::ResetChannels)));
            }
        }
        lines
    }

    /// Called when `requirepass` has changed.
    pub fn set_default_password(&self, password: &[u8], all: &Clients) {
        let mut user = User::clone(&self.default.user());
        user.set_only_password(password);
        self.default.put(user, all);
        self.note_default();
    }

    fn note_default(&self) {
        self.default_is_open.store(self.default.user().is_open(), Ordering::Relaxed);
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "File too large"));
    }
    Ok(text)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().even_poisoned()
}
