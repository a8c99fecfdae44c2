//! The unit that a worker is running: the transaction of EXEC or of a script.

use super::quiesce::Quiesced;
use brisk_engine::Env;
use brisk_engine::unit::Unit;

/// The unit that a worker is running, if any: the transaction of EXEC or of a script.
#[derive(Default)]
pub struct RunningUnit {
    unit: Option<Unit<'static>>,
    /// The time that TIME returns within the unit. Set by the first call.
    began_us: Option<u64>,
    /// Held while all other workers are quiesced for the unit.
    quiesced: Option<Quiesced<'static>>,
    /// True while the worker loads a file: it executes the file's commands while all other workers are quiesced.
    is_loading: bool,
}

/// A unit whose script is suspended.
#[derive(Default)]
pub struct ParkedUnit {
    unit: Option<Unit<'static>>,
    began_us: Option<u64>,
}

impl RunningUnit {
    /// Begins a unit. `quiesced` is set if all other workers were stopped for it.
    pub fn begin(&mut self, unit: Unit<'static>, quiesced: Option<Quiesced<'static>>) {
        debug_assert!(self.unit.is_none(), "one unit at a time");
        self.unit = Some(unit);
        self.quiesced = quiesced;
    }

    /// Reports whether a unit is running.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.unit.is_some()
    }

    /// The unit.
    #[inline]
    pub fn current(&mut self) -> Option<&mut Unit<'static>> {
        self.unit.as_mut()
    }

    /// Reports whether the unit holds slots. A unit holds slots only if each of its commands touches only the keys that
    /// the command names.
    pub fn holds_slots(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| !unit.is_alone())
    }

    /// Reports whether all other workers are already stopped, for a unit that holds no slots or for loading a file.
    pub(super) fn has_quiesced_others(&self) -> bool {
        self.unit.is_some() || self.is_loading
    }

    /// Keeps all other workers quiesced until the unit ends.
    pub fn keep_quiesced(&mut self, quiesced: Quiesced<'static>) {
        self.quiesced = Some(quiesced);
    }

    /// Lets the other workers continue before the unit ends.
    pub fn let_others_continue(&mut self) {
        self.quiesced = None;
    }

    /// The time, in Unix µs, that all commands of the unit see. This is the time of the first call.
    pub fn moment_us(&mut self, now_us: u64) -> u64 {
        *self.began_us.get_or_insert(now_us)
    }

    /// Ends the unit, but does not let stopped workers continue.
    pub fn end(&mut self, env: &Env) {
        if let Some(unit) = self.unit.take() {
            unit.finish(env);
        }
        self.began_us = None;
    }

    /// Suspends the unit.
    pub fn park(&mut self) -> ParkedUnit {
        ParkedUnit { unit: self.unit.take(), began_us: self.began_us.take() }
    }

    /// Continues a suspended unit. Returns false if there is none.
    pub fn resume(&mut self, parked: ParkedUnit) -> bool {
        (self.unit, self.began_us) = (parked.unit, parked.began_us);
        self.unit.is_some()
    }

    /// Notes that the worker begins to execute commands of a file.
    pub fn begin_loading(&mut self) {
        self.is_loading = true;
    }

    pub fn end_loading(&mut self) {
        self.is_loading = false;
    }

    /// Reports whether the worker executes commands of a file.
    #[inline]
    pub fn is_loading(&self) -> bool {
        self.is_loading
    }
}
