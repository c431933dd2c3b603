//! JSON made of SQL values and SQL rows made of JSON: what the functions must know of types is
//! put into their arguments here (see `archipel_sql::json::shape`).

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{ResolvedFunction, lookup_functions};
use archipel_sql::json::shape;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};

use super::Binder;
use super::scope::{AGGREGATE_BASE, GROUPING_BASE};
use crate::bound::{Accumulator, BoundExpr, ExprKind};

/// Rows in rows in rows: types may refer to each other through arrays.
const DEPTH_MAX: u32 = 16;

impl Binder<'_, '_> {
    /// Completes the arguments of a function that makes or reads JSON; others pass.
    pub(crate) fn json_arguments(&mut self, name: &str, mut args: Vec<BoundExpr>) -> Result<Vec<BoundExpr>> {
        match name {
            "to_json" | "to_jsonb" | "json_build_object" | "jsonb_build_object" | "json_build_array"
            | "jsonb_build_array" => args.into_iter().map(|arg| self.as_json(arg)).collect(),
            // Whether it comes in lines may follow.
            "row_to_json" | "array_to_json" => {
                if let Some(value) = args.first_mut() {
                    *value = self.as_json(value.clone())?;
                }
                Ok(args)
            }
            "json_object_agg" | "jsonb_object_agg" => {
                args.into_iter().map(|arg| self.gathered_json(arg)).collect()
            }
            "json_agg" | "jsonb_agg" => {
                let arg = args.pop().ok_or_else(|| SqlError::internal("json_agg without an argument"))?;
                let shape = self.json_shape(&arg);
                let lines = shape.starts_with(['a', 'r']) || arg.ty.oid == Oid::RECORD;
                let flag = BoundExpr::constant(Datum::Bool(lines), Type::BOOL);
                Ok(vec![self.gathered_json(arg)?, flag])
            }
            "enum_first" | "enum_last" | "enum_range" => {
                let ty = args.first().map_or(Oid(0), |arg| arg.ty.oid);
                args.push(BoundExpr::constant(Datum::Oid(ty), Type::of(Oid::OID)));
                Ok(args)
            }
            "json_populate_record"
            | "jsonb_populate_record"
            | "json_populate_recordset"
            | "jsonb_populate_recordset" => {
                let ty = args.first().map_or(Type::RECORD, |base| base.ty);
                match args.first().and_then(|base| self.record_fields(base)) {
                    Some(fields) => args.push(target(&fields)),
                    // The list of columns in FROM may say.
                    None if ty.oid == Oid::RECORD => {}
                    None => {
                        return Err(SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            format!("first argument of {name} must be a row type"),
                        ));
                    }
                }
                Ok(args)
            }
            _ => Ok(args),
        }
    }

    /// A value for an aggregate, which takes JSON of either type as it is: DISTINCT compares it as what
    /// it is.
    fn gathered_json(&mut self, arg: BoundExpr) -> Result<BoundExpr> {
        if arg.ty.oid == Oid::JSONB { Ok(arg) } else { self.as_json(arg) }
    }

    fn as_json(&mut self, arg: BoundExpr) -> Result<BoundExpr> {
        if arg.ty.oid == Oid::JSON {
            return Ok(arg);
        }
        let arg = match self.structures_of(arg) {
            Ok(arms) => {
                let arms = arms.into_iter().map(|(when, row)| Ok((when, self.as_json(row)?)));
                let kind = ExprKind::Case { arms: arms.collect::<Result<_>>()?, otherwise: None };
                return Ok(BoundExpr::new(kind, Type::of(Oid::JSON)));
            }
            Err(arg) => arg,
        };
        let shape = self.json_shape(&arg);
        let function = lookup_functions("archipel_json_of")
            .first()
            .ok_or_else(|| SqlError::internal("JSON has no function"))?;
        let shape = BoundExpr::constant(Datum::text(&shape), Type::TEXT);
        let function = ResolvedFunction { function, result: Type::of(Oid::JSON) };
        Ok(BoundExpr::new(ExprKind::Call { function, args: vec![arg, shape] }, Type::of(Oid::JSON)))
    }

    /// The arms of a row that has one of several structures, each with names of its own; else the row.
    fn structures_of(&self, arg: BoundExpr) -> std::result::Result<Vec<(BoundExpr, BoundExpr)>, BoundExpr> {
        match arg.kind {
            ExprKind::Case { arms, otherwise: None }
                if arg.ty == Type::RECORD
                    && arms.iter().any(|(_, row)| self.is_variable_row(row))
                    && arms.iter().all(|(_, row)| row.is_null_constant() || self.is_variable_row(row)) =>
            {
                Ok(arms)
            }
            kind => Err(BoundExpr { kind, ..arg }),
        }
    }

    fn json_shape(&self, expr: &BoundExpr) -> String {
        if let Some(row) = self.gathered_row(expr) {
            return format!("a{}", self.json_shape(row));
        }
        if self.composite_fields(expr.ty.oid).is_some() || expr.ty.oid != Oid::RECORD {
            return self.type_shape(expr.ty, 0);
        }
        match (&expr.kind, self.record_fields(expr)) {
            (ExprKind::Row(items), Some(fields)) => shape::of_row(
                fields.iter().zip(items).map(|((name, _), item)| (name.as_str(), self.json_shape(item))),
            ),
            (_, Some(fields)) => {
                shape::of_row(fields.iter().map(|(name, ty)| (name.as_str(), self.type_shape(*ty, 1))))
            }
            (_, None) => "g".to_owned(),
        }
    }

    /// The row that an array of rows is gathered from, which knows their names.
    fn gathered_row(&self, array: &BoundExpr) -> Option<&BoundExpr> {
        if array.ty.oid != Oid::RECORD_ARRAY {
            return None;
        }
        let ExprKind::Column { depth: 0, index: index @ AGGREGATE_BASE..GROUPING_BASE } = array.kind else {
            return None;
        };
        let call = self.levels.last()?.aggregates.get(usize::from(index - AGGREGATE_BASE))?;
        match call.function {
            Accumulator::Builtin(function) if function.name == "array_agg" => {
                call.args.first().filter(|row| row.ty.oid == Oid::RECORD)
            }
            _ => None,
        }
    }

    pub(crate) fn type_shape(&self, ty: Type, depth: u32) -> String {
        if depth > DEPTH_MAX {
            return "g".to_owned();
        }
        if let Some(fields) = self.composite_fields(ty.oid) {
            return shape::of_row(
                fields.iter().map(|(name, ty)| (name.as_str(), self.type_shape(*ty, depth + 1))),
            );
        }
        if let Some(row) = element_of(ty.oid).filter(|element| element.is_composite()) {
            return format!("a{}", self.type_shape(Type::of(row), depth + 1));
        }
        shape::of_type(ty)
    }
}

/// The columns a function of JSON is to answer, as its last argument.
pub(crate) fn target(fields: &[(String, Type)]) -> BoundExpr {
    let text = shape::target(fields.iter().map(|(name, ty)| (name.as_str(), *ty)));
    BoundExpr::constant(Datum::text(&text), Type::TEXT)
}
