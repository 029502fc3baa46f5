//! Time series as a CSV file and as an SVG picture.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// One number over time.
#[derive(Debug)]
pub struct Series {
    /// Column of the table, with its unit.
    pub name: &'static str,
    pub color: &'static str,
    pub values: Vec<f64>,
}

/// Series that share an axis.
#[derive(Debug)]
pub struct Panel {
    pub title: &'static str,
    pub series: Vec<Series>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 40.0;
/// From one panel to the next.
const STEP: f64 = HEIGHT + 50.0;

/// Writes `PATH.csv`.
pub fn csv(path: &Path, times: &[f64], panels: &[Panel]) -> io::Result<()> {
    let mut text = String::from("seconds");
    let series = || panels.iter().flat_map(|panel| &panel.series);
    for series in series() {
        text.push(',');
        text.push_str(series.name);
    }
    text.push('\n');
    for (row, time) in times.iter().enumerate() {
        // Writing into a String cannot fail.
        let _ = write!(text, "{time:.3}");
        for series in series() {
            let _ = write!(text, ",{:.3}", series.values.get(row).copied().unwrap_or_default());
        }
        text.push('\n');
    }
    std::fs::write(path, text)
}

/// Writes `PATH.svg`: the panels one below the other, time from left to right.
pub fn svg(path: &Path, title: &str, times: &[f64], panels: &[Panel]) -> io::Result<()> {
    let end = times.last().copied().unwrap_or_default().max(f64::MIN_POSITIVE);
    #[expect(clippy::cast_precision_loss, reason = "a handful of panels")]
    let height = TOP + STEP * panels.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>\n",
        LEFT + WIDTH + 30.0
    );
    let mut top = TOP;
    for panel in panels {
        draw(&mut text, panel, times, end, top);
        top += STEP;
    }
    text.push_str("</svg>\n");
    std::fs::write(path, text)
}

fn draw(text: &mut String, panel: &Panel, times: &[f64], end: f64, top: f64) {
    let (bottom, right) = (top + HEIGHT, LEFT + WIDTH);
    let top = top + 18.0;
    let values = panel.series.iter().flat_map(|series| series.values.iter().copied());
    let most = nice(values.fold(0.0, f64::max));
    let x = |time: f64| LEFT + WIDTH * time / end;
    let y = |value: f64| bottom - (bottom - top) * value / most;
    let mut legend = LEFT;
    // Writing into a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>",
        top - 6.0,
        panel.title
    );
    for part in [0.0, 0.5, 1.0] {
        let at = y(most * part);
        let _ = writeln!(
            text,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#666\">{:.1} s</text>",
            LEFT - 6.0,
            at + 4.0,
            short(most * part),
            x(end * part),
            bottom + 14.0,
            end * part
        );
    }
    legend += 260.0;
    for series in &panel.series {
        let _ = write!(
            text,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"",
            series.color
        );
        for (time, value) in times.iter().zip(&series.values) {
            let _ = write!(text, "{:.1},{:.1} ", x(*time), y(*value));
        }
        let _ = writeln!(
            text,
            "\"/>\n<text x=\"{legend}\" y=\"{}\" fill=\"{}\">{}</text>",
            top - 6.0,
            series.color,
            series.name
        );
        legend += 160.0;
    }
}

/// The next of 1, 2, 5, 10, 20, … that is at least as much.
fn nice(most: f64) -> f64 {
    let mut scale = 1e-3;
    loop {
        for step in [1.0, 2.0, 5.0] {
            if scale * step >= most {
                return scale * step;
            }
        }
        scale *= 10.0;
        if !scale.is_finite() {
            return most;
        }
    }
}

fn short(value: f64) -> String {
    if value >= 10_000.0 {
        format!("{:.0}k", value / 1000.0)
    } else {
        format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Panel, Series, csv, nice, short, svg};

    #[test]
    fn scales_and_labels_are_round() {
        assert_eq!(
            [0.0, 0.9, 1.0, 1.1, 3.0, 17.0, 2001.0].map(nice),
            [1e-3, 1.0, 1.0, 2.0, 5.0, 20.0, 5000.0]
        );
        assert_eq!([0.0, 0.5, 25.0, 20_000.0].map(short), ["0", "0.5", "25", "20k"]);
    }

    #[test]
    fn a_table_has_a_row_for_each_moment_and_a_picture_a_line_for_each_series() {
        let folder = std::env::temp_dir().join(format!("kubestrata-plot-{}", std::process::id()));
        // A process of the same number may have left it.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let series = |name| Series { name, color: "red", values: vec![1.0, 2.0] };
        let panels = [Panel { title: "one", series: vec![series("a"), series("b")] }];
        let (table, picture) = (folder.join("x.csv"), folder.join("x.svg"));
        csv(&table, &[0.0, 0.1], &panels).unwrap();
        svg(&picture, "t", &[0.0, 0.1], &panels).unwrap();
        let table = std::fs::read_to_string(table).unwrap();
        assert_eq!(table, "seconds,a,b\n0.000,1.000,1.000\n0.100,2.000,2.000\n");
        let picture = std::fs::read_to_string(picture).unwrap();
        assert_eq!(picture.matches("<polyline").count(), 2);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
