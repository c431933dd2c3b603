//! Values and rows as the types that they are assigned to.

use archipel_planner::bind;
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind, OutputColumn, Rel};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::{Oid, Type};

use super::Environment;
use super::environment::{bind_env, no_session};

/// Whether every value of one type has one of the other.
pub(super) fn always_casts(from: Oid, to: Oid) -> bool {
    match from {
        Oid::INT2 => {
            matches!(to, Oid::INT4 | Oid::INT8 | Oid::NUMERIC | Oid::FLOAT4 | Oid::FLOAT8 | Oid::TEXT)
        }
        Oid::INT4 => matches!(to, Oid::INT8 | Oid::NUMERIC | Oid::FLOAT8 | Oid::TEXT),
        Oid::INT8 => matches!(to, Oid::NUMERIC | Oid::FLOAT8 | Oid::TEXT),
        _ => matches!(to, Oid::TEXT),
    }
}

/// Casts an expression as PL/pgSQL assigns.
pub(crate) fn cast(expr: BoundExpr, target: Type, environment: &Environment) -> Result<BoundExpr> {
    let names = environment.type_names();
    let context = no_session(&names);
    let mut env = bind_env(environment, &context, "");
    bind::coerce_plpgsql(expr, target, &mut env)
}

/// Whether a value has to become another type, which may be refused.
pub(in crate::compile) fn may_refuse(from: Type, ty: Type, environment: &Environment) -> bool {
    let fits = from.oid == ty.oid && (ty.typmod < 0 || ty.typmod == from.typmod);
    let (plain, domain) = environment.catalog.plain_type(ty);
    let never_fails = domain.is_none() && ty.typmod < 0 && always_casts(from.oid, plain.oid);
    !fits && !never_fails
}

/// Makes a statement answer columns of these types, by PL/pgSQL's assignment casts.
pub(crate) fn cast_columns(
    bound: &mut BoundStatement,
    types: &[Type],
    environment: &Environment,
) -> Result<()> {
    match bound {
        BoundStatement::Query(query) => {
            let exprs: Vec<BoundExpr> = query
                .columns
                .iter()
                .enumerate()
                .map(|(index, column)| BoundExpr::column(index, column.ty))
                .collect();
            let Some(exprs) = cast_all(exprs, &query.columns, types, environment)? else { return Ok(()) };
            let columns = std::mem::take(&mut query.columns);
            query.columns = columns
                .into_iter()
                .zip(&exprs)
                .map(|(column, expr)| OutputColumn { ty: expr.ty, ..column })
                .collect();
            let input = Box::new(std::mem::replace(&mut query.rel, Rel::Unit));
            query.rel = Rel::Project { input, exprs };
            Ok(())
        }
        BoundStatement::With { statement, .. } => cast_columns(statement, types, environment),
        other => match other.returning_mut() {
            Some(returning) => cast_returning(returning, types, environment),
            None => Ok(()),
        },
    }
}

/// Makes a statement answer other columns, computed from its own.
pub(crate) fn project_columns(
    bound: &mut BoundStatement,
    project: impl FnOnce(Vec<BoundExpr>) -> Vec<BoundExpr>,
) {
    let unnamed = |exprs: &[BoundExpr]| -> Vec<OutputColumn> {
        let column =
            |expr: &BoundExpr| OutputColumn { name: "?column?".to_owned(), ty: expr.ty, source: None };
        exprs.iter().map(column).collect()
    };
    let returning = match bound {
        BoundStatement::Query(query) => {
            let own = query.columns.iter().enumerate();
            let exprs = project(own.map(|(index, column)| BoundExpr::column(index, column.ty)).collect());
            query.columns = unnamed(&exprs);
            let input = Box::new(std::mem::replace(&mut query.rel, Rel::Unit));
            query.rel = Rel::Project { input, exprs };
            return;
        }
        BoundStatement::With { statement, .. } => return project_columns(statement, project),
        other => other.returning_mut(),
    };
    if let Some(Some(returning)) = returning {
        returning.exprs = project(std::mem::take(&mut returning.exprs));
        returning.columns = unnamed(&returning.exprs);
    }
}

