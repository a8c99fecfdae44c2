//! The plot of `docs/benchmarks.md`: the cost of every data command relative to each peer.

use crate::bench::results::{Measured, Results};
use std::fmt::Write as _;

const STYLE: &str = "\
text { font: 12px system-ui, -apple-system, \"Segoe UI\", \"Noto Sans\", sans-serif; fill: #59636e; }
.title { font-size: 17px; font-weight: 600; fill: #1f2328; }
.name { font-size: 13px; fill: #1f2328; }
.page { fill: #ffffff; stroke: #d1d9e0; }
.grid { stroke: #d1d9e0; } .equal { stroke: #57606a; }
.f0 { fill: #d9531e; } .f1 { fill: #2c6fbb; } .f2 { fill: #2f8f4e; }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1; } .title, .name { fill: #f0f6fc; }
  .page { fill: #0d1117; stroke: #3d444d; } .grid { stroke: #3d444d; } .equal { stroke: #9aa4ae; }
  .f0 { fill: #ff8a55; } .f1 { fill: #6aa9f2; } .f2 { fill: #63c986; }
}
";
const COLORS: usize = 3;
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
/// The plotting area.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 844.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 384.0;
/// The ratios at the lower and upper edge. Ratios beyond them are drawn at the edge.
const LOWEST: f64 = 0.1;
const HIGHEST: f64 = 2.0;
const LINES: [f64; 5] = [0.1, 0.2, 0.5, 1.0, 2.0];

/// Returns an SVG with one point for each command and peer, in the order of the ratios. `None` if no peer has ratios.
pub(super) fn plot(results: &Results) -> Option<String> {
    let case = results.cases.iter().find(|case| case.name == "every")?;
    let ratios_of = |peer: usize| {
        let measured = case.rows.iter().filter_map(|row| row.measured.get(peer).copied().flatten());
        let mut ratios: Vec<f64> = measured.filter_map(Measured::ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let all: Vec<(&String, Vec<f64>)> =
        results.peers.iter().enumerate().map(|(at, peer)| (peer, ratios_of(at))).collect();
    if all.iter().all(|(_, ratios)| ratios.is_empty()) {
        return None;
    }
    let title = "CPU time of each data command relative to other servers";
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"14\" y=\"30\">{title}</text>\n\
         <text x=\"14\" y=\"50\">Each point is a command; commands are sorted by ratio. Below 1.0, Brisk needs less CPU \
         time. {}</text>\n",
        WIDTH - 1.0,
        HEIGHT - 1.0,
        results.date
    );
    for line in LINES {
        let (class, y) = (if line == 1.0 { "equal" } else { "grid" }, height_of(line));
        _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{line}</text>",
            LEFT - 8.0,
            y + 4.0
        );
    }
    let mut x = 14.0;
    for (at, (peer, ratios)) in all.iter().enumerate() {
        let color = at % COLORS;
        let text =
            format!("{peer}: geometric mean {:.2} of {} commands", mean(ratios), ratios.len());
        _ = writeln!(
            svg,
            "<circle class=\"f{color}\" cx=\"{:.1}\" cy=\"68\" r=\"4\"/><text class=\"name\" x=\"{:.1}\" y=\"72\">{text}</text>",
            x + 4.0,
            x + 14.0
        );
        x += 400.0;
        let step = (RIGHT - LEFT) / ratios.len().max(1) as f64;
        for (place, &ratio) in ratios.iter().enumerate() {
            let (x, y) = (LEFT + (place as f64 + 0.5) * step, height_of(ratio));
            _ = writeln!(svg, "<circle class=\"f{color}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\"/>");
        }
    }
    Some(svg + "</svg>\n")
}

/// The vertical position of a ratio on a logarithmic scale.
fn height_of(ratio: f64) -> f64 {
    let share = (ratio.clamp(LOWEST, HIGHEST) / LOWEST).ln() / (HIGHEST / LOWEST).ln();
    BOTTOM - share * (BOTTOM - TOP)
}

/// The geometric mean.
fn mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::CaseResult;

    #[test]
    fn each_ratio_is_a_point_and_equal_costs_are_on_the_line() {
        let row = |ours: f64| {
            serde_json::json!({"what": "GET", "unit": "µs", "limit": "none",
                "measured": [{"ours": ours, "theirs": 1.0}]})
        };
        let case = serde_json::json!({"name": "every", "about": "", "commit": "", "seconds": 1, "has_peer": true,
            "rows": [row(0.25), row(1.0), row(4.0)]});
        let mut results = Results {
            date: "2026-11-29".to_owned(),
            commit: String::new(),
            machine: String::new(),
            rounds: 1,
            scale: 1.0,
            ours: String::new(),
            peers: vec!["Redis 7.0.15".to_owned()],
            cases: Vec::new(),
        };
        assert_eq!(plot(&results), None);
        results.cases = vec![serde_json::from_value::<CaseResult>(case).unwrap()];
        let svg = plot(&results).unwrap();
        assert_eq!(svg.matches("r=\"2.4\"").count(), 3);
        assert!(svg.contains("geometric mean 1.00 of 3 commands"), "{svg}");
        let on_the_line = format!("cy=\"{:.1}\" r=\"2.4\"", height_of(1.0));
        assert!(svg.contains(&on_the_line), "{svg}");
        assert!(height_of(1.0) < height_of(0.5) && (height_of(4.0) - TOP).abs() < 1e-9);
    }
}
