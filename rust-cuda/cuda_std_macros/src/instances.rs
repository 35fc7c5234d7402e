//! The attribute's arguments: a name, what the kernel's PTX needs, and for each generic parameter the list of its
//! instances.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprArray, GenericParam, Generics, Ident, LitInt, LitStr, Result, Token};

/// What stands in `#[kernel(..)]`.
pub struct Instances {
    pub name: Option<LitStr>,
    pub target: Option<Target>,
    /// The kernels that are compiled together with it, by the name that they have in common.
    pub module: Option<LitStr>,
    /// The groups that semicolons separate.
    pub groups: Vec<Group>,
}

/// Instances that belong together.
#[derive(Default)]
pub struct Group {
    /// A list for every generic parameter.
    lists: Vec<(Ident, ExprArray)>,
    limit: Option<Limit>,
}

/// The oldest architecture that the kernel runs on, if that is not the crate's: `sm_90`, or `sm_90a` for that one
/// alone.
#[derive(Clone, Copy)]
pub struct Target {
    /// 90 for `sm_90`.
    pub number: u32,
    /// Whether it ends with `a`.
    pub specific: bool,
}

/// How many registers a thread may have.
#[derive(Clone, Copy)]
pub struct Limit {
    pub registers: u32,
    /// The oldest architecture that it is for, 90 for `sm_90`; 0 if it is for all.
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

/// An architecture, `sm_90` or `sm_90a`.
fn parse_target(input: ParseStream<'_>) -> Result<Target> {
    let architecture: Ident = input.parse()?;
    let text = architecture.to_string();
    let number = text.strip_prefix("sm_").unwrap_or_default();
    let plain = number.strip_suffix('a');
    let specific = plain.is_some();
    match plain.unwrap_or(number).parse() {
        Ok(number) => Ok(Target { number, specific }),
        Err(_) => Err(Error::new_spanned(
            architecture,
            "a target is an architecture: `target = sm_90`, or `sm_90a` for that one alone",
        )),
    }
}

/// The name of a module, which is that of a file.
fn parse_module(input: ParseStream<'_>) -> Result<LitStr> {
    let name: LitStr = input.parse()?;
    let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.value().is_empty() || !name.value().chars().all(is_fit) {
        let wanted = "a module's name has letters, digits and `_`: `module = \"analysis\"`";
        return Err(Error::new_spanned(name, wanted));
    }
    Ok(name)
}

/// The oldest architecture that a limit of that key is for: 0 for `registers`, 90 for `registers_sm90`; `None` for the
/// keys of lists.
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

/// One choice for every generic parameter, in the order of their declaration.
pub type Instance = Vec<Expr>;

/// An instance, and how many registers a thread of it may have, if that is said.
pub type Bounded = (Instance, Option<Limit>);

impl Instances {
    /// What `cuda_builder` is to know of the entry points with this limit, in the words of its marks.
    pub fn marks(&self, limit: Option<Limit>) -> String {
        let target = self.target.map(|Target { number, specific }| {
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

    /// Refuses a limit that is for other architectures than the only one that the kernel runs on.
    fn check_limits(&self) -> Result<()> {
        let Some(Target {
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

    /// All combinations of each group, or an error that names the parameter without a list or the list without a
    /// parameter.
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

/// All combinations of one group.
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

/// The name of a type or const parameter; lifetimes cannot cross a launch.
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

/// The instance's part of an entry point's name: `_f32_8`.
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
