//! CPU time, which does not depend on other work on the machine.

use std::fs;

/// Clock ticks of `/proc` per second.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds of a process, named as in `/proc`, and of the children that it has waited for. `None` if it is gone.
pub(crate) fn seconds_of(process: &str) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain blanks; fields are counted after it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(4).map(|field| field.parse::<f64>().unwrap_or(0.0));
    Some(ticks.sum::<f64>() / TICKS_PER_SECOND)
}

/// CPU seconds of this process and of the children that it has waited for.
pub(crate) fn seconds() -> f64 {
    seconds_of("self").unwrap_or(0.0)
}
