//! `oom-score-adj`: the OOM score, which determines the process that the kernel kills first when memory runs out.
//!
//! Redis uses a third score for its background child processes. This server has no child processes, so the third value
//! of `oom-score-adj-values` is stored but not used.

use brisk_config::choice::OomScoreAdjust;
use brisk_config::{Config, os_reason};
use brisk_observe::log::Log;
use brisk_structures::poison::EvenPoisoned;
use std::path::PathBuf;
use std::sync::Mutex;
use std::{fs, io};

const SCORES: std::ops::RangeInclusive<i64> = -1000..=1000;

/// The OOM score of this process.
#[derive(Debug)]
pub struct OomScore {
    path: PathBuf,
    /// The score before this server changed it; `None` if it was not changed.
    original: Mutex<Option<i64>>,
}

impl Default for OomScore {
    fn default() -> OomScore {
        OomScore { path: "/proc/self/oom_score_adj".into(), original: Mutex::default() }
    }
}

impl OomScore {
    /// Sets the score that is configured for a primary or a replica, or restores the original score.
    ///
    /// # Errors
    /// The score cannot be read or written. The log has the reason.
    #[expect(
        clippy::result_unit_err,
        reason = "the log has the reason, and the caller has no use for it"
    )]
    pub fn apply(&self, config: &Config, log: &Log) -> Result<(), ()> {
        let process = &config.process;
        let is_replica = config.replication.replicaof.is_some();
        let value = process.oom_score_adj_values[usize::from(is_replica)];
        let mut original = self.original.lock().even_poisoned();
        let score = match (process.oom_score_adj, *original) {
            (OomScoreAdjust::No, None) => return Ok(()),
            (OomScoreAdjust::No, Some(before)) => before,
            (how, known) => {
                let before = known.map_or_else(|| self.read(log), Ok)?;
                *original = Some(before);
                let base = if how == OomScoreAdjust::Relative { before } else { 0 };
                (base + value).clamp(*SCORES.start(), *SCORES.end())
            }
        };
        fs::write(&self.path, score.to_string()).map_err(|error| {
            log.warning(format_args!("Unable to write oom_score_adj: {}", os_reason(&error)));
        })?;
        if process.oom_score_adj == OomScoreAdjust::No {
            *original = None;
        }
        Ok(())
    }

    fn read(&self, log: &Log) -> Result<i64, ()> {
        let text = fs::read_to_string(&self.path);
        let score = text.and_then(|text| text.trim().parse().map_err(io::Error::other));
        score.map_err(|error| {
            log.warning(format_args!("Unable to read oom_score_adj: {}", os_reason(&error)));
        })
    }
}
