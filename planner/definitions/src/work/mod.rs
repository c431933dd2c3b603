//! A plan under construction: every change goes into a catalog of its own at once, so that
//! later steps of the same statement see earlier ones.
//!
//! - [`plan`] what a definition is planned in, and what it changes
//! - [`change`] changed tables on their way into it
//! - `numbers`  what it draws for new objects; `parts` the numbers that objects consist of
//! - [`user_table`] which tables definitions may change
//! - [`validation`] that rows which are there keep a constraint
//! - [`rewrite`] values made for rows that are there
//! - [`column_source`] where the columns of altered rows come from

pub(crate) mod change;
pub(crate) mod column_source;
mod numbers;
mod parts;
pub(crate) mod plan;
pub mod rewrite;
pub(crate) mod user_table;
pub(crate) mod validation;

use std::collections::BTreeSet;
use std::sync::Arc;

use archipel_engine::id::TreeId;
use archipel_engine::txn::{ColumnSource, DdlOp};
use archipel_sql::ast::QualifiedName;
use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::names::{is_temporary_schema, undefined_schema};
use archipel_sql::catalog::{
    Catalog, CatalogChange, Numbered, Object, ObjectClass, ObjectKind, Persistence, Privileges, Schema,
    Sequence, Table, TableKind, TableRef, TypesAlong,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{TypeNames, element_of};
use archipel_sql::types::{Oid, Type};
use rustc_hash::FxHashSet;

use crate::bind::BindEnv;
use crate::bind::stored_expression::DEFINITION_PATH;
use crate::bind::table_expressions::check_table_expressions;
use crate::row::table_def;
use crate::{Computed, DdlEnv, DdlPlan, FaultyKey, Validation};
use numbers::Draws;
use parts::{parts_of, parts_of_type};
use plan::Gathered;
use user_table::require_user_table;

pub(crate) struct Work<'a> {
    pub env: &'a DdlEnv<'a>,
    /// The catalog as the plan so far leaves it.
    pub catalog: Catalog,
    draws: Draws<'a>,
    computed: Vec<Computed>,
    /// The columns that rows get, or get new values in: of these tables, with these names.
    pub rewritten: Vec<(Oid, String)>,
    /// What validations read, until [`Work::settle_validations`].
    pub gathered: Vec<Gathered>,
    /// The extension whose functions are made.
    pub extension: Option<String>,
    pub plan: DdlPlan,
    /// What goes with the same statement as what is dropped: it is in nobody's way, and nobody is told of it.
    pub going: FxHashSet<Oid>,
    /// Objects as other names have left them: their texts mean under the path of definitions what they meant
    /// there before, and not what the session would mean by them.
    pub settled: Vec<Object>,
}

/// Types are called what they were when the statement began; those that it makes, what it calls them.
impl TypeNames for Work<'_> {
    fn user_type(&self, ty: Type) -> Option<String> {
        let of = |catalog: &Catalog| TypesAlong { catalog, search_path: self.env.search_path }.user_type(ty);
        of(self.env.catalog).or_else(|| of(&self.catalog))
    }
}

