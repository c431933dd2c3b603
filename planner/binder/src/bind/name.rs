//! Identifiers and the names PostgreSQL gives to columns.

use std::borrow::Cow;

use archipel_sql::catalog::stored_name::written_name;
use archipel_sql::error::{Result, SqlError, SqlState};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, DataType, Expr, FunctionArguments, Ident, ObjectName, ObjectNamePart,
    SelectItem, SetExpr, Subscript, TrimWhereField,
};
use sqlparser::tokenizer::Span;

/// Identifiers are cut to this many bytes (NAMEDATALEN - 1).
const NAME_BYTES_MAX: usize = 63;

/// An identifier as the catalog knows it: folded to lower case unless quoted, cut to 63 bytes.
pub fn ident_name(ident: &Ident) -> String {
    let mut name = match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    };
    // What has an id in it is never cut.
    if name.len() > NAME_BYTES_MAX && written_name(&name).len() == name.len() {
        let end = (0..=NAME_BYTES_MAX).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
        name.truncate(end);
    }
    name
}

/// A dotted name, split into folded parts.
pub fn object_name_parts(name: &ObjectName) -> Result<Vec<String>> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) => Ok(ident_name(ident)),
            ObjectNamePart::Function(_) => Err(SqlError::unsupported("a function call inside a name")),
        })
        .collect()
}

/// A table-like name: schema and name. A database part must not be there.
pub fn schema_and_name(name: &ObjectName) -> Result<(Option<String>, String)> {
    let mut parts = object_name_parts(name)?;
    match (parts.len(), parts.pop()) {
        (1, Some(name)) => Ok((None, name)),
        (2, Some(name)) => Ok((parts.pop(), name)),
        (3, Some(name)) => Ok((parts.pop(), name)),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("improper qualified name (too many dotted names): {name}"),
        )),
    }
}

/// The name of a table, and whether ONLY stood before it.
pub fn own_rows(name: &ObjectName) -> (Cow<'_, ObjectName>, bool) {
    let Some(ObjectNamePart::Identifier(first)) = name.0.first() else { return (Cow::Borrowed(name), false) };
    let Some(bare) = first.value.strip_prefix(archipel_sql::parser::ONLY) else {
        return (Cow::Borrowed(name), false);
    };
    let mut own = name.clone();
    let ident = Ident { value: bare.to_owned(), ..first.clone() };
    own.0[0] = ObjectNamePart::Identifier(ident);
    (Cow::Owned(own), true)
}

/// The span of a dotted name's first part.
pub fn object_name_span(name: &ObjectName) -> Span {
    match name.0.first() {
        Some(ObjectNamePart::Identifier(ident)) => ident.span,
        Some(ObjectNamePart::Function(function)) => function.name.span,
        None => Span::empty(),
    }
}

/// The column name of an expression that has no alias (FigureColname).
pub fn figure_column_name(expr: &Expr) -> String {
    name_of(expr).unwrap_or_else(|| "?column?".to_owned())
}

/// What an expression is called by itself, if it is.
pub fn name_of(expr: &Expr) -> Option<String> {
    figure(expr).map(|(name, _)| name)
}

/// A name, and whether it is a good one: a cast's type name gives way to the CASE or cast
/// around it.
fn figure(expr: &Expr) -> Option<(String, bool)> {
    let good = |name: &str| Some((name.to_owned(), true));
    match expr {
        Expr::Identifier(ident) => Some((ident_name(ident), true)),
        Expr::CompoundIdentifier(parts) => good(written_name(&ident_name(parts.last()?))),
        Expr::QualifiedWildcard(name, _) => match name.0.last() {
            Some(ObjectNamePart::Identifier(ident)) => Some((ident_name(ident), true)),
            Some(ObjectNamePart::Function(_)) | None => None,
        },
        Expr::CompoundFieldAccess { root, access_chain } => access_chain
            .iter()
            .rev()
            .find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(ident)) => good(written_name(&ident_name(ident))),
                AccessExpr::Dot(_)
                | AccessExpr::Subscript(Subscript::Index { .. } | Subscript::Slice { .. }) => None,
            })
            .or_else(|| figure(root)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figure(inner),
        Expr::Function(function) => {
            if let (Some(ObjectNamePart::Identifier(ident)), FunctionArguments::Subquery(_)) =
                (function.name.0.last(), &function.args)
                && ident.value.eq_ignore_ascii_case("array")
            {
                return good("array");
            }
            match function.name.0.last() {
                Some(ObjectNamePart::Identifier(ident)) => good(written_name(&ident_name(ident))),
                Some(ObjectNamePart::Function(_)) | None => None,
            }
        }
        Expr::Cast { expr, data_type, .. } => match figure(expr) {
            Some((name, true)) => Some((name, true)),
            _ => Some((type_column_name(data_type), false)),
        },
        Expr::TypedString(typed) => Some((type_column_name(&typed.data_type), false)),
        Expr::Interval(_) => Some(("interval".to_owned(), false)),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figure) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".to_owned(), false)),
        },
        Expr::Array(_) => good("array"),
        Expr::Tuple(_) => good("row"),
        Expr::Exists { negated: false, .. } => good("exists"),
        Expr::Subquery(query) => first_column_name(&query.body),
        Expr::Extract { .. } => good("extract"),
        Expr::Position { .. } => good("position"),
        Expr::Substring { shorthand: true, .. } => good("substr"),
        Expr::Substring { .. } => good("substring"),
        Expr::Overlay { .. } => good("overlay"),
        Expr::Trim { trim_where, .. } => good(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        Expr::AtTimeZone { .. } => good("timezone"),
        Expr::BinaryOp { op: BinaryOperator::Overlaps, .. } => good("overlaps"),
        Expr::Ceil { .. } => good("ceil"),
        Expr::Floor { .. } => good("floor"),
        _ => None,
    }
}

fn first_column_name(body: &SetExpr) -> Option<(String, bool)> {
    match body {
        SetExpr::Select(select) => match select.projection.first()? {
            SelectItem::UnnamedExpr(expr) => Some((figure_column_name(expr), true)),
            SelectItem::ExprWithAlias { alias, .. } => Some((ident_name(alias), true)),
            _ => None,
        },
        SetExpr::Query(query) => first_column_name(&query.body),
        SetExpr::SetOperation { left, .. } => first_column_name(left),
        SetExpr::Values(_) => Some(("column1".to_owned(), true)),
        _ => None,
    }
}

/// The name a cast to this type gives to its column: PostgreSQL's internal type name.
fn type_column_name(data_type: &DataType) -> String {
    match archipel_sql::parser::data_type_name(data_type) {
        Ok(name) => written_name(&name.name.name).to_owned(),
        Err(_) => data_type.to_string().to_lowercase(),
    }
}
