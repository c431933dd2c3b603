//! Rows as values: their fields, and whether they are NULL.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{Intrinsic, Operands, column_types};
use archipel_sql::parser::EVERY_FIELD;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Span;

use super::coerce::is_polymorphic;
use super::row_value::{as_record, record_field};
use crate::bind::binder::Binder;
use crate::bind::function::argument;
use crate::bind::level::Fields;
use crate::bind::name::ident_name;
use crate::bind::scope::SET_BASE;
use crate::bound::{BoundExpr, ExprKind, FieldNames, Rel, SetCall, SetItem};

impl Binder<'_, '_> {
    /// Names and types of a record expression's fields, if they are known.
    pub(crate) fn record_fields(&self, expr: &BoundExpr) -> Option<Vec<(String, Type)>> {
        if let Some(fields) = self.composite_fields(expr.ty.oid) {
            return Some(fields);
        }
        match &expr.kind {
            ExprKind::Row(items, names) => {
                // A literal stays one of no type; a parameter is what it is taken for.
                let ty = |item: &BoundExpr| match self.is_open_parameter(item) {
                    true => Type::TEXT,
                    false => item.ty,
                };
                Some(items.iter().enumerate().map(|(i, item)| (field_name(names, i), ty(item))).collect())
            }
            ExprKind::Routine { routine, .. } => {
                let columns = argument::output_arguments(routine);
                (!columns.is_empty()).then_some(columns)
            }
            ExprKind::Column { depth: 0, index } if *index >= SET_BASE && expr.ty.oid == Oid::RECORD => {
                fields_of_set(&self.levels.last()?.sets.get(usize::from(*index - SET_BASE))?.0)
            }
            ExprKind::Column { depth, index } if expr.ty == Type::RECORD => {
                self.fields_of_column(usize::from(*depth), *index)
            }
            ExprKind::Call { function, .. } if !function.function.columns.is_empty() => {
                Some(argument::declared_fields(function.function))
            }
            ExprKind::Relabel(inner) => self.record_fields(inner),
            // A row that may be absent.
            ExprKind::Case { arms, otherwise: Some(row) }
                if is_whole_row(row) && matches!(&arms[..], [(_, absent)] if absent.is_null_constant()) =>
            {
                self.record_fields(row)
            }
            _ => None,
        }
    }

    /// What the rows in a column of the query at hand, or of one around it, are made of.
    fn fields_of_column(&self, depth: usize, index: u16) -> Option<Fields> {
        let level = self.levels.len().checked_sub(depth + 1).and_then(|level| self.levels.get(level))?;
        let is_it =
            |expr: &BoundExpr| matches!(expr.kind, ExprKind::Column { depth: 0, index: own } if own == index);
        level.relations.iter().find_map(|relation| {
            let known = |(place, _): &&(usize, Fields)| is_it(&relation.columns[*place].expr);
            relation.records.iter().find(known).map(|(_, fields)| fields.clone())
        })
    }

    /// What the rows in columns of a query are made of, by the columns' places.
    pub(crate) fn records_in(&self, rel: &Rel) -> Vec<(usize, Fields)> {
        let types = rel.types();
        let records = types.iter().enumerate().filter(|(_, ty)| **ty == Type::RECORD);
        records.filter_map(|(place, _)| Some((place, self.fields_in(rel, place)?))).collect()
    }