impl<'a> Work<'a> {
    pub fn new(env: &'a DdlEnv<'a>, tag: &'static str) -> Work<'a> {
        let mut work = Work {
            env,
            catalog: env.catalog.clone(),
            draws: Draws::of(env.numbers),
            computed: Vec::new(),
            rewritten: Vec::new(),
            gathered: Vec::new(),
            extension: None,
            plan: DdlPlan { tag, ..DdlPlan::default() },
            going: FxHashSet::default(),
            settled: Vec::new(),
        };
        env.copies.tables.iter().for_each(|&tree| work.copy_table(tree));
        work
    }

    /// Gives a table new trees. What follows changes those.
    fn copy_table(&mut self, from: TreeId) {
        let Some(table) = self.catalog.table_by_tree(from.0) else { return };
        let mut table = (*table).clone();
        table.tree = self.tree();
        if let Some(key) = &table.primary_key {
            self.name_unique(table.tree, &key.name);
        }
        for index in &mut table.indexes {
            index.tree = self.tree();
        }
        let table = self.put_table(table);
        let def = table_def(&table);
        let columns = (0..def.columns.len() as u16).map(ColumnSource::Kept).collect();
        self.operation(DdlOp::CopyTable { from, def, columns, reader: None });
    }

    /// Where a copy is rewritten at once, the rows are gone through once instead of twice. Not where
    /// values are computed or looked at: that begins with the rows as they were. The originals go last.
    fn finish_copies(&mut self) {
        let duplicated = self.plan.duplicates.iter().map(|(_, validation)| validation);
        let mut validations = self.plan.validations.iter().chain(duplicated);
        let computes = self.plan.computed.iter().any(|values| !values.is_empty())
            || validations.any(|validation| !validation.written.is_empty());
        let (mut operations, mut computed): (Vec<DdlOp>, Vec<Vec<Computed>>) = Default::default();
        let planned = std::mem::take(&mut self.plan.operations).into_iter();
        for (operation, values) in planned.zip(std::mem::take(&mut self.plan.computed)) {
            match (operations.last_mut(), operation) {
                (
                    Some(DdlOp::CopyTable { def, columns, .. }),
                    DdlOp::AlterTable { def: next, columns: sources },
                ) if def.id == next.id && all_kept(columns) && !computes => {
                    *def = next;
                    *columns = sources;
                }
                (_, operation) => {
                    operations.push(operation);
                    computed.push(values);
                }
            }
        }
        (self.plan.operations, self.plan.computed) = (operations, computed);
        for &from in &self.env.copies.tables {
            self.operation(DdlOp::DropTable(from));
        }
    }

    /// Names what operations fill that was there before them.
    fn name_trees(&mut self) {
        let named: FxHashSet<TreeId> = self.plan.unique_names.iter().map(|(tree, _)| *tree).collect();
        let filled = self.plan.operations.iter().flat_map(plan::trees_of);
        let wanted: FxHashSet<TreeId> = filled.filter(|tree| !named.contains(tree)).collect();
        if wanted.is_empty() {
            return;
        }
        let tables: BTreeSet<TreeId> = self.plan.operations.iter().filter_map(plan::table_of).collect();
        let names = &mut self.plan.unique_names;
        for table in tables.into_iter().filter_map(|tree| self.catalog.table_by_tree(tree.0)) {
            let of_key = table.primary_key.iter().map(|key| (table.tree, &key.name));
            let of_indexes = table.indexes.iter().map(|index| (index.tree, &index.name));
            for (tree, name) in of_key.chain(of_indexes) {
                if wanted.contains(&TreeId(tree)) {
                    names.push((TreeId(tree), name.clone()));
                }
            }
        }
    }

    /// The plan as a whole.
    ///
    /// Errors: 54000 if there was no number left for something new.
    pub fn finish(mut self) -> Result<DdlPlan> {
        self.draws.check()?;
        self.settle_validations();
        self.plan.duplicates = self.duplicate_queries();
        self.finish_copies();
        self.name_trees();
        if let Some(numbers) = self.draws.keep() {
            self.plan.changes.push(CatalogChange::Put(Object::Numbers(numbers)));
        }
        self.plan.drawn = self.draws.drawn();
        Ok(self.plan)
    }

    /// Binds the defaults and conditions of the tables that changed, in the catalog as it will be.
    /// What their names mean to the session they mean to everybody afterwards.
    pub fn check_expressions(&mut self) -> Result<()> {
        self.draws.check()?;
        for at in 0..self.plan.changes.len() {
            if let Some(settled) = self.settled_change(&self.plan.changes[at])? {
                if self.is_latest(&self.plan.changes[at]) {
                    self.catalog.advance(&settled);
                }
                self.plan.changes[at] = settled;
            }
        }
        let only_tables = self.plan.changes.iter().all(plan::leaves_meanings);
        for change in &self.plan.changes {
            let CatalogChange::Put(Object::Table(put)) = change else { continue };
            let before = self.env.catalog.table_by_oid(put.oid).filter(|_| only_tables);
            let latest = self.catalog.table_by_oid(put.oid);
            if let Some(table) = latest.filter(|latest| Arc::ptr_eq(latest, put)) {
                // Settled texts mean what they mean under the path of definitions: older ones need not mean
                // anything under the session's.
                let mut env = BindEnv::new(&self.catalog, DEFINITION_PATH, self.env.context);
                check_table_expressions(&table, before.as_deref(), &mut env)?;
            }
        }
        Ok(())
    }

    /// Whether no later change concerns the object that one puts.
    fn is_latest(&self, change: &CatalogChange) -> bool {
        match change {
            CatalogChange::Put(Object::Table(put)) => {
                self.catalog.table_by_oid(put.oid).is_some_and(|latest| Arc::ptr_eq(&latest, put))
            }
            CatalogChange::Put(Object::Routine(put)) => {
                self.catalog.routine_by_oid(put.oid).is_some_and(|latest| Arc::ptr_eq(&latest, put))
            }
            _ => false,
        }
    }

    pub fn search_path(&self) -> &'a [String] {
        self.env.search_path
    }

