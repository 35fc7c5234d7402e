//! The arguments of the attribute: a name, requirements of the PTX, and the list of values of each generic parameter.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprArray, GenericParam, Generics, Ident, LitInt, LitStr, Result, Token};

/// The arguments of `#[kernel(..)]`.
pub struct Instances {
    pub name: Option<LitStr>,
    pub target: Option<TargetArch>,
    /// The name of the module; the driver compiles all kernels of a module together.
    pub module: Option<LitStr>,
    /// The groups, separated by semicolons.
    pub groups: Vec<Group>,
}

/// A group of instances.
#[derive(Default)]
pub struct Group {
    /// A list of values for each generic parameter.
    lists: Vec<(Ident, ExprArray)>,
    limit: Option<Limit>,
}

/// The oldest architecture that runs the kernel, if it is newer than that of the crate.
#[derive(Clone, Copy)]
pub struct TargetArch {
    /// 90 for `sm_90`.
    pub number: u32,
    /// Whether the kernel runs on that architecture only, as with `sm_90a`.
    pub specific: bool,
}

/// A limit on the registers of a thread.
#[derive(Clone, Copy)]
pub struct Limit {
    pub registers: u32,
    /// The oldest architecture with this limit, 90 for `sm_90`; 0 means all.
    pub least_sm: u32,
}

impl Parse for Instances {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut name, mut target, mut module) = (None, None, None);
        let mut groups = vec![Group::default()];
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            if key == "name" {
                name = Some(input.parse()?);
            } else if key == "target" {
                target = Some(parse_target(input)?);
            } else if key == "module" {
                module = Some(parse_module(input)?);
            } else if let Some(group) = groups.last_mut() {
                match least_sm(&key)? {
                    Some(least_sm) => {
                        let registers = input.parse::<LitInt>()?.base10_parse()?;
                        group.limit = Some(Limit {
                            registers,
                            least_sm,
                        });
                    }
                    None => group.lists.push((key, input.parse()?)),
                }
            }
            if input.peek(Token![;]) {
                input.parse::<Token![;]>()?;
                groups.push(Group::default());
            } else if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let instances = Self {
            name,
            target,
            module,
            groups,
        };
        instances.check_limits()?;
        Ok(instances)
    }
}

/// Parses an architecture, `sm_90` or `sm_90a`.
fn parse_target(input: ParseStream<'_>) -> Result<TargetArch> {
    let architecture: Ident = input.parse()?;
    let text = architecture.to_string();
    let number = text.strip_prefix("sm_").unwrap_or_default();
    let plain = number.strip_suffix('a');
    let specific = plain.is_some();
    match plain.unwrap_or(number).parse() {
        Ok(number) => Ok(TargetArch { number, specific }),
        Err(_) => Err(Error::new_spanned(
            architecture,
            "a target is an architecture: `target = sm_90`, or `sm_90a` for that one alone",
        )),
    }
}

/// Parses the name of a module, which is also the name of a file.
fn parse_module(input: ParseStream<'_>) -> Result<LitStr> {
    let name: LitStr = input.parse()?;
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.value().is_empty() || !name.value().chars().all(is_fit) {
        let wanted = "a module's name has letters, digits and `_`: `module = \"analysis\"`";
        return Err(Error::new_spanned(name, wanted));
    }
    Ok(name)
}

/// The oldest architecture of the limit with this key: 0 for `registers`, 90 for `registers_sm90`. `None` for other
/// keys.
fn least_sm(key: &Ident) -> Result<Option<u32>> {
    let name = key.to_string();
    if name == "registers" {
        return Ok(Some(0));
    }
    let Some(number) = name.strip_prefix("registers_sm") else {
        return Ok(None);
    };
    let wanted = "an architecture is a number: `registers_sm90 = 64`";
    let number = number.parse().map_err(|_| Error::new_spanned(key, wanted));
    number.map(Some)
}

/// A value for each generic parameter, in the order of their declaration.
pub type Instance = Vec<Expr>;

/// An instance and its limit on registers, if any.
pub type Bounded = (Instance, Option<Limit>);

