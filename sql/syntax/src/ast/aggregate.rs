//! CREATE AGGREGATE, and lists of attributes as several statements have them.

use super::{ArgumentDefinition, QualifiedName, TypeName};

/// CREATE [OR REPLACE] AGGREGATE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateAggregate {
    pub or_replace: bool,
    pub name: QualifiedName,
    /// `None` in the old form, which tells its one argument among the attributes.
    pub args: Option<Vec<ArgumentDefinition>>,
    /// Whether some arguments are said after ORDER BY.
    pub ordered: bool,
    pub attributes: Vec<Attribute>,
}

/// `name = value` of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub name: String,
    pub value: AttributeValue,
    pub position: u32,
}

/// What an attribute of CREATE AGGREGATE, OPERATOR or TYPE is given.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// Without a value.
    Nothing,
    /// A word, a name or a type: the attribute says which.
    Name(TypeName),
    Text(String),
    Number(String),
    /// An operator, with its schema if OPERATOR(…) says one.
    Operator(QualifiedName),
}
