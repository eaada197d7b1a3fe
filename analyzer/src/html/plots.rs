//! Plots with axes, as SVG inside of the page: strips, steps, scatter.
//!
//! Drawn by plotters at three times their size, because its pixels are whole.
//! Colours are marks that the page's style gives a meaning in either scheme, so
//! none is ever seen as it stands here.

use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Circle, Color, DrawingArea, FontDesc, FontFamily, FontStyle, IntoDrawingArea,
    LineSeries, PathElement, RGBColor, SVGBackend, Text,
};
use plotters::style::TextStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Times the size at which it is seen.
const SCALE: i32 = 3;
/// Width at which a plot is seen on a phone; it grows a little where there is room.
const WIDTH: i32 = 360;
/// Size of text at that width.
const FONT: f64 = 11.0;
/// Marks that the style replaces.
const INK: RGBColor = RGBColor(0, 0, 1);
const GRID: RGBColor = RGBColor(0, 0, 2);
const POINT: RGBColor = RGBColor(0, 0, 3);
const LINE: RGBColor = RGBColor(0, 0, 4);
/// The first of eight of a series.
const SERIES: u8 = 16;
/// Series with a colour and dashes of their own.
pub(super) const SERIES_MAX: usize = 8;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// A plot that cannot be drawn is left out: writing to text fails in no other way.
type Outcome = Option<()>;

fn px(length: i32) -> i32 {
    length * SCALE
}

fn font(size: f64) -> FontDesc<'static> {
    // The backend takes a font's size in units that are 1.24 of what it writes.
    FontDesc::new(
        FontFamily::SansSerif,
        size * 1.24 * f64::from(SCALE),
        FontStyle::Normal,
    )
}

fn ink() -> TextStyle<'static> {
    TextStyle::from(font(FONT)).color(&INK)
}

fn svg(height: i32, label: &str, draw: impl FnOnce(&Area<'_>) -> Outcome) -> Markup {
    let mut text = String::new();
    let size = (px(WIDTH).unsigned_abs(), px(height).unsigned_abs());
    let drawn = {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area).and_then(|()| area.present().ok())
    };
    if drawn.is_none() {
        return html! {};
    }
    let body = text.split_once('>').map_or("", |(_, body)| body);
    // What is the default need not be said thousands of times.
    let body = body
        .replace(" stroke=\"none\"", "")
        .replace(" stroke-width=\"1\"", "")
        .replace(" opacity=\"1\"", "")
        .replace(" font-family=\"sans-serif\"", "");
    html! {
        svg viewBox=(format!("0 0 {} {}", size.0, size.1)) role="img" aria-label=(label) {
            (PreEscaped(body))
        }
    }
}

/// Milliseconds on an axis: no more digits than its steps need.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "what the library asks of a formatter"
)]
fn tick(value: &f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The end of an axis that begins at 0.
fn upper(values: impl Iterator<Item = f64>) -> f64 {
    let largest = values.fold(0.0, f64::max);
    if largest > 0.0 { largest * 1.04 } else { 1.0 }
}

/// One line of a strip plot.
pub(super) struct Strip {
    /// What it is of.
    pub(super) name: String,
    /// Its points, ascending, milliseconds.
    pub(super) points: Vec<f64>,
    /// Median and 95th percentile, milliseconds.
    pub(super) p50: Option<f64>,
    /// See `p50`.
    pub(super) p95: Option<f64>,
}

/// Every run as a point, a line for each stage, on one axis of milliseconds.
pub(super) fn strips(label: &str, strips: &[Strip]) -> Markup {
    let rows = i32::try_from(strips.len()).unwrap_or(i32::MAX).min(80);
    let end = upper(strips.iter().flat_map(|strip| strip.points.iter().copied()));
    svg(rows * 34 + 40, label, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(px(8))
            .margin_right(px(12))
            .x_label_area_size(px(34))
            .build_cartesian_2d(0f64..end, f64::from(rows)..0f64)
            .ok()?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(5)
            .x_label_formatter(&tick)
            .x_desc("ms")
            .label_style(ink())
            .axis_desc_style(ink())
            .axis_style(GRID)
            .bold_line_style(GRID)
            .light_line_style(GRID.mix(0.0))
            .draw()
            .ok()?;
        for (row, strip) in strips.iter().enumerate() {
            let top = row as f64;
            let dots = strip.points.iter().enumerate().map(|(place, value)| {
                // Steps of the golden ratio spread neighbours apart, the same every time.
                let spread = (place as f64 * 0.618_034).fract();
                Circle::new((*value, top + 0.46 + spread * 0.34), px(2), POINT.filled())
            });
            chart.draw_series(dots).ok()?;
            let marks = [(strip.p50, 3), (strip.p95, 1)];
            let marks = marks
                .into_iter()
                .filter_map(|(at, width)| Some((at?, width)));
            chart
                .draw_series(marks.map(|(at, width)| {
                    let ends = vec![(at, top + 0.4), (at, top + 0.86)];
                    PathElement::new(ends, LINE.stroke_width(width * 3))
                }))
                .ok()?;
            let name = Text::new(
                strip.name.clone(),
                (0.0, top + 0.36),
                ink().pos(Pos::new(HPos::Left, VPos::Bottom)),
            );
            chart.draw_series([name]).ok()?;
        }
        Some(())
    })
}