impl Instances {
    /// The marks of an entry point with this limit: requirements that `cuda_builder` reads, as text.
    pub fn marks(&self, limit: Option<Limit>) -> String {
        let target = self.target.map(|TargetArch { number, specific }| {
            let specific = if specific { "a" } else { "" };
            format!("target sm_{number}{specific}")
        });
        let module = self
            .module
            .as_ref()
            .map(|name| format!("module {}", name.value()));
        let limit = limit.map(|limit| match limit {
            Limit {
                registers,
                least_sm: 0,
            } => format!("registers {registers}"),
            Limit {
                registers,
                least_sm,
            } => format!("registers {registers} sm_{least_sm}"),
        });
        let marks: Vec<String> = [target, module, limit].into_iter().flatten().collect();
        marks.join("; ")
    }

    /// Refuses a limit for architectures on which the kernel does not run.
    fn check_limits(&self) -> Result<()> {
        let Some(TargetArch {
            number,
            specific: true,
        }) = self.target
        else {
            return Ok(());
        };
        let mut limits = self.groups.iter().filter_map(|group| group.limit);
        match limits.find(|limit| limit.least_sm > number) {
            Some(Limit { least_sm, .. }) => Err(Error::new(
                Span::call_site(),
                format!(
                    "the kernel runs on sm_{number} alone, its limit of registers holds from sm_{least_sm} on"
                ),
            )),
            None => Ok(()),
        }
    }

    /// All combinations of each group. An error names the parameter without a list, or the list without a parameter.
    pub fn combinations(&self, generics: &Generics) -> Result<Vec<Bounded>> {
        let parameters: Vec<&Ident> = generics
            .params
            .iter()
            .map(parameter_name)
            .collect::<Result<_>>()?;
        let mut all = Vec::new();
        for group in &self.groups {
            let combinations = combinations_of(&group.lists, &parameters)?;
            all.extend((combinations.into_iter()).map(|instance| (instance, group.limit)));
        }
        Ok(all)
    }
}

/// All combinations of a group.
fn combinations_of(lists: &[(Ident, ExprArray)], parameters: &[&Ident]) -> Result<Vec<Instance>> {
    for (key, _) in lists {
        if !parameters.contains(&key) {
            return Err(Error::new_spanned(
                key,
                format!("the kernel has no generic parameter `{key}`"),
            ));
        }
    }
    let mut combinations: Vec<Instance> = vec![Vec::new()];
    for parameter in parameters {
        let values = values(lists, parameter)?;
        combinations = combinations
            .into_iter()
            .flat_map(|chosen| {
                values.iter().map(move |value| {
                    let mut longer = chosen.clone();
                    longer.push(value.clone());
                    longer
                })
            })
            .collect();
    }
    Ok(combinations)
}

/// The list of values of a parameter.
fn values<'a>(
    lists: &'a [(Ident, ExprArray)],
    parameter: &Ident,
) -> Result<&'a Punctuated<Expr, Token![,]>> {
    let wanted = || format!("#[kernel] needs the instances of `{parameter}`: `{parameter} = [..]`");
    let (_, list) = lists
        .iter()
        .find(|(key, _)| key == parameter)
        .ok_or_else(|| Error::new_spanned(parameter, wanted()))?;
    if list.elems.is_empty() {
        return Err(Error::new_spanned(list, wanted()));
    }
    Ok(&list.elems)
}

/// The name of a type or const parameter. A kernel cannot have lifetime parameters.
pub fn parameter_name(parameter: &GenericParam) -> Result<&Ident> {
    match parameter {
        GenericParam::Type(parameter) => Ok(&parameter.ident),
        GenericParam::Const(parameter) => Ok(&parameter.ident),
        GenericParam::Lifetime(_) => Err(Error::new_spanned(
            parameter,
            "a kernel has no lifetime parameters",
        )),
    }
}

/// The suffix of the entry point of an instance: `_f32_8`.
pub fn suffix(instance: &Instance) -> String {
    instance
        .iter()
        .map(|value| {
            let text: TokenStream = value.to_token_stream();
            let last = text.to_string().replace(' ', "");
            format!("_{}", last.rsplit("::").next().unwrap_or_default())
        })
        .collect()
}