/// Values as a row of a composite type: each becomes what its field is declared to be; missing ones are
/// NULL, surplus ones are left.
fn row_of_values(values: Vec<BoundExpr>, ty: Type, environment: &Environment) -> Result<BoundExpr> {
    let Some(relation) = environment.catalog.table_of_row_type(ty.oid) else {
        return Err(SqlError::internal("rows of a type that is none of rows"));
    };
    let mut values = values.into_iter();
    let mut fields = Vec::with_capacity(relation.columns.len());
    for column in &relation.columns {
        let declared = column.domain.map_or(column.ty, Type::of);
        fields.push(match values.next() {
            Some(value) => cast(value, declared, environment)?,
            None => BoundExpr::new(ExprKind::Const(Datum::Null), column.ty),
        });
    }
    let names = relation.columns.iter().map(|column| column.name.clone()).collect();
    Ok(BoundExpr::new(ExprKind::Row(fields, Some(names)), ty))
}

/// As [`row_of_values`], of the fields of a record, which are of these types.
pub(in crate::compile) fn row_of_record(
    record: &BoundExpr,
    columns: &[Type],
    ty: Type,
    environment: &Environment,
) -> Result<BoundExpr> {
    let field = |(index, ty): (usize, &Type)| {
        let kind = ExprKind::Field { record: Box::new(record.clone()), index: index as u16 };
        BoundExpr::new(kind, *ty)
    };
    row_of_values(columns.iter().enumerate().map(field).collect(), ty, environment)
}

/// Makes a statement answer rows of a composite type instead of their columns.
pub(in crate::compile) fn gather_columns(
    bound: &mut BoundStatement,
    ty: Type,
    environment: &Environment,
) -> Result<()> {
    let mut gathered = Ok(());
    project_columns(bound, |own| match row_of_values(own, ty, environment) {
        Ok(row) => vec![row],
        Err(error) => {
            gathered = Err(error);
            Vec::new()
        }
    });
    gathered
}

/// Makes a statement answer its rows as records; the types of what are their fields then.
pub(in crate::compile) fn gather_record(bound: &mut BoundStatement) -> Vec<Type> {
    let types = bound.columns().iter().map(|column| column.ty).collect();
    project_columns(bound, |own| vec![BoundExpr::new(ExprKind::Row(own, None), Type::RECORD)]);
    types
}

/// Makes a statement answer its rows as records, which tell the names and types of its columns.
pub(in crate::compile) fn as_records(bound: &mut BoundStatement) {
    let names = bound.columns().iter().map(|column| column.name.clone()).collect();
    project_columns(bound, |own| vec![BoundExpr::new(ExprKind::Row(own, Some(names)), Type::RECORD)]);
}

fn cast_returning(
    returning: &mut Option<archipel_planner::bound::Returning>,
    types: &[Type],
    environment: &Environment,
) -> Result<()> {
    let Some(returning) = returning else { return Ok(()) };
    if let Some(exprs) = cast_all(returning.exprs.clone(), &returning.columns, types, environment)? {
        returning.columns.truncate(exprs.len());
        for (column, expr) in returning.columns.iter_mut().zip(&exprs) {
            column.ty = expr.ty;
        }
        returning.exprs = exprs;
    }
    Ok(())
}

/// Casts columns to the targets' types; `None` if nothing has to change.
fn cast_all(
    exprs: Vec<BoundExpr>,
    columns: &[OutputColumn],
    types: &[Type],
    environment: &Environment,
) -> Result<Option<Vec<BoundExpr>>> {
    // What comes from a column of the target's domain has met its conditions.
    let plain = |(column, ty): (&OutputColumn, &Type)| match environment.catalog.domain_of(column.source) {
        Some(domain) if domain == ty.oid => environment.catalog.plain_type(*ty).0,
        _ => *ty,
    };
    let types: Vec<Type> = columns.iter().zip(types).map(plain).collect();
    // A modifier that the value already obeys needs no work either.
    let fits =
        |expr: &BoundExpr, ty: &Type| expr.ty.oid == ty.oid && (ty.typmod < 0 || ty.typmod == expr.ty.typmod);
    let surplus = exprs.len() > types.len();
    if !surplus && exprs.iter().zip(&types).all(|(expr, ty)| fits(expr, ty)) {
        return Ok(None);
    }
    let mut fitted = Vec::with_capacity(exprs.len());
    for (expr, ty) in exprs.into_iter().zip(&types) {
        fitted.push(if fits(&expr, ty) { expr } else { cast(expr, *ty, environment)? });
    }
    Ok(Some(fitted))
}
