//! The threads that run callers and connections: their CPUs and their CPU time.

use crate::clock::process_cpu_ns;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use std::fs;
use std::sync::Mutex;

/// Threads of one runtime.
#[derive(Debug)]
pub(super) struct Threads {
    /// The CPUs, one for each thread in turn.
    cpus: Vec<usize>,
    ids: Mutex<Vec<i32>>,
}

/// The CPU time of the threads so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub(super) cpu_ns: u64,
    /// The time that the threads have waited for a CPU.
    pub(super) delay_ns: u64,
}

impl Threads {
    pub(super) fn new(cpus: Vec<usize>) -> Threads {
        Threads { cpus, ids: Mutex::new(Vec::new()) }
    }

    /// Each thread calls this when it starts.
    pub(super) fn begun(&self) {
        let mut ids = self.ids.lock().expect("nothing that panics is done with it");
        if let Some(&cpu) = self.cpus.get(ids.len() % self.cpus.len().max(1)) {
            let mut set = CpuSet::new();
            set.set(cpu);
            // If pinning fails, the results are still valid, but other processes may disturb them more.
            let _ = sched_setaffinity(None, &set);
        }
        ids.push(gettid().as_raw_nonzero().get());
    }

    /// The CPU time of the threads, or of the whole process if the kernel does not report that of threads.
    pub(super) fn used(&self) -> Used {
        let ids = self.ids.lock().expect("nothing that panics is done with it");
        let all: Option<Vec<Used>> = ids.iter().map(|id| of_thread(*id)).collect();
        match all {
            Some(all) => all.into_iter().fold(Used::default(), |sum, one| Used {
                cpu_ns: sum.cpu_ns + one.cpu_ns,
                delay_ns: sum.delay_ns + one.delay_ns,
            }),
            None => Used { cpu_ns: process_cpu_ns(), delay_ns: 0 },
        }
    }
}

fn of_thread(id: i32) -> Option<Used> {
    let text = fs::read_to_string(format!("/proc/self/task/{id}/schedstat")).ok()?;
    let mut words = text.split(' ').map(str::parse);
    Some(Used { cpu_ns: words.next()?.ok()?, delay_ns: words.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cpu_time_of_registered_threads_is_counted() {
        let threads = Threads::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                threads.begun();
                let before = threads.used();
                let own = crate::clock::thread_cpu_ns();
                while crate::clock::thread_cpu_ns() - own < 20_000_000 {}
                assert!(threads.used().cpu_ns - before.cpu_ns >= 10_000_000);
            });
        });
        let idle = Threads::new(Vec::new());
        assert_eq!(idle.used().cpu_ns, 0);
    }
}
