//! Cutting a text into modules: each has one entry point, or those that are marked as one module, and exactly what they
//! use.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ptx_archive::{Module, PtxVersion};

use super::PtxError;
use super::collectives;
use super::marks::{self, Marks};
use super::statements::{Kind, Statement, identifiers, statements, without_comments};
use crate::Arch;

/// The PTX versions that brought the architectures (PTX ISA, chapter "Release Notes").
const VERSIONS: [(u32, PtxVersion); 10] = [
    (80, PtxVersion::new(7, 0)),
    (86, PtxVersion::new(7, 1)),
    (87, PtxVersion::new(7, 4)),
    (89, PtxVersion::new(7, 8)),
    (90, PtxVersion::new(7, 8)),
    (100, PtxVersion::new(8, 6)),
    (101, PtxVersion::new(8, 6)),
    (103, PtxVersion::new(8, 8)),
    (120, PtxVersion::new(8, 7)),
    (121, PtxVersion::new(8, 8)),
];

/// The first version that knows architectures with an `a`.
const SPECIFIC: PtxVersion = PtxVersion::new(8, 0);

/// Beginnings of names with a number behind that counts through the compiler's whole text, or that depends on a line of
/// the source: labels, stack frames, and the static shared arrays of `cuda_std`.
///
/// Modules have numbers of their own, so that a module changes only if its kernel does.
const NUMBERED: [&str; 3] = ["$L__BB", "__local_depot", "shared_"];

/// The entry points of a module: where each is in the whole text, with its limit of registers.
type Entries = BTreeMap<usize, Option<u32>>;

/// The modules of the compiler's text, which is for `arch`, by name.
pub(crate) fn modules(compiled: &str, arch: Arch) -> Result<Vec<(Module, String)>, PtxError> {
    let clean = collectives::checked(&without_comments(compiled))?;
    let whole = Whole::new(statements(&clean)?)?;
    let mut entries: BTreeMap<(String, Arch), Entries> = BTreeMap::new();
    for (place, statement) in whole.statements.iter().enumerate() {
        if let Kind::Entry { name, .. } = statement.kind {
            let marks = whole.marks_of(name)?;
            for (target, limit) in marks.variants(arch) {
                let module = marks.module.as_deref().unwrap_or(name).to_owned();
                let entries = entries.entry((module, target)).or_default();
                entries.insert(place, limit);
            }
        }
    }
    let modules = entries.into_iter();
    modules
        .map(|((name, target), entries)| {
            let version = version_of(target).ok_or_else(|| PtxError::Version {
                module: name.clone(),
                arch: target,
            })?;
            let module = Module {
                name: format!("{name}.{target}.ptx"),
                target,
                version: version.max(whole.version),
                kernels: entries
                    .keys()
                    .filter_map(|&place| whole.kernel_at(place))
                    .collect(),
            };
            let text = whole.module(&module, &entries);
            Ok((module, text))
        })
        .collect()
}

/// The PTX version that brought an architecture.
fn version_of(arch: Arch) -> Option<PtxVersion> {
    let (_, version) = VERSIONS
        .iter()
        .find(|(number, _)| *number == arch.number())?;
    Some(match arch.is_specific() {
        true => SPECIFIC.max(*version),
        false => *version,
    })
}

/// The compiler's text.
struct Whole<'a> {
    statements: Vec<Statement<'a>>,
    /// The places of the statements that declare or define a function or variable.
    symbols: HashMap<&'a str, Vec<usize>>,
    /// The variables with the marks of each entry point.
    marks: HashMap<&'a str, &'a str>,
    version: PtxVersion,
    address_size: &'a str,
}

