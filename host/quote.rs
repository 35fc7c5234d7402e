//! Text of a file, as error messages quote it: short, and safe to print on a terminal.

/// The most characters of a quotation, escapes and the mark of a cut included.
const MOST: usize = 80;

/// The text between backticks, escaped and cut off by [`excerpt`].
#[cold]
pub(crate) fn quote(found: &[u8]) -> String {
    format!("`{}`", excerpt(found))
}

/// At most 80 characters: the text with control characters and bytes that are not UTF-8 escaped, then `…` if it is cut
/// off. An escape is never cut in two.
#[cold]
pub(crate) fn excerpt(found: &[u8]) -> String {
    let mut pieces = found.utf8_chunks().flat_map(|chunk| {
        let text = chunk.valid().chars().map(escaped);
        text.chain(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")))
    });
    let mut excerpt = String::new();
    let mut characters = 0;
    // The excerpt's length before the last piece that leaves room for the mark of a cut.
    let mut cut = 0;
    for piece in &mut pieces {
        characters += piece.chars().count();
        if characters > MOST {
            excerpt.truncate(cut);
            excerpt.push('…');
            break;
        }
        excerpt.push_str(&piece);
        if characters < MOST {
            cut = excerpt.len();
        }
    }
    excerpt
}

/// The character itself, or its escape if it is not printable. Quotation marks need no escape: backticks enclose the
/// text.
fn escaped(character: char) -> String {
    match character {
        '"' | '\'' => character.to_string(),
        _ => character.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_bytes_that_are_no_text_are_escaped() {
        assert_eq!(quote(b"1 2\t3"), "`1 2\\t3`");
        assert_eq!(quote(b"{'descr': \"x\"}"), "`{'descr': \"x\"}`");
        assert_eq!(quote(b"\x1b[2J\r\n\\"), "`\\u{1b}[2J\\r\\n\\\\`");
        assert_eq!(quote("a\u{202e}b".as_bytes()), "`a\\u{202e}b`");
        assert_eq!(quote(b"caf\xe9 \xff"), "`caf\\xe9 \\xff`");
        assert_eq!(quote(b""), "``");
    }

    #[test]
    fn at_most_80_characters_are_quoted_and_no_escape_is_cut() {
        let whole = "ä".repeat(80);
        assert_eq!(excerpt(whole.as_bytes()), whole);
        let long = "ä".repeat(81);
        assert_eq!(excerpt(long.as_bytes()), format!("{}…", "ä".repeat(79)));
        for length in 0..100 {
            let text = [vec![b'a'; length], b"\x1b\xff".repeat(1000)].concat();
            let excerpt = excerpt(&text);
            assert!(excerpt.chars().count() <= 80, "{excerpt}");
            let end = excerpt.strip_suffix('…').unwrap();
            let escapes = end.trim_start_matches('a');
            assert_eq!(escapes.replace("\\u{1b}", "").replace("\\xff", ""), "");
        }
    }
}