    // -- numbers

    /// The first of `count` new oids in a row.
    pub fn oids(&mut self, count: u32) -> Oid {
        Oid(self.draws.draw(Numbered::Oid, count))
    }

    /// The first of `count` new oids in a row, none before `from`; `None` where there are not so many left.
    pub fn try_oids(&mut self, from: u32, count: u32) -> Option<Oid> {
        self.draws.try_oids(from, count).map(Oid)
    }

    /// Takes an oid between two of its own, of a space that only this catalog fills; `false` if it is another's.
    pub fn claim(&mut self, oid: u32, beside: [u32; 2]) -> bool {
        self.draws.claim(oid, beside)
    }

    pub fn tree(&mut self) -> u32 {
        self.draws.draw(Numbered::Tree, 1)
    }

    pub fn group(&mut self) -> u32 {
        self.draws.draw(Numbered::Group, 1)
    }

    /// The engine's number of a sequence that is made.
    pub fn sequence_file(&mut self) -> u32 {
        self.draws.draw(Numbered::Sequence, 1)
    }

    // -- changes

    pub fn put(&mut self, object: Object) {
        let made = self.made(&object);
        match &object {
            Object::Table(table) => self.forget_comments(table.oid, &parts_of(table)),
            Object::Type(ty) => self.forget_comments_of_type(ty.oid, &parts_of_type(ty)),
            _ => {}
        }
        self.change(CatalogChange::Put(object));
        if let Some((oid, class, schema)) = made {
            self.own(oid, class, schema.as_deref());
        }
    }

    /// What an object is, and its schema, if it was not there before and is to have an owner.
    fn made(&self, object: &Object) -> Option<(Oid, ObjectClass, Option<String>)> {
        let (class, schema) = match object {
            Object::Table(table) if table.kind != TableKind::System => {
                (ObjectClass::Relation, Some(&table.schema))
            }
            Object::Sequence(sequence) => (ObjectClass::Sequence, Some(&sequence.schema)),
            Object::Routine(routine) => (ObjectClass::Routine, Some(&routine.schema)),
            Object::Type(ty) => (ObjectClass::Type, Some(&ty.schema)),
            // The schemas of temporary relations are the system's.
            Object::Schema(schema) if !is_temporary_schema(&schema.name) => (ObjectClass::Schema, None),
            _ => return None,
        };
        let new = !self.env.system && self.catalog.class_of(object.oid()).is_none();
        new.then(|| (object.oid(), class, schema.cloned()))
    }

    /// Puts the next version of a table.
    pub fn put_table(&mut self, mut table: Table) -> Arc<Table> {
        table.version += 1;
        let table = Arc::new(table);
        self.put(Object::Table(table.clone()));
        table
    }

