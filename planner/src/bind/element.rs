//! Parts of columns as targets of assignments: elements and slices of arrays, fields of composite
//! values, and parts of those (transformAssignmentIndirection). The column's new value is its old
//! one with the part in its place.

use archipel_sql::catalog::{Column, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CastContext, ResolvedFunction, Volatility, lookup_functions};
use archipel_sql::parser::assigned_element;
use archipel_sql::type_table::{element_of, format_type};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{AccessExpr, Expr, Ident, ObjectName, Subscript as WrittenSubscript};

use super::Binder;
use super::json_subscript::{json_assigned, json_element};
use super::name::{ident_name, object_name_parts, object_name_span};
use super::record::record_field;
use super::scope::ScopeColumn;
use super::visit::visit_expr;
use crate::bound::{BoundExpr, ExprKind, Subscript};

/// One step into a value.
enum Part {
    Field(String),
    /// Subscripts that stand together.
    Elements(Vec<WrittenSubscript>),
}

/// What an assignment names.
pub(crate) struct Target {
    /// The column.
    pub name: ObjectName,
    /// The way to the part; empty for the column itself.
    path: Vec<Part>,
}

impl Target {
    /// The target that a name holds: names of fields follow the column's.
    pub fn of(name: &ObjectName) -> Result<Target> {
        if let [part] = &name.0[..]
            && let Some(written) = part.as_ident().and_then(|ident| assigned_element(&ident.value))
        {
            return Target::written(written?);
        }
        let path = object_name_parts(name)?.into_iter().skip(1).map(Part::Field).collect();
        let first = name.0.iter().take(1).cloned().collect();
        Ok(Target { name: ObjectName(first), path })
    }

    fn written(target: Expr) -> Result<Target> {
        let refused = || SqlError::unsupported("this target of an assignment");
        let Expr::CompoundFieldAccess { root, access_chain } = target else { return Err(refused()) };
        let (first, fields): (Ident, Vec<Ident>) = match *root {
            Expr::Identifier(ident) => (ident, Vec::new()),
            Expr::CompoundIdentifier(mut parts) if !parts.is_empty() => {
                let first = parts.remove(0);
                (first, parts)
            }
            _ => return Err(refused()),
        };
        let mut path: Vec<Part> = fields.iter().map(|field| Part::Field(ident_name(field))).collect();
        for access in access_chain {
            match access {
                AccessExpr::Subscript(subscript) => match path.last_mut() {
                    Some(Part::Elements(together)) => together.push(subscript),
                    _ => path.push(Part::Elements(vec![subscript])),
                },
                AccessExpr::Dot(Expr::Identifier(field)) => path.push(Part::Field(ident_name(&field))),
                AccessExpr::Dot(_) => return Err(refused()),
            }
        }
        Ok(Target { name: ObjectName::from(vec![first]), path })
    }

    /// Whether it is part of a column.
    pub fn is_part(&self) -> bool {
        !self.path.is_empty()
    }

    /// Refuses DEFAULT for a part of a column.
    pub fn no_default(&self) -> SqlError {
        let what = match self.path.last() {
            Some(Part::Elements(_)) => "an array element",
            _ => "a subfield",
        };
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot set {what} to DEFAULT"))
    }
}

/// What subscripts of a value of an array type mean.
fn element_type(array: Type, subscripts: &[WrittenSubscript]) -> Option<Type> {
    if array.oid == Oid::JSONB {
        return Some(array);
    }
    let element = element_of(array.oid)?;
    let slices = subscripts.iter().any(|part| matches!(part, WrittenSubscript::Slice { .. }));
    Some(if slices { array } else { Type { oid: element, typmod: array.typmod } })
}

impl Binder<'_, '_> {
    /// The type of a part of a column of this type, as far as there is such a part.
    pub(crate) fn part_type(&self, target: &Target, column: Type) -> Type {
        target
            .path
            .iter()
            .try_fold(column, |ty, part| match part {
                Part::Elements(subscripts) => element_type(ty, subscripts),
                Part::Field(name) => {
                    let relation = self.env.catalog.table_of_row_type(ty.oid)?;
                    let place = relation.column_index(name)?;
                    Some(relation.columns[usize::from(place)].ty)
                }
            })
            .unwrap_or(Type::TEXT)
    }

