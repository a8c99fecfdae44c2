//! Bars as SVG: the numbers of the servers and of the article next to each other.

use super::escaped;
use super::plot::{WIDTH, color, figure_of};
use crate::compare::ServerInfo;
use crate::experiments::finding::{Better, Row};
use crate::experiments::render::format_number;

const BAR_HEIGHT: f64 = 15.0;
/// Space between groups.
const GAP: f64 = 9.0;
/// Space for a number next to its bar.
const NUMBER_WIDTH: f64 = 64.0;
const LETTER_WIDTH: f64 = 7.0;
/// Maximum length of labels that are placed next to their bars. Longer labels are placed above their bars.
const LABEL_LETTERS: usize = 28;
/// Space for a label above its bars.
const LABEL_HEIGHT: f64 = 16.0;
/// Maximum length of a label. Longer labels would be wider than the plot and are truncated.
const LETTERS_MAX: usize = 70;
/// Maximum ratio of the largest to the smallest number in a plot. If the ratio is higher, bars would be unreadable, so
/// ratios to the first server are drawn instead of the numbers.
const SPREAD_MAX: f64 = 200.0;

/// Bars that belong together.
struct Group {
    label: String,
    /// The colors and lengths of the bars.
    bars: Vec<(Option<usize>, f64)>,
}

/// Horizontal bars: for each label one bar per server.
pub(super) fn bars(
    title: &str,
    unit: &str,
    names: &[String],
    groups: &[(String, Vec<Option<f64>>)],
) -> String {
    let groups: Vec<Group> = groups
        .iter()
        .map(|(label, values)| {
            let values = values.iter().enumerate();
            let bars = values.filter_map(|(server, value)| Some((Some(server), (*value)?)));
            Group { label: label.clone(), bars: bars.collect() }
        })
        .collect();
    let legend: Vec<(Option<usize>, &str)> =
        names.iter().enumerate().map(|(server, name)| (Some(server), name.as_str())).collect();
    drawn(&format!("{title}, {unit}"), &legend, &groups, None)
}

/// A plot for each unit of these rows.
pub(super) fn of_rows(rows: &[Row], servers: &[ServerInfo]) -> String {
    let mut units: Vec<&str> = Vec::new();
    for row in rows {
        if !units.contains(&row.unit.as_str()) {
            units.push(&row.unit);
        }
    }
    let of_unit = |unit: &&str| {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.unit == *unit).collect();
        of_one_unit(unit, &rows, servers)
    };
    units.iter().map(of_unit).collect()
}

fn of_one_unit(unit: &str, rows: &[&Row], servers: &[ServerInfo]) -> String {
    let better = match rows.first().map(|row| row.better) {
        Some(first) if rows.iter().all(|row| row.better == first) => match first {
            Better::More => " (more is better)",
            Better::Less => " (less is better)",
            Better::Neither => "",
        },
        _ => "",
    };
    let values = || rows.iter().flat_map(|row| row.values.iter().flatten()).filter(|v| **v > 0.0);
    let least = values().copied().fold(f64::INFINITY, f64::min);
    let most = values().copied().fold(0.0, f64::max);
    let as_ratios = rows.len() > 2 && most > least * SPREAD_MAX && servers.len() > 1;
    let groups = rows.iter().map(|row| {
        let of_server = |i: usize| if as_ratios { row.ratio(i) } else { *row.values.get(i)? };
        let bars = (0..servers.len()).filter_map(|i| Some((Some(i), of_server(i)?)));
        let article = if as_ratios { row.article_ratio() } else { row.article };
        let article = article.map(|value| (None, value));
        Group { label: row.what.clone(), bars: bars.chain(article).collect() }
    });
    // Omit groups without values.
    let groups: Vec<Group> = groups.filter(|group| !group.bars.is_empty()).collect();
    // The server that the others are compared with has no ratio.
    let with_bars = servers.iter().enumerate().skip(usize::from(as_ratios));
    let mut legend: Vec<(Option<usize>, &str)> =
        with_bars.map(|(i, one)| (Some(i), one.name.as_str())).collect();
    if groups.iter().flat_map(|group| &group.bars).any(|(server, _)| server.is_none()) {
        legend.push((None, "article"));
    }
    let title = match as_ratios {
        true => format!("{unit}, {} = 1{better}", servers[0].name),
        false => format!("{unit}{better}"),
    };
    drawn(&title, &legend, &groups, as_ratios.then_some(1.0))
}

