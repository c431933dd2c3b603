//! FROM: tables, CTEs, subqueries, functions and joins, and the names they offer
//! (transformFromClause).
//!
//! - [`from_function`] functions in FROM
//! - [`rows_from`] ROWS FROM, and `unnest` of several arrays
//! - [`join`] joins
//! - [`view`] views in FROM; [`barrier`] conditions that come before those of whoever reads
//! - [`lock`] row locks

pub(crate) mod barrier;
pub(crate) mod from_function;
pub(crate) mod join;
pub(crate) mod lock;
pub(crate) mod rows_from;
pub(crate) mod view;

use std::sync::Arc;

use archipel_sql::catalog;
use archipel_sql::catalog::stored_name::written_name;
use archipel_sql::catalog::{Privileges, ROW_PLACE, SequenceRef, TableKind, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::ResolvedFunction;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{ObjectName, Query, TableAlias, TableFactor, TableWithJoins};

use super::binder::{Binder, RowNumbers};
use super::level::{Level, LevelKind, Refusal, Relation, ScopeColumn, TABLE_NUMBER, visible_columns};
use super::meaning::Named;
use super::name::{ident_name, object_name_parts, object_name_span, own_rows, schema_and_name};
use super::scope::COLUMNS_MAX;
use super::span::query_span;
use super::visit::remove_outer_nesting;
use crate::bound::*;
use crate::partition::Family;

/// An operator and the names of its row.
pub(crate) type Source = (Rel, Vec<Relation>);

/// Whether a FROM entry may refer to entries on its left.
pub(super) fn may_be_lateral(factor: &TableFactor) -> bool {
    match factor {
        // Without LATERAL the left side is out of sight, but known to error messages.
        TableFactor::Derived { .. } => true,
        TableFactor::Table { args, .. } => args.is_some(),
        TableFactor::Function { .. } | TableFactor::UNNEST { .. } | TableFactor::TableFunction { .. } => true,
        TableFactor::NestedJoin { table_with_joins, .. } => any_lateral(table_with_joins),
        _ => false,
    }
}

fn any_lateral(item: &TableWithJoins) -> bool {
    may_be_lateral(&item.relation) || item.joins.iter().any(|join| may_be_lateral(&join.relation))
}

impl Binder<'_, '_> {
    /// A whole FROM list: comma means cross join, and lateral entries see what is left of them.
    pub(crate) fn bind_from_clause(&mut self, items: &[TableWithJoins]) -> Result<Source> {
        self.bind_from_since(self.levels.len(), items)
    }

    /// As [`Self::bind_from_clause`], where the levels from `start` on are this clause's.
    pub(super) fn bind_from_since(&mut self, start: usize, items: &[TableWithJoins]) -> Result<Source> {
        let outer = std::mem::replace(&mut self.from_start, start);
        let result = self.entries_of_from(items);
        self.from_start = outer;
        result
    }

    fn entries_of_from(&mut self, items: &[TableWithJoins]) -> Result<Source> {
        let mut result: Option<Source> = None;
        for item in items {
            result = Some(match result {
                None => self.table_with_joins(item)?,
                Some((left, relations)) => {
                    let ((right, more), lateral) =
                        self.right_side(&relations, any_lateral(item), None, |binder| {
                            binder.table_with_joins(item)
                        })?;
                    let relations = combine(relations, more, left.width())?;
                    let join = Rel::Join {
                        kind: JoinKind::Inner,
                        left: Box::new(left),
                        right: Box::new(right),
                        on: None,
                        lateral,
                    };
                    (join, relations)
                }
            });
        }
        let (rel, relations) = result.unwrap_or((Rel::Unit, Vec::new()));
        if rel.width() > COLUMNS_MAX {
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, "too many columns in a FROM clause"));
        }
        Ok((rel, relations))
    }

    /// Binds the right side of a join. If it may be lateral, the left row is a level while it is
    /// bound; the level's nesting stays only if something referred to it. A `refusal` says why
    /// nothing may.
    pub(super) fn right_side(
        &mut self,
        left: &[Relation],
        lateral: bool,
        refusal: Option<Refusal>,
        bind: impl FnOnce(&mut Self) -> Result<Source>,
    ) -> Result<(Source, bool)> {
        if !lateral {
            return Ok((bind(self)?, false));
        }
        let mut level = Level::new(LevelKind::Lateral, left.to_vec());
        level.from_start = Some(self.from_start);
        level.refusal = refusal;
        let ((mut rel, relations), level) = self.with_level(level, bind)?;
        if !level.used {
            remove_outer_nesting(&mut rel);
        }
        Ok(((rel, relations), level.used))
    }

    /// Runs `work` with the lateral levels of this FROM clause out of sight.
    pub(super) fn without_lateral<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut hidden = Vec::new();
        // Those of the FROM clauses around it stay in sight: this one may stand in a lateral entry of theirs.
        let own = self.levels.iter_mut().enumerate().skip(self.from_start);
        for (place, level) in own.rev() {
            if level.kind != LevelKind::Lateral {
                break;
            }
            if !level.hidden {
                level.hidden = true;
                hidden.push(place);
            }
        }
        let result = work(self);
        for place in hidden {
            if let Some(level) = self.levels.get_mut(place) {
                level.hidden = false;
            }
        }
        result
    }

    /// The names of the changed table and of the FROM or USING rows beside it.
    pub(super) fn joined_change(
        &mut self,
        width: usize,
        relation: Relation,
        items: Option<&[TableWithJoins]>,
    ) -> Result<(Option<Rel>, Vec<Relation>)> {
        match items {
            None | Some([]) => Ok((None, vec![relation])),
            Some(items) => {
                // It is known, but not to be referred to.
                let mut level = Level::new(LevelKind::Lateral, vec![relation.clone()]);
                level.refusal = Some(Refusal::Changed);
                let start = self.levels.len();
                let ((mut rel, more), _) =
                    self.with_level(level, |binder| binder.bind_from_since(start, items))?;
                remove_outer_nesting(&mut rel);
                let relations = combine(vec![relation], more, width)?;
                Ok((Some(rel), relations))
            }
        }
    }

    fn table_with_joins(&mut self, item: &TableWithJoins) -> Result<Source> {
        let mut source = self.table_factor(&item.relation)?;
        for join in &item.joins {
            source = self.nested(|binder| binder.join(source, join))?;
        }
        Ok(source)
    }

    pub(super) fn table_factor(&mut self, factor: &TableFactor) -> Result<Source> {
        self.nested(|binder| binder.table_factor_inner(factor))
    }

    fn table_factor_inner(&mut self, factor: &TableFactor) -> Result<Source> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                if !with_hints.is_empty()
                    || version.is_some()
                    || !partitions.is_empty()
                    || json_path.is_some()
                    || !index_hints.is_empty()
                {
                    return Err(SqlError::unsupported(format_args!("the table expression {factor}")));
                }
                if sample.is_some() {
                    return Err(SqlError::unsupported("TABLESAMPLE"));
                }
                if let Some(args) = args {
                    if args.settings.is_some() {
                        return Err(SqlError::unsupported("SETTINGS"));
                    }
                    return self.bind_from_function(name, &args.args, *with_ordinality, alias.as_ref());
                }
                if *with_ordinality {
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, "WITH ORDINALITY takes a function"));
                }
                self.table(name, alias.as_ref())
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                if sample.is_some() {
                    return Err(SqlError::unsupported("TABLESAMPLE"));
                }
                let Some(alias) = alias else {
                    return Err(self.missing_alias(subquery));
                };
                self.subquery_in_from(*lateral, subquery, alias)
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                self.bind_named_call(name, args, *with_ordinality, alias.as_ref())
            }
            TableFactor::UNNEST { alias, array_exprs, with_offset, with_offset_alias, with_ordinality } => {
                if *with_offset || with_offset_alias.is_some() {
                    return Err(SqlError::unsupported("UNNEST WITH OFFSET"));
                }
                self.bind_unnest(array_exprs, *with_ordinality, alias.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                self.joins_in_from(table_with_joins, alias.as_ref())
            }
            TableFactor::TableFunction { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::MatchRecognize { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::SemanticView { .. } => {
                Err(SqlError::unsupported(format_args!("the table expression {factor}")))
            }
        }
    }

    /// The error for a subquery in FROM without a name.
    fn missing_alias(&self, subquery: &Query) -> SqlError {
        let (what, hint) = match subquery.body.as_ref() {
            sqlparser::ast::SetExpr::Values(_) => ("VALUES", "For example, FROM (VALUES ...) [AS] foo."),
            _ => ("subquery", "For example, FROM (SELECT ...) [AS] foo."),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, format!("{what} in FROM must have an alias"))
            .with_hint(hint)
            .at(self.position(query_span(subquery)).map(|position| position.saturating_sub(1)))
    }

    fn subquery_in_from(&mut self, lateral: bool, subquery: &Query, alias: &TableAlias) -> Result<Source> {
        let name = ident_name(&alias.name);
        // A lock on a subquery reaches the tables in it.
        let locks: Vec<_> = self
            .locks
            .iter()
            .filter(|lock| lock.of.as_ref().is_none_or(|of| *of == name))
            .map(|lock| archipel_sql::ast::RowLockClause { of: None, ..lock.clone() })
            .collect();
        let bound = if lateral {
            self.query_with_locks(subquery, locks)?
        } else {
            self.without_lateral(|binder| binder.query_with_locks(subquery, locks))?
        };
        let mut relation = Relation::of_output(None, &bound.columns);
        relation.records = self.records_in(&bound.rel);
        self.apply_alias(&mut relation, Some(alias), None)?;
        Ok((bound.rel, vec![relation]))
    }

    /// Joins in parentheses.
    fn joins_in_from(&mut self, joins: &TableWithJoins, alias: Option<&TableAlias>) -> Result<Source> {
        let (rel, relations) = self.table_with_joins(joins)?;
        let Some(alias) = alias else {
            return Ok((rel, relations));
        };
        let mut relation = Relation::new(None, visible_columns(&relations, 0));
        relation.joined = true;
        self.apply_alias(&mut relation, Some(alias), None)?;
        let mut all = vec![relation];
        // The alias hides the names in the join, and messages say so.
        all.extend(relations.into_iter().map(|hidden| Relation {
            qualified: false,
            unqualified: false,
            ..hidden
        }));
        Ok((rel, all))
    }

    fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Result<Source> {
        let (name, only) = own_rows(name);
        let name = &*name;
        self.require_own_database(name, '"')?;
        let (schema, table_name) = schema_and_name(name)?;
        if schema.is_none()
            && let Some(cte) = self.ctes.iter().rev().find(|cte| cte.name == table_name)
        {
            let (id, returns, shown) = (cte.id, cte.returns, cte.shown);
            let (columns, records) = (cte.columns.clone(), cte.records.clone());
            self.reads_itself |= cte.itself;
            if !returns {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("WITH query \"{table_name}\" does not have a RETURNING clause"),
                )
                .at(self.position(object_name_span(name))));
            }
            let types = columns.iter().map(|column| column.ty).collect();
            let mut relation = Relation::of_output(Some(table_name), &columns);
            relation.records = records;
            self.apply_alias(&mut relation, alias, None)?;
            relation.columns.iter_mut().skip(shown).for_each(|column| column.hidden = true);
            let alias = relation.as_named();
            return Ok((Rel::CteScan { id, types, alias }, vec![relation]));
        }
        if schema.is_none()
            && let Some((rows, table)) = self.env.variables.and_then(|scope| scope.relation(&table_name))
        {
            return self.rows_of_array(rows, &table, &table_name, alias);
        }
        self.need_schema(schema.as_deref());
        if let Some(catalog::Relation::Sequence(sequence)) =
            self.relation_named(schema.as_deref(), &table_name)
        {
            self.note_meaning(object_name_span(name), Named::Sequence(sequence.oid));
            return self.sequence_row(&sequence, written_name(&table_name), alias);
        }
        let table = self.require_table(name)?;
        self.need(&table, Privileges::SELECT);
        if let Some(reference) = self.view_reference(schema.as_deref(), &table_name) {
            let mut relation = self.referenced_relation(&table, reference);
            self.apply_alias(&mut relation, alias, None)?;
            if table.kind == TableKind::View {
                let (rel, _) = self.view(&table, None)?;
                return Ok((rel, vec![relation]));
            }
            let lock = self.lock_of(relation.name.as_deref());
            self.need_lock(&table, lock);
            let called = relation.as_aliased(alias);
            let rel = self.rows_of(table, only, lock, &mut relation, called)?;
            return Ok((rel, vec![relation]));
        }
        if table.kind == TableKind::View {
            let name = alias.map_or_else(|| table.name.clone(), |alias| ident_name(&alias.name));
            let lock = self.lock_of(Some(&name));
            self.need_lock(&table, lock);
            return self.view(&table, alias);
        }
        let mut relation = self.table_relation(&table, alias, Some(&table.schema))?;
        let lock = self.lock_of(relation.name.as_deref());
        self.need_lock(&table, lock);
        let called = relation.as_aliased(alias);
        let rel = self.rows_of(table, only, lock, &mut relation, called)?;
        Ok((rel, vec![relation]))
    }

    /// A table's rows, those of its heirs among them unless `only` its own are meant, as far as its policies
    /// show them.
    fn rows_of(
        &mut self,
        table: TableRef,
        only: bool,
        lock: Option<RowLock>,
        relation: &mut Relation,
        alias: Alias,
    ) -> Result<Rel> {
        let is_target = std::mem::take(&mut self.env.is_target);
        let with_places = match is_target || only || lock.is_some() {
            true => None,
            false => self.rows_with_places(&table, relation, &alias)?,
        };
        let all = || self.all_rows_of(table.clone(), only, lock, relation, alias);
        let rel = with_places.map_or_else(all, Ok)?;
        if is_target { Ok(rel) } else { self.shown_rows(rel, &table, lock) }
    }

    fn all_rows_of(
        &self,
        table: TableRef,
        only: bool,
        lock: Option<RowLock>,
        relation: &mut Relation,
        alias: Alias,
    ) -> Result<Rel> {
        if table.kind != TableKind::Table {
            return Ok(Rel::Scan { table, lock, alias });
        }
        if only {
            // A partitioned table has none.
            return Ok(match table.is_partitioned() {
                true => Rel::Values {
                    rows: Vec::new(),
                    types: table.columns.iter().map(|column| column.ty).collect(),
                },
                false => Rel::Scan { table: self.scanned(table, relation), lock, alias },
            });
        }
        match Family::of(self.env.catalog, &table)? {
            Some(family) => {
                let family = self.numbered_family(&table)?.unwrap_or(family);
                relation.columns.extend(behind_family(&family));
                Ok(Rel::Family { family, lock, alias })
            }
            None => Ok(Rel::Scan { table: self.scanned(table, relation), lock, alias }),
        }
    }

    /// The rows of a family of which members have keys of their own, if the statement asks for the places of rows.
    fn rows_with_places(
        &self,
        table: &TableRef,
        relation: &mut Relation,
        alias: &Alias,
    ) -> Result<Option<Rel>> {
        let has_places = table.is_partitioned() && table.primary_key.is_some();
        if self.row_numbers != RowNumbers::BehindColumns || has_places || table.kind != TableKind::Table {
            return Ok(None);
        }
        let Some(family) = Family::of(self.env.catalog, table)? else { return Ok(None) };
        if family.members.iter().all(|member| member.table.primary_key.is_none()) {
            return Ok(None);
        }
        let width = table.columns.len();
        relation.columns.extend([row_number(width), table_number(width + 1)]);
        family.with_places(self.env.catalog, alias).map(Some)
    }

    /// A table as it is read: with the numbers of its rows, if the statement asks for those.
    fn scanned(&self, table: TableRef, relation: &mut Relation) -> TableRef {
        let Some(numbered) = self.numbered(&table) else { return table };
        relation.columns.push(row_number(table.columns.len()));
        numbered
    }

    /// The table with the numbers of its rows, if they have some and the statement asks for those.
    pub(super) fn numbered(&self, table: &TableRef) -> Option<TableRef> {
        match self.row_numbers {
            RowNumbers::BehindColumns => table.with_numbers().map(Arc::new),
            RowNumbers::None | RowNumbers::Missed => None,
        }
    }

    /// The same of a table whose rows are in others.
    pub(super) fn numbered_family(&self, table: &TableRef) -> Result<Option<Arc<Family>>> {
        // A key of all rows tells their places.
        let has_places = table.is_partitioned() && table.primary_key.is_some();
        match self.row_numbers {
            RowNumbers::BehindColumns if !has_places => Family::with_numbers(self.env.catalog, table),
            _ => Ok(None),
        }
    }

    /// A sequence in FROM: one row, which says where it stands.
    fn sequence_row(
        &mut self,
        sequence: &SequenceRef,
        name: &str,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        let [function, ..] = archipel_sql::function::lookup_functions("archipel_sequence_row") else {
            return Err(SqlError::internal("sequences have no rows"));
        };
        let columns = [("last_value", Type::INT8), ("log_cnt", Type::INT8), ("is_called", Type::BOOL)];
        let function = ResolvedFunction { function, result: Type::RECORD };
        let args = vec![BoundExpr::constant(Datum::Oid(sequence.oid), Type::of(Oid::OID))];
        let call = BoundExpr::new(ExprKind::Call { function, args }, Type::RECORD);
        let own = columns.iter().enumerate().map(|(place, (name, ty))| ScopeColumn {
            name: (*name).to_owned(),
            expr: BoundExpr::column(place, *ty),
            source: Some((sequence.oid, place as u16 + 1)),
            hidden: false,
        });
        let mut relation = Relation::new(Some(name.to_owned()), own.collect());
        relation.schema = Some(sequence.schema.clone());
        self.apply_alias(&mut relation, alias, None)?;
        let types = columns.iter().map(|(_, ty)| *ty).collect();
        let call = SetCall::Scalar(Box::new(call));
        let alias = relation.as_named();
        Ok((Rel::Function { call, ordinality: false, types, alias }, vec![relation]))
    }

    /// Whoever locks rows must be able to change them.
    fn need_lock(&mut self, table: &TableRef, lock: Option<RowLock>) {
        if lock.is_some() {
            self.need(table, Privileges::UPDATE);
        }
    }

    /// Rows of a table in an array, under a name of their own.
    fn rows_of_array(
        &mut self,
        rows: BoundExpr,
        table: &TableRef,
        name: &str,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        let [unnest, ..] = archipel_sql::function::lookup_set_functions("unnest") else {
            return Err(SqlError::internal("there is no unnest"));
        };
        let mut relation = self.table_relation(table, alias, None)?;
        if alias.is_none() {
            relation.name = Some(name.to_owned());
        }
        let call = SetCall::Builtin { function: unnest, args: vec![rows] };
        let types = table.columns.iter().map(|column| column.ty).collect();
        let alias = relation.as_named();
        Ok((Rel::Function { call, ordinality: false, types, alias }, vec![relation]))
    }

    /// The relation a name means. To the query of its rows, a table that is being filled is not there yet:
    /// `CREATE TEMP TABLE t AS SELECT * FROM t` reads the other one.
    fn relation_named(&self, schema: Option<&str>, name: &str) -> Option<catalog::Relation> {
        let found = self.env.catalog.relation(schema, name, self.env.search_path)?;
        match &found {
            catalog::Relation::Table(table) if schema.is_none() && self.env.filled == Some(table.oid) => {
                let others = self.env.search_path.iter().filter(|other| **other != table.schema);
                let path: Vec<String> = others.cloned().collect();
                self.env.catalog.relation(None, name, &path)
            }
            _ => Some(found),
        }
    }

    /// 0A000 for a name with a database that is not this one; in the message it stands between `quote`s.
    pub(crate) fn require_own_database(
        &self,
        name: &ObjectName,
        quote: impl std::fmt::Display,
    ) -> Result<()> {
        let [database, schema, object] = &object_name_parts(name)?[..] else { return Ok(()) };
        if database == self.env.catalog.database_name() {
            return Ok(());
        }
        let name_of_all = format!("{quote}{database}.{schema}.{object}{quote}");
        let message = format!("cross-database references are not implemented: {name_of_all}");
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        Err(error.at(self.position(object_name_span(name))))
    }

    /// The table a name means, or 42P01.
    pub(crate) fn require_table(&self, name: &ObjectName) -> Result<TableRef> {
        self.require_own_database(name, '"')?;
        let (schema, table_name) = schema_and_name(name)?;
        let position = self.position(object_name_span(name));
        if let Some(reference) = self.view_reference(schema.as_deref(), &table_name)
            && let Some(table) = self.env.catalog.table_by_oid(reference.relation)
        {
            return Ok(table);
        }
        if let Some(catalog::Relation::Table(table)) = self.relation_named(schema.as_deref(), &table_name) {
            return Ok(table);
        }
        let future = schema.is_none() && self.future_ctes.contains(&table_name);
        let name = match &schema {
            Some(schema) => format!("{schema}.{table_name}"),
            None => table_name,
        };
        if self
            .env
            .catalog
            .relation(schema.as_deref(), name.rsplit('.').next().unwrap_or(&name), self.env.search_path)
            .is_some()
        {
            return Err(
                SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a table")).at(position)
            );
        }
        let error = SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
            .at(position);
        if !future {
            return Err(error);
        }
        Err(error
            .with_detail(format!(
                "There is a WITH item named \"{name}\", but it cannot be referenced from this part of the query."
            ))
            .with_hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references."))
    }

    /// The names a table offers under an alias.
    pub(crate) fn table_relation(
        &self,
        table: &TableRef,
        alias: Option<&TableAlias>,
        schema: Option<&str>,
    ) -> Result<Relation> {
        let columns = table
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| ScopeColumn {
                name: column.name.clone(),
                expr: BoundExpr::column(i, column.ty),
                source: Some((table.oid, i as u16 + 1)),
                hidden: false,
            })
            .collect();
        let mut relation = Relation::new(Some(table.name.clone()), columns);
        relation.table = Some(table.clone());
        relation.schema = schema.map(str::to_owned);
        self.apply_alias(&mut relation, alias, None)?;
        Ok(relation)
    }

    /// Renames a relation and its columns. `function` is the name of a function in FROM.
    pub(crate) fn apply_alias(
        &self,
        relation: &mut Relation,
        alias: Option<&TableAlias>,
        function: Option<&str>,
    ) -> Result<()> {
        let Some(TableAlias { explicit: _, name, columns, at }) = alias else {
            if relation.name.is_none() {
                relation.name = function.map(str::to_owned);
            }
            return Ok(());
        };
        if at.is_some() {
            return Err(SqlError::unsupported("AT in an alias"));
        }
        let name_text = ident_name(name);
        let shown = relation.columns.iter().filter(|column| !column.hidden).count();
        if columns.len() > shown {
            let what = if relation.joined { "join expression" } else { "table" };
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "{what} \"{name_text}\" has {} columns available but {} columns specified",
                    shown,
                    columns.len()
                ),
            ));
        }
        for (column, alias) in relation.columns.iter_mut().zip(columns) {
            column.name = ident_name(&alias.name);
        }
        relation.name = Some(name_text);
        relation.schema = None;
        Ok(())
    }
}

