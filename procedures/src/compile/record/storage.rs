//! Where variables live: types resolved, registers given out.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::catalog::names::{is_own_temporary_schema, undefined_schema};
use archipel_sql::catalog::{Authority, Privileges, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::parse_type_name;
use archipel_sql::type_table::{TypeNames, element_of, type_info};
use archipel_sql::types::{Oid, Type};

use super::variable::{Field, RecordState, Storage};
use crate::compile::Environment;
use crate::compile::compiler::Compiler;
use crate::plpgsql::ast::*;
use crate::plpgsql::lexer;
use crate::run::context_line;
use crate::run::pause::recompile::Home;

/// The name of a record's tag among its fields: none that SQL can spell.
const TAG: &str = "\u{1}tag";
/// As that of what tells whether a row is there.
const PRESENT: &str = "\u{1}present";

impl Compiler<'_> {
    /// Resolves every variable's type and gives it registers; parameters come first.
    pub(in crate::compile) fn allocate(&mut self) -> Result<()> {
        let mut types: Vec<VariableType> = Vec::with_capacity(self.body.variables.len());
        for variable in &self.body.variables {
            let resolved = self.variable_type(variable, &types)?;
            if let Some(collate) = variable.collate {
                self.require_collation(&resolved, collate)?;
            }
            types.push(resolved);
        }
        self.storage = types
            .iter()
            .map(|_| Storage::Record { shapes: Vec::new(), state: RecordState::Null, tag: None })
            .collect();
        // IN arguments first, so that a call copies them as they come.
        let inputs = self
            .routine
            .args
            .iter()
            .zip(&self.body.parameters)
            .filter(|(a, _)| crate::compile::environment::is_input(a.mode));
        let mut order: Vec<usize> = inputs.map(|(_, id)| *id as usize).collect();
        order.extend((0..types.len()).filter(|id| !order.contains(id)).collect::<Vec<_>>());
        let inputs =
            self.routine.args.iter().filter(|a| crate::compile::environment::is_input(a.mode)).count();
        for (position, id) in order.into_iter().enumerate() {
            self.storage[id] = match &types[id] {
                VariableType::Scalar(declared) => {
                    let (ty, _) = self.environment.catalog.plain_type(*declared);
                    Storage::Scalar { register: self.scratch(), ty, declared: *declared }
                }
                VariableType::Row(ty, columns) => {
                    let fields = self.fields(columns);
                    let present = self.scratch();
                    self.trace.forget(present, "told when it runs");
                    Storage::Row { fields, ty: *ty, present: Some(present) }
                }
                VariableType::Record if self.is_whole_parameter(id as VariableId) => {
                    let (ty, declared) = (Type::RECORD, Type::RECORD);
                    Storage::Scalar { register: self.scratch(), ty, declared }
                }
                VariableType::Record => {
                    if position < inputs {
                        let register = self.scratch();
                        self.trace.set_argument(register, position as u16, Type::RECORD);
                        self.arrivals.push((id as VariableId, register));
                    }
                    Storage::Record { shapes: Vec::new(), state: RecordState::Null, tag: None }
                }
            };
            if position < inputs {
                self.trace_argument(position, id);
            }
        }
        Ok(())
    }

    /// Whether a parameter of type `record` is one value in one register.
    fn is_whole_parameter(&self, id: VariableId) -> bool {
        self.body.parameters.contains(&id) && !self.structured.contains(&id)
    }

    /// COLLATE stands behind the type of a text.
    fn require_collation(&self, ty: &VariableType, at: usize) -> Result<()> {
        let VariableType::Scalar(declared) = ty else { return Ok(()) };
        let (plain, _) = self.environment.catalog.plain_type(*declared);
        let element = element_of(plain.oid).unwrap_or(plain.oid);
        if matches!(element, Oid::TEXT | Oid::VARCHAR | Oid::BPCHAR | Oid::NAME) {
            return Ok(());
        }
        let name = self.environment.type_names().format_type(Type::of(declared.oid));
        let message = format!("collations are not supported by type {name}");
        let at = lexer::position(&self.routine.source, at);
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(Some(at)))
    }

    /// An argument's value is the argument.
    fn trace_argument(&mut self, position: usize, id: usize) {
        if let Storage::Scalar { register, ty, .. } = self.storage[id] {
            self.trace.set_argument(register, position as u16, ty);
        }
    }

    fn fields(&mut self, columns: &[(String, Type)]) -> Vec<Field> {
        let environment = self.environment;
        let mut field = |(name, declared): &(String, Type)| {
            let (ty, _) = environment.catalog.plain_type(*declared);
            Field { name: name.clone(), ty, declared: *declared, register: self.scratch() }
        };
        columns.iter().map(&mut field).collect()
    }

    /// Gives a `record` variable the structure of a query's rows and answers its fields.
    pub(in crate::compile) fn reshape(
        &mut self,
        variable: VariableId,
        columns: &[(String, Type)],
    ) -> Vec<Field> {
        self.reshape_as(variable, columns, Type::RECORD)
    }

    /// The same for rows of a type.
    pub(in crate::compile) fn reshape_as(
        &mut self,
        variable: VariableId,
        columns: &[(String, Type)],
        ty: Type,
    ) -> Vec<Field> {
        let known = match &self.storage[variable as usize] {
            Storage::Record { shapes, .. } => shapes.iter().position(|shape| {
                shape.len() == columns.len()
                    && shape.iter().zip(columns).all(|(f, (name, ty))| f.name == *name && f.declared == *ty)
            }),
            _ => None,
        };
        let index = match known {
            Some(index) => index,
            None => {
                let fields = self.fields(columns);
                match &mut self.storage[variable as usize] {
                    Storage::Record { shapes, .. } => {
                        shapes.push(fields);
                        shapes.len() - 1
                    }
                    _ => 0,
                }
            }
        };
        match &mut self.storage[variable as usize] {
            Storage::Record { shapes, state, .. } => {
                *state = RecordState::Shape(index, ty);
                shapes[index].clone()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a value is just a variable or a field of this type: it has met its domain's
    /// conditions.
    pub(in crate::compile) fn is_one_of(&self, value: &BoundExpr, declared: Type) -> bool {
        let ExprKind::Variable(wanted) = value.kind else { return false };
        let is_field = |field: &Field| field.register == wanted && field.declared.oid == declared.oid;
        self.storage.iter().any(|storage| match storage {
            Storage::Scalar { register, declared: own, .. } => *register == wanted && own.oid == declared.oid,
            Storage::Row { fields, .. } => fields.iter().any(is_field),
            Storage::Record { shapes, .. } => shapes.iter().flatten().any(is_field),
        })
    }

    /// The register that tells whether a variable's row is there.
    pub(in crate::compile) fn presence(&self, variable: VariableId) -> Option<u32> {
        match self.storage[variable as usize] {
            Storage::Row { present, .. } => present,
            _ => None,
        }
    }

    /// A value as one of a field or a result column.
    pub(in crate::compile) fn cast_unless_one(&self, value: BoundExpr, declared: Type) -> Result<BoundExpr> {
        if self.environment.catalog.plain_type(declared).1.is_some() && self.is_one_of(&value, declared) {
            return Ok(value);
        }
        self.cast(value, declared)
    }

    /// The context of a type that cannot be read: PostgreSQL shows it up to what follows it.
    fn wrong_type_name(&self, written: &Fragment) -> String {
        let rest = self.routine.source.get(written.start..).unwrap_or(&written.text);
        let behind = rest.get(written.text.len()..).unwrap_or_default();
        let blanks = behind.len() - behind.trim_start().len();
        format!("invalid type name \"{}{}\"", written.text, &behind[..blanks])
    }

    /// Where all variables live, for a call that goes on in another form of its routine.
    pub(in crate::compile) fn homes(&self) -> Vec<Home> {
        let mut homes = Vec::new();
        for (variable, storage) in self.storage.iter().enumerate() {
            let home = |shape: usize, field: &str, ty: Type, register| Home {
                variable: variable as u32,
                shape: shape as u32,
                field: field.into(),
                ty: ty.oid,
                register,
            };
            let mut add = |shape, fields: &[Field]| {
                homes.extend(fields.iter().map(|f| home(shape, &f.name, f.ty, f.register)));
            };
            match storage {
                Storage::Scalar { register, ty, .. } => homes.push(home(0, "", *ty, *register)),
                Storage::Row { fields, present, .. } => {
                    add(0, fields);
                    homes.extend(present.map(|present| home(0, PRESENT, Type::BOOL, present)));
                }
                Storage::Record { shapes, tag, .. } => {
                    shapes.iter().enumerate().for_each(|(shape, fields)| add(shape, fields));
                    homes.extend(tag.iter().map(|tag| home(0, TAG, Type::INT4, tag.register)));
                }
            }
        }
        homes
    }

    /// The structures of all record variables, to compare paths.
    pub(in crate::compile) fn record_states(&self) -> Vec<RecordState> {
        self.storage
            .iter()
            .map(|storage| match storage {
                Storage::Record { state, .. } => *state,
                _ => RecordState::Unassigned,
            })
            .collect()
    }

    pub(in crate::compile) fn set_record_states(&mut self, states: &[RecordState]) {
        for (storage, wanted) in self.storage.iter_mut().zip(states) {
            if let Storage::Record { state, .. } = storage {
                *state = *wanted;
            }
        }
    }

    /// Records among these that were NULL for certain may be by now: from here on they are what they were
    /// last, whose registers say so where they are NULL.
    pub(in crate::compile) fn doubt_null_records(&mut self, variables: &[VariableId]) {
        for id in variables {
            if let Storage::Record { shapes, state: state @ RecordState::Null, .. } =
                &mut self.storage[*id as usize]
            {
                *state = match shapes.len() {
                    0 => RecordState::Unassigned,
                    1 => RecordState::Shape(0, Type::RECORD),
                    _ => RecordState::Ambiguous,
                };
                self.doubt_structures(&[*id]);
            }
        }
    }

    /// Records among these may have any structure from here on that they have had so far.
    pub(in crate::compile) fn doubt_structures(&mut self, variables: &[VariableId]) {
        for id in variables {
            if let Storage::Record { shapes, state, tag: Some(_) } = &mut self.storage[*id as usize]
                && !matches!(state, RecordState::Null | RecordState::Unassigned)
                && (2..=64).contains(&shapes.len())
            {
                *state = RecordState::OneOf(u64::MAX >> (64 - shapes.len()));
            }
        }
    }

    /// What a record is where two paths meet.
    fn states_meet(&self, variable: usize, one: RecordState, other: RecordState) -> RecordState {
        let is_tagged = matches!(self.storage[variable], Storage::Record { tag: Some(_), .. });
        match (one, other) {
            (one, other) if one == other => one,
            (RecordState::Null | RecordState::Unassigned, state)
            | (state, RecordState::Null | RecordState::Unassigned) => state,
            // Of one type, as far as that is known.
            (RecordState::Shape(place, one), RecordState::Shape(same, other)) if place == same => {
                let known = if one == Type::RECORD { other } else { one };
                let ty = if other == Type::RECORD || other == known { known } else { Type::RECORD };
                RecordState::Shape(place, ty)
            }
            (one, other) => match (one.places(), other.places()) {
                (Some(one), Some(other)) if is_tagged => RecordState::OneOf(one | other),
                _ => RecordState::Ambiguous,
            },
        }
    }

    /// The structures of all record variables where two paths meet.
    pub(in crate::compile) fn records_meet(
        &self,
        one: &[RecordState],
        other: &[RecordState],
    ) -> Vec<RecordState> {
        let states = one.iter().zip(other).enumerate();
        states.map(|(variable, (one, other))| self.states_meet(variable, *one, *other)).collect()
    }

    /// How many registers all record variables have.
    pub(in crate::compile) fn registers_of_records(&self) -> usize {
        (0..self.storage.len()).map(|id| self.record_registers(id as VariableId).len()).sum()
    }

    /// All registers a record variable may have values in.
    pub(in crate::compile) fn record_registers(&self, variable: VariableId) -> Vec<u32> {
        match &self.storage[variable as usize] {
            Storage::Record { shapes, tag, .. } => {
                let fields = shapes.iter().flatten().map(|field| field.register);
                fields.chain(tag.iter().map(|tag| tag.register)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn variable_type(&self, variable: &Variable, known: &[VariableType]) -> Result<VariableType> {
        let resolved = match &variable.ty {
            TypeSpec::Known(ty) if *ty == Type::RECORD => Ok(VariableType::Record),
            TypeSpec::Known(ty) => Ok(of_type(*ty, self.environment)),
            TypeSpec::Record => Ok(VariableType::Record),
            TypeSpec::OfVariable(id) => Ok(known[*id as usize].clone()),
            TypeSpec::Named(fragment) => named_type(&fragment.text, self.environment).map_err(|error| {
                let schema = fragment.text.split_once('.').map(|(schema, _)| schema.trim());
                let error = match schema.filter(|_| error.state() == SqlState::UNDEFINED_OBJECT) {
                    Some(schema) if !self.environment.catalog.schema_exists(schema) => {
                        undefined_schema(schema).at(error.fields().position)
                    }
                    _ => error,
                };
                let inside = error.fields().position.unwrap_or(1);
                let start = lexer::position(&self.routine.source, fragment.start);
                let mut error = error;
                if error.message().starts_with("variable has pseudo-type") {
                    let pseudo = fragment.text.trim();
                    let message = format!("variable \"{}\" has pseudo-type {pseudo}", variable.name);
                    return SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                }
                if error.state() == SqlState::SYNTAX_ERROR {
                    error = context_line::add_line(error, &self.wrong_type_name(fragment));
                }
                error.fields_mut().position = Some(start + inside - 1);
                error
            }),
            // PostgreSQL takes what is no column's type for a type's name, and its %TYPE for a mistake.
            TypeSpec::OfColumn(parts, written) => column_type(parts, self.environment).map_err(|error| {
                if error.state() == SqlState::INSUFFICIENT_PRIVILEGE {
                    return error;
                }
                let percent = written.start + written.text.find('%').unwrap_or_default();
                let message = "syntax error at or near \"%\"";
                let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                let error = error.at(Some(lexer::position(&self.routine.source, percent)));
                context_line::add_line(error, &self.wrong_type_name(written))
            }),
            TypeSpec::RowOf(parts) => find_table(parts, self.environment).map(|table| row_of(&table)),
        };
        resolved.map_err(|mut error| {
            if error.fields().position.is_none() {
                let name = match self.routine.name.as_str() {
                    "" => "inline_code_block",
                    name => name,
                };
                let line = variable.line;
                error.fields_mut().context =
                    Some(format!("compilation of PL/pgSQL function \"{name}\" near line {line}"));
            }
            error
        })
    }
}

/// A resolved type of a variable.
#[derive(Clone, Debug)]
enum VariableType {
    /// As it was declared.
    Scalar(Type),
    Row(Type, Vec<(String, Type)>),
    Record,
}

fn of_type(ty: Type, environment: &Environment) -> VariableType {
    match environment.catalog.table_of_row_type(ty.oid) {
        Some(table) => row_of(&table),
        None => VariableType::Scalar(ty),
    }
}

fn row_of(table: &TableRef) -> VariableType {
    let oid = table.row_type();
    VariableType::Row(Type::of(oid), declared_columns(table))
}

/// Names and types of a table's columns as they were declared.
pub(crate) fn declared_columns(table: &TableRef) -> Vec<(String, Type)> {
    table.columns.iter().map(|column| (column.name.clone(), column.declared())).collect()
}

fn named_type(text: &str, environment: &Environment) -> Result<VariableType> {
    let name = parse_type_name(text)?;
    if name.setof {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("variable \"{text}\" cannot be of a set type"),
        ));
    }
    if let Some(ty) = name.builtin()? {
        if ty == Type::RECORD {
            return Ok(VariableType::Record);
        }
        let pseudo = type_info(ty.oid).is_some_and(|info| info.kind == b'p');
        if pseudo {
            let message = format!("variable has pseudo-type {text}");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        return Ok(VariableType::Scalar(ty));
    }
    let catalog = &environment.catalog;
    let (schema, path) = (name.name.schema.as_deref(), &environment.search_path);
    may_look_into(schema, environment)?;
    if let Some(ty) = catalog.user_type(schema, &name.name.name, path) {
        let oid = if name.dimensions > 0 { ty.array_type() } else { ty.oid };
        return Ok(of_type(Type::of(oid), environment));
    }
    match catalog.table(schema, &name.name.name, path) {
        Some(table) if name.dimensions == 0 => Ok(row_of(&table)),
        Some(table) => Ok(VariableType::Scalar(Type::of(table.row_array_type()))),
        _ => Err(archipel_sql::ast::undefined_type(&name.to_string(), None)),
    }
}

/// 42501 for what is in a schema that whoever calls the routine may not look into (LookupExplicitNamespace).
fn may_look_into(schema: Option<&str>, environment: &Environment) -> Result<()> {
    let Some(schema) = schema.filter(|schema| !is_own_temporary_schema(schema, &environment.search_path))
    else {
        return Ok(());
    };
    let authority = Authority { catalog: &environment.catalog, role: environment.role };
    authority.require_schema(schema, Privileges::USAGE)
}

fn find_table(parts: &[String], environment: &Environment) -> Result<TableRef> {
    let (schema, name) = match parts {
        [name] => (None, name),
        [schema, name] => (Some(schema.as_str()), name),
        [.., schema, name] => (Some(schema.as_str()), name),
        [] => return Err(SqlError::internal("a name without parts")),
    };
    may_look_into(schema, environment)?;
    environment.catalog.table(schema, name, &environment.search_path).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", parts.join(".")))
    })
}

fn column_type(parts: &[String], environment: &Environment) -> Result<VariableType> {
    let Some((column, table)) = parts.split_last() else {
        return Err(SqlError::internal("a name without parts"));
    };
    let table = find_table(table, environment)?;
    match table.columns.iter().find(|c| c.name == *column) {
        Some(column) => Ok(of_type(column.declared(), environment)),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{}\" does not exist", table.name),
        )),
    }
}