    /// A column's value, `base`, with a part of it replaced.
    pub(crate) fn with_part(
        &mut self,
        base: BoundExpr,
        column: &Column,
        target: &Target,
        value: BoundExpr,
        value_position: Option<u32>,
    ) -> Result<BoundExpr> {
        let position = self.position(object_name_span(&target.name));
        let change = Change { column, value_position };
        let changed = self
            .changed(base, column.ty, &target.path, value, &change)
            .map_err(|error| error.at(position))?;
        self.coerce_domain(changed, column.domain)
    }

    fn changed(
        &mut self,
        base: BoundExpr,
        ty: Type,
        path: &[Part],
        value: BoundExpr,
        change: &Change<'_>,
    ) -> Result<BoundExpr> {
        match path {
            [] => Ok(value),
            [Part::Field(field), rest @ ..] => {
                self.with_field(base, ty, (field.as_str(), rest), value, change)
            }
            [Part::Elements(subscripts), rest @ ..] => {
                self.with_element(base, ty, (subscripts.as_slice(), rest), value, change)
            }
        }
    }

    fn with_field(
        &mut self,
        base: BoundExpr,
        ty: Type,
        (field, rest): (&str, &[Part]),
        value: BoundExpr,
        change: &Change<'_>,
    ) -> Result<BoundExpr> {
        let refused = |state, why: String| {
            let column = &change.column.name;
            SqlError::new(
                state,
                format!("cannot assign to field \"{field}\" of column \"{column}\" because {why}"),
            )
        };
        let shown = format_type(Type::of(ty.oid));
        let Some(relation) = self.env.catalog.table_of_row_type(ty.oid) else {
            let why = format!("its type {shown} is not a composite type");
            return Err(refused(SqlState::DATATYPE_MISMATCH, why));
        };
        let Some(place) = relation.column_index(field) else {
            let why = format!("there is no such column in data type {shown}");
            return Err(refused(SqlState::UNDEFINED_COLUMN, why));
        };
        let mut items = Vec::with_capacity(relation.columns.len());
        let mut value = Some(value);
        for (at, attribute) in relation.columns.iter().enumerate() {
            let now = record_field(base.clone(), at, attribute.ty);
            items.push(match value.take_if(|_| at == usize::from(place)) {
                Some(value) if rest.is_empty() => self.assign_field(value, attribute)?,
                Some(value) => {
                    let changed = self.changed(now, attribute.ty, rest, value, change)?;
                    self.coerce_domain(changed, attribute.domain)?
                }
                None => now,
            });
        }
        Ok(BoundExpr::new(ExprKind::Row(items), ty))
    }

