//! Line plots as SVG within the page. Colors are classes of the page's style sheet.

use super::escaped;
use crate::experiments::finding::{Line, Plot};
use crate::experiments::render::format_number;
use std::ops::RangeInclusive;

pub(super) const WIDTH: f64 = 480.0;
pub(super) const HEIGHT: f64 = 290.0;
/// Margins around the plot area, for the labels.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 44.0;
/// Distance of the points from the frame.
const INSET: f64 = 10.0;
/// Values that a logarithmic axis can show.
const LOGARITHMIC: RangeInclusive<f64> = 1e-30..=1e30;
/// Number of colors. With more servers, colors are reused.
const COLOURS: usize = 5;
/// Maximum number of points that all have a label. If there are more, round numbers are labeled instead.
const PLACES_MAX: usize = 8;
/// Minimum distance of labels on the horizontal axis.
const LABEL_WIDTH: f64 = 30.0;

/// The class of a server's color.
pub(super) fn color(server: Option<usize>) -> String {
    server.map_or("x".to_owned(), |server| (server % COLOURS).to_string())
}

/// Positions on the horizontal axis with their labels.
pub(super) type Places = Vec<(f64, String)>;

/// A plot of lines. The ticks on the horizontal axis are at the points.
pub(super) fn lines(plot: &Plot) -> String {
    lines_at(plot, &places_of(plot))
}

/// The positions of the points, or round numbers if there are many points.
pub(super) fn places_of(plot: &Plot) -> Places {
    let xs = xs(&plot.lines);
    let places = match xs.as_slice() {
        [first, .., last] if xs.len() > PLACES_MAX => ticks(*first, *last, plot.logarithmic),
        _ => xs,
    };
    places.into_iter().map(|x| (x, short(x))).collect()
}

/// A plot of lines with ticks at these positions on the horizontal axis.
pub(super) fn lines_at(plot: &Plot, places: &Places) -> String {
    let Some(frame) = Frame::around(&plot.lines, plot.logarithmic) else { return String::new() };
    let svg = drawing(plot, &frame, places);
    figure_of(&plot.title, &legend(&plot.lines, &xs(&plot.lines)), HEIGHT, &svg)
}

/// The grid, the labels of the axes and the lines.
pub(super) fn drawing(plot: &Plot, frame: &Frame, places: &Places) -> String {
    let right = frame.width - RIGHT;
    let mut svg = String::new();
    for tick in ticks(frame.y.0, frame.y.1, plot.logarithmic) {
        let y = frame.at_y(tick);
        svg += &format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            right,
            LEFT - 7.0,
            y + 4.0,
            short(tick)
        );
    }
    let mut free_from = f64::MIN;
    let marks = places.iter().map(|(place, label)| (frame.at_x(*place), label));
    for (x, label) in marks.filter(|(x, _)| x.is_finite()) {
        svg += &format!(
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 5.0
        );
        if x >= free_from {
            let y = HEIGHT - BOTTOM + 19.0;
            svg += &format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>\n",
                escaped(label)
            );
            free_from = x + LABEL_WIDTH;
        }
    }
    svg += &format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text x=\"0\" y=\"11\">{}</text>\n",
        frame.center(),
        HEIGHT - 6.0,
        escaped(&plot.x),
        escaped(&plot.y)
    );
    let xs = xs(&plot.lines);
    // Draw computed lines first, so that they do not hide measured ones.
    for computed in [true, false] {
        for line in plot.lines.iter().filter(|line| line.computed == computed) {
            svg += &curve(line, frame, plot, &xs, places);
        }
    }
    svg
}

pub(super) fn figure_of(title: &str, legend: &str, height: f64, svg: &str) -> String {
    format!(
        "<figure>\n<figcaption>{0}</figcaption>\n{legend}\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{0}\">\n{svg}</svg>\n</figure>\n",
        escaped(title)
    )
}

/// The positions at which any of these lines has a point, from left to right.
fn xs(lines: &[Line]) -> Vec<f64> {
    let mut xs: Vec<f64> = points(lines).map(|(x, _)| x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    xs
}

/// The points of a line, split at positions where other lines have a point but this one does not.
fn parts<'a>(line: &'a Line, xs: &[f64]) -> impl Iterator<Item = &'a [(f64, f64)]> {
    let place = |x: f64| xs.partition_point(|&other| other < x);
    line.points.chunk_by(move |left, right| place(right.0) == place(left.0) + 1)
}

