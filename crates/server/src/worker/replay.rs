//! Commands that a worker executes without a client: commands of the dataset that is being loaded, and commands of the
//! primary's stream.

use brisk_node::core::Core;
use brisk_node::persistence::loading::steps::{LoadingProgress, WorkerLoading};
use brisk_node::replication::upstream::applying::{Applier, ApplyProgress};
use brisk_node::replication::upstream::state::Upstream;
use brisk_structures::reclaim::Participant;
use std::sync::Arc;

/// The sources of replayed commands.
pub(super) struct ReplayedInput {
    /// This worker's part in loading the dataset, until it is loaded.
    loading: Option<WorkerLoading>,
    /// The primary of this server.
    upstream: Arc<Upstream>,
    /// Executes the stream of the primary. Only the first worker has an applier, and only after a part of the stream
    /// has arrived.
    applier: Option<Box<Applier>>,
}

impl ReplayedInput {
    pub(super) fn new(upstream: Arc<Upstream>) -> ReplayedInput {
        ReplayedInput { loading: None, upstream, applier: None }
    }

    /// Begins to load the dataset.
    pub(super) fn begin_loading(&mut self, loading: WorkerLoading) {
        self.loading = Some(loading);
    }

    #[inline]
    pub(super) fn is_loading(&self) -> bool {
        self.loading.is_some()
    }

    /// Does this worker's part in loading the dataset for a limited time.
    #[cold]
    pub(super) fn advance_loading(
        &mut self,
        core: &mut Core,
        participant: &Participant,
    ) -> LoadingProgress {
        let Some(loading) = &mut self.loading else { return LoadingProgress::Over };
        let progress = loading.advance(core, participant);
        if progress == LoadingProgress::Over {
            self.loading = None;
        }
        progress
    }

    /// Executes the stream from the primary for a limited time.
    #[inline]
    pub(super) fn advance_applying(
        &mut self,
        core: &mut Core,
        participant: &Participant,
    ) -> ApplyProgress {
        if core.id != 0 || !self.upstream.stream.is_ready() {
            return ApplyProgress::Nothing;
        }
        let new = || Box::new(Applier::new(core, Arc::clone(&self.upstream)));
        let mut applier = self.applier.take().unwrap_or_else(new);
        let progress = applier.execute(core, participant);
        self.applier = Some(applier);
        progress
    }
}
