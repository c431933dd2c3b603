//! Functions in FROM: what rows they make, and under which names.

use archipel_sql::catalog::RoutineRef;
use archipel_sql::catalog::stored_name::written_name;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{ResolvedFunction, SetFunction};
use archipel_sql::json::shape;
use archipel_sql::parser::ROWS_FROM;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{FunctionArg, ObjectName, TableAlias};

use super::Source;
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::expression::domain::reads_rows;
use crate::bind::expression::row_value;
use crate::bind::function::argument::{declared_fields, output_arguments};
use crate::bind::function::json;
use crate::bind::function::overload::{Resolved, drop_void_parameters};
use crate::bind::level::{Level, LevelKind, Relation, ScopeColumn};
use crate::bind::name::{ident_name, object_name_span, schema_and_name};
use crate::bound::*;

/// A call in FROM, and the columns of its rows.
struct FromCall {
    call: SetCall,
    columns: Vec<(String, Type)>,
    /// Whether its rows are the values of one column that is a value itself.
    scalar: bool,
}

/// The type of the rows that a call makes, if it has one.
fn row_type_of(resolved: &Resolved) -> Option<Oid> {
    match resolved {
        Resolved::Set { columns, .. } => columns.first().filter(|_| columns.len() == 1).map(|ty| ty.oid),
        Resolved::Routine { routine, result, .. } if output_arguments(routine).is_empty() => Some(result.oid),
        Resolved::Scalar { function, .. } => Some(function.result.oid),
        _ => None,
    }
}

/// The type of the rows that a call reads from what it is given, if it does.
fn read_row(resolved: &Resolved) -> Option<Type> {
    match resolved {
        Resolved::Set { function, columns, .. } if reads_rows(function.intrinsic) => columns.first().copied(),
        Resolved::Scalar { function, .. } if reads_rows(function.intrinsic()) => Some(function.result),
        _ => None,
    }
}

/// The type of the field of a row that has one.
fn only_field(fields: &[(String, Type)]) -> Option<Type> {
    match fields {
        [(_, ty)] => Some(*ty),
        _ => None,
    }
}

impl Binder<'_, '_> {
    pub(crate) fn bind_from_function(
        &mut self,
        name: &ObjectName,
        args: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        let position = self.position(object_name_span(name));
        self.require_own_database(name, "")?;
        let (schema, function) = schema_and_name(name)?;
        if schema.is_none() && function == ROWS_FROM {
            return self.bind_rows_from(args, ordinality, alias).map_err(|error| error.at(position));
        }
        let level = Level::new(LevelKind::Plain, Vec::new());
        let (mut args, _) = self.with_level(level, |binder| {
            binder.level()?.clause = Clause::FromFunction;
            binder.call_arguments(args)
        })?;
        drop_void_parameters(&mut args);
        let resolved = self
            .resolve_function(schema.as_deref(), &function, args, false, object_name_span(name))
            .map_err(|error| error.at(position))?;
        self.function_source(&function, resolved, ordinality, alias).map_err(|error| error.at(position))
    }

    pub(crate) fn function_source(
        &mut self,
        function: &str,
        resolved: Resolved,
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        // One scalar column is named by the alias, else by the function.
        let function = written_name(function);
        let own_name = alias.map_or_else(|| function.to_owned(), |alias| ident_name(&alias.name));
        let row_type = row_type_of(&resolved);
        let read = read_row(&resolved);
        let domains_of_call = self.domains_of_call(&resolved, alias)?;
        let FromCall { call, mut columns, scalar } = self.call_in_from(resolved, (own_name, alias))?;
        let types: Vec<Type> = columns.iter().map(|(_, ty)| *ty).collect();
        if ordinality {
            columns.push(("ordinality".to_owned(), Type::INT8));
        }
        let columns = columns
            .into_iter()
            .enumerate()
            .map(|(i, (name, ty))| ScopeColumn {
                name,
                expr: BoundExpr::column(i, ty).of_domain(domains_of_call.get(i).copied().flatten()),
                source: None,
                hidden: false,
            })
            .collect();
        let mut relation = Relation::new(None, columns);
        relation.scalar_function = scalar && !ordinality;
        relation.row_type = row_type.filter(|ty| ty.is_composite() && !ordinality);
        self.apply_alias(&mut relation, alias, Some(function))?;
        let domains = match read.and_then(|row| self.env.catalog.table_of_row_type(row.oid)) {
            Some(relation) => relation.columns.iter().map(|column| column.domain).collect(),
            None if read.is_some() => self.defined_domains(alias)?,
            None => Vec::new(),
        };
        let named = relation.as_named();
        let rel = Rel::Function { call, ordinality, types: types.clone(), alias: named };
        let rel = if read.is_some() { self.guarded_columns(rel, &types, &domains, ordinality)? } else { rel };
        Ok((rel, vec![relation]))
    }

