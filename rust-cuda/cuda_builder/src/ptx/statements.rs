//! The statements at the top level of a PTX text.

use super::PtxError;

/// A statement, without comments and empty lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    pub text: &'a str,
    pub kind: Kind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// `.version 7.0`, say: the name without its dot, and the rest.
    Directive(&'a str, &'a str),
    /// A kernel, and where the text has the brace that opens its body.
    Entry { name: &'a str, body: usize },
    /// A function or variable that others may use; a function may have a declaration and a definition.
    Symbol(&'a str),
    /// What only debuggers read.
    Debug,
}

/// Directives that end with their line.
const LINES: [&str; 4] = [".version", ".target", ".address_size", ".file"];

/// A text without comments, empty lines and spaces at the ends of lines.
pub(super) fn without_comments(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut in_block = false;
    for line in text.lines() {
        // Where the instructions are from in the source: for debuggers.
        if line.split_whitespace().next() == Some(".loc") {
            continue;
        }
        let begin = clean.len();
        let mut rest = line;
        loop {
            if in_block {
                let Some((_, behind)) = rest.split_once("*/") else {
                    break;
                };
                (rest, in_block) = (behind, false);
            }
            let Some(at) = comment(rest) else {
                clean.push_str(rest);
                break;
            };
            let (code, found) = rest.split_at(at);
            clean.push_str(code);
            if found.starts_with("//") {
                break;
            }
            (rest, in_block) = (&found[2..], true);
        }
        let end = clean.trim_end().len().max(begin);
        clean.truncate(end);
        if end > begin {
            clean.push('\n');
        }
    }
    clean
}

/// Where a line has its first comment, outside of quotes.
fn comment(line: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + line[from..].find('/')?;
        let quotes = line[..at].bytes().filter(|&byte| byte == b'"').count();
        let behind = &line[at..];
        if quotes % 2 == 0 && (behind.starts_with("//") || behind.starts_with("/*")) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// The statements of a text without comments, in its order.
pub(super) fn statements(clean: &str) -> Result<Vec<Statement<'_>>, PtxError> {
    let mut statements = Vec::new();
    let mut rest = clean.trim_start();
    while !rest.is_empty() {
        let (length, body) = extent(rest).ok_or_else(|| PtxError::Unfinished(first_line(rest)))?;
        let text = rest[..length].trim_end();
        let kind = kind(text, body).ok_or_else(|| PtxError::NoName(first_line(text)))?;
        statements.push(Statement { text, kind });
        rest = rest[length..].trim_start();
    }
    Ok(statements)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The length of the statement that a text begins with, and where its first brace is.
fn extent(text: &str) -> Option<(usize, Option<usize>)> {
    let first = text.split_whitespace().next().unwrap_or_default();
    if LINES.contains(&first) {
        return Some((text.find('\n').unwrap_or(text.len()), None));
    }
    let (mut depth, mut body, mut quoted) = (0_u32, None, false);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' => depth += 1,
            b'{' => {
                body = body.or(Some(i));
                depth += 1;
            }
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'}' => {
                depth = depth.checked_sub(1)?;
                // The braces of a variable's values stand before its semicolon.
                let is_body = || !text[..body.unwrap_or(i)].contains('=');
                if depth == 0 && is_body() {
                    return Some((i + 1, body));
                }
            }
            b';' if depth == 0 => return Some((i + 1, None)),
            _ => {}
        }
    }
    None
}

fn kind(text: &str, body: Option<usize>) -> Option<Kind<'_>> {
    let first = text.split_whitespace().next()?;
    if first == ".section" || first == ".file" {
        return Some(Kind::Debug);
    }
    if LINES.contains(&first) || first == ".pragma" {
        return Some(Kind::Directive(&first[1..], text[first.len()..].trim()));
    }
    let head = &text[..text.find(['(', '{', '=', ';']).unwrap_or(text.len())];
    let is = |word: &str| head.split_whitespace().any(|found| found == word);
    if is(".entry") {
        let name = name(&text[text.find(".entry")? + ".entry".len()..])?;
        return Some(match body {
            Some(body) => Kind::Entry { name, body },
            None => Kind::Symbol(name),
        });
    }
    let mut declared = text;
    if is(".func") {
        declared = text[text.find(".func")? + ".func".len()..].trim_start();
        // The value that it returns, in parentheses.
        if declared.starts_with('(') {
            declared = &declared[declared.find(')')? + 1..];
        }
    }
    name(declared).map(Kind::Symbol)
}