/// Draws the groups below each other. If there is a `mark`, draws a line at this value.
fn drawn(
    title: &str,
    legend: &[(Option<usize>, &str)],
    groups: &[Group],
    mark: Option<f64>,
) -> String {
    let all = groups.iter().flat_map(|group| group.bars.iter().map(|&(_, value)| value));
    let max = all.fold(0.0, f64::max);
    if max <= 0.0 {
        return String::new();
    }
    let max = max.max(mark.unwrap_or(0.0));
    let longest = groups.iter().map(|group| group.label.chars().count()).max().unwrap_or(0);
    let above = longest > LABEL_LETTERS;
    let left = if above { 0.0 } else { longest as f64 * LETTER_WIDTH + 12.0 };
    let width = WIDTH - left - NUMBER_WIDTH;
    let (mut svg, mut y) = (String::new(), 8.0);
    for group in groups {
        let label = &group.label;
        if above {
            svg +=
                &format!("<text x=\"0\" y=\"{:.1}\">{}</text>\n", y + 11.0, escaped(&cut(label)));
            y += LABEL_HEIGHT;
        } else {
            svg += &format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                left - 8.0,
                y + group.bars.len() as f64 * BAR_HEIGHT / 2.0 + 3.0,
                escaped(label)
            );
        }
        for &(server, value) in &group.bars {
            let long = (value / max * width).max(1.0);
            svg += &format!(
                "<rect class=\"f{}\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{long:.1}\" \
                 height=\"{:.1}\" rx=\"2\"/><text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                color(server),
                BAR_HEIGHT - 3.0,
                left + long + 6.0,
                y + 10.5,
                format_number(value)
            );
            y += BAR_HEIGHT;
        }
        y += GAP;
    }
    if let Some(mark) = mark {
        let x = left + mark / max * width;
        // Drawn first, so that it is below all numbers.
        svg = format!(
            "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{y:.1}\"/>\n{svg}"
        );
    }
    let entry = |&(server, name): &(Option<usize>, &str)| {
        let color = color(server);
        format!("<span><i class=\"swatch b{color}\"></i>{}</span>", escaped(name))
    };
    let legend: String = legend.iter().map(entry).collect();
    figure_of(title, &format!("<div class=\"legend\">{legend}</div>\n"), y, &svg)
}

fn cut(label: &str) -> String {
    if label.chars().count() <= LETTERS_MAX {
        return label.to_owned();
    }
    label.chars().take(LETTERS_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: &str, unit: &str, article: Option<f64>, values: [f64; 2]) -> Row {
        let values = values.map(Some).to_vec();
        let (what, unit) = (what.to_owned(), unit.to_owned());
        Row { what, unit, better: Better::Less, article, values, details: Vec::new() }
    }

    fn servers() -> Vec<ServerInfo> {
        let server = |name: &str| ServerInfo {
            name: name.to_owned(),
            place: String::new(),
            version: None,
            local: true,
        };
        vec![server("peer"), server("ours")]
    }

    #[test]
    fn each_unit_has_a_plot_with_the_articles_number() {
        let rows = [row("a", "ms", Some(7.0), [1.0, 2.0]), row("b", "us", None, [3.0, 4.0])];
        let svg = of_rows(&rows, &servers());
        assert_eq!(svg.matches("<svg").count(), 2);
        assert_eq!(svg.matches("<rect").count(), 5);
        assert_eq!(svg.matches(">article</span>").count(), 1);
        for value in [1.0, 2.0, 3.0, 4.0, 7.0] {
            assert!(svg.contains(&format!(">{}</text>", format_number(value))), "{value}");
        }
    }

    #[test]
    fn numbers_far_apart_are_shown_as_ratios() {
        let mut rows = [
            row("a", "us", None, [0.1, 0.05]),
            row("b", "us", Some(8.0), [1.0, 3.0]),
            row("c", "us", None, [100.0, 25.0]),
        ];
        let svg = of_rows(&rows, &servers());
        assert!(svg.contains("us, peer = 1 (less is better)"), "{svg}");
        // The article's value is also a ratio to the first server's.
        for ratio in [0.5, 3.0, 0.25, 8.0] {
            assert!(svg.contains(&format!(">{}</text>", format_number(ratio))), "{ratio}");
        }
        assert_eq!(svg.matches("<rect").count(), 4);
        // The first server, whose ratio is 1, is drawn as a line.
        assert_eq!(svg.matches("class=\"mark\"").count(), 1);
        assert_eq!(svg.matches(">article</span>").count(), 1);
        rows[1].article = None;
        assert!(!of_rows(&rows, &servers()).contains(">article</span>"));
    }

    #[test]
    fn long_labels_do_not_leave_the_plot() {
        let svg = of_rows(&[row(&"x".repeat(90), "ms", None, [1.0, 2.0])], &servers());
        assert!(svg.contains("…</text>") && !svg.contains(&"x".repeat(LETTERS_MAX)));
        assert_eq!(bars("", "", &[], &[]), "");
    }
}
