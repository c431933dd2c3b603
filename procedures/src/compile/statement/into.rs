//! Rows into variables: INTO and FOR targets, casts, the structure of records.

use archipel_planner::bind;
use archipel_planner::bound::{
    BoundExpr, BoundStatement, ExprKind, OutputColumn, Rel, Subquery, SubqueryKind,
};
use archipel_planner::native;
use archipel_sql::catalog::{Distribution, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Type;

use crate::compile::cast::{cast_columns, gather_columns, gather_record, may_refuse, row_of_record};
use crate::compile::compiler::Compiler;
use crate::compile::record::variable::Storage;
use crate::compile::trace::symbols::Symbol;
use crate::plpgsql::ast::*;
use crate::plpgsql::lexer;
use crate::run::operation::into::IntoCast;
use crate::run::operation::{Operation, OperationKind, ReferenceRead, Targets};

/// A statement, then what puts the fields that it gave values to into their rows.
pub(super) fn before_parts(operation: Operation, put: Vec<OperationKind>) -> Operation {
    if put.is_empty() || matches!(operation.kind, OperationKind::Fail { .. }) {
        return operation;
    }
    let site = operation.site;
    let put = put.into_iter().map(|kind| Operation { site, rights: None, kind });
    let kind = OperationKind::Sequence(std::iter::once(operation).chain(put).collect());
    Operation { site, rights: None, kind }
}

pub(crate) fn modifies(bound: &BoundStatement) -> bool {
    match bound {
        BoundStatement::Query(_) | BoundStatement::Call(_) => false,
        BoundStatement::Insert(_)
        | BoundStatement::Update(_)
        | BoundStatement::Delete(_)
        | BoundStatement::Merge(_) => true,
        BoundStatement::With { statement, .. } => modifies(statement),
    }
}

impl Compiler<'_> {
    /// A field is one of a row.
    pub(super) fn require_record(&self, target: &Target) -> Result<()> {
        let (Storage::Scalar { ty, .. }, Some(Step::Field(_))) =
            (&self.storage[target.variable as usize], target.path.first())
        else {
            return Ok(());
        };
        if ty.oid.is_composite() || self.environment.catalog.table_of_row_type(ty.oid).is_some() {
            return Ok(());
        }
        let message = format!("\"{}\" is not a known variable", target.text);
        let at = lexer::position(&self.routine.source, target.start);
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(at)))
    }

    /// Of several targets none is a row, as those of named types could be whose types are known only here.
    pub(super) fn require_scalars(&self, statement: &StatementKind) -> Result<()> {
        let (StatementKind::Sql { into: Some(into), .. }
        | StatementKind::Dynamic { into: Some(into), .. }
        | StatementKind::Fetch { into: Some(into), .. }) = statement
        else {
            return Ok(());
        };
        let is_row = |target: &&Target| {
            let is_record = target.path.is_empty() && self.storage[target.variable as usize].is_record();
            is_record || self.row_of_its_domain(target).is_some()
        };
        let (Some(first), true) = (into.targets.first(), into.targets.len() > 1) else { return Ok(()) };
        let source = &self.routine.source;
        let refused = |message: String, at: usize| {
            let at = lexer::position(source, at);
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(at)))
        };
        if is_row(&first) {
            let end = first.start + first.text.len();
            let comma = source.get(end..).and_then(|rest| rest.find(',')).map_or(end, |at| end + at);
            return refused("record variable cannot be part of multiple-item INTO list".to_owned(), comma);
        }
        match into.targets.iter().find(is_row) {
            Some(row) => refused(format!("\"{}\" is not a scalar variable", row.text), row.start),
            None => Ok(()),
        }
    }

    /// A target that is a scalar variable or a field: a register, and what it was declared to be. That of a
    /// field of a row in one register is not its own: the row gets it behind the statement.
    pub(super) fn scalar_target(&mut self, target: &Target) -> Result<(u32, Type)> {
        match (&self.storage[target.variable as usize], &target.path[..]) {
            (Storage::Scalar { register, declared, .. }, []) => Ok((*register, *declared)),
            (Storage::Scalar { register, ty, declared }, [Step::Field(name)]) if ty.oid.is_composite() => {
                let (register, ty, declared) = (*register, *ty, *declared);
                self.field_target(target.variable, (register, ty, declared), name)
            }
            (record, [Step::Field(name)]) => {
                let mut fields = record.fields().into_iter().flatten();
                let found = fields.find(|f| f.name == *name).map(|field| (field.register, field.declared));
                let found = found.ok_or_else(|| self.no_field(target.variable, name))?;
                self.put_presence(target.variable)?;
                Ok(found)
            }
            _ => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("\"{}\" is not a scalar variable", target.text),
            )),
        }
    }

    /// A row is there once one of its fields has been given something, and be it NULL.
    fn put_presence(&mut self, variable: VariableId) -> Result<()> {
        let Some(register) = self.presence(variable) else { return Ok(()) };
        self.trace.forget(register, "a part of it assigned");
        let value = self.plan_part(&BoundExpr::constant(Datum::Bool(true), Type::BOOL))?;
        self.parts_put.push(OperationKind::Assign { register, value });
        Ok(())
    }

    /// A field of the row that a register holds.
    fn field_target(
        &mut self,
        variable: VariableId,
        (register, ty, declared): (u32, Type, Type),
        field: &str,
    ) -> Result<(u32, Type)> {
        let row = self.environment.catalog.table_of_row_type(ty.oid);
        if row.is_none_or(|row| row.column_index(field).is_none()) {
            return Err(self.no_field(variable, field));
        }
        let name = self.body.variables[variable as usize].name.clone();
        let mut way = bind::PartWay::default();
        way.field(field);
        let wanted = self.with_environment(|env| bind::part_declared(ty, &way, &name, env))?;
        let scratch = self.scratch();
        let (plain, _) = self.environment.catalog.plain_type(wanted);
        let part = BoundExpr::new(ExprKind::Variable(scratch), plain);
        let base = BoundExpr::new(ExprKind::Variable(register), ty);
        let mut bound = self.with_environment(|env| bind::assign_part(base, way, part, &name, env))?;
        if declared.oid != ty.oid {
            bound = self.cast(bound, declared)?;
        }
        self.trace.forget(scratch, "put into a row");
        self.trace.forget(register, "a part of it assigned");
        let value = self.plan_part(&bound)?;
        self.parts_put.push(OperationKind::Assign { register, value });
        Ok((scratch, wanted))
    }

    /// The composite type that a variable is of a domain over, which takes the columns of a row for its
    /// fields; `None` for other targets.
    pub(super) fn row_of_domain(&self, targets: &[Target]) -> Option<Type> {
        let [target] = targets else { return None };
        self.row_of_its_domain(target)
    }

    fn row_of_its_domain(&self, Target { variable, path, .. }: &Target) -> Option<Type> {
        let Storage::Scalar { ty, declared, .. } = &self.storage[*variable as usize] else { return None };
        let takes_rows = path.is_empty() && declared.oid != ty.oid && ty.oid.is_composite();
        takes_rows.then_some(*ty)
    }

    /// The columns of a statement for such a variable: gathered when the row is there, by no query.
    fn gather_into_domain(
        &mut self,
        targets: &[Target],
        ty: Type,
        bound: &mut BoundStatement,
    ) -> Result<(Targets, Vec<IntoCast>)> {
        let columns = gather_record(bound);
        let (targets, types) = self.places(targets, &[])?;
        let scratch = self.scratch();
        self.trace.forget(scratch, "read from a table");
        let record = BoundExpr::new(ExprKind::Variable(scratch), Type::RECORD);
        let row = row_of_record(&record, &columns, ty, self.environment)?;
        let cast = self.cast(row, types.first().copied().unwrap_or(ty))?;
        let cast = self.plan_expression(&cast)?;
        Ok((targets, vec![IntoCast { place: 0, scratch, cast }]))
    }

    /// Registers for the columns of a statement; the statement gets the casts they need.
    pub(super) fn row_targets(&mut self, targets: &[Target], bound: &mut BoundStatement) -> Result<Targets> {
        if let Some(ty) = self.row_of_domain(targets).filter(|_| !bound.columns().is_empty()) {
            gather_columns(bound, ty, self.environment)?;
        }
        let catalog = &self.environment.catalog;
        let declared = |c: &OutputColumn| catalog.domain_of(c.source).map_or(c.ty, Type::of);
        let columns: Vec<(String, Type)> =
            bound.columns().iter().map(|c| (c.name.clone(), declared(c))).collect();
        let (targets, types) = self.places(targets, &columns)?;
        cast_columns(bound, &types, self.environment)?;
        Ok(targets)
    }

    /// The same for INTO: what a cast may refuse is cast when the row is there, by no query.
    pub(super) fn targets_of_into(
        &mut self,
        targets: &[Target],
        bound: &mut BoundStatement,
    ) -> Result<(Targets, Vec<IntoCast>)> {
        if let Some(ty) = self.row_of_domain(targets).filter(|_| !bound.columns().is_empty()) {
            return self.gather_into_domain(targets, ty, bound);
        }
        let catalog = &self.environment.catalog;
        let declared = |c: &OutputColumn| catalog.domain_of(c.source).map_or(c.ty, Type::of);
        let own: Vec<(Type, bool)> =
            bound.columns().iter().map(|c| (c.ty, catalog.domain_of(c.source).is_some())).collect();
        let columns: Vec<(String, Type)> =
            bound.columns().iter().map(|c| (c.name.clone(), declared(c))).collect();
        let (targets, mut types) = self.places(targets, &columns)?;
        let mut casts = Vec::new();
        for (place, (ty, (from, of_domain))) in types.iter_mut().zip(own).enumerate() {
            if of_domain || !may_refuse(from, *ty, self.environment) {
                continue;
            }
            let scratch = self.scratch();
            self.trace.forget(scratch, "read from a table");
            let cast = self.cast(BoundExpr::new(ExprKind::Variable(scratch), from), *ty)?;
            let cast = self.plan_expression(&cast)?;
            casts.push(IntoCast { place, scratch, cast });
            *ty = from;
        }
        cast_columns(bound, &types, self.environment)?;
        Ok((targets, casts))
    }

    /// Registers and types for rows of these columns. A single record takes them all.
    pub(in crate::compile) fn places(
        &mut self,
        targets: &[Target],
        columns: &[(String, Type)],
    ) -> Result<(Targets, Vec<Type>)> {
        if let [Target { variable, path, .. }] = targets
            && path.is_empty()
            && self.storage[*variable as usize].is_record()
        {
            let fields = match &self.storage[*variable as usize] {
                Storage::Row { fields, .. } => fields.clone(),
                _ => self.reshape(*variable, columns),
            };
            let registers = fields.iter().map(|f| f.register).collect();
            let types = fields.iter().map(|f| f.declared).collect();
            let (present, tag) = (self.presence(*variable), self.tag_of(*variable)?);
            return Ok((Targets { present, tag, ..Targets::of(registers) }, types));
        }
        let mut registers = Vec::new();
        let mut types = Vec::new();
        let mut not_null = Vec::new();
        for (position, target) in targets.iter().enumerate() {
            if target.path.is_empty() && self.storage[target.variable as usize].is_record() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("\"{}\" is not a scalar variable", target.text),
                ));
            }
            let (register, ty) = self.scalar_target(target)?;
            registers.push(register);
            types.push(ty);
            if target.path.is_empty()
                && let Some(name) = self.not_null(target.variable)
            {
                not_null.push((position as u32, name));
            }
        }
        // Of a row that is not there all fields are NULL, whatever the domain says of them.
        let without_row = self.row_of_domain(targets).and_then(|ty| {
            let relation = self.environment.catalog.table_of_row_type(ty.oid)?;
            Some(Datum::Record(vec![Datum::Null; relation.columns.len()].into()))
        });
        let without_row = without_row.unwrap_or(Datum::Null);
        Ok((Targets { not_null, without_row, ..Targets::of(registers) }, types))
    }

    /// A value read from a reference table by what is known beforehand is known beforehand, too:
    /// the server reads it before the call, and it stands behind the arguments.
    pub(super) fn trace_reference_read(
        &mut self,
        bound: &BoundStatement,
        (targets, casts): (&Targets, &[IntoCast]),
        text: &str,
    ) {
        let BoundStatement::Query(query) = bound else { return };
        // The arguments of a trigger's function are told apart by field.
        if self.trigger.is_some() || !reads_references_only(&query.rel) {
            return;
        }
        let mut rel = query.rel.clone();
        if !self.trace.substitute_query(&mut rel) {
            return;
        }
        let arguments = self.routine.input_args().count();
        for (index, (column, register)) in query.columns.iter().zip(&targets.registers).enumerate() {
            // A value that becomes another is not known.
            if casts.iter().any(|cast| cast.place == index) {
                continue;
            }
            let number = arguments + self.reference_reads.len();
            let Ok(number) = u16::try_from(number) else { return };
            let one = BoundExpr::new(ExprKind::Const(Datum::Int8(1)), Type::INT8);
            let projected = Rel::Project {
                input: Box::new(rel.clone()),
                exprs: vec![BoundExpr::column(index, column.ty)],
            };
            let first =
                Rel::Limit { input: Box::new(projected), limit: Some(one), offset: None, with_ties: false };
            let subquery = Subquery { kind: SubqueryKind::Scalar, rel: first, correlated: false };
            let value = BoundExpr::new(ExprKind::Subquery(Box::new(subquery)), column.ty);
            let Ok(compiled) = self.native(|env| native::compile_expr(&value, env)) else { return };
            let words: Vec<&str> = text.split_whitespace().collect();
            self.reference_reads.push(ReferenceRead { value: compiled, text: words.join(" ") });
            let symbol = BoundExpr::new(ExprKind::Param(number), column.ty);
            self.trace.set(*register, Symbol::Known(symbol));
        }
    }
}

/// Whether a query reads reference tables and nothing else, without locks.
fn reads_references_only(rel: &Rel) -> bool {
    let mut tables = 0;
    let mut only = true;
    visit_tables(rel, &mut |table| {
        tables += 1;
        only &= table.is_some_and(|table| table.distribution == Distribution::Reference);
    });
    only && tables > 0
}

/// Visits the tables of a query; `None` stands for one read under lock, and for operators that
/// are not looked into.
fn visit_tables(rel: &Rel, visit: &mut dyn FnMut(Option<&TableRef>)) {
    match rel {
        Rel::Unit | Rel::Values { .. } => {}
        Rel::Scan { table, lock, .. } => visit(Some(table).filter(|_| lock.is_none())),
        Rel::Filter { input, .. }
        | Rel::Project { input, .. }
        | Rel::Sort { input, .. }
        | Rel::Limit { input, .. }
        | Rel::Aggregate { input, .. } => visit_tables(input, visit),
        Rel::Join { left, right, .. } => {
            visit_tables(left, visit);
            visit_tables(right, visit);
        }
        _ => visit(None),
    }
}
