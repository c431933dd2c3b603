//! Parts of columns as targets of assignments: elements and slices of arrays, fields of composite
//! values, and parts of those (transformAssignmentIndirection). The column's new value is its old
//! one with the part in its place.

use std::fmt::Write;

use archipel_sql::catalog::{Column, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CastContext, Intrinsic, ResolvedFunction, lookup_functions};
use archipel_sql::parser::assigned_element;
use archipel_sql::type_table::{TypeNames, element_of};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{AccessExpr, Expr, Ident, ObjectName, Subscript as WrittenSubscript};

use crate::bind::binder::{BindEnv, Binder};
use crate::bind::expression::coordinate::with_coordinate;
use crate::bind::expression::json_subscript::json_assigned;
use crate::bind::expression::record::is_at_hand;
use crate::bind::expression::row_value::record_field;
use crate::bind::level::{Level, LevelKind, ScopeColumn};
use crate::bind::name::{ident_name, object_name_parts, object_name_span};
use crate::bound::{BoundExpr, ExprKind, Subscript};

/// One step into a value.
enum Part {
    Field(String),
    /// Subscripts that stand together.
    Elements(Vec<WrittenSubscript>),
    /// The same, bound.
    Bound(Vec<Subscript>),
}

impl Part {
    /// Whether it is an array that subscripts mean, and not an element.
    fn is_slice(&self) -> bool {
        match self {
            Part::Field(_) => false,
            Part::Elements(written) => {
                written.iter().any(|part| matches!(part, WrittenSubscript::Slice { .. }))
            }
            Part::Bound(bound) => bound.iter().any(|part| matches!(part, Subscript::Slice { .. })),
        }
    }
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
    fn no_default(&self) -> SqlError {
        let what = match self.path.last() {
            Some(Part::Elements(_) | Part::Bound(_)) => "an array element",
            _ => "a subfield",
        };
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot set {what} to DEFAULT"))
    }
}

/// What subscripts of a value of an array type mean.
fn element_type(array: Type, part: &Part) -> Option<Type> {
    if array.oid == Oid::JSONB {
        return Some(array);
    }
    if array.oid == Oid::POINT {
        return Some(Type::of(Oid::FLOAT8));
    }
    let element = element_of(array.oid)?;
    Some(if part.is_slice() { array } else { Type { oid: element, typmod: array.typmod } })
}

impl Binder<'_, '_> {
    /// The type of a part of a column of this type, as far as there is such a part.
    pub(crate) fn part_type(&self, target: &Target, column: Type) -> Type {
        target
            .path
            .iter()
            .try_fold(column, |ty, part| match part {
                Part::Field(name) => {
                    let relation = self.env.catalog.table_of_row_type(ty.oid)?;
                    let place = relation.column_index(name)?;
                    Some(relation.columns[usize::from(place)].ty)
                }
                part => element_type(ty, part),
            })
            .unwrap_or(Type::TEXT)
    }