    pub fn put_sequence(&mut self, sequence: Sequence) {
        self.put(Object::Sequence(Arc::new(sequence)));
    }

    /// Those of what depends on something that do not go anyway ([`Work::going`]).
    pub fn staying(&self, dependents: &[Dependent]) -> Vec<Dependent> {
        let stays = |dependent: &&Dependent| !self.going.contains(&dependent.object().1);
        dependents.iter().filter(stays).cloned().collect()
    }

    /// Drops an object, its comments, who may do what with it and what new objects in it begin with.
    pub fn drop(&mut self, kind: ObjectKind, oid: Oid) {
        let of_object =
            !matches!(kind, ObjectKind::Access | ObjectKind::Comments | ObjectKind::SharedComments);
        if of_object && self.catalog.access(oid).is_some() {
            self.change(CatalogChange::Drop(ObjectKind::Access, oid));
        }
        if self.catalog.comments(oid).is_some() {
            self.change(CatalogChange::Drop(ObjectKind::Comments, oid));
        }
        match kind {
            ObjectKind::Table => self.forget_comments(oid, &[]),
            ObjectKind::Type => self.forget_comments_of_type(oid, &[]),
            ObjectKind::Schema => forget_schema(oid, self),
            ObjectKind::Role if self.catalog.shared_comments(oid).is_some() => {
                self.change(CatalogChange::Drop(ObjectKind::SharedComments, oid));
            }
            _ => {}
        }
        let is_view = |table: TableRef| table.kind == TableKind::View;
        if kind == ObjectKind::Table && self.catalog.table_by_oid(oid).is_some_and(is_view) {
            self.drop_policies_over(oid);
        }
        self.change(CatalogChange::Drop(kind, oid));
    }

    /// Drops the policies that read a view, which goes.
    fn drop_policies_over(&mut self, view: Oid) {
        for reader in self.catalog.policies_over(&[view]) {
            let Dependent::Policy(table, place) = reader else { continue };
            self.drop_policy(table.oid, table.row_security.policies[place].oid);
        }
    }

    /// Drops a policy of a table, if it is still there.
    pub(crate) fn drop_policy(&mut self, table: Oid, policy: Oid) {
        let Some(known) = self.catalog.table_by_oid(table) else { return };
        let mut changed = (*known).clone();
        changed.row_security.policies.retain(|known| known.oid != policy);
        self.put_table(changed);
        self.touch(table);
    }

    /// Puts the changed table, and a new layout version for it.
    pub(crate) fn finish_table(&mut self, table: Table) {
        let table = self.put_table(table);
        let def = table_def(&table);
        let columns = (0..def.columns.len() as u16).map(ColumnSource::Kept).collect();
        self.operation(DdlOp::AlterTable { def, columns });
    }

    /// Gives a table a new version because others now point at it, or no longer do, or it has gained or
    /// lost an heir. Statements over a partitioned table are compiled over its partitions, so those
    /// speak for it.
    pub(crate) fn touch(&mut self, oid: Oid) {
        let Some(table) = self.catalog.table_by_oid(oid) else { return };
        if table.is_stored() {
            self.finish_table((*table).clone());
            return;
        }
        let above = self.catalog.partition_ancestors(oid);
        let root = above.last().unwrap_or(&table).oid;
        for table in std::iter::once(table.clone()).chain(above).chain(self.catalog.leaves(root)) {
            self.finish_table((*table).clone());
        }
    }

    /// Drops what is said of parts that a table has had and does not keep.
    fn forget_comments(&mut self, table: Oid, kept: &[Oid]) {
        if self.catalog.comments_all().next().is_none() {
            return;
        }
        let Some(before) = self.catalog.table_by_oid(table) else { return };
        self.forget_parts(&parts_of(&before), kept);
    }

    /// The same of the constraints of a domain.
    fn forget_comments_of_type(&mut self, ty: Oid, kept: &[Oid]) {
        if self.catalog.comments_all().next().is_none() {
            return;
        }
        let Some(before) = self.catalog.user_type_by_oid(ty) else { return };
        self.forget_parts(&parts_of_type(&before), kept);
    }

