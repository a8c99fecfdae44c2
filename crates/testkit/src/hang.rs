//! The state of the threads of a process that does not end.

use std::fs;
use std::process::Command;

/// The state of each thread, and the stacks if gdb is installed.
pub(crate) fn threads_of(pid: u32) -> String {
    states(pid) + &stacks(pid)
}

fn states(pid: u32) -> String {
    let mut text = String::new();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in threads {
        let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let (name, wait, call) = (read("comm"), read("wchan"), read("syscall"));
        text += &format!(
            "{} {}: waits in {wait}, system call {}\n",
            thread.file_name().display(),
            name.trim_end(),
            call.trim_end()
        );
    }
    text
}

fn stacks(pid: u32) -> String {
    let pid = pid.to_string();
    let offline = "set debuginfod enabled off";
    let all = "thread apply all backtrace 40";
    let gdb = ["60", "gdb", "-iex", offline, "-p", &pid, "-batch", "-ex", all];
    match Command::new("timeout").args(gdb).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => "no stacks: gdb is not installed, or failed\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_report_names_the_threads_of_a_process() {
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let named = std::thread::Builder::new().name("a-named-one".to_owned());
        let thread = named.spawn(move || ends.recv().is_err()).expect("a thread");
        let report = || super::states(std::process::id());
        crate::wait::wait_until("the thread to have its name", || report().contains("a-named-one"));
        drop(end);
        thread.join().expect("the thread");
    }
}
