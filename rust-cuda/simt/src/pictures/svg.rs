//! Writes SVG: shapes and texts with classes, whose colours follow the reader's theme.

use std::fmt::Write;

/// The width of each picture in pixels.
pub(super) const WIDTH: f64 = 800.0;
/// The margin at both sides.
pub(super) const MARGIN: f64 = 24.0;
/// The width of a character of the class `code`.
pub(super) const CODE_CHARACTER: f64 = 6.65;
/// The characters of the class `note` that fit between the margins.
const NOTE_CHARACTERS: usize = 110;
/// The colours for parts that must differ: the classes `c0`, `c1` and so on.
pub(super) const COLORS: usize = 8;

/// A picture that grows downwards.
pub(super) struct Svg {
    title: String,
    body: String,
    /// Where the next part starts.
    pub y: f64,
}

/// Where the given position of a text is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Align {
    Start,
    Middle,
    End,
}

impl Svg {
    /// A picture with a title, a subtitle in the font of code, and how to read it.
    pub fn new(title: &str, subtitle: &str, reading: &str) -> Self {
        let mut svg = Self {
            title: title.to_owned(),
            body: String::new(),
            y: 34.0,
        };
        svg.text(MARGIN, svg.y, "title", title);
        if !subtitle.is_empty() {
            svg.y += 21.0;
            let fits = ((WIDTH - 2.0 * MARGIN) / CODE_CHARACTER) as usize;
            svg.text(MARGIN, svg.y, "code", &cut(subtitle, fits));
        }
        svg.y += 5.0;
        svg.note(reading);
        svg
    }

    /// A paragraph between the margins.
    pub fn note(&mut self, text: &str) {
        for line in wrap(text, NOTE_CHARACTERS) {
            self.y += 17.0;
            self.text(MARGIN, self.y, "note", &line);
        }
        self.y += 8.0;
    }

    /// A row of colours and what they mean.
    pub fn legend(&mut self, entries: &[(&str, &str)]) {
        let mut x = MARGIN;
        self.y += 12.0;
        for (class, text) in entries {
            let width = 20.0 + 6.5 * text.chars().count() as f64 + 18.0;
            if x > MARGIN && x + width - 18.0 > WIDTH - MARGIN {
                x = MARGIN;
                self.y += 18.0;
            }
            self.rect([x, self.y - 10.0, 13.0, 12.0], class);
            self.text(x + 20.0, self.y, "note", text);
            x += width;
        }
        self.y += 14.0;
    }

    /// A rectangle: left, top, width, height.
    pub fn rect(&mut self, [x, y, width, height]: [f64; 4], class: &str) {
        let (x, y, width, height) = (number(x), number(y), number(width), number(height));
        self.line_of(&format!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        ));
    }

    /// A straight line between two points.
    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        let (x1, y1, x2, y2) = (number(x1), number(y1), number(x2), number(y2));
        self.line_of(&format!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// A path in the syntax of SVG. [`number`] writes its coordinates.
    pub fn path(&mut self, path: &str, class: &str) {
        self.line_of(&format!(r#"<path class="{class}" d="{path}"/>"#));
    }

    /// A text that starts at a point of its base line.
    pub fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        self.aligned(x, y, class, text, Align::Start);
    }

    /// A text whose start, middle or end is at a point of its base line.
    pub fn aligned(&mut self, x: f64, y: f64, class: &str, text: &str, align: Align) {
        let anchor = match align {
            Align::Start => "",
            Align::Middle => r#" text-anchor="middle""#,
            Align::End => r#" text-anchor="end""#,
        };
        let (x, y, text) = (number(x), number(y), escape(text));
        self.line_of(&format!(
            r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#
        ));
    }

    /// A line of source, indented, as far as it fits.
    pub fn code(&mut self, x: f64, y: f64, class: &str, text: &str, width: f64) {
        let code = text.trim_start();
        let indent = CODE_CHARACTER * (text.len() - code.len()) as f64;
        // Not one character less for an error of rounding.
        let fits = ((width - indent) / CODE_CHARACTER + 0.01).max(1.0) as usize;
        self.text(x + indent, y, class, &cut(code, fits));
    }

    fn line_of(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// The file's text. The picture ends a margin below `y`.
    pub fn finish(self) -> String {
        let (width, height) = (number(WIDTH), number(self.y + MARGIN));
        let (title, body) = (escape(&self.title), self.body);
        let size = format!(r#"width="{width}" height="{height}" viewBox="0 0 {width} {height}""#);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">
<title>{title}</title>
<style>
{STYLE}</style>
<rect class="page" width="100%" height="100%"/>
{body}</svg>
"#
        )
    }
}

/// A coordinate with at most one digit after the point.
pub(super) fn number(value: f64) -> String {
    let rounded = (10.0 * value).round() / 10.0;
    // There is no "-0".
    format!("{}", rounded + 0.0)
}

/// Text without characters that mean something in XML, or that XML does not allow.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' => escaped.push_str("    "),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The first `characters` of a text; an ellipsis is the last one if the text is longer.
pub(super) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// The lines of a text that is broken between words.
fn wrap(text: &str, characters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= characters => {
                let _ = write!(line, " {word}");
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The classes of shapes and texts. Texts on colours are as light as the page, so that they are read in both themes.
const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_an_element() {
        let mut svg = Svg::new("a < b & \"c\"", "", "");
        svg.text(0.0, 0.0, "note", "</text><script>\u{1}");
        let text = svg.finish();
        assert!(text.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"));
        assert!(text.contains("&lt;/text&gt;&lt;script&gt;\u{fffd}"));
        assert!(!text.contains("<script"));
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(
            [1.0, 0.25, -0.01, 1e6 / 3.0].map(number),
            ["1", "0.3", "0", "333333.3"]
        );
    }

    #[test]
    fn long_texts_are_cut_visibly_and_paragraphs_are_broken_between_words() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abc defg", 5), "abc…");
        assert_eq!(wrap("ab cd  efg", 5), ["ab cd", "efg"]);
        assert_eq!(wrap("longer", 3), ["longer"]);
        assert!(wrap("", 3).is_empty());
    }

    #[test]
    fn a_line_of_code_keeps_its_indentation_and_its_width() {
        let mut svg = Svg::new("", "", "");
        svg.code(10.0, 0.0, "code", "    let row = 1;", 10.0 * CODE_CHARACTER);
        assert!(svg.finish().contains(r#"x="36.6" y="0">let r…<"#));
    }
}