    fn fields_in(&self, rel: &Rel, place: usize) -> Option<Fields> {
        let of_expr = |input: &Rel, expr: &BoundExpr| match expr.kind {
            ExprKind::Column { depth: 0, index } => self.fields_in(input, index.into()),
            _ => self.record_fields(expr),
        };
        match rel {
            Rel::Project { input, exprs } => of_expr(input, exprs.get(place)?),
            Rel::ProjectSet { input, items } => match items.get(place)? {
                SetItem::Scalar(expr) => of_expr(input, expr),
                SetItem::Set { call, .. } => fields_of_set(call),
            },
            Rel::Filter { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Limit { input, .. } => self.fields_in(input, place),
            Rel::Join { left, right, .. } => match place.checked_sub(left.width()) {
                None => self.fields_in(left, place),
                Some(place) => self.fields_in(right, place),
            },
            _ => None,
        }
    }

    /// The arguments of what compares rows by their images, and behind them the types of the rows'
    /// columns: two rows have to be of the same, which their values do not tell. Others pass.
    pub(crate) fn image_arguments(
        &self,
        function: Option<Intrinsic>,
        mut args: Vec<BoundExpr>,
    ) -> Vec<BoundExpr> {
        let compares =
            matches!(function, Some(Intrinsic::Compare(_, Operands::Images) | Intrinsic::OrderImages));
        if !compares || args.len() != 2 {
            return args;
        }
        for place in 0..2 {
            let row = &args[place];
            let types: Vec<Type> = match &row.kind {
                // Literals that stay such are of no type.
                ExprKind::Row(items, _) if row.ty == Type::RECORD => {
                    items.iter().map(|item| item.ty).collect()
                }
                _ => self.record_fields(row).unwrap_or_default().into_iter().map(|(_, ty)| ty).collect(),
            };
            args.push(BoundExpr::constant(column_types(&types), Type::INT4_ARRAY));
        }
        args
    }

    /// The arguments of what compares two rows. Those of named types shall say themselves what they are,
    /// unless both are known to be of the same types: fields of others do not compare, which shows when
    /// they are come to.
    pub(crate) fn compared_rows(&self, args: Vec<BoundExpr>) -> Vec<BoundExpr> {
        let [left, right] = &args[..] else { return args };
        let named = left.ty.oid.is_composite() || right.ty.oid.is_composite();
        if !named || left.ty.oid == right.ty.oid {
            return args;
        }
        let types = |row: &BoundExpr| -> Option<Vec<Oid>> {
            Some(self.record_fields(row)?.iter().map(|(_, ty)| ty.oid).collect())
        };
        if types(left).is_some_and(|left| types(right).is_some_and(|right| left == right)) {
            return args;
        }
        args.into_iter().map(as_record).collect()
    }

    /// The fields of a variable, for `variable.*`; 42809 where its rows are of no named type.
    pub(crate) fn variable_fields(&self, names: &[&str]) -> Result<Option<Vec<(String, BoundExpr)>>> {
        let Some(variables) = self.env.variables else { return Ok(None) };
        if variables.resolve(names).is_some_and(|row| row.ty == Type::RECORD) {
            return Err(unregistered().placeless());
        }
        Ok(variables.fields(names))
    }

    /// `(record).field`; errors are told of at `span`.
    pub(super) fn field(&mut self, record: BoundExpr, field: &Ident, span: Span) -> Result<BoundExpr> {
        let name = &ident_name(field);
        let position = self.position(span);
        if name == EVERY_FIELD {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "row expansion via \"*\" is not supported here",
            )
            .at(position));
        }
        let Some(fields) = self.record_fields(&record) else {
            if record.ty.oid == Oid::RECORD {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("could not identify column \"{name}\" in record data type"),
                )
                .at(position));
            }
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "column notation .{name} applied to type {}, which is not a composite type",
                    self.type_name(record.ty.oid)
                ),
            )
            .at(position));
        };
        let Some(index) = fields.iter().position(|(field, _)| field == name) else {
            let ty = record.ty;
            if let Some(call) = self.function_as_field(record, name, field.span)? {
                return Ok(call);
            }
            if ty.oid == Oid::RECORD {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("could not identify column \"{name}\" in record data type"),
                )
                .at(position));
            }
            return Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" not found in data type {}", self.type_name(ty.oid)),
            )
            .at(position));
        };
        let domain = self.domain_of_field(&record, index);
        let field = record_field(record, index, fields[index].1);
        let domain = field.domain.or(domain);
        Ok(field.of_domain(domain))
    }

    /// All fields of a record, for `(record).*`.
    pub(crate) fn all_fields(&mut self, record: BoundExpr, span: Span) -> Result<Vec<(String, BoundExpr)>> {
        let Some(fields) = self.record_fields(&record) else {
            return Err(unregistered().at(self.position(span)));
        };
        let field = |(i, (name, ty)): (usize, (String, Type))| {
            let field = record_field(record.clone(), i, ty);
            let domain = field.domain.or_else(|| self.domain_of_field(&record, i));
            (name, field.of_domain(domain))
        };
        Ok(fields.into_iter().enumerate().map(field).collect())
    }

    /// `IS [NOT] NULL`: of a row, whether all its fields are (not) NULL. A row that is a field of it is
    /// not NULL, whatever its own fields are.
    pub(super) fn null_test_of(&mut self, operand: BoundExpr, negated: bool) -> Result<BoundExpr> {
        self.stays_open |= self.is_open_parameter(&operand);
        let test = |operand: BoundExpr| {
            let operand = Box::new(operand);
            let kind = if negated { ExprKind::IsNotNull(operand) } else { ExprKind::IsNull(operand) };
            BoundExpr::new(kind, Type::BOOL)
        };
        let items = match operand.kind {
            ExprKind::Row(items, _) => items,
            kind => {
                let operand = BoundExpr::new(kind, operand.ty);
                // Without its fields, or where looking at each would compute it anew, a value is
                // looked into when it is there.
                match self.record_fields(&operand) {
                    Some(fields) if !fields.is_empty() && is_at_hand(&operand) => {
                        let fields = fields.iter().enumerate();
                        fields.map(|(i, (_, ty))| record_field(operand.clone(), i, *ty)).collect()
                    }
                    _ => return Ok(test(operand)),
                }
            }
        };
        let mut tests = Vec::with_capacity(items.len());
        for item in items {
            let of_fields = item.ty.oid.has_fields();
            tests.push(match &item.kind {
                ExprKind::Row(..) => BoundExpr::constant(Datum::Bool(negated), Type::BOOL),
                _ if of_fields => {
                    let equality = self.operator_of("=", Oid::RECORD, Oid::RECORD)?;
                    let nothing = BoundExpr::constant(Datum::Null, item.ty);
                    let kind = ExprKind::IsDistinctFrom {
                        left: Box::new(item),
                        right: Box::new(nothing),
                        equality,
                        negated: !negated,
                    };
                    BoundExpr::new(kind, Type::BOOL)
                }
                _ => test(item),
            });
        }
        Ok(BoundExpr::new(ExprKind::And(tests), Type::BOOL))
    }
}