/// The columns that stand behind those of a family's root.
pub(crate) fn behind_family(family: &Family) -> impl Iterator<Item = ScopeColumn> {
    let width = family.root.columns.len();
    family.has_numbers().then(|| row_number(width - 1)).into_iter().chain([table_number(width)])
}

/// The column with the number of the table that each row of a family is in.
pub(crate) fn table_number(place: usize) -> ScopeColumn {
    ScopeColumn {
        name: TABLE_NUMBER.to_owned(),
        expr: BoundExpr::column(place, Type::OID),
        source: None,
        hidden: true,
    }
}

/// The column with the number of a row among those of its table.
pub(crate) fn row_number(place: usize) -> ScopeColumn {
    let (name, expr) = (ROW_PLACE.to_owned(), BoundExpr::column(place, Type::TID));
    ScopeColumn { name, expr, source: None, hidden: true }
}

/// The names of both sides of a join; a name may stand for one relation only.
pub(crate) fn combine(mut left: Vec<Relation>, right: Vec<Relation>, width: usize) -> Result<Vec<Relation>> {
    for mut relation in right {
        if let Some(name) = &relation.name
            && relation.qualified
            && left.iter().any(|other| {
                other.qualified
                    && other.name.as_ref() == Some(name)
                    && (other.schema == relation.schema
                        || other.schema.is_none()
                        || relation.schema.is_none())
            })
        {
            return Err(SqlError::new(
                SqlState::DUPLICATE_ALIAS,
                format!("table name \"{name}\" specified more than once"),
            ));
        }
        relation.shift(width);
        left.push(relation);
    }
    Ok(left)
}