    fn forget_parts(&mut self, parts: &[Oid], kept: &[Oid]) {
        for part in parts {
            if !kept.contains(part) && self.catalog.comments(*part).is_some() {
                self.change(CatalogChange::Drop(ObjectKind::Comments, *part));
            }
        }
    }

    fn change(&mut self, change: CatalogChange) {
        self.catalog.advance(&change);
        // An ALTER TABLE of many actions leaves one table, and not one more for each of them.
        if let (Some(CatalogChange::Put(Object::Table(last))), CatalogChange::Put(Object::Table(table))) =
            (self.plan.changes.last(), &change)
            && (last.oid, &last.schema, &last.name) == (table.oid, &table.schema, &table.name)
        {
            self.plan.changes.pop();
        }
        self.plan.changes.push(change);
    }

    pub fn operation(&mut self, operation: DdlOp) {
        // The engine knows nothing of tables whose rows are others'.
        if is_treeless(&operation) {
            self.computed.clear();
            return;
        }
        let computed = std::mem::take(&mut self.computed);
        let last = self.plan.operations.last_mut().zip(self.plan.computed.last());
        if let Some((DdlOp::AlterTable { def, columns }, computed_last)) = last
            && let DdlOp::AlterTable { def: next, columns: sources } = &operation
            && def.id == next.id
            && computed_last.is_empty()
            && computed.is_empty()
            && let Some(sources) = composed(columns, sources)
        {
            // The rows are gone through once for both.
            (*def, *columns) = (next.clone(), sources);
            return;
        }
        self.plan.operations.push(operation);
        self.plan.computed.push(computed);
    }

    /// A column of the next operation that is computed when it runs.
    pub fn compute(&mut self, column: Computed) {
        self.computed.push(column);
    }

    /// Names a tree whose keys must be unique, for the error if they are not.
    pub fn name_unique(&mut self, tree: u32, name: &str) {
        self.plan.unique_names.push((TreeId(tree), name.to_string()));
    }

    pub fn validate(&mut self, query: String, error: SqlError) {
        self.plan.validations.push(Validation::new(query, error));
    }

    /// As [`Work::validate`], for a query that answers a key.
    pub fn validate_key(&mut self, query: String, error: SqlError, key: FaultyKey) {
        self.plan.validations.push(Validation { key: Some(key), ..Validation::new(query, error) });
    }

    /// As [`Work::validate`], for a query that is about each row by itself.
    pub fn validate_each(&mut self, query: String, error: SqlError) {
        self.plan.validations.push(Validation { each: true, ..Validation::new(query, error) });
    }

    /// A NOTICE without a condition of its own.
    pub fn notice(&mut self, message: impl Into<String>) {
        self.notice_as(SqlState::SUCCESSFUL_COMPLETION, message);
    }

    pub fn notice_with_detail(&mut self, message: String, detail: String) {
        let notice = SqlError::new(SqlState::SUCCESSFUL_COMPLETION, message).with_detail(detail);
        self.plan.notices.push(notice);
    }

    pub fn notice_as(&mut self, state: SqlState, message: impl Into<String>) {
        self.plan.notices.push(SqlError::new(state, message));
    }

    // -- names

