//! The index of an archive: which module has which kernel, and what it needs.

use std::fmt::Write;

use crate::{Arch, PtxVersion};

/// The first line of every index: the names of its columns.
const COLUMNS: &str = "kernel target ptx module";

/// A module of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The member of the archive that has its text, `axpy_f32.sm_80.ptx` say.
    pub name: String,
    /// The least architecture that it runs on, or the only one.
    pub target: Arch,
    /// The PTX version that the driver must know.
    pub version: PtxVersion,
    /// Its entry points.
    pub kernels: Vec<String>,
}

/// Why a text is no index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The first line is another one: the archive is none, or has another format.
    #[error("its first line is `{0}`, wanted is `{COLUMNS}`")]
    Columns(String),
    /// A line does not have the four columns.
    #[error("wanted is a line of `{COLUMNS}`, found `{0}`")]
    Line(String),
    /// Two lines say different things of one module.
    #[error("the lines of module `{0}` have different targets or PTX versions")]
    Module(String),
}

/// The text of the index, by module and then by kernel.
pub(crate) fn format(modules: &[Module]) -> String {
    let mut text = format!("{COLUMNS}\n");
    for module in modules {
        for kernel in &module.kernels {
            let Module {
                name,
                target,
                version,
                ..
            } = module;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{kernel} {target} {version} {name}");
        }
    }
    text
}

/// The modules of an index, in its order.
pub(crate) fn parse(text: &str) -> Result<Vec<Module>, IndexError> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    if first != COLUMNS {
        return Err(IndexError::Columns(first.to_owned()));
    }
    let mut modules: Vec<Module> = Vec::new();
    for line in lines {
        let (kernel, module) = parse_line(line).ok_or_else(|| IndexError::Line(line.to_owned()))?;
        match modules.last_mut().filter(|last| last.name == module.name) {
            Some(last) if (last.target, last.version) == (module.target, module.version) => {
                last.kernels.push(kernel);
            }
            Some(_) => return Err(IndexError::Module(module.name)),
            None => modules.push(Module {
                kernels: vec![kernel],
                ..module
            }),
        }
    }
    Ok(modules)
}

/// A kernel, and the module that has it, without its kernels.
fn parse_line(line: &str) -> Option<(String, Module)> {
    let mut columns = line.split(' ');
    let mut column = || columns.next().filter(|column| !column.is_empty());
    let kernel = column()?.to_owned();
    let module = Module {
        target: column()?.parse().ok()?,
        version: column()?.parse().ok()?,
        name: column()?.to_owned(),
        kernels: Vec::new(),
    };
    columns.next().is_none().then_some((kernel, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, target: Arch, kernels: &[&str]) -> Module {
        Module {
            name: name.to_owned(),
            target,
            version: PtxVersion::new(7, 8),
            kernels: kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
        }
    }

    #[test]
    fn an_index_gives_back_its_modules() {
        let modules = [
            module("a.sm_80.ptx", Arch::SM80, &["a"]),
            module("a.sm_90.ptx", Arch::SM90, &["a"]),
            module("pair.sm_80.ptx", Arch::SM80, &["b", "c"]),
        ];
        let text = format(&modules);
        assert_eq!(
            text,
            "kernel target ptx module\na sm_80 7.8 a.sm_80.ptx\na sm_90 7.8 a.sm_90.ptx\n\
             b sm_80 7.8 pair.sm_80.ptx\nc sm_80 7.8 pair.sm_80.ptx\n"
        );
        assert_eq!(parse(&text).unwrap(), modules);
        assert_eq!(parse(&format(&[])), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_index_is_refused_with_the_line() {
        let columns = |text: &str| Err(IndexError::Columns(text.to_owned()));
        assert_eq!(parse(""), columns(""));
        assert_eq!(parse("name target\n"), columns("name target"));
        for line in [
            "a sm_80 7.8",
            "a 80 7.8 a.ptx",
            "a sm_80 7 a.ptx",
            "a sm_80 7.8 a.ptx b",
            "",
        ] {
            let text = format!("{COLUMNS}\n{line}\n");
            assert_eq!(parse(&text), Err(IndexError::Line(line.to_owned())));
        }
        let text = format!("{COLUMNS}\na sm_80 7.8 m\nb sm_90 7.8 m\n");
        assert_eq!(parse(&text), Err(IndexError::Module("m".to_owned())));
    }
}
