//! The model, which defines the data that a server must find when it starts.
//!
//! Commands are numbered from 1. At each start, the server finds the number of the last command in the files. This
//! number must be between the last promised and the last executed command, and no transaction may be applied in part.

/// Counts events, to check that each of them occurs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) starts: u64,
    pub(super) upgrades: u64,
    /// Completed rewrites.
    pub(super) rewrites: u64,
    /// Starts that found fewer commands than were executed.
    pub(super) lost: u64,
    /// Files that were truncated, and truncated files that had a complete batch after the cut.
    pub(super) cuts: u64,
    pub(super) holes: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: Seen) {
        self.starts += other.starts;
        self.upgrades += other.upgrades;
        self.rewrites += other.rewrites;
        self.lost += other.lost;
        self.cuts += other.cuts;
        self.holes += other.holes;
    }

    /// The count of the rarest event.
    pub(super) fn least(self) -> u64 {
        let Seen { starts, upgrades, rewrites, lost, cuts, holes } = self;
        [starts, upgrades, rewrites, lost, cuts, holes].into_iter().min().unwrap_or_default()
    }
}

/// The commands that were executed and promised, and their positions in the stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Promises {
    pub(super) seen: Seen,
    /// The last executed command.
    total: u64,
    /// The position after each transaction, and its last command.
    ends: Vec<(u64, u64)>,
    /// The last command that is promised to be on the disk.
    on_disk: u64,
    /// The last command that is promised to survive a process crash.
    in_log: u64,
}

impl Promises {
    /// The promises for `commands` transactions of one command each that have been on the disk for
    /// a long time.
    pub(super) fn of_old(commands: u64) -> Promises {
        let ends = (0..=commands).map(|number| (0, number)).collect();
        let seen = Seen { upgrades: 1, ..Seen::default() };
        Promises { seen, total: commands, ends, on_disk: commands, in_log: commands }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn place(&self) -> u64 {
        self.ends.last().map_or(0, |end| end.0)
    }

    pub(super) fn execute(&mut self, commands: u64, bytes: u64) {
        let place = self.place() + bytes;
        self.total += commands;
        self.ends.push((place, self.total));
    }

    /// Notes that clients have received replies up to these positions in the stream.
    pub(super) fn note(&mut self, log: u64, disk: u64) {
        let up_to = |place| self.ends.iter().rfind(|end| end.0 <= place).map_or(0, |end| end.1);
        let (in_log, on_disk) = (up_to(log), up_to(disk));
        self.in_log = self.in_log.max(in_log).max(on_disk);
        self.on_disk = self.on_disk.max(on_disk);
    }

    /// Notes a power failure, after which only promises about the disk count.
    pub(super) fn lose_power(&mut self) {
        self.in_log = self.on_disk;
    }

    /// Checks the number of commands that a start found.
    #[track_caller]
    pub(super) fn check(&mut self, found: u64) {
        self.seen.starts += 1;
        self.seen.lost += u64::from(found < self.total);
        assert!(found >= self.in_log, "{} of {} promised are found", found, self.in_log);
        assert!(found <= self.total, "{found} of {} executed are found", self.total);
        let is_whole = found == 0 || self.ends.iter().any(|end| end.1 == found);
        assert!(is_whole, "a transaction was applied in part, up to {found}");
    }

    /// The server continues after this command and shows this state to all clients.
    pub(super) fn begin_with(&mut self, found: u64) {
        let place = self.place();
        self.total = found;
        self.ends.retain(|end| end.1 < found);
        self.ends.iter_mut().for_each(|end| end.0 = end.0.min(place));
        self.ends.push((place, found));
    }
}
