//! Rust source without what does not decide the code: comments, and how lines are broken.

/// The source with a space in the place of each comment, and of each run of spaces and line ends. Texts and characters
/// in quotes stay as they are.
pub(crate) fn without_comments(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (length, is_space) = match token(rest, first) {
            Token::Space(length) => (length, true),
            Token::Text(length) => (length, false),
        };
        let (this, behind) = rest.split_at(length);
        if !is_space {
            code.push_str(this);
        } else if !code.ends_with(' ') {
            code.push(' ');
        }
        rest = behind;
    }
    code
}

/// What stands at the beginning of a text, by its length in bytes.
enum Token {
    /// A comment or spaces.
    Space(usize),
    /// Anything else.
    Text(usize),
}

fn token(text: &str, first: char) -> Token {
    let bytes = text.as_bytes();
    if first.is_whitespace() {
        let end = text.find(|c: char| !c.is_whitespace());
        return Token::Space(end.unwrap_or(text.len()));
    }
    match first {
        '/' if text.starts_with("//") => Token::Space(text.find('\n').unwrap_or(text.len())),
        '/' if text.starts_with("/*") => Token::Space(block_comment(bytes)),
        '"' => Token::Text(quoted(bytes, 0)),
        '\'' => Token::Text(character_or_lifetime(text)),
        _ if first.is_alphabetic() || first == '_' => {
            let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
            let end = end.unwrap_or(text.len());
            match &text[..end] {
                "r" | "br" | "cr" => Token::Text(raw_text(text, end).unwrap_or(end)),
                // A prefix of a text in quotes: what follows is one.
                _ => Token::Text(end),
            }
        }
        _ => Token::Text(first.len_utf8()),
    }
}

/// The length of a block comment, in which others may be.
fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut i) = (0, 0);
    while i < bytes.len() {
        match &bytes[i..] {
            [b'/', b'*', ..] => (depth, i) = (depth + 1, i + 2),
            [b'*', b'/', ..] => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i
}

/// The end of a text whose opening quote is at `start`.
fn quoted(bytes: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while i < bytes.len() && bytes[i] != bytes[start] {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(bytes.len())
}

/// `'a'` is a character, `'a` a lifetime. A lifetime's name is read as a name next.
fn character_or_lifetime(text: &str) -> usize {
    let mut behind = text.chars().skip(1);
    match (behind.next(), behind.next()) {
        (Some('\\'), _) => quoted(text.as_bytes(), 0),
        (Some(character), Some('\'')) => 2 + character.len_utf8(),
        _ => 1,
    }
}

/// The end of a raw text, `r#".."#`, whose `r` ends at `prefix`.
fn raw_text(text: &str, prefix: usize) -> Option<usize> {
    let behind = &text[prefix..];
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    let opened = prefix + hashes + 1;
    behind[hashes..].starts_with('"').then(|| {
        let close = format!("\"{}", "#".repeat(hashes));
        let end = text[opened..].find(&close);
        end.map_or(text.len(), |end| opened + end + close.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_line_breaks_make_no_difference() {
        let plain = "fn f(x: u32) -> u32 {\n    x + 1\n}\n";
        let told = "//! Doc.\n\n/// Doc of `f`.\nfn f(x: u32) -> u32 {\r\n    // one more\n    \
            x /* a /* nested */ one */ + 1 // \"quoted\n}\n";
        assert_eq!(
            without_comments(told).trim(),
            without_comments(plain).trim()
        );
        assert_eq!(
            without_comments(plain).trim(),
            "fn f(x: u32) -> u32 { x + 1 }"
        );
    }

    #[test]
    fn what_looks_like_a_comment_in_a_text_stays() {
        for code in [
            r#"let x = "// no  comment";"#,
            r##"let x = r#"a " // no  comment"#;"##,
            r#"let x = br"\"; let y = "/*";"#,
            r#"let x = "\" // no  comment";"#,
            r"let x = ['\'', '/', '\\', '/', 'ä', '/'];",
            "fn f<'a>(x: &'a str) -> &'a str { x }",
            r#"let r = c"//  c"; let br = b"//  b";"#,
        ] {
            assert_eq!(without_comments(code), code);
        }
    }

    #[test]
    fn a_comment_separates_as_a_space_does() {
        assert_eq!(without_comments("a/**/b"), "a b");
        assert_eq!(without_comments("'a' /* '\" */ 'b"), "'a' 'b");
    }

    #[test]
    fn texts_that_never_end_are_taken_to_the_end() {
        for text in ["/* a", "\"a", "\"a\\", "r#\"a", "'", "'\\"] {
            without_comments(text);
        }
    }
}
