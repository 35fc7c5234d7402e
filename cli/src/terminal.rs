//! The terminal's width, and text that fits it.

use terminal_size::terminal_size_of;

/// The columns of the terminal; if the output goes elsewhere, what `COLUMNS` says, or 100.
pub fn width() -> usize {
    let of_terminal = || Some(usize::from(terminal_size_of(std::io::stdout())?.0.0));
    let of_variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = of_terminal().or_else(of_variable).unwrap_or(100);
    width.clamp(20, 200)
}

/// The text in lines of at most that many characters, if its words are no longer.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut current = String::new();
        for word in line.split_whitespace() {
            let length = current.chars().count() + 1 + word.chars().count();
            if !current.is_empty() && length > width {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines.join("\n")
}

/// The help of `clap`, its lines broken to that width; what continues stands below the beginning of its text.
pub fn wrapped_help(help: &str, width: usize) -> String {
    let mut text = String::new();
    for line in help.lines() {
        let indent = text_column(line);
        let mut column = 0;
        let mut pending = String::new();
        for piece in line.split_inclusive(' ') {
            let length = visible_length(piece);
            if column + visible_length(piece.trim_end()) > width && column > indent {
                text.push_str(pending.trim_end());
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                pending.clear();
                column = indent;
            }
            pending.push_str(piece);
            column += length;
        }
        text.push_str(pending.trim_end());
        text.push('\n');
    }
    text
}

/// The column at which the last text of a line begins, after two blanks or more.
fn text_column(line: &str) -> usize {
    let (mut column, mut blanks, mut start) = (0, 0, 0);
    let mut escape = false;
    for character in line.chars() {
        match character {
            '\x1b' => escape = true,
            _ if escape => escape = character != 'm',
            ' ' => {
                blanks += 1;
                column += 1;
            }
            _ => {
                if blanks >= 2 {
                    start = column;
                }
                blanks = 0;
                column += 1;
            }
        }
    }
    start
}

/// The characters that a terminal shows of a text with escapes of colours.
fn visible_length(text: &str) -> usize {
    let mut escape = false;
    let mut length = 0;
    for character in text.chars() {
        match character {
            '\x1b' => escape = true,
            _ if escape => escape = character != 'm',
            _ => length += 1,
        }
    }
    length
}

/// A bar of at most `width` characters, for a part of the whole from 0 to 1. What is not nothing is seen.
pub fn bar(part: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.0) * 8.0 * width as f64).round() as usize;
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// A count with blanks between thousands: `63 436`.
pub fn count(number: impl TryInto<u128>) -> String {
    let digits = number.try_into().unwrap_or(0).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes, with three digits or so.
pub fn bytes(number: u64) -> String {
    let mut rest = number as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if rest < 1000.0 {
            let digits = usize::from(unit != "B" && rest < 100.0);
            return format!("{rest:.digits$} {unit}");
        }
        rest /= 1000.0;
    }
    format!("{rest:.1} TB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_alone() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree");
        assert_eq!(wrapped("extraordinary", 5), "extraordinary");
        assert_eq!(wrapped("", 5), "");
    }

    #[test]
    fn help_is_continued_below_its_text() {
        let help = "  -o, --output <FILE>  A file for the result\nUsage: one two three";
        let wanted = "  -o, --output <FILE>  A file for\n                       the result\nUsage: one two three\n";
        assert_eq!(wrapped_help(help, 33), wanted);
        let colours = "  \x1b[1m--json\x1b[0m  One line of JSON";
        let wanted = "  \x1b[1m--json\x1b[0m  One line\n          of JSON\n";
        assert_eq!(wrapped_help(colours, 19), wanted);
        assert_eq!(
            wrapped_help("extraordinary words", 5),
            "extraordinary\nwords\n"
        );
    }

    #[test]
    fn a_bar_is_as_long_as_its_part_and_never_vanishes() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 5), "██▌");
        assert_eq!(bar(1e-9, 5), "▏");
        assert_eq!(bar(0.0, 5), "");
        assert_eq!(bar(7.0, 3), "███");
    }

    #[test]
    fn counts_and_bytes_are_readable() {
        assert_eq!(count(0u32), "0");
        assert_eq!(count(1_234_567usize), "1 234 567");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(2_500_000), "2.5 MB");
        assert_eq!(bytes(640_000_000_000), "640 GB");
    }
}