fn curve(line: &Line, frame: &Frame, plot: &Plot, xs: &[f64], places: &Places) -> String {
    let color = color(line.server);
    let class = if line.computed { "curve computed" } else { "curve" };
    let mut svg = String::new();
    for part in parts(line, xs).filter(|part| part.len() > 1) {
        let at: Vec<String> = part
            .iter()
            .filter(|&&(x, y)| frame.holds(x, y))
            .map(|&(x, y)| format!("{:.1},{:.1}", frame.at_x(x), frame.at_y(y)))
            .collect();
        svg += &format!("<polyline class=\"{class} s{color}\" points=\"{}\"/>\n", at.join(" "));
    }
    for &(x, y) in line.points.iter().filter(|&&(x, y)| frame.holds(x, y)) {
        let radius = if line.computed { 1.6 } else { 3.4 };
        svg += &format!(
            "<circle class=\"f{color}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\">\
             <title>{}: {} {} at {} {}</title></circle>\n",
            frame.at_x(x),
            frame.at_y(y),
            escaped(&line.name),
            format_number(y),
            escaped(&plot.y),
            escaped(&label_of(places, x)),
            escaped(&plot.x)
        );
    }
    svg
}

/// The label of a position on the axis.
fn label_of(places: &Places, x: f64) -> String {
    let named = places.iter().find(|(place, _)| place.total_cmp(&x).is_eq());
    named.map_or_else(|| short(x), |(_, label)| label.clone())
}

fn legend(lines: &[Line], xs: &[f64]) -> String {
    let mut text = "<div class=\"legend\">".to_owned();
    for line in lines {
        let color = color(line.server);
        let class = if line.computed { "curve computed" } else { "curve" };
        let mut sign = String::new();
        if parts(line, xs).any(|part| part.len() > 1) {
            sign +=
                &format!("<line class=\"{class} s{color}\" x1=\"1\" x2=\"21\" y1=\"5\" y2=\"5\"/>");
        }
        if !line.computed {
            sign += &format!("<circle class=\"f{color}\" cx=\"11\" cy=\"5\" r=\"3.4\"/>");
        }
        text +=
            &format!("<span><svg viewBox=\"0 0 22 10\">{sign}</svg>{}</span>", escaped(&line.name));
    }
    text + "</div>\n"
}

/// The ranges of both axes, and the size of the plot.
pub(super) struct Frame {
    x: (f64, f64),
    y: (f64, f64),
    logarithmic: bool,
    width: f64,
    /// Space to the left of the first point.
    inset: f64,
}

fn points(lines: &[Line]) -> impl Iterator<Item = (f64, f64)> {
    lines.iter().flat_map(|line| line.points.iter().copied())
}

impl Frame {
    /// The smallest frame that contains all points; `None` if there is nothing to show.
    pub(super) fn around(lines: &[Line], logarithmic: bool) -> Option<Frame> {
        let range = |values: &mut dyn Iterator<Item = f64>| {
            let wanted =
                |value: &f64| value.is_finite() && (!logarithmic || LOGARITHMIC.contains(value));
            let start = (f64::INFINITY, f64::NEG_INFINITY);
            let (low, high) = values
                .filter(wanted)
                .fold(start, |(low, high), value| (low.min(value), high.max(value)));
            (low <= high).then_some((low, high))
        };
        let mut x = range(&mut points(lines).map(|(x, _)| x))?;
        let mut y = range(&mut points(lines).map(|(_, y)| y))?;
        if logarithmic {
            y = (y.0 / 1.15, y.1 * 1.15);
            x = if x.0 < x.1 { x } else { (x.0 / 2.0, x.1 * 2.0) };
        } else {
            y = (y.0.min(0.0), if y.1 > 0.0 { y.1 * 1.05 } else { 1.0 });
            x = if x.0 < x.1 { x } else { (x.0 - 1.0, x.1 + 1.0) };
        }
        Some(Frame { x, y, logarithmic, width: WIDTH, inset: INSET })
    }

    /// A logarithmic frame with this width, and with space for labels below and to the left of the points.
    pub(super) fn with_labels(self, width: f64) -> Frame {
        const LABEL_PART: f64 = 0.14;
        const LABEL_WIDTH: f64 = 24.0;
        let (low, high) = self.y;
        Frame { y: (low / (high / low).powf(LABEL_PART), high), width, inset: LABEL_WIDTH, ..self }
    }

    pub(super) fn holds(&self, x: f64, y: f64) -> bool {
        x.is_finite()
            && y.is_finite()
            && (!self.logarithmic || (LOGARITHMIC.contains(&x) && LOGARITHMIC.contains(&y)))
    }