/// What the field of a row at a place is called.
pub fn field_name(names: &FieldNames, place: usize) -> String {
    names.as_ref().and_then(|names| names.get(place).cloned()).unwrap_or_else(|| format!("f{}", place + 1))
}

/// Whether it is the row of a relation or a variable, rather than a row that was written.
pub(crate) fn is_whole_row(expr: &BoundExpr) -> bool {
    matches!(&expr.kind, ExprKind::Row(_, Some(_)))
}

/// 42809, of a row whose fields are not known where they are asked for.
pub(crate) fn unregistered() -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, "record type has not been registered")
}

/// Whether a value is there without being computed.
pub(crate) fn is_at_hand(expr: &BoundExpr) -> bool {
    match &expr.kind {
        ExprKind::Column { .. } | ExprKind::Param(_) | ExprKind::Const(_) | ExprKind::Variable(_) => true,
        ExprKind::Field { record, .. } => is_at_hand(record),
        ExprKind::Relabel(inner) => is_at_hand(inner),
        _ => false,
    }
}

/// 0A000 for what several columns of an UPDATE are to get at once and is no row.
pub(crate) fn no_row_source() -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
    )
}

/// Names and types of the rows of a set in a SELECT list, if its function declares them.
fn fields_of_set(call: &SetCall) -> Option<Fields> {
    match call {
        SetCall::Builtin { function, .. } => {
            let columns = function.columns;
            let plain = columns.len() > 1 && !columns.iter().any(|(_, ty)| is_polymorphic(*ty));
            plain.then(|| columns.iter().map(|(name, ty)| ((*name).to_owned(), Type::of(*ty))).collect())
        }
        SetCall::Routine { routine, .. } => {
            let columns = argument::output_arguments(routine);
            (columns.len() > 1).then_some(columns)
        }
        SetCall::Scalar(_) => None,
    }
}