    /// The schema a new object goes to; the system's schemas take none of users'.
    pub fn target_schema(&self, name: &QualifiedName) -> Result<String> {
        let schema = self.catalog.target_schema(name, self.search_path())?;
        if is_system_schema(&schema) && !self.env.system {
            return Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("permission denied to create \"{schema}.{}\"", name.name),
            )
            .with_detail("System catalog modifications are currently disallowed."));
        }
        // Another session's is nobody's to put something into, which its owner would find first.
        if let Some(found) = self.catalog.schema(&schema).filter(|_| schema != self.env.temporary_schema) {
            self.require(found.oid, ObjectClass::Schema, Privileges::CREATE)?;
        }
        Ok(schema)
    }

    /// 42501 unless the role may use a type that it defines something with: a type, or the domain that
    /// was named. Built-in types are for everybody.
    pub fn require_type(&self, ty: Type, domain: Option<Oid>) -> Result<()> {
        match self.catalog.user_type_of(domain.unwrap_or(ty.oid)) {
            Some(known) => self.require(known.oid, ObjectClass::Type, Privileges::USAGE),
            // What is built in is everybody's, unless somebody has said otherwise.
            None => {
                let own = element_of(ty.oid).unwrap_or(ty.oid);
                match self.catalog.access(own) {
                    Some(_) => self.require(own, ObjectClass::Type, Privileges::USAGE),
                    None => Ok(()),
                }
            }
        }
    }

    /// The session's schema of temporary relations, made if it is not there yet.
    pub fn temporary_schema(&mut self) -> String {
        let name = self.env.temporary_schema.to_owned();
        if !self.catalog.schema_exists(&name) {
            let oid = self.oids(1);
            self.put(Object::Schema(Schema { oid, name: name.clone() }));
        }
        name
    }

    /// Where a temporary relation goes.
    pub fn temporary_target(&mut self, name: &QualifiedName) -> Result<String> {
        let own = self.env.temporary_schema;
        if let Some(schema) = name.schema.as_deref().filter(|schema| *schema != "pg_temp" && *schema != own) {
            return Err(if self.catalog.schema_exists(schema) {
                SqlError::new(
                    SqlState::INVALID_TABLE_DEFINITION,
                    "cannot create temporary relation in non-temporary schema",
                )
            } else {
                undefined_schema(schema)
            });
        }
        let database = self.catalog.database_oid();
        let allowed = self.authority().privileges(database, ObjectClass::Database);
        if !self.env.system && !allowed.contains(Privileges::TEMPORARY) {
            return Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!(
                    "permission denied to create temporary tables in database \"{}\"",
                    self.catalog.database_name()
                ),
            ));
        }
        Ok(self.temporary_schema())
    }

    /// The schema of a new routine or type, which is the session's own where it is called `pg_temp`.
    pub fn any_target(&mut self, name: &QualifiedName) -> Result<String> {
        match self.is_temporary_target(name) {
            true => self.temporary_target(name),
            false => self.target_schema(name),
        }
    }

    /// Whether what is made under this name is the session's own without being called TEMPORARY.
    pub fn is_temporary_target(&self, name: &QualifiedName) -> bool {
        self.catalog.is_temporary_target(name, self.search_path())
    }

    /// What a new relation's rows outlive, by what the statement says and where it goes to.
    pub fn persistence(&self, name: &QualifiedName, written: Persistence) -> Result<Persistence> {
        match (self.is_temporary_target(name), written) {
            (true, Persistence::Unlogged) => Err(SqlError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                "only temporary relations may be created in temporary schemas",
            )
            .at(name.at())),
            (true, _) => Ok(Persistence::Temporary),
            (false, written) => Ok(written),
        }
    }

    /// A table that may be changed: stored, not the system's.
    pub fn user_table(&self, name: &QualifiedName) -> Result<Arc<Table>> {
        let table = self.catalog.require_table(name, self.search_path())?;
        self.check_changeable(&table)?;
        Ok(table)
    }

    pub fn check_changeable(&self, table: &Table) -> Result<()> {
        if self.env.system { Ok(()) } else { require_user_table(table) }
    }

    /// A relation name that is free in the schema, made of the parts as PostgreSQL makes them.
    pub fn free_relation_name(&self, schema: &str, parts: [&str; 3], also: &[String]) -> String {
        free_name(parts, |name| {
            self.catalog.is_relation(schema, name) || also.iter().any(|taken| taken == name)
        })
    }

    /// A constraint name that is free in the schema.
    pub fn free_constraint_name(&self, schema: &str, parts: [&str; 3], also: &[String]) -> String {
        free_name(parts, |name| {
            also.iter().any(|taken| taken == name) || self.catalog.has_constraint(schema, name)
        })
    }
}

