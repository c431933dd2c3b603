//! Names, and expressions with their text.

/// A name with an optional schema, folded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QualifiedName {
    /// The database and the schema before the name, as far as given.
    pub catalog: Option<String>,
    pub schema: Option<String>,
    pub name: String,
    /// One-based character position in the script.
    pub position: u32,
}

impl QualifiedName {
    /// An unqualified name from nowhere in particular.
    pub fn bare(name: impl Into<String>) -> Self {
        QualifiedName { catalog: None, schema: None, name: name.into(), position: 0 }
    }

    /// The position, if the name came from a text.
    pub fn at(&self) -> Option<u32> {
        (self.position > 0).then_some(self.position)
    }
}

impl std::fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in [&self.catalog, &self.schema].into_iter().flatten() {
            write!(f, "{part}.")?;
        }
        f.write_str(&self.name)
    }
}

/// An expression with its source text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub expr: sqlparser::ast::Expr,
    /// As written, without surrounding blanks.
    pub text: String,
    /// One-based character position in the script.
    pub position: u32,
}

/// A role as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    Name(String),
    /// CURRENT_ROLE and CURRENT_USER.
    Current,
    Session,
    /// Where that may stand.
    Public,
}
