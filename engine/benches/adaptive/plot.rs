//! Line plots as SVG, and results as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

/// A line of a plot.
pub struct Line {
    pub name: &'static str,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

/// A plot.
pub struct Plot<'p> {
    pub title: &'p str,
    pub x: &'p str,
    pub y: &'p str,
    pub lines: &'p [Line],
    /// Moments to mark, with a word.
    pub marks: &'p [(f64, String)],
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 5] = ["#1f6fb4", "#c8501e", "#3c8c3c", "#7a4ea0", "#8a6a1e"];

impl Plot<'_> {
    fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x_max = points().map(|point| point.0).fold(1e-9, f64::max);
        let y_max = points().map(|point| point.1).fold(1e-9, f64::max) * 1.1;
        let at = |x: f64, y: f64| {
            let x = LEFT + x / x_max * (WIDTH - LEFT - RIGHT);
            (x, HEIGHT - BOTTOM - y / y_max * (HEIGHT - TOP - BOTTOM))
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
            self.title
        );
        for step in 0..=5 {
            let (x, y) = (x_max * f64::from(step) / 5.0, y_max * f64::from(step) / 5.0);
            let ((x_at, floor), (left, y_at)) = (at(x, 0.0), at(0.0, y));
            let right = WIDTH - RIGHT;
            let _ = writeln!(
                svg,
                "<path d=\"M{left} {y_at}H{right}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><text x=\"{x_at}\" y=\"{}\" text-anchor=\"middle\">{x:.1}</text>",
                left - 6.0,
                y_at + 4.0,
                short(y),
                floor + 16.0
            );
        }
        for (x, word) in self.marks {
            let (x, floor) = at(*x, 0.0);
            let _ = writeln!(
                svg,
                "<path d=\"M{x} {TOP}V{floor}\" stroke=\"#999\" stroke-dasharray=\"3 3\"/><text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#666\">{word}</text>",
                x + 3.0,
                TOP + 10.0
            );
        }
        for (number, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let mut path = String::new();
            for (index, &(x, y)) in line.points.iter().enumerate() {
                let (x, y) = at(x, y);
                let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
            }
            let legend = LEFT + 10.0 + 170.0 * number as f64;
            let _ = writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/><text x=\"{legend}\" y=\"36\" fill=\"{colour}\">{}</text>",
                line.name
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n</svg>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 10.0,
            self.x,
            (HEIGHT - BOTTOM + TOP) / 2.0,
            self.y
        );
        svg
    }
}

fn short(number: f64) -> String {
    match number {
        _ if number >= 1e6 => format!("{:.2}M", number / 1e6),
        _ if number >= 1e3 => format!("{:.0}k", number / 1e3),
        _ => format!("{number:.1}"),
    }
}

/// Writes both files.
pub fn write(directory: &Path, name: &str, plot: &Plot<'_>, result: &Value) {
    let files = [(format!("{name}.svg"), plot.svg()), (format!("{name}.json"), format!("{result:#}\n"))];
    for (file, text) in files {
        let path = directory.join(file);
        match std::fs::write(&path, text) {
            Ok(()) => println!("wrote {}", path.display()),
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
    }
}