/// Whether an operation is about a table without a tree: a partitioned one.
fn is_treeless(operation: &DdlOp) -> bool {
    let tree = match operation {
        DdlOp::CreateTable(def) | DdlOp::AlterTable { def, .. } | DdlOp::CopyTable { def, .. } => def.id,
        DdlOp::CreateIndex { table, .. }
        | DdlOp::BuildIndex { table, .. }
        | DdlOp::DropIndex { table, .. } => *table,
        DdlOp::DropTable(tree) | DdlOp::Truncate(tree) => *tree,
        DdlOp::CatchUp { .. }
        | DdlOp::CreateSequence(_)
        | DdlOp::AlterSequence { .. }
        | DdlOp::DropSequence(_) => return false,
    };
    tree == TreeId(0)
}

/// Where the columns come from if one operation's rows go through another.
fn composed(first: &[ColumnSource], second: &[ColumnSource]) -> Option<Vec<ColumnSource>> {
    let through = |source: &ColumnSource| match source {
        ColumnSource::Kept(column) => first.get(usize::from(*column)).cloned(),
        other => Some(other.clone()),
    };
    second.iter().map(through).collect()
}

/// Whether every column is what it was.
fn all_kept(columns: &[ColumnSource]) -> bool {
    columns
        .iter()
        .enumerate()
        .all(|(at, source)| matches!(source, ColumnSource::Kept(column) if usize::from(*column) == at))
}

/// Whether the schema belongs to the system.
pub(super) fn is_system_schema(schema: &str) -> bool {
    matches!(schema, "pg_catalog" | "information_schema" | "archipel")
}

/// Whether a table has a constraint of this name.
pub(super) fn has_constraint(table: &Table, name: &str) -> bool {
    table.primary_key.as_ref().is_some_and(|key| key.name == name)
        || table.checks.iter().any(|check| check.name == name)
        || table.foreign_keys.iter().any(|key| key.name == name)
        || table.indexes.iter().any(|index| index.constraint && index.name == name)
}

/// ChooseRelationName: `a_b_label`, then `a_b_label1`, `a_b_label2`, …
pub(super) fn free_name(parts: [&str; 3], taken: impl Fn(&str) -> bool) -> String {
    let [first, second, label] = parts;
    let mut candidate = object_name(first, second, label);
    let mut attempt = 0;
    while taken(&candidate) {
        attempt += 1;
        candidate = object_name(first, second, &format!("{label}{attempt}"));
    }
    candidate
}

/// makeObjectName: joins with underscores, cutting the longer of the first two parts until the
/// whole fits into an identifier.
fn object_name(first: &str, second: &str, label: &str) -> String {
    let overhead = label.len() + 1 + usize::from(!second.is_empty());
    let available = archipel_sql::parser::MAX_IDENTIFIER_BYTES.saturating_sub(overhead);
    let (mut first_length, mut second_length) = (first.len(), second.len());
    while first_length + second_length > available {
        if first_length > second_length {
            first_length -= 1;
        } else {
            second_length -= 1;
        }
    }
    let first = &first[..floor_boundary(first, first_length)];
    let second = &second[..floor_boundary(second, second_length)];
    if second.is_empty() { format!("{first}_{label}") } else { format!("{first}_{second}_{label}") }
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Drops what is said of new objects in a schema: it goes with the schema.
fn forget_schema(schema: Oid, work: &mut Work<'_>) {
    let entries = work.catalog.default_access_all().filter(|entry| entry.schema == Some(schema));
    let entries: Vec<Oid> = entries.map(|entry| entry.oid).collect();
    for entry in entries {
        work.drop(ObjectKind::DefaultAccess, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_to_fit() {
        let name = object_name(&"t".repeat(60), &"c".repeat(60), "key");
        assert_eq!(name.len(), 63);
        assert!(name.ends_with("_key") && name.starts_with("ttt") && name.contains("_ccc"));
        assert_eq!(object_name("t", "", "pkey"), "t_pkey");
    }
}
