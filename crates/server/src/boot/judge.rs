//! Validates the lines of a configuration file that only the whole program can check: command names and ACL rules.

use crate::commands;
use brisk_acl::{RuleError, SetError, User, Vocabulary};
use brisk_config::LineJudge;
use brisk_config::choice::PubsubDefault;
use brisk_config::value::SettingRejection;
use brisk_engine::table::CommandTable;

/// Checks lines of a configuration file. Contains all commands by their original names.
pub struct Judge {
    table: CommandTable,
}

impl Judge {
    /// Creates a judge for use before a server exists.
    pub(crate) fn new() -> Judge {
        let (table, _) = commands::table(&[]).expect("a table without renamed commands");
        Judge { table }
    }
}

impl Default for Judge {
    fn default() -> Judge {
        Judge::new()
    }
}

impl LineJudge for Judge {
    fn renamed_commands(&self, renamed: &[(String, String)]) -> Result<(), SettingRejection> {
        commands::table(renamed).map(|_| ()).map_err(SettingRejection::from)
    }

    fn user(&self, rules: &[&[u8]], channels: PubsubDefault) -> Result<(), SettingRejection> {
        let vocabulary = Vocabulary { table: &self.table, channels };
        let shown = |rule: &[u8]| String::from_utf8_lossy(rule).into_owned();
        match User::new(channels).changed(rules, vocabulary) {
            // As in Redis, the error is reported when the users are created.
            Ok(_) | Err(SetError::Rule(_, RuleError::Unknown)) => Ok(()),
            Err(SetError::Unmatched(rule)) => {
                let rule = shown(&rule);
                Err(format!("Unmatched parenthesis in acl selector starting at '{rule}'.").into())
            }
            Err(SetError::Rule(rule, why)) => {
                Err(format!("Error in user declaration '{}': {why}", shown(&rule)).into())
            }
        }
    }
}