    /// A call in FROM, whose column has a name of its own if it is one without.
    fn call_in_from(
        &mut self,
        resolved: Resolved,
        (own_name, alias): (String, Option<&TableAlias>),
    ) -> Result<FromCall> {
        match resolved {
            Resolved::Set { function, args, columns } => {
                self.set_in_from(function, args, &columns, (own_name, alias))
            }
            Resolved::Routine { routine, args, result } => {
                self.routine_in_from(routine, args, result, (own_name, alias))
            }
            Resolved::Scalar { function, args } => self.scalar_in_from(function, args, (own_name, alias)),
            Resolved::Cast(expr) => {
                let columns = vec![(own_name, expr.ty)];
                Ok(FromCall { call: SetCall::Scalar(Box::new(expr)), columns, scalar: true })
            }
            Resolved::Aggregate { .. } => Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "aggregate functions are not allowed in functions in FROM",
            )),
            Resolved::Ranking { .. } => Err(SqlError::new(
                SqlState::WINDOWING_ERROR,
                "window functions are not allowed in functions in FROM",
            )),
        }
    }

    /// A set-returning function that is built in.
    fn set_in_from(
        &mut self,
        set: &'static SetFunction,
        mut args: Vec<BoundExpr>,
        types: &[Type],
        (own_name, alias): (String, Option<&TableAlias>),
    ) -> Result<FromCall> {
        let mut scalar = false;
        let one = match types {
            [ty] => self.composite_fields(ty.oid),
            _ => None,
        };
        let columns = match (set.columns, types) {
            _ if one.is_some() => one.unwrap_or_default(),
            (_, [Type { oid: Oid::RECORD, .. }]) => {
                let columns = self.defined_columns(alias)?;
                self.defined_row(&mut args, &columns)?;
                columns
            }
            ([(name, _)], [ty]) if *name == set.name => {
                scalar = true;
                vec![(own_name, *ty)]
            }
            (columns, types) => {
                scalar = types.len() == 1;
                columns.iter().zip(types).map(|((name, _), ty)| ((*name).to_owned(), *ty)).collect()
            }
        };
        Ok(FromCall { call: SetCall::Builtin { function: set, args }, columns, scalar })
    }

    /// A deployed function.
    fn routine_in_from(
        &mut self,
        routine: RoutineRef,
        args: Vec<BoundExpr>,
        result: Type,
        (own_name, alias): (String, Option<&TableAlias>),
    ) -> Result<FromCall> {
        let mut scalar = false;
        let mut columns = output_arguments(&routine);
        if columns.is_empty() {
            columns = match self.composite_fields(result.oid) {
                Some(fields) => fields,
                None if result.oid == Oid::RECORD => self.defined_columns(alias)?,
                None => {
                    scalar = true;
                    vec![(own_name, result)]
                }
            };
        } else if let [(name, _)] = &mut columns[..] {
            scalar = true;
            if routine.output_args().all(|arg| arg.name.is_none()) {
                *name = own_name;
            }
        }
        Ok(FromCall { call: SetCall::Routine { routine, args }, columns, scalar })
    }

    /// A function of one value that is built in: that may be a row.
    fn scalar_in_from(
        &mut self,
        function: ResolvedFunction,
        mut args: Vec<BoundExpr>,
        (own_name, alias): (String, Option<&TableAlias>),
    ) -> Result<FromCall> {
        let ty = function.result;
        let mut scalar = false;
        // A record of one field would pass for its field.
        let mut sole_field = None;
        let (columns, ty) = if !function.function.columns.is_empty() {
            (declared_fields(function.function), Type::RECORD)
        } else if ty.oid == Oid::RECORD {
            let columns = self.defined_columns(alias)?;
            self.defined_row(&mut args, &columns)?;
            sole_field = only_field(&columns);
            (columns, Type::RECORD)
        } else if let Some(fields) = self.composite_fields(ty.oid) {
            sole_field = only_field(&fields);
            (fields, ty)
        } else {
            scalar = true;
            (vec![(own_name, ty)], ty)
        };
        let mut expr = BoundExpr::new(ExprKind::Call { function, args }, ty);
        if let Some(field) = sole_field {
            expr = row_value::record_field(expr, 0, field);
        }
        Ok(FromCall { call: SetCall::Scalar(Box::new(expr)), columns, scalar })
    }

    /// The domains that the columns of a call are of, as far as it answers any.
    fn domains_of_call(&self, resolved: &Resolved, alias: Option<&TableAlias>) -> Result<Vec<Option<Oid>>> {
        let (only, ty) = match resolved {
            Resolved::Set { function, args, columns } => match (function.columns, &columns[..]) {
                ([(_, declared)], [ty]) => (self.polymorphic_domain(function.args, *declared, args), ty.oid),
                _ => return Ok(Vec::new()),
            },
            Resolved::Routine { routine, result, .. } => {
                if !output_arguments(routine).is_empty() {
                    return Ok(routine.output_args().map(|arg| arg.domain).collect());
                }
                (routine.result_domain, result.oid)
            }
            Resolved::Scalar { function, args } => {
                let own = function.function;
                (self.polymorphic_domain(own.args, own.result, args), function.result.oid)
            }
            Resolved::Cast(expr) => (expr.domain, expr.ty.oid),
            Resolved::Aggregate { .. } | Resolved::Ranking { .. } => return Ok(Vec::new()),
        };
        if ty == Oid::RECORD {
            return self.defined_domains(alias);
        }
        Ok(match self.env.catalog.table_of_row_type(ty) {
            Some(row) => row.columns.iter().map(|column| column.domain).collect(),
            None => vec![only],
        })
    }

    /// Rows that were read from elsewhere, with the conditions that their columns have to meet.
    fn guarded_columns(
        &mut self,
        rel: Rel,
        types: &[Type],
        domains: &[Option<Oid>],
        ordinality: bool,
    ) -> Result<Rel> {
        let mut exprs = Vec::with_capacity(types.len() + 1);
        for (place, ty) in types.iter().enumerate() {
            let column = self.guarded_row(BoundExpr::column(place, *ty))?;
            exprs.push(self.coerce_domain(column, domains.get(place).copied().flatten())?);
        }
        if exprs.iter().all(|expr| matches!(expr.kind, ExprKind::Column { .. })) {
            return Ok(rel);
        }
        exprs.extend(ordinality.then(|| BoundExpr::column(types.len(), Type::INT8)));
        Ok(Rel::Project { input: Box::new(rel), exprs })
    }

    /// The domains among the types of a list of columns.
    fn defined_domains(&self, alias: Option<&TableAlias>) -> Result<Vec<Option<Oid>>> {
        let columns = alias.map_or(&[][..], |alias| &alias.columns[..]);
        let types = columns.iter().filter_map(|column| column.data_type.as_ref());
        types.map(|ty| Ok(self.declared_type(ty)?.1)).collect()
    }

    /// Tells a function which columns it answers; those of a row it was given must be the same.
    fn defined_row(&self, args: &mut Vec<BoundExpr>, columns: &[(String, Type)]) -> Result<()> {
        let Some(given) = args.first().and_then(|base| self.record_fields(base)) else {
            args.push(json::target(columns));
            return Ok(());
        };
        // The function says so when it is called, of no place in the statement.
        let mut refused = |detail: String| {
            let target = BoundExpr::constant(Datum::text(&shape::mismatch(&detail)), Type::TEXT);
            args.pop();
            args.push(target);
            Ok(())
        };
        if given.len() != columns.len() {
            let s = if given.len() == 1 { "" } else { "s" };
            return refused(format!(
                "Returned row contains {} attribute{s}, but query expects {}.",
                given.len(),
                columns.len()
            ));
        }
        let differs = given.iter().zip(columns).position(|((_, one), (_, other))| one.oid != other.oid);
        match differs {
            None => Ok(()),
            Some(place) => refused(format!(
                "Returned type {} at ordinal position {}, but query expects {}.",
                self.type_name(given[place].1.oid),
                place + 1,
                self.type_name(columns[place].1.oid)
            )),
        }
    }

    /// `AS t(a int, b text)`, which a function returning record needs.
    fn defined_columns(&mut self, alias: Option<&TableAlias>) -> Result<Vec<(String, Type)>> {
        let missing = || {
            SqlError::new(
                SqlState::SYNTAX_ERROR,
                "a column definition list is required for functions returning \"record\"",
            )
        };
        let columns = alias
            .map(|alias| &alias.columns[..])
            .filter(|columns| !columns.is_empty())
            .ok_or_else(missing)?;
        columns
            .iter()
            .map(|column| {
                let data_type = column.data_type.as_ref().ok_or_else(missing)?;
                self.need_schema_of_type(data_type);
                let ty = self.data_type(data_type)?;
                Ok((ident_name(&column.name), ty))
            })
            .collect()
    }
}
