//! Plots as SVG: pairs of bars, and columns of counts.

use super::super::{count, size};
use super::escaped;
use std::fmt::Write;

/// Dimensions of a plot, in its own units.
const WIDTH: f64 = 900.0;
const NAMES: f64 = 300.0;
const NUMBERS_WIDTH: f64 = 90.0;
const BAR: f64 = 11.0;
const GAP: f64 = 9.0;
const LEGEND: f64 = 22.0;
const COLUMNS_HEIGHT: f64 = 150.0;
const LABELS: f64 = 34.0;
/// Maximum number of characters of a name.
const NAME_CHARS_MAX: usize = 44;

/// Colors by class, so that one style sheet is enough.
pub(super) const STYLE: &str = "\
svg text{font:11px system-ui,sans-serif;fill:currentColor}.a{fill:#c8553d}.b{fill:#2a7f9e}.c{fill:#5b8c5a}";

/// A row of a plot: its label, and the numbers of Redis and Brisk.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) values: [f64; 2],
}

/// Horizontal bars, two for each name, whose lengths are the numbers of bytes.
pub(super) fn bars(all: &[Bar]) -> String {
    if all.is_empty() {
        return "<p class=note>None.</p>".to_owned();
    }
    let most = all.iter().flat_map(|bar| bar.values).fold(1.0, f64::max);
    let room = WIDTH - NAMES - NUMBERS_WIDTH;
    let line = 2.0 * BAR + GAP;
    let height = LEGEND + all.len() as f64 * line;
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">");
    let (first, second) = (NAMES + 16.0, NAMES + 86.0);
    let _ = write!(
        out,
        "<rect class=a x={NAMES} y=2 width=11 height=11 /><text x={first} y=12>Redis</text>\
         <rect class=b x={} y=2 width=11 height=11 /><text x={second} y=12>Brisk</text>",
        NAMES + 70.0
    );
    for (at, bar) in all.iter().enumerate() {
        let top = LEGEND + at as f64 * line;
        let name: String = bar.name.chars().take(NAME_CHARS_MAX).collect();
        let (full, name) = (escaped(&bar.name), escaped(&name));
        let (end, middle) = (NAMES - 8.0, top + BAR + 4.0);
        let _ = write!(
            out,
            "<text x={end} y={middle} text-anchor=end>{name}<title>{full}</title></text>"
        );
        for (row, (value, class)) in bar.values.into_iter().zip(["a", "b"]).enumerate() {
            let (y, width) = (top + row as f64 * BAR, room * value / most);
            let (x, base) = (NAMES + width + 5.0, y + BAR - 2.0);
            let _ = write!(
                out,
                "<rect class={class} x={NAMES} y={y} width={width:.1} height={} /><text x={x:.1} y={base}>{}</text>",
                BAR - 1.0,
                size(value)
            );
        }
    }
    out.push_str("</svg>");
    out
}

/// Vertical columns, whose heights are the counts, with names below.
pub(super) fn columns(all: &[(String, u64)]) -> String {
    let most = all.iter().map(|(_, keys)| *keys).max().unwrap_or(0).max(1) as f64;
    let step = WIDTH / all.len().max(1) as f64;
    let (top, height) = (16.0, COLUMNS_HEIGHT + 16.0 + LABELS);
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">");
    for (at, (name, keys)) in all.iter().enumerate() {
        let tall = COLUMNS_HEIGHT * *keys as f64 / most;
        let (x, y) = (at as f64 * step + step * 0.1, top + COLUMNS_HEIGHT - tall);
        let (middle, base) = (at as f64 * step + step / 2.0, top + COLUMNS_HEIGHT + 14.0);
        let _ = write!(
            out,
            "<rect class=c x={x:.1} y={y:.1} width={:.1} height={tall:.1} />\
             <text x={middle:.1} y={base} text-anchor=middle>{}</text>\
             <text x={middle:.1} y={:.1} text-anchor=middle>{}</text>",
            step * 0.8,
            escaped(name),
            y - 4.0,
            if *keys > 0 { count(*keys) } else { String::new() }
        );
    }
    out.push_str("</svg>");
    out
}