impl<'a> Whole<'a> {
    fn new(statements: Vec<Statement<'a>>) -> Result<Whole<'a>, PtxError> {
        let mut symbols: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut marks = HashMap::new();
        for (place, statement) in statements.iter().enumerate() {
            if let Kind::Symbol(name) = statement.kind {
                match marks::kernel_of(name) {
                    Some(kernel) => {
                        marks.insert(kernel, statement.text);
                    }
                    None => symbols.entry(name).or_default().push(place),
                }
            }
        }
        let directive = |wanted: &str| {
            statements
                .iter()
                .find_map(|statement| match statement.kind {
                    Kind::Directive(name, value) if name == wanted => Some(value),
                    _ => None,
                })
        };
        let version = directive("version").and_then(|version| version.parse().ok());
        Ok(Whole {
            version: version.ok_or(PtxError::NoDirective(".version"))?,
            address_size: directive("address_size")
                .ok_or(PtxError::NoDirective(".address_size"))?,
            statements,
            symbols,
            marks,
        })
    }

    fn marks_of(&self, kernel: &str) -> Result<Marks, PtxError> {
        let declaration = self.marks.get(kernel);
        declaration.map_or(Ok(Marks::default()), |declaration| {
            Marks::read(kernel, declaration)
        })
    }

    fn kernel_at(&self, place: usize) -> Option<String> {
        match self.statements[place].kind {
            Kind::Entry { name, .. } => Some(name.to_owned()),
            _ => None,
        }
    }

    /// The places of all statements that these entry points need, they themselves among them.
    fn used_by(&self, entries: &Entries) -> BTreeSet<usize> {
        let mut open: Vec<usize> = entries.keys().copied().collect();
        let mut used = BTreeSet::from_iter(open.iter().copied());
        while let Some(place) = open.pop() {
            let text = self.statements[place].text;
            let named = identifiers(text).filter_map(|at| self.symbols.get(&text[at]));
            for &symbol in named.flatten() {
                if used.insert(symbol) {
                    open.push(symbol);
                }
            }
        }
        used
    }

    /// The text of a module with these entry points, each with its limit of registers before its body.
    fn module(&self, module: &Module, entries: &Entries) -> String {
        let (version, target, bits) = (module.version, module.target, self.address_size);
        let mut text = format!(".version {version}\n.target {target}\n.address_size {bits}\n");
        let mut numbers = Numbers::default();
        for place in self.used_by(entries) {
            text.push('\n');
            let Statement { text: this, kind } = self.statements[place];
            let body = match kind {
                Kind::Entry { body, .. } => body,
                _ => 0,
            };
            numbers.copy(&this[..body], &self.symbols, &mut text);
            if let Some(Some(limit)) = entries.get(&place) {
                text.push_str(&format!(".maxnreg {limit}\n"));
            }
            numbers.copy(&this[body..], &self.symbols, &mut text);
            text.push('\n');
        }
        text
    }
}

/// The numbers of a module in the place of those of the whole text, in the order in which they come.
#[derive(Default)]
struct Numbers<'a>(HashMap<(usize, &'a str), usize>);

impl<'a> Numbers<'a> {
    /// Adds a part of the whole text with the module's numbers; names of symbols stay as they are.
    fn copy(&mut self, part: &'a str, symbols: &HashMap<&str, Vec<usize>>, text: &mut String) {
        let mut copied = 0;
        for at in identifiers(part) {
            let name = &part[at.clone()];
            let Some((prefix, number)) = numbered(name) else {
                continue;
            };
            if symbols.contains_key(name) {
                continue;
            }
            let next = self.0.keys().filter(|(of, _)| *of == prefix).count();
            let new = *self.0.entry((prefix, number)).or_insert(next);
            let begin = at.start + NUMBERED[prefix].len();
            text.push_str(&part[copied..begin]);
            text.push_str(&new.to_string());
            copied = begin + number.len();
        }
        text.push_str(&part[copied..]);
    }
}