    fn assign_field(&mut self, value: BoundExpr, field: &Column) -> Result<BoundExpr> {
        let from = value.ty;
        let assigned = self.coerce(value, field.ty, CastContext::Assignment)?.ok_or_else(|| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "subfield \"{}\" is of type {} but expression is of type {}",
                    field.name,
                    format_type(Type::of(field.ty.oid)),
                    format_type(Type::of(from.oid))
                ),
            )
            .with_hint("You will need to rewrite or cast the expression.")
        })?;
        self.coerce_domain(assigned, field.domain)
    }

    fn with_element(
        &mut self,
        base: BoundExpr,
        ty: Type,
        (written, rest): (&[WrittenSubscript], &[Part]),
        value: BoundExpr,
        change: &Change<'_>,
    ) -> Result<BoundExpr> {
        if ty.oid == Oid::JSONB {
            let steps: Vec<BoundExpr> =
                written.iter().map(|subscript| self.json_subscript(subscript)).collect::<Result<_>>()?;
            let value = if rest.is_empty() {
                self.assign_element(value, ty, change)?
            } else {
                let part = json_element(base.clone(), steps.clone())?;
                self.changed(part, ty, rest, value, change)?
            };
            return json_assigned(base, steps, value);
        }
        let (Some(element), Some(wanted)) = (element_of(ty.oid), element_type(ty, written)) else {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    format_type(Type::of(ty.oid))
                ),
            ));
        };
        let subscripts =
            written.iter().map(|subscript| self.subscript(subscript)).collect::<Result<Vec<Subscript>>>()?;
        if !rest.is_empty() {
            check_repeatable(&base, &subscripts)?;
        }
        let value = if rest.is_empty() {
            self.assign_element(value, wanted, change)?
        } else {
            let kind = ExprKind::Subscript { array: Box::new(base.clone()), subscripts: subscripts.clone() };
            self.changed(BoundExpr::new(kind, wanted), wanted, rest, value, change)?
        };
        let function = lookup_functions("archipel_array_assign")
            .first()
            .ok_or_else(|| SqlError::internal("arrays have no function for their elements"))?;
        let mut bounds = String::new();
        let mut args = Vec::with_capacity(2 * subscripts.len());
        let missing = || BoundExpr::constant(Datum::Null, Type::INT4);
        for subscript in subscripts {
            let (bound, lower, upper) = match subscript {
                Subscript::Index(index) => ('i', None, Some(index)),
                Subscript::Slice { lower, upper } => {
                    let given = match (&lower, &upper) {
                        (Some(_), Some(_)) => 'b',
                        (Some(_), None) => 'l',
                        (None, Some(_)) => 'u',
                        (None, None) => 'n',
                    };
                    (given, lower, upper)
                }
            };
            bounds.push(bound);
            args.push(lower.unwrap_or_else(missing));
            args.push(upper.unwrap_or_else(missing));
        }
        let mut all = vec![base, value, BoundExpr::constant(Datum::text(&bounds), Type::TEXT)];
        all.push(BoundExpr::constant(Datum::Oid(element), Type::of(Oid::OID)));
        all.extend(args);
        let function = ResolvedFunction { function, result: ty };
        Ok(BoundExpr::new(ExprKind::Call { function, args: all }, ty))
    }

    fn assign_element(&mut self, value: BoundExpr, wanted: Type, change: &Change<'_>) -> Result<BoundExpr> {
        let given = value.ty;
        self.coerce(value, wanted, CastContext::Assignment)
            .map_err(|error| error.at(change.value_position))?
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "subscripted assignment to \"{}\" requires type {} but expression is of type {}",
                        change.column.name,
                        format_type(Type::of(wanted.oid)),
                        format_type(Type::of(given.oid))
                    ),
                )
                .with_hint("You will need to rewrite or cast the expression.")
            })
    }

    /// The value of a column of the row that is changed: the first relation in sight is the target.
    pub(super) fn current_value(&mut self, table: &TableRef, column: u16) -> Result<BoundExpr> {
        let is_it = |known: &&ScopeColumn| matches!(known.expr.kind, ExprKind::Column { depth: 0, index } if index == column);
        let relation = self.level()?.relations.first();
        // A view may call it otherwise, and another column by its name; or not show it.
        let found = relation.and_then(|relation| relation.columns.iter().find(is_it));
        Ok(match found {
            Some(known) => known.expr.clone(),
            None => BoundExpr::column(usize::from(column), table.columns[usize::from(column)].ty),
        })
    }
}

/// How many parts a value may have of which each field of an element takes a copy.
const COPIED_PARTS_MAX: usize = 4_096;

/// An assignment to a field of an element names the element once for each of its fields: what names
/// it must not be long, nor answer otherwise the next time.
fn check_repeatable(base: &BoundExpr, subscripts: &[Subscript]) -> Result<()> {
    let mut parts = 0;
    visit_expr(base, 0, &mut |_, _| {
        parts += 1;
        parts <= COPIED_PARTS_MAX
    });
    if parts > COPIED_PARTS_MAX {
        let message = "too many assignments to fields of elements of one column";
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    let bounds = subscripts.iter().flat_map(|subscript| match subscript {
        Subscript::Index(index) => [Some(index), None],
        Subscript::Slice { lower, upper } => [lower.as_ref(), upper.as_ref()],
    });
    let mut is_volatile = false;
    for bound in bounds.flatten() {
        visit_expr(bound, 0, &mut |part, _| {
            is_volatile |= match &part.kind {
                ExprKind::Call { function, .. } => function.function.volatility == Volatility::Volatile,
                ExprKind::Routine { routine, .. } => routine.volatility == 'v',
                _ => false,
            };
            !is_volatile
        });
    }
    match is_volatile {
        true => Err(SqlError::unsupported("a volatile subscript before a field that is assigned")),
        false => Ok(()),
    }
}

/// What a change is about, for its errors.
struct Change<'c> {
    column: &'c Column,
    value_position: Option<u32>,
}
