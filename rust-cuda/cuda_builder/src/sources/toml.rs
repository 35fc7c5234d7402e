//! TOML as a tree with a canonical text: what manifests and lock files say, whatever their comments and order.

use std::collections::BTreeMap;
use std::fmt;

use toml::de::{DeTable, DeValue};

/// A value of a TOML file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    String(String),
    Boolean(bool),
    Array(Vec<Value>),
    Table(Table),
    /// A number or a date, as it is written.
    Other(String),
}

pub(crate) type Table = BTreeMap<String, Value>;

/// The top level of a TOML file, or what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Table, String> {
    let table = DeTable::parse(text).map_err(|error| error.to_string())?;
    Ok(owned(table.get_ref()))
}

fn owned(table: &DeTable<'_>) -> Table {
    let entries = table.iter();
    entries
        .map(|(key, value)| (key.get_ref().to_string(), Value::owned(value.get_ref())))
        .collect()
}

impl Value {
    fn owned(value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::Array(values) => Value::Array(
                values
                    .iter()
                    .map(|value| Value::owned(value.get_ref()))
                    .collect(),
            ),
            DeValue::Table(table) => Value::Table(owned(table)),
            DeValue::Integer(number) => Value::Other(number.to_string()),
            DeValue::Float(number) => Value::Other(number.to_string()),
            DeValue::Datetime(date) => Value::Other(date.to_string()),
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_table(&self) -> Option<&Table> {
        match self {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The value under a key, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_table()?.get(key)
    }

    /// Whether it is a table that says `workspace = true`.
    pub fn is_inherited(&self) -> bool {
        self.get("workspace") == Some(&Value::Boolean(true))
    }
}

/// Equal values have equal texts, and different ones different texts.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::String(text) => write!(f, "{text:?}"),
            Value::Boolean(value) => write!(f, "{value}"),
            Value::Other(text) => f.write_str(text),
            Value::Array(values) => {
                f.write_str("[")?;
                values.iter().try_for_each(|value| write!(f, "{value},"))?;
                f.write_str("]")
            }
            Value::Table(table) => {
                f.write_str("{")?;
                table
                    .iter()
                    .try_for_each(|(key, value)| write!(f, "{key:?}={value},"))?;
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(toml: &str) -> String {
        Value::Table(parse(toml).unwrap()).to_string()
    }

    #[test]
    fn order_comments_and_ways_to_write_make_no_difference() {
        let one = "# a comment\n[a]\nx = 1\ny = ['p', \"q\"]\n[b]\nz = true\n";
        let other = "b.z = true\n[a]\ny = [\n  \"p\",\n  \"q\", # another\n]\nx = 1\n";
        assert_eq!(text(one), text(other));
        assert_eq!(
            text(one),
            "{\"a\"={\"x\"=1,\"y\"=[\"p\",\"q\",],},\"b\"={\"z\"=true,},}"
        );
    }

    #[test]
    fn different_values_have_different_texts() {
        let texts = ["x = 1", "x = '1'", "x = [1]", "y = 1", "[x]\n1 = 1"].map(text);
        for (i, one) in texts.iter().enumerate() {
            assert!(!texts[..i].contains(one), "{one}");
        }
    }

    #[test]
    fn what_is_no_toml_is_refused() {
        assert!(parse("x = ").is_err());
    }
}