/// The place of a name's beginning in [`NUMBERED`], and the number behind it.
fn numbered(name: &str) -> Option<(usize, &str)> {
    let mut prefixes = NUMBERED.iter().enumerate();
    let (prefix, rest) =
        prefixes.find_map(|(place, prefix)| Some((place, name.strip_prefix(prefix)?)))?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    (digits > 0).then(|| (prefix, &rest[..digits]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "//\n// made by LLVM\n//\n\n.version 7.0\n.target sm_80\n.address_size 64\n\n";

    /// The modules of a text with this behind its head, by name.
    fn cut(text: &str) -> Vec<(String, String)> {
        let modules = modules(&format!("{HEAD}{text}"), Arch::SM80).unwrap();
        let named = modules.into_iter();
        named.map(|(module, text)| (module.name, text)).collect()
    }

    fn head(version: &str, target: &str) -> String {
        format!(".version {version}\n.target {target}\n.address_size 64\n")
    }

    #[test]
    fn each_module_has_one_entry_point_and_what_it_uses_in_turn() {
        let text = "\
            .extern .shared .align 16 .b8 memory[];\n\
            .global .align 4 .b8 table[4] = {1, 2, 3, 4};\n\
            .func unused()\n;\n\
            .func inner()\n.noreturn;\n\
            .func outer();\n\
            \t// .globl first\n\
            .visible .entry first(\n\t.param .u64 first_param_0\n)\n{\n\tmov.u32 %r1, memory;\n\tret;\n}\n\
            .visible .entry second()\n{\n\t{ // callseq 0, 0\n\tcall.uni outer, ();\n\t} // callseq 0\n\tret;\n}\n\
            .func inner()\n.noreturn\n{\n\tmov.u64 %rd1, table;\n\ttrap;\n}\n\
            .func outer()\n{\n\tcall.uni inner, ();\n\tret;\n}\n\
            .func unused()\n{\n\tret;\n}\n";
        let head = head("7.0", "sm_80");
        let first = "\n.extern .shared .align 16 .b8 memory[];\n\n\
            .visible .entry first(\n\t.param .u64 first_param_0\n)\n{\n\tmov.u32 %r1, memory;\n\tret;\n}\n";
        let second = "\n.global .align 4 .b8 table[4] = {1, 2, 3, 4};\n\n\
            .func inner()\n.noreturn;\n\n.func outer();\n\n\
            .visible .entry second()\n{\n\t{\n\tcall.uni outer, ();\n\t}\n\tret;\n}\n\n\
            .func inner()\n.noreturn\n{\n\tmov.u64 %rd1, table;\n\ttrap;\n}\n\n\
            .func outer()\n{\n\tcall.uni inner, ();\n\tret;\n}\n";
        assert_eq!(
            cut(text),
            [
                ("first.sm_80.ptx".to_owned(), format!("{head}{first}")),
                ("second.sm_80.ptx".to_owned(), format!("{head}{second}"))
            ]
        );
    }

    /// The declaration of an entry point's marks.
    fn marks(kernel: &str, marks: &str) -> String {
        let bytes: Vec<String> = marks.bytes().map(|byte| byte.to_string()).collect();
        let (count, bytes) = (bytes.len(), bytes.join(", "));
        format!(".visible .global .align 1 .b8 kernel_marks${kernel}[{count}] = {{{bytes}}};\n")
    }

    /// An entry point with these marks.
    fn marked(text: &str) -> String {
        let marks = marks("scale", text);
        format!("{marks}.visible .entry scale(\n\t.param .u64 x\n)\n{{\n\tret;\n}}\n")
    }

    #[test]
    fn entry_points_with_one_module_are_together_with_what_any_of_them_uses() {
        let entry = |name: &str, used: &str| {
            format!(".visible .entry {name}()\n{{\n\tmov.u64 %rd1, {used};\n\tret;\n}}\n")
        };
        let text = [
            marks("one", "module pair"),
            marks("other", "registers 64 sm_90; module pair"),
            ".global .b8 table[4];\n.global .b8 list[4];\n".to_owned(),
            entry("one", "table"),
            entry("alone", "list"),
            entry("other", "table"),
        ]
        .concat();
        let modules = modules(&format!("{HEAD}{text}"), Arch::SM80).unwrap();
        let named: Vec<(&str, &[String])> = modules
            .iter()
            .map(|(module, _)| (module.name.as_str(), module.kernels.as_slice()))
            .collect();
        let both = ["one".to_owned(), "other".to_owned()];
        assert_eq!(
            named,
            [
                ("alone.sm_80.ptx", &["alone".to_owned()][..]),
                ("pair.sm_80.ptx", &both[..]),
                ("pair.sm_90.ptx", &both[1..]),
            ]
        );
        let text = &modules[1].1;
        assert_eq!(text.matches("table[4]").count(), 1, "{text}");
        assert!(
            !text.contains("list") && !text.contains(".maxnreg"),
            "{text}"
        );
        let text = &modules[2].1;
        assert!(text.contains("other()\n.maxnreg 64\n{"), "{text}");
    }

    #[test]
    fn a_target_sets_the_module_s_architecture_and_its_ptx_version() {
        let entry = "\n.visible .entry scale(\n\t.param .u64 x\n)\n{\n\tret;\n}\n";
        for (target, version) in [("sm_90", "7.8"), ("sm_90a", "8.0"), ("sm_120", "8.7")] {
            let text = format!("{}{entry}", head(version, target));
            assert_eq!(
                cut(&marked(&format!("target {target}"))),
                [(format!("scale.{target}.ptx"), text)]
            );
        }
        let newer = format!("{HEAD}{}", marked("target sm_90")).replace("7.0", "8.4");
        let modules = modules(&newer, Arch::SM80).unwrap();
        assert_eq!(modules[0].0.version, PtxVersion::new(8, 4));
        assert!(modules[0].1.starts_with(".version 8.4\n.target sm_90\n"));
    }

    #[test]
    fn a_limit_of_registers_stands_before_the_body() {
        let entry = "\n.visible .entry scale(\n\t.param .u64 x\n)\nLIMIT{\n\tret;\n}\n";
        let module = |version: &str, target: &str, limit: &str| {
            let text = format!("{}{}", head(version, target), entry.replace("LIMIT", limit));
            (format!("scale.{target}.ptx"), text)
        };
        assert_eq!(
            cut(&marked("registers 96")),
            [module("7.0", "sm_80", ".maxnreg 96\n")]
        );
        assert_eq!(
            cut(&marked("registers 72 sm_90")),
            [
                module("7.0", "sm_80", ""),
                module("7.8", "sm_90", ".maxnreg 72\n")
            ]
        );
    }

    #[test]
    fn a_module_does_not_depend_on_the_entry_points_before_its_own() {
        let entry = |numbers: [u32; 3]| {
            let [labels, stack, shared] = numbers;
            format!(
                ".visible .entry last()\n{{\n\t.local .b8 __local_depot{stack}[8];\n\t.shared .b8 shared_{shared}[4];\n\
                 \tmov.u64 %SPL, __local_depot{stack};\n\t@%p1 bra $L__BB{labels}_2;\n$L__BB{labels}_2:\n\
                 \tmov.u32 %r1, shared_{shared};\n\tret;\n}}\n"
            )
        };
        let before = ".visible .entry first()\n{\n\tret;\n}\n";
        let one = cut(&entry([0, 0, 0]));
        let other = cut(&format!("{before}{}", entry([7, 3, 4_123_456])));
        assert_eq!(one[0], other[1]);
        assert!(one[0].1.ends_with(&entry([0, 0, 0])), "{}", one[0].1);
    }

    #[test]
    fn a_symbol_keeps_a_name_that_looks_numbered() {
        let text = ".global .b8 shared_7[4];\n.visible .entry a()\n{\n\tmov.u64 %rd1, shared_7;\n\tret;\n}\n";
        assert!(cut(text)[0].1.contains("mov.u64 %rd1, shared_7;"));
    }

    #[test]
    fn what_is_no_ptx_or_for_an_unknown_architecture_is_refused() {
        let of = |text: &str| modules(text, Arch::SM80).unwrap_err();
        assert_eq!(of(""), PtxError::NoDirective(".version"));
        assert_eq!(
            of(".version 7.0\n.target sm_80\n"),
            PtxError::NoDirective(".address_size")
        );
        let unknown = of(&format!("{HEAD}{}", marked("target sm_91")));
        assert!(matches!(&unknown, PtxError::Version { module, .. } if module == "scale"));
        let mark = of(&format!("{HEAD}{}", marked("grid 3")));
        assert!(matches!(&mark, PtxError::Mark { kernel, .. } if kernel == "scale"));
    }
}