/// A stage against what the client saw, both in milliseconds, with the line that
/// was fitted, as two points.
pub(super) fn scatter(
    label: &str,
    axes: (&str, &str),
    points: &[(f64, f64)],
    line: Option<[(f64, f64); 2]>,
) -> Markup {
    let x_end = upper(points.iter().map(|(x, _)| *x));
    let y_end = upper(points.iter().map(|(_, y)| *y));
    svg(230, label, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(8))
            .margin_right(px(14))
            .x_label_area_size(px(36))
            .y_label_area_size(px(52))
            .build_cartesian_2d(0f64..x_end, 0f64..y_end)
            .ok()?;
        chart
            .configure_mesh()
            .x_labels(5)
            .y_labels(5)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .x_desc(axes.0)
            .y_desc(axes.1)
            .label_style(ink())
            .axis_desc_style(ink())
            .axis_style(GRID)
            .bold_line_style(GRID)
            .light_line_style(GRID.mix(0.0))
            .draw()
            .ok()?;
        if let Some(line) = line {
            let line = LineSeries::new(line, LINE.stroke_width(4));
            chart.draw_series(line).ok()?;
        }
        let dots = points
            .iter()
            .map(|at| Circle::new(*at, px(3), POINT.filled()));
        chart.draw_series(dots).ok()?;
        Some(())
    })
}

/// One line of [`steps`].
pub(super) struct Steps {
    /// Ascending values that are drawn, milliseconds, each with the part of the
    /// runs that is at or below it.
    pub(super) points: Vec<(f64, f64)>,
}

/// Empirical distributions: which part of the runs took no longer than that.
pub(super) fn steps(label: &str, x_desc: &str, series: &[Steps]) -> Markup {
    let all = || {
        series
            .iter()
            .flat_map(|one| one.points.iter().map(|(x, _)| *x))
    };
    let least = all().fold(f64::INFINITY, f64::min);
    let most = all().fold(0.0, f64::max);
    if !least.is_finite() {
        return html! {};
    }
    let room = ((most - least) * 0.05).max(most * 1e-3).max(1e-6);
    let (start, end) = ((least - room).max(0.0), most + room);
    svg(250, label, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(8))
            .margin_right(px(14))
            .x_label_area_size(px(36))
            .y_label_area_size(px(52))
            .build_cartesian_2d(start..end, 0f64..1.02)
            .ok()?;
        chart
            .configure_mesh()
            .x_labels(5)
            .y_labels(5)
            .x_label_formatter(&tick)
            .y_label_formatter(&|part: &f64| format!("{:.0} %", part * 100.0))
            .x_desc(x_desc)
            .y_desc("runs")
            .label_style(ink())
            .axis_desc_style(ink())
            .axis_style(GRID)
            .bold_line_style(GRID)
            .light_line_style(GRID.mix(0.0))
            .draw()
            .ok()?;
        let drawn = series.iter().take(SERIES_MAX).enumerate();
        for (place, one) in drawn.filter(|(_, one)| !one.points.is_empty()) {
            let mut corners = vec![(start, 0.0)];
            let mut level = 0.0;
            for (x, part) in &one.points {
                corners.extend([(*x, level), (*x, *part)]);
                level = *part;
            }
            corners.push((end, level));
            let mark = RGBColor(0, 0, SERIES + u8::try_from(place).unwrap_or(0));
            let line = LineSeries::new(corners, mark.stroke_width(5));
            chart.draw_series(line).ok()?;
        }
        Some(())
    })
}
