//! Plots of a comparison as a separate SVG file, for pages that cannot contain an HTML report.
//!
//! The file has its own background and style for light and dark mode, and no script.

use super::comparison::{over_depth, row_of};
use super::plot::{Frame, HEIGHT, color, drawing, places_of};
use super::{escaped, grouped};
use crate::compare::{CaseResult, Comparison, Metric};
use crate::experiments::finding::Plot;

const STYLE: &str = include_str!("svg.css");
const PANELS_PER_ROW: usize = 2;
const PANELS_MAX: usize = 8;
const PANEL_WIDTH: f64 = 416.0;
/// Space above a panel for its title.
const PANEL_TOP: f64 = 18.0;
const MARGIN: f64 = 14.0;
/// Space for the title, the conditions and the legend.
const HEAD_HEIGHT: f64 = 88.0;
/// Estimated width of a letter of the legend.
const LETTER_WIDTH: f64 = 7.2;
/// Distance between a point and the baseline of its label.
const LABEL_BELOW: f64 = 18.0;
/// Lines fall to the right, so labels are to the left of their points, except the last one.
const LABEL_LEFT: f64 = 7.0;
const LAST_LABEL_RIGHT: f64 = 4.0;

/// CPU time of the servers per request by pipeline depth, with a panel for each workload. If there are two servers, the
/// label at each depth is the ratio to the baseline.
///
/// # Errors
/// If no workload has CPU times at two depths, or there are too many workloads.
pub fn cpu_over_depth(comparison: &Comparison) -> Result<String, String> {
    let plots = over_depth(comparison, Metric::ServerCpu, "µs of CPU time per request");
    let lines: Vec<_> = plots.iter().flat_map(|plot| plot.lines.clone()).collect();
    let Some(frame) = Frame::around(&lines, true) else {
        return Err("no test has CPU times of the servers at two pipeline depths".to_owned());
    };
    if plots.len() > PANELS_MAX {
        return Err(format!("more than {PANELS_MAX} tests"));
    }
    let frame = frame.with_labels(PANEL_WIDTH);
    let rows = plots.len().div_ceil(PANELS_PER_ROW);
    let width = 2.0 * MARGIN + PANELS_PER_ROW as f64 * PANEL_WIDTH;
    let row_height = PANEL_TOP + HEIGHT;
    let height = HEAD_HEIGHT + rows as f64 * row_height + MARGIN;
    let title = "Server CPU time per request by pipeline depth";
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"30\">{title}</text>\n\
         <text x=\"{MARGIN}\" y=\"50\">{}</text>\n",
        width - 1.0,
        height - 1.0,
        escaped(&conditions(comparison))
    );
    svg += &legend(comparison);
    for (i, plot) in plots.iter().enumerate() {
        let (row, column) = (i / PANELS_PER_ROW, i % PANELS_PER_ROW);
        svg += &format!(
            "<g transform=\"translate({} {})\">\n{}</g>\n",
            MARGIN + column as f64 * PANEL_WIDTH,
            HEAD_HEIGHT + row as f64 * row_height,
            panel(comparison, plot, &frame)
        );
    }
    Ok(svg + "</svg>\n")
}

fn conditions(comparison: &Comparison) -> String {
    let conditions = &comparison.conditions;
    let mut parts = vec![format!("{} clients", conditions.clients)];
    parts.extend(conditions.keyspace.map(|keys| format!("{} keys", grouped(keys))));
    parts.push(format!("medians of {} rounds", conditions.rounds));
    parts.push(comparison.date.clone());
    format!("{}. Both axes are logarithmic; lower is better.", parts.join(", "))
}

/// The servers with their colors, and the meaning of the ratios.
fn legend(comparison: &Comparison) -> String {
    const Y: f64 = 72.0;
    // The symbols are centered vertically on the letters.
    let sign = Y - 4.5;
    let (mut svg, mut x) = (String::new(), MARGIN);
    for (i, server) in comparison.servers.iter().enumerate() {
        let name = server.version.as_ref().unwrap_or(&server.name);
        let color = color(Some(i));
        svg += &format!(
            "<line class=\"curve s{color}\" x1=\"{x}\" x2=\"{:.1}\" y1=\"{sign}\" y2=\"{sign}\"/>\
             <circle class=\"f{color}\" cx=\"{:.1}\" cy=\"{sign}\" r=\"3.4\"/>\
             <text class=\"name\" x=\"{:.1}\" y=\"{Y}\">{}</text>\n",
            x + 22.0,
            x + 11.0,
            x + 29.0,
            escaped(name)
        );
        x += 29.0 + name.chars().count() as f64 * LETTER_WIDTH + 22.0;
    }
    if let Some((base, _)) = pair(comparison) {
        svg += &format!(
            "<text x=\"{x:.1}\" y=\"{Y}\"><tspan class=\"ratio\">0.50</tspan> = half the CPU time of {}</text>\n",
            escaped(&comparison.servers[base].name)
        );
    }
    svg
}

/// The baseline and the other server, if there are exactly two.
fn pair(comparison: &Comparison) -> Option<(usize, usize)> {
    match (comparison.servers.len(), comparison.baseline) {
        (2, base @ 0..=1) => Some((base, 1 - base)),
        _ => None,
    }
}

fn panel(comparison: &Comparison, plot: &Plot, frame: &Frame) -> String {
    let mut svg = format!(
        "<text class=\"panel\" x=\"{:.1}\" y=\"12\" text-anchor=\"middle\">{}</text>\n\
         <g transform=\"translate(0 {PANEL_TOP})\">\n",
        frame.center(),
        escaped(&plot.title)
    );
    let ratios = pair(comparison).map_or_else(Vec::new, |(base, other)| {
        let of_title = comparison.cases.iter().filter(|case| case.title == plot.title);
        let mut ratios: Vec<_> = of_title.filter_map(|case| Ratio::of(case, base, other)).collect();
        ratios.retain(|ratio| {
            frame.holds(ratio.depth, ratio.low) && frame.holds(ratio.depth, ratio.high)
        });
        ratios.sort_by(|one, other| one.depth.total_cmp(&other.depth));
        ratios
    });
    for ratio in &ratios {
        svg += &format!(
            "<line class=\"link\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\"/>\n",
            frame.at_x(ratio.depth),
            frame.at_y(ratio.high),
            frame.at_y(ratio.low)
        );
    }
    svg += &drawing(plot, frame, &places_of(plot));
    for (i, ratio) in ratios.iter().enumerate() {
        let is_last = i + 1 == ratios.len();
        svg += &format!(
            "<text class=\"ratio\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.2}</text>\n",
            frame.at_x(ratio.depth) + if is_last { LAST_LABEL_RIGHT } else { -LABEL_LEFT },
            frame.at_y(ratio.low) + LABEL_BELOW,
            ratio.value
        );
    }
    svg + "</g>\n"
}

/// The ratio of two servers at a depth, and the range of their values.
struct Ratio {
    depth: f64,
    value: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    fn of(case: &CaseResult, base: usize, other: usize) -> Option<Ratio> {
        let row = row_of(case, Metric::ServerCpu)?;
        let value = row.ratios.get(other)?.as_ref()?.value;
        let median = |server: usize| row.medians.get(server).copied().flatten();
        let (one, other) = (median(base)?, median(other)?);
        let (low, high) = (one.min(other), one.max(other));
        Some(Ratio { depth: case.pipeline as f64, value, low, high })
    }
}