    fn part(&self, value: f64, (low, high): (f64, f64)) -> f64 {
        match self.logarithmic {
            true => (value / low).ln() / (high / low).ln(),
            false => (value - low) / (high - low),
        }
    }

    /// The middle of the horizontal axis.
    pub(super) const fn center(&self) -> f64 {
        f64::midpoint(LEFT, self.width - RIGHT)
    }

    pub(super) fn at_x(&self, x: f64) -> f64 {
        let room = self.width - LEFT - RIGHT - self.inset - INSET;
        LEFT + self.inset + self.part(x, self.x) * room
    }

    pub(super) fn at_y(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - self.part(y, self.y) * (HEIGHT - BOTTOM - TOP)
    }
}

/// Round values within a range. In a logarithmic range, they are powers of ten, with multiples by 2 and 5 if there are
/// few. In a linear range, they are four to eight multiples of 1, 2 or 5.
fn ticks(low: f64, high: f64, logarithmic: bool) -> Vec<f64> {
    const FEW_DECADES: f64 = 3.3;
    if logarithmic {
        let between: &[f64] =
            if (high / low).log10() < FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut decade = 10f64.powf(low.log10().floor());
        let mut ticks = Vec::new();
        while decade <= high {
            ticks.extend(between.iter().map(|part| part * decade));
            decade *= 10.0;
        }
        ticks.retain(|tick| (low..=high).contains(tick));
        return ticks;
    }
    let rough = (high - low) / 5.0;
    if rough <= 0.0 || !rough.is_finite() {
        return vec![low];
    }
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|part| part * decade).into_iter().rfind(|&step| step <= rough);
    let step = step.unwrap_or(decade);
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first).clamp(0.0, 50.0);
    let mut ticks = vec![first * step];
    let mut i = 1.0;
    while i <= count {
        ticks.push((first + i) * step);
        i += 1.0;
    }
    ticks
}

/// A number for an axis, such as `20 k` or `1.5 M`.
fn short(n: f64) -> String {
    let trimmed = |n: f64| {
        let text = format!("{n:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match n.abs() {
        a if a >= 1e6 => format!("{} M", trimmed(n / 1e6)),
        a if a >= 1e4 => format!("{} k", trimmed(n / 1e3)),
        a if a >= 0.1 || a == 0.0 => trimmed(n),
        _ => format!("{n:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(ticks(0.0, 10.0, false), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(3.0, 60.0, true), [5.0, 10.0, 20.0, 50.0]);
        // As many ticks as fit above each other.
        assert_eq!(ticks(1.0, 1000.0, true).len(), 10);
        assert_eq!(ticks(40.0, 250_000.0, true), [100.0, 1000.0, 10_000.0, 100_000.0]);
        assert_eq!(ticks(5.0, 5.0, false), [5.0]);
    }

    #[test]
    fn numbers_of_axes_are_short() {
        for (n, wanted) in
            [(1.0, "1"), (0.25, "0.25"), (2000.0, "2000"), (50_000.0, "50 k"), (1.5e6, "1.5 M")]
        {
            assert_eq!(short(n), wanted);
        }
    }

    #[test]
    fn a_line_is_parted_where_nothing_is_known() {
        let line = |name: &str, xs: &[f64]| Line {
            name: name.to_owned(),
            server: None,
            computed: false,
            points: xs.iter().map(|&x| (x, x * 10.0)).collect(),
        };
        let all = line("all", &[1.0, 5.0, 10.0, 100.0]);
        let plot = |lines| Plot {
            title: String::new(),
            x: String::new(),
            y: String::new(),
            logarithmic: true,
            lines,
        };
        let ends = lines(&plot(vec![all.clone(), line("ends", &[1.0, 100.0])]));
        // There are six points and two legend symbols, one of which has a line.
        assert_eq!((ends.matches("<polyline").count(), ends.matches("<circle").count()), (1, 8));
        assert_eq!(ends.matches("<line class=\"curve").count(), 1);
        let gap = lines(&plot(vec![all, line("gap", &[1.0, 5.0, 100.0])]));
        assert_eq!(gap.matches("<polyline").count(), 2);
        // Without other lines, there is no gap between its points.
        let alone = lines(&plot(vec![line("alone", &[1.0, 100.0])]));
        assert_eq!(alone.matches("<polyline").count(), 1);
    }

    #[test]
    fn no_data_gives_no_plot() {
        let line = Line { name: String::new(), server: None, computed: false, points: Vec::new() };
        let (title, x, y) = (String::new(), String::new(), String::new());
        let plot = Plot { title, x, y, logarithmic: true, lines: vec![line] };
        assert_eq!(lines(&plot), "");
    }
}
