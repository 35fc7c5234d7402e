//! Items of a table that are asked for by their names, or by `all`.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The value that stands for every item.
pub const ALL: &str = "all";

/// Takes the names, and `all`.
pub fn or_all(
    names: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(names.into_iter().chain([ALL]))
}

/// The items asked for, in the order of their table.
pub fn chosen<T: Copy>(table: &[T], name: fn(T) -> &'static str, asked: &[String]) -> Vec<T> {
    let wanted = |item: &T| {
        asked
            .iter()
            .any(|asked| asked == ALL || asked == name(*item))
    };
    table.iter().copied().filter(wanted).collect()
}
