//! JSON made of SQL values and SQL rows made of JSON: what the functions must know of types is
//! put into their arguments here (see `archipel_sql::json::shape`).

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{Aggregate, Intrinsic, ResolvedFunction, lookup_functions};
use archipel_sql::json::shape;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};

use crate::bind::binder::Binder;
use crate::bound::{BoundExpr, ExprKind};

impl Binder<'_, '_> {
    /// Completes the arguments of a function that makes or reads JSON; others pass.
    pub(crate) fn json_arguments(
        &mut self,
        name: &str,
        function: Option<Intrinsic>,
        mut args: Vec<BoundExpr>,
    ) -> Result<Vec<BoundExpr>> {
        match function {
            Some(Intrinsic::JsonOfAll) => args.into_iter().map(|arg| self.as_json(arg)).collect(),
            Some(Intrinsic::JsonOfFirst) => {
                if let Some(value) = args.first_mut() {
                    *value = self.as_json(value.clone())?;
                }
                Ok(args)
            }
            Some(Intrinsic::EnumLabels) => {
                let ty = args.first().map_or(Oid(0), |arg| arg.ty.oid);
                args.push(BoundExpr::constant(Datum::Oid(ty), Type::of(Oid::OID)));
                Ok(args)
            }
            Some(Intrinsic::JsonPopulate) => {
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

    /// The same of an aggregate.
    pub(crate) fn gathered_arguments(
        &mut self,
        aggregate: Aggregate,
        mut args: Vec<BoundExpr>,
    ) -> Result<Vec<BoundExpr>> {
        match aggregate {
            Aggregate::JsonObject => args.into_iter().map(|arg| self.gathered_json(arg)).collect(),
            Aggregate::JsonArray => {
                let arg = args.pop().ok_or_else(|| SqlError::internal("json_agg without an argument"))?;
                let ty = arg.ty.oid;
                let lines = ty.has_fields() || element_of(ty).is_some();
                let flag = BoundExpr::constant(Datum::Bool(lines), Type::BOOL);
                Ok(vec![self.gathered_json(arg)?, flag])
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
        let function = lookup_functions("archipel_json_of")
            .first()
            .ok_or_else(|| SqlError::internal("JSON has no function"))?;
        let shape = BoundExpr::constant(Datum::text(&shape::of_type(arg.ty)), Type::TEXT);
        let function = ResolvedFunction { function, result: Type::of(Oid::JSON) };
        Ok(BoundExpr::new(ExprKind::Call { function, args: vec![arg, shape] }, Type::of(Oid::JSON)))
    }
}

/// The columns a function of JSON is to answer, as its last argument.
pub(crate) fn target(fields: &[(String, Type)]) -> BoundExpr {
    let text = shape::target(fields.iter().map(|(name, ty)| (name.as_str(), *ty)));
    BoundExpr::constant(Datum::text(&text), Type::TEXT)
}