    /// The error over DEFAULT for a part of a column.
    pub(crate) fn default_refused(&self, part: &Target) -> SqlError {
        part.no_default().at(self.position(object_name_span(&part.name)))
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
        let change = Change { name: &column.name, value_position };
        // What another part of the column has made of it: a domain's conditions are for the whole.
        let base = match base {
            BoundExpr { kind: ExprKind::Domain { expr, .. }, .. } => *expr,
            base => base,
        };
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
            [Part::Elements(written)] if ty.oid == Oid::POINT => {
                let subscripts =
                    written.iter().map(|part| self.subscript(part)).collect::<Result<Vec<_>>>()?;
                let value = self.assign_element(value, Type::of(Oid::FLOAT8), change)?;
                with_coordinate(base, subscripts, value)
            }
            [part @ Part::Elements(_)] if !is_changed(&base) => {
                self.with_element(base, ty, part, value, change)
            }
            [Part::Field(field), rest @ ..]
                if (is_at_hand(&base) || matches!(base.kind, ExprKind::Row(..)))
                    && rest.iter().all(|part| matches!(part, Part::Field(_))) =>
            {
                self.with_field(base, ty, (field.as_str(), rest), value, change)
            }
            _ => self.with_changes(base, ty, path, value, change),
        }
    }

    /// A field of a composite type that an assignment names, and its place.
    fn assigned_field(&self, ty: Type, field: &str, change: &Change<'_>) -> Result<(TableRef, usize)> {
        let refused = |state, why: String| {
            let name = change.name;
            SqlError::new(
                state,
                format!("cannot assign to field \"{field}\" of column \"{name}\" because {why}"),
            )
        };
        let shown = self.type_name(ty.oid);
        let Some(relation) = self.env.catalog.table_of_row_type(ty.oid) else {
            let why = format!("its type {shown} is not a composite type");
            return Err(refused(SqlState::DATATYPE_MISMATCH, why));
        };
        match relation.column_index(field) {
            Some(place) => Ok((relation, usize::from(place))),
            None => {
                let why = format!("there is no such column in data type {shown}");
                Err(refused(SqlState::UNDEFINED_COLUMN, why))
            }
        }
    }

    /// A value with the part at the end of a way replaced, by a call that names it once, however many
    /// parts of it an assignment replaces.
    fn with_changes(
        &mut self,
        base: BoundExpr,
        ty: Type,
        path: &[Part],
        value: BoundExpr,
        change: &Change<'_>,
    ) -> Result<BoundExpr> {
        let (mut way, mut args, mut inner) = (String::new(), Vec::new(), ty);
        let (mut value, mut passes_domain) = (value, false);
        let mut change = Change { name: change.name, ..*change };
        for (at, part) in path.iter().enumerate() {
            let is_last = at + 1 == path.len();
            match part {
                Part::Field(field) => {
                    let (relation, place) = self.assigned_field(inner, field, &change)?;
                    change.name = field;
                    let _ = write!(way, "f{place}/{};", relation.columns.len());
                    let attribute = &relation.columns[place];
                    if is_last {
                        value = self.assign_field(value, attribute)?;
                    }
                    passes_domain |= !is_last && attribute.domain.is_some();
                    inner = attribute.ty;
                }
                part if inner.oid == Oid::JSONB => {
                    let keys = self.keys(part)?;
                    let _ = write!(way, "j{};", keys.len());
                    args.extend(keys);
                    if is_last {
                        value = self.assign_element(value, inner, &change)?;
                    }
                }
                part => {
                    let (element, wanted) = subscripted(inner, part, self)?;
                    let bounds = self.bounds(part, &mut args)?;
                    let _ = write!(way, "e{},{bounds};", element.0);
                    if is_last {
                        value = self.assign_element(value, wanted, &change)?;
                    }
                    inner = wanted;
                }
            }
        }
        way.push('=');
        args.push(value);
        let changed = match base.kind {
            // Further changes of what is changed already.
            ExprKind::Call { function, args: mut known } if function.is(Intrinsic::PartAssign) => {
                if let Some(ExprKind::Const(Datum::Text(ways))) = known.get_mut(1).map(|ways| &mut ways.kind)
                {
                    ways.push_str(&way);
                }
                known.append(&mut args);
                BoundExpr::new(ExprKind::Call { function, args: known }, ty)
            }
            kind => {
                let function = lookup_functions(CHANGES)
                    .first()
                    .ok_or_else(|| SqlError::internal("values have no function for their parts"))?;
                let ways = BoundExpr::constant(Datum::text(&way), Type::TEXT);
                let mut all = vec![BoundExpr::new(kind, base.ty), ways];
                all.append(&mut args);
                let function = ResolvedFunction { function, result: ty };
                BoundExpr::new(ExprKind::Call { function, args: all }, ty)
            }
        };
        // What is on the way and of a domain must still be one of it.
        if passes_domain { self.guarded_row(changed) } else { Ok(changed) }
    }

    fn integer_bounds(&mut self, mut subscripts: Vec<Subscript>) -> Result<Vec<Subscript>> {
        let mut bound = |bound: &mut BoundExpr| -> Result<()> {
            let value = std::mem::replace(bound, BoundExpr::constant(Datum::Null, Type::INT4));
            *bound = self.coerce_or_fail(value, Type::INT4, CastContext::Assignment)?;
            Ok(())
        };
        for subscript in &mut subscripts {
            match subscript {
                Subscript::Index(index) => bound(index)?,
                Subscript::Slice { lower, upper } => {
                    for side in [lower, upper].into_iter().flatten() {
                        bound(side)?;
                    }
                }
            }
        }
        Ok(subscripts)
    }

    /// The keys that subscripts of jsonb are.
    fn keys(&mut self, part: &Part) -> Result<Vec<BoundExpr>> {
        match part {
            Part::Elements(written) => written.iter().map(|key| self.json_subscript(key)).collect(),
            Part::Bound(bound) => bound.iter().map(|key| self.bound_json_subscript(key)).collect(),
            Part::Field(_) => Ok(Vec::new()),
        }
    }

    /// The bounds of subscripts as functions take them: a letter for each, and a lower and an upper
    /// bound among the arguments.
    fn bounds(&mut self, part: &Part, args: &mut Vec<BoundExpr>) -> Result<String> {
        let subscripts = match part {
            Part::Elements(written) => {
                written.iter().map(|subscript| self.subscript(subscript)).collect::<Result<Vec<_>>>()?
            }
            Part::Bound(bound) => self.integer_bounds(bound.clone())?,
            Part::Field(_) => Vec::new(),
        };
        let mut letters = String::new();
        let missing = || BoundExpr::constant(Datum::Null, Type::INT4);
        for subscript in subscripts {
            let (letter, lower, upper) = match subscript {
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
            letters.push(letter);
            args.push(lower.unwrap_or_else(missing));
            args.push(upper.unwrap_or_else(missing));
        }
        Ok(letters)
    }

    fn with_field(
        &mut self,
        base: BoundExpr,
        ty: Type,
        (field, rest): (&str, &[Part]),
        value: BoundExpr,
        change: &Change<'_>,
    ) -> Result<BoundExpr> {
        let (relation, place) = self.assigned_field(ty, field, change)?;
        let mut items = Vec::with_capacity(relation.columns.len());
        let mut value = Some(value);
        for (at, attribute) in relation.columns.iter().enumerate() {
            let now = record_field(base.clone(), at, attribute.ty);
            items.push(match value.take_if(|_| at == place) {
                Some(value) if rest.is_empty() => self.assign_field(value, attribute)?,
                Some(value) => {
                    let change = Change { name: field, ..*change };
                    let changed = self.changed(now, attribute.ty, rest, value, &change)?;
                    self.coerce_domain(changed, attribute.domain)?
                }
                None => now,
            });
        }
        Ok(BoundExpr::new(ExprKind::Row(items, None), ty))
    }

    fn assign_field(&mut self, value: BoundExpr, field: &Column) -> Result<BoundExpr> {
        let (from, wanted) = (value.declared(), field.domain.unwrap_or(field.ty.oid));
        let assigned = self.coerce(value, field.ty, CastContext::Assignment)?.ok_or_else(|| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "subfield \"{}\" is of type {} but expression is of type {}",
                    field.name,
                    self.type_name(wanted),
                    self.type_name(from.oid)
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
        part: &Part,
        value: BoundExpr,
        change: &Change<'_>,
    ) -> Result<BoundExpr> {
        if ty.oid == Oid::JSONB {
            let steps = self.keys(part)?;
            let value = self.assign_element(value, ty, change)?;
            return json_assigned(base, steps, value);
        }
        let (element, wanted) = subscripted(ty, part, self)?;
        let mut subscripts = Vec::new();
        let bounds = self.bounds(part, &mut subscripts)?;
        let value = self.assign_element(value, wanted, change)?;
        let function = lookup_functions("archipel_array_assign")
            .first()
            .ok_or_else(|| SqlError::internal("arrays have no function for their elements"))?;
        let mut all = vec![base, value, BoundExpr::constant(Datum::text(&bounds), Type::TEXT)];
        all.push(BoundExpr::constant(Datum::Oid(element), Type::of(Oid::OID)));
        all.append(&mut subscripts);
        let function = ResolvedFunction { function, result: ty };
        Ok(BoundExpr::new(ExprKind::Call { function, args: all }, ty))
    }

    fn assign_element(&mut self, value: BoundExpr, wanted: Type, change: &Change<'_>) -> Result<BoundExpr> {
        let given = value.declared();
        self.coerce(value, wanted, CastContext::Assignment)
            .map_err(|error| error.at(change.value_position))?
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "subscripted assignment to \"{}\" requires type {} but expression is of type {}",
                        change.name,
                        self.type_name(wanted.oid),
                        self.type_name(given.oid)
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

/// Replaces parts of values.
const CHANGES: &str = "archipel_part_assign";

/// Whether parts of a value have been replaced already.
fn is_changed(base: &BoundExpr) -> bool {
    matches!(&base.kind, ExprKind::Call { function, .. } if function.is(Intrinsic::PartAssign))
}

/// The type of an array's elements, and that of what subscripts of it mean.
fn subscripted(ty: Type, part: &Part, names: &dyn TypeNames) -> Result<(Oid, Type)> {
    element_of(ty.oid).zip(element_type(ty, part)).ok_or_else(|| {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "cannot subscript type {} because it does not support subscripting",
                names.type_name(ty.oid)
            ),
        )
    })
}

/// The way to a part of a variable.
#[derive(Default)]
pub struct PartWay(Vec<Part>);

impl PartWay {
    pub fn field(&mut self, name: &str) {
        self.0.push(Part::Field(name.to_owned()));
    }

    /// A subscript of any type that may be one, or a slice.
    pub fn subscript(&mut self, subscript: Subscript) {
        match self.0.last_mut() {
            Some(Part::Bound(together)) => together.push(subscript),
            _ => self.0.push(Part::Bound(vec![subscript])),
        }
    }
}

/// What is assigned to a part of a variable of this type becomes this: its type, or a domain over it.
pub fn part_declared(ty: Type, way: &PartWay, name: &str, env: &mut BindEnv<'_>) -> Result<Type> {
    let binder = Binder::new(env);
    let mut change = Change { name, value_position: None };
    let mut declared = ty;
    for part in &way.0 {
        let (plain, _) = binder.plain_type(declared);
        declared = match part {
            Part::Field(field) => {
                let (relation, place) = binder.assigned_field(plain, field, &change)?;
                change.name = field;
                relation.columns[place].domain.map_or(relation.columns[place].ty, Type::of)
            }
            part if plain.oid == Oid::JSONB => element_type(plain, part).unwrap_or(plain),
            part => subscripted(plain, part, &binder)?.1,
        };
    }
    Ok(declared)
}

/// A variable's value with a part of it replaced by a value that [`part_declared`] lets through.
pub fn assign_part(
    base: BoundExpr,
    way: PartWay,
    value: BoundExpr,
    name: &str,
    env: &mut BindEnv<'_>,
) -> Result<BoundExpr> {
    let mut binder = Binder::new(env);
    binder.levels.push(Level::new(LevelKind::Plain, Vec::new()));
    let ty = base.ty;
    binder.changed(base, ty, &way.0, value, &Change { name, value_position: None })
}

/// What a change is about, for its errors.
struct Change<'c> {
    /// The column, or the field that was named last.
    name: &'c str,
    value_position: Option<u32>,
}