/// The first identifier that is no directive or part of one.
fn name(text: &str) -> Option<&str> {
    identifiers(text)
        .find(|at| !text[..at.start].ends_with('.'))
        .map(|at| &text[at])
}

/// The places of the identifiers in a text, directives and instructions among them.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut next = 0;
    std::iter::from_fn(move || {
        while next < bytes.len() {
            let start = next;
            while next < bytes.len() && is_part(bytes[next]) {
                next += 1;
            }
            if next == start {
                next += 1;
            } else if !bytes[start].is_ascii_digit() {
                return Some(start..next);
            }
        }
        None
    })
}

/// Whether a byte may be in an identifier.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind<'_>> {
        let statements = statements(text).unwrap();
        statements
            .into_iter()
            .map(|statement| statement.kind)
            .collect()
    }

    #[test]
    fn comments_and_empty_lines_go() {
        let text = "//\n// made by LLVM\n\n.version 7.0  // new\r\n\t// asm\n\
            .file 1 \"/a//b\"\n/* two\nlines */ ret; /* and */ exit;\n";
        assert_eq!(
            without_comments(text),
            ".version 7.0\n.file 1 \"/a//b\"\n ret;  exit;\n"
        );
    }

    #[test]
    fn statements_are_told_apart_by_what_they_declare() {
        let text = ".version 7.0\n.target sm_80, debug\n.pragma \"nounroll\";\n\
            .extern .shared .align 16 .b8 memory[];\n\
            .global .align 4 .b8 table[8] = {1, 2, 3, 4,\n5, 6, 7, 8};\n\
            .func (.param .b32 result) twice(.param .b32 x)\n;\n\
            .func stop()\n.noreturn\n{\n\t{\n\t}\n\ttrap;\n}\n\
            .weak .func (.param .b32 result) twice(.param .b32 x)\n{\n\tret;\n}\n\
            .visible .entry scale(\n\t.param .u64 x\n)\n{\n\tret;\n}\n\
            .section .debug_info {\n.b32 12\n}\n";
        let body = text.find("{\n\tret;\n}\n.section").unwrap();
        let entry = text.find(".visible .entry").unwrap();
        assert_eq!(
            kinds(text),
            [
                Kind::Directive("version", "7.0"),
                Kind::Directive("target", "sm_80, debug"),
                Kind::Directive("pragma", "\"nounroll\";"),
                Kind::Symbol("memory"),
                Kind::Symbol("table"),
                Kind::Symbol("twice"),
                Kind::Symbol("stop"),
                Kind::Symbol("twice"),
                Kind::Entry {
                    name: "scale",
                    body: body - entry
                },
                Kind::Debug,
            ]
        );
    }

    #[test]
    fn a_text_that_ends_too_early_is_refused() {
        for text in [
            ".visible .entry a(",
            ".func a()\n{\n\tret;\n",
            ".global .b8 x[4]",
            "}",
        ] {
            let error = statements(text).unwrap_err();
            assert!(matches!(error, PtxError::Unfinished(_)), "{error}");
        }
        let error = statements(".global .align 4;").unwrap_err();
        assert_eq!(error, PtxError::NoName(".global .align 4;".to_owned()));
    }

    #[test]
    fn identifiers_have_dollars_and_no_dots() {
        let text = "@%p1 bra $L__BB0_2; mov.u32 %r1, %ctaid.x; add.s64 4, _x9;";
        let found: Vec<&str> = identifiers(text).map(|at| &text[at]).collect();
        assert_eq!(
            found,
            [
                "%p1",
                "bra",
                "$L__BB0_2",
                "mov",
                "u32",
                "%r1",
                "%ctaid",
                "x",
                "add",
                "s64",
                "_x9"
            ]
        );
    }
}
