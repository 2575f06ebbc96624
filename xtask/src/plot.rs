//! Bars beside each other, drawn as SVG: what takes how much, the least at the top.
//!
//! Colours come from classes that follow the reader's light or dark scheme. Lengths are logarithmic, because the
//! longest is often hundreds of times the shortest; lines mark each power of ten, and each bar says its figure.

use std::fmt::Write as _;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// What stands behind the bar.
    pub(crate) label: String,
    pub(crate) colour: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Ours,
    Others,
    /// What ours and others are held against.
    Limit,
}

const WIDTH: f64 = 760.0;
/// Where bars begin: names are left of it.
const LEFT: f64 = 270.0;
/// What is kept free for the figure behind the longest bar.
const RIGHT: f64 = 90.0;
const ROW: f64 = 30.0;
const BAR: f64 = 18.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = 34.0;

const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:13px;fill:#24292f}
.title{font-size:16px;font-weight:600}.axis{font-size:11px;fill:#6e7781}.us{font-weight:600}
.back{fill:#ffffff;stroke:#d0d7de}.line{stroke:#d8dee4;stroke-width:1}
.ours{fill:#1a7f5a}.others{fill:#8c96a3}.limit{fill:#c9d1d9}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.axis{fill:#8d96a0}
.back{fill:#161b22;stroke:#30363d}.line{stroke:#30363d}
.ours{fill:#3fb98a}.others{fill:#6e7a88}.limit{fill:#434c56}}";

/// Draws bars in the order of their values. `unit` says what the scale counts, and `mark` writes a power of ten in it.
pub(crate) fn bars(
    title: &str,
    unit: &str,
    mut bars: Vec<Bar>,
    mark: impl Fn(f64) -> String,
) -> String {
    bars.retain(|bar| bar.value > 0.0);
    bars.sort_by(|one, other| one.value.total_cmp(&other.value));
    let least = bars.first().map_or(1.0, |bar| bar.value).log10().floor();
    let most = bars.last().map_or(10.0, |bar| bar.value).log10().ceil().max(least + 1.0);
    let room = WIDTH - LEFT - RIGHT;
    let length = |value: f64| (value.log10() - least) / (most - least) * room;
    let height = TOP + ROW * bars.len() as f64 + BOTTOM;
    // Writing to a string cannot fail.
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{title}\">\n<style>\n{STYLE}\n</style>\n\
         <rect class=\"back\" x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"20\" y=\"31\">{}</text>\n",
        WIDTH - 1.0,
        height - 1.0,
        escaped(title),
        title = escaped(title),
    );
    let mut power = least;
    while power <= most {
        let x = LEFT + length(10f64.powf(power));
        let _ = writeln!(
            out,
            "<line class=\"line\" x1=\"{x:.1}\" y1=\"{TOP:.0}\" x2=\"{x:.1}\" y2=\"{:.0}\"/>\n\
             <text class=\"axis\" x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            height - BOTTOM,
            height - BOTTOM + 17.0,
            escaped(&mark(10f64.powf(power))),
        );
        power += 1.0;
    }
    let _ = writeln!(
        out,
        "<text class=\"axis\" x=\"20\" y=\"{:.0}\">{}</text>",
        height - BOTTOM + 17.0,
        escaped(unit)
    );
    for (number, bar) in bars.iter().enumerate() {
        let top = TOP + ROW * number as f64 + (ROW - BAR) / 2.0;
        let text = top + 13.5;
        let (class, weight) = match bar.colour {
            Colour::Ours => ("ours", " class=\"us\""),
            Colour::Others => ("others", ""),
            Colour::Limit => ("limit", ""),
        };
        let long = length(bar.value).max(2.0);
        let _ = writeln!(
            out,
            "<text{weight} x=\"{:.0}\" y=\"{text:.1}\" text-anchor=\"end\">{}</text>\n\
             <rect class=\"{class}\" x=\"{LEFT:.0}\" y=\"{top:.1}\" width=\"{long:.1}\" height=\"{BAR:.0}\" rx=\"3\"/>\n\
             <text{weight} x=\"{:.1}\" y=\"{text:.1}\">{}</text>",
            LEFT - 10.0,
            escaped(&bar.name),
            LEFT + long + 8.0,
            escaped(&bar.label),
        );
    }
    out.push_str("</svg>\n");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, value: f64, colour: Colour) -> Bar {
        Bar { name: name.to_owned(), value, label: format!("{value} ms"), colour }
    }

    #[test]
    fn bars_are_sorted_and_as_long_as_their_logarithms() {
        let given = vec![
            bar("others & co", 100.0, Colour::Others),
            bar("ours", 10.0, Colour::Ours),
            bar("nothing", 0.0, Colour::Others),
            bar("the limit", 1.0, Colour::Limit),
        ];
        let svg = bars("A <title>", "milliseconds", given, |value| format!("{value}"));
        let rows: Vec<&str> = svg.lines().filter(|line| line.contains("height=\"18\"")).collect();
        assert_eq!(
            rows,
            [
                "<rect class=\"limit\" x=\"270\" y=\"64.0\" width=\"2.0\" height=\"18\" rx=\"3\"/>",
                "<rect class=\"ours\" x=\"270\" y=\"94.0\" width=\"200.0\" height=\"18\" rx=\"3\"/>",
                "<rect class=\"others\" x=\"270\" y=\"124.0\" width=\"400.0\" height=\"18\" rx=\"3\"/>",
            ]
        );
        assert!(svg.contains("A &lt;title&gt;") && svg.contains("others &amp; co"), "{svg}");
        assert!(
            svg.contains(">1</text>") && svg.contains(">10</text>") && svg.contains(">100</text>")
        );
        assert!(!svg.contains("nothing"), "what has no figure has no bar");
        assert!(svg.contains("prefers-color-scheme:dark"));
    }
}
