//! Inline assembly of collective operations, which `cuda_std` puts between two convergent instructions.
//!
//! ```text
//! activemask.b32 %r7;     no lane uses the result
//! .collective;            the mark of the assembly that follows
//! mma.sync.aligned ..
//! activemask.b32 %r8;
//! ```
//!
//! LLVM never copies the outer two or moves them to another branch. If the assembly stands between its two, and no
//! branch leads in or out, that holds for the assembly too.

use super::PtxError;

const BOUNDARY: &str = "activemask.b32";
const MARK: &str = ".collective;";

/// Instructions after which a lane can be elsewhere.
const LEAVING: [&str; 6] = ["bra", "brx", "call", "exit", "ret", "trap"];

/// The text without boundaries and marks, after a check that they are where they must be.
///
/// # Errors
///
/// Assembly with a mark has no boundary before or after it, or control flow lies between them.
pub(super) fn checked(clean: &str) -> Result<String, PtxError> {
    let lines: Vec<&str> = clean.lines().collect();
    let torn = |mark: usize| {
        let assembly = lines.get(mark + 1).map_or("", |line| line.trim());
        Err(PtxError::Collective(assembly.to_owned()))
    };
    let mut removed = vec![false; lines.len()];
    let mut state = State::Outside;
    for (number, line) in lines.iter().enumerate() {
        let line = line.trim();
        state = match state {
            State::Marked { boundary, mark } if line.starts_with(BOUNDARY) => {
                for number in [boundary, mark, number] {
                    removed[number] = true;
                }
                State::Outside
            }
            State::Marked { mark, .. } if line == MARK || is_control_flow(line) => {
                return torn(mark);
            }
            State::Bounded(boundary) if line == MARK => State::Marked {
                boundary,
                mark: number,
            },
            _ if line == MARK => return torn(number),
            State::Bounded(_) if is_control_flow(line) => State::Outside,
            _ if line.starts_with(BOUNDARY) => State::Bounded(number),
            state => state,
        };
    }
    if let State::Marked { mark, .. } = state {
        return torn(mark);
    }
    let kept = lines.iter().zip(removed).filter(|(_, removed)| !removed);
    Ok(kept.flat_map(|(line, _)| [line, "\n"]).collect())
}

/// Where in the text the search is.
enum State {
    Outside,
    /// Behind a boundary, whose line this is.
    Bounded(usize),
    /// Behind a boundary and a mark.
    Marked {
        boundary: usize,
        mark: usize,
    },
}

/// Whether lanes can come from elsewhere or go elsewhere at a line, or the body of a function ends there.
fn is_control_flow(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let mut first = words.next().unwrap_or_default();
    if first.starts_with('@') {
        first = words.next().unwrap_or_default();
    }
    let opcode = first.split(['.', ';']).next().unwrap_or_default();
    first.ends_with(':') || line == "}" || LEAVING.contains(&opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\tld.param.b32 %r1, [x];\n";
    const COLLECTIVE: &str = "\tactivemask.b32 \t%r7;\n\tmov.b32 %r2, 1;\n\t.collective;\n\
        mma.sync %r3, %r2;\n\tactivemask.b32 \t%r8;\n";
    const AFTER: &str = "\tst.global.b32 [%rd1], %r3;\n\tret;\n}\n";

    #[test]
    fn boundaries_and_marks_go_and_the_rest_stays() {
        let twice = [BEFORE, COLLECTIVE, "$L__BB0_1:\n", COLLECTIVE, AFTER].concat();
        let alone = "\tmov.b32 %r2, 1;\nmma.sync %r3, %r2;\n";
        let left = [BEFORE, alone, "$L__BB0_1:\n", alone, AFTER].concat();
        assert_eq!(checked(&twice), Ok(left));
    }

    #[test]
    fn an_instruction_that_is_no_boundary_stays() {
        let text = format!("\tactivemask.b32 %r1;\n\t@%p1 bra $L__BB0_1;\n{AFTER}");
        assert_eq!(checked(&text), Ok(text.clone()));
        let behind = format!("\tactivemask.b32 %r1;\n{COLLECTIVE}");
        let left = checked(&behind).unwrap();
        assert!(left.starts_with("\tactivemask.b32 %r1;\n"), "{left}");
        assert_eq!(left.matches(BOUNDARY).count(), 1, "{left}");
    }

    #[test]
    fn assembly_that_was_copied_or_moved_is_refused() {
        let torn = Err(PtxError::Collective("mma.sync %r3, %r2;".to_owned()));
        let copy = "\t.collective;\nmma.sync %r3, %r2;\n";
        for text in [
            [BEFORE, copy, AFTER].concat(),
            [COLLECTIVE, copy, AFTER].concat(),
            [copy, COLLECTIVE, AFTER].concat(),
            COLLECTIVE.replace(copy, &copy.repeat(2)),
            COLLECTIVE.replace(copy, &format!("$L__BB0_1:\n{copy}")),
            COLLECTIVE.replace(copy, &format!("{copy}$L__BB0_1:\n")),
            COLLECTIVE.replace(copy, &format!("\t@%p1 bra $L__BB0_2;\n{copy}")),
            COLLECTIVE.replace(copy, &format!("{copy}\tbra.uni $L__BB0_2;\n")),
            [COLLECTIVE.rsplit_once("\tactivemask").unwrap().0, AFTER].concat(),
            COLLECTIVE.replace(copy, &format!("{copy}}}\n")),
            COLLECTIVE.rsplit_once("\tactivemask").unwrap().0.to_owned(),
        ] {
            assert_eq!(checked(&text), torn, "{text}");
        }
    }
}
