//! The account that a session acts as, and the permissions of its user.

use super::Session;
use crate::clients::accounts::Account;
use crate::clients::flag;
use brisk_acl::User;
use std::sync::Arc;

/// The account of a session, and the version of its user that applies.
#[derive(Clone)]
pub(super) struct SessionIdentity {
    account: Arc<Account>,
    user: Arc<User>,
    authenticated: bool,
    /// True if commands must be checked, because the session is not authenticated or has restricted permissions.
    restricted: bool,
}

impl SessionIdentity {
    /// The identity of a new connection, which acts as the default user.
    pub(super) fn of_default(default: &Arc<Account>) -> SessionIdentity {
        let user = default.user();
        let authenticated = user.is_open();
        SessionIdentity {
            account: Arc::clone(default),
            restricted: !authenticated || !user.is_unrestricted(),
            user,
            authenticated,
        }
    }
}

impl Session {
    /// The account of the user that the session acts as.
    pub fn account(&self) -> &Arc<Account> {
        &self.identity.account
    }

    /// The version of the user that applies to the session.
    pub fn user(&self) -> &User {
        &self.identity.user
    }

    #[inline]
    pub fn is_authenticated(&self) -> bool {
        self.identity.authenticated
    }

    /// Reports whether commands of this session must be checked.
    #[inline]
    pub fn is_restricted(&self) -> bool {
        self.identity.restricted
    }

    /// Lets the session run every command without a password.
    pub fn trust(&mut self) {
        (self.identity.authenticated, self.identity.restricted) = (true, false);
    }

    /// Makes the session act as this user from now on.
    pub fn act_as(&mut self, account: &Arc<Account>, authenticated: bool) {
        let own = &mut self.identity.account;
        if !Arc::ptr_eq(own, account) {
            own.leave(&self.record);
            *own = Arc::clone(account);
            own.join(&self.record);
            let name = if account.is_default() {
                "".into()
            } else {
                String::from_utf8_lossy(&account.name)
            };
            self.record.edit_texts(|texts| texts.user = name.into_owned());
        }
        self.identity.authenticated = authenticated;
        self.renew_user();
    }

    /// Loads the current version of the user.
    #[cold]
    pub fn renew_user(&mut self) {
        self.record.set(flag::USER_CHANGED, false);
        let own = &mut self.identity;
        own.user = own.account.user();
        own.restricted = !own.authenticated || !own.user.is_unrestricted();
        self.record.set(flag::AUTHENTICATED, own.authenticated);
    }

    /// Reports whether the user has been changed since the last check.
    #[inline]
    pub fn has_old_user(&self) -> bool {
        self.record.has(flag::USER_CHANGED)
    }
}
