//! LIKE in CREATE TABLE: columns of another table, and as much of what belongs to them as is
//! asked for.

use archipel_sql::ast::{SequenceOption, TableConstraint, TableConstraintKind, TableLike};
use archipel_sql::catalog::{
    Column, Comments, EXPRESSION, Index, Object, ObjectClass, Privileges, Table, TableKind, TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::parse_expression_text;
use archipel_sql::types::Oid;

use super::constraint::own_names;
use super::inheritance::carried;
use super::partition_keys;
use super::sequence::SequenceRequest;
use crate::bind::Clause;
use crate::work::Work;

/// What the LIKE clauses of one statement copy, once the columns are there.
#[derive(Default)]
pub(super) struct Copies {
    /// The clause's options, its table, and the place of its first column.
    from: Vec<(TableLike, TableRef, u16)>,
}

impl Copies {
    /// Adds the columns of one clause.
    pub fn add_columns(
        &mut self,
        like: &TableLike,
        table: &mut Table,
        sequences: &mut Vec<(u16, SequenceRequest)>,
        work: &Work<'_>,
    ) -> Result<()> {
        let Some(name) = &like.source else { return Ok(()) };
        // Looked for in parsing.
        work.catalog.relation_at(name, work.search_path())?;
        let source = work.catalog.require_table(name, work.search_path())?;
        work.require(source.oid, ObjectClass::Relation, Privileges::SELECT)?;
        let first = table.columns.len() as u16;
        let source = as_named(&source, like, table)?;
        for (place, column) in source.columns.iter().enumerate() {
            if table.column_index(&column.name).is_some() {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{}\" specified more than once", column.name),
                ));
            }
            let mut copy = Column {
                domain: column.domain,
                collation: column.collation,
                ..Column::new(column.name.clone(), column.ty)
            };
            copy.not_null = column.not_null;
            if like.storage {
                copy.storage.strategy = column.storage.strategy;
            }
            if like.compression {
                copy.storage.compression = column.storage.compression;
            }
            if column.identity.is_some() {
                if like.identity {
                    copy.identity = column.identity;
                    sequences.push((first + place as u16, sequence_like(&source, place, work)));
                }
            } else if column.generated.is_some() {
                if like.generated {
                    copy.generated = column.generated.clone();
                }
            } else if like.defaults {
                copy.default = column.default.clone();
            }
            table.columns.push(copy);
        }
        self.from.push((like.clone(), source, first));
        Ok(())
    }

    /// Checks and keys, as constraints of the new table.
    pub fn constraints(&self) -> Result<Vec<TableConstraint>> {
        let mut constraints = Vec::new();
        let mut add = |name: Option<String>, kind: TableConstraintKind, kept: &[(String, String)]| {
            let options = kept.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
            constraints.push(TableConstraint {
                name,
                position: 0,
                kind,
                deferrable: Default::default(),
                not_valid: false,
                no_inherit: false,
                options,
                tablespace: None,
            });
        };
        for (like, source, _) in &self.from {
            let names = |columns: &mut dyn Iterator<Item = u16>| -> Vec<String> {
                columns.map(|column| source.columns[usize::from(column)].name.clone()).collect()
            };
            if like.constraints {
                for check in &source.checks {
                    let condition = parse_expression_text(&check.condition)?;
                    add(Some(check.name.clone()), TableConstraintKind::Check(condition), &[]);
                }
            }
            if like.indexes {
                if let Some(key) = &source.primary_key {
                    let columns = names(&mut key.columns.iter().copied());
                    let include = names(&mut key.include.iter().copied());
                    add(None, TableConstraintKind::PrimaryKey { columns, include }, &key.options);
                }
                for index in source.indexes.iter().filter(|index| index.constraint) {
                    let columns = names(&mut index.columns.iter().map(|part| part.column));
                    add(
                        None,
                        TableConstraintKind::Unique {
                            columns,
                            include: names(&mut index.include.iter().copied()),
                            nulls_not_distinct: index.nulls_equal,
                        },
                        &index.options,
                    );
                }
            }
        }
        Ok(constraints)
    }

    /// Indexes that are no constraints.
    pub fn add_indexes(&self, table: &mut Table, work: &mut Work<'_>) {
        for (_, source, first) in self.from.iter().filter(|(like, ..)| like.indexes) {
            for index in source.indexes.iter().filter(|index| !index.constraint) {
                let columns = partition_keys::part_names(index, source).join("_");
                let name =
                    work.free_relation_name(&table.schema, [&table.name, &columns, "idx"], &own_names(table));
                let mut copy = Index { oid: work.oids(2), name, tree: work.tree(), ..index.clone() };
                copy.global_group = None;
                let plain = copy.columns.iter_mut().filter(|part| part.column != EXPRESSION);
                plain.for_each(|part| part.column += first);
                copy.include.iter_mut().for_each(|column| *column += first);
                work.name_unique(copy.tree, &copy.name);
                table.indexes.push(copy);
            }
            for nominal in &source.nominal.indexes {
                let columns = partition_keys::part_names(&nominal.index, source).join("_");
                let name =
                    work.free_relation_name(&table.schema, [&table.name, &columns, "idx"], &own_names(table));
                let mut copy = nominal.clone();
                copy.index.oid = work.oids(1);
                copy.index.name = name;
                let plain = copy.index.columns.iter_mut().filter(|part| part.column != EXPRESSION);
                plain.for_each(|part| part.column += first);
                copy.index.include.iter_mut().for_each(|column| *column += first);
                table.nominal.indexes.push(copy);
            }
        }
    }

    /// Comments on columns, and on the conditions and indexes that are copied, too.
    pub fn add_comments(&self, table: &Table, work: &mut Work<'_>) {
        let mut pairs: Vec<(Oid, Oid)> = Vec::new();
        for (like, source, first) in self.from.iter().filter(|(like, ..)| like.comments) {
            if like.constraints {
                let own = |name: &str| table.checks.iter().find(|check| check.name == name);
                pairs.extend(
                    source.checks.iter().filter_map(|check| Some((check.oid, own(&check.name)?.oid))),
                );
            }
            if like.indexes {
                let keys = (&source.primary_key, &table.primary_key);
                pairs.extend(keys.0.iter().zip(keys.1).map(|(from, to)| (from.oid, to.oid)));
                let mut copies: Vec<&Index> = all_indexes(table).collect();
                for index in all_indexes(source) {
                    if let Some(place) = copies.iter().position(|copy| is_copy(copy, index, *first)) {
                        pairs.push((index.oid, copies.remove(place).oid));
                    }
                }
            }
        }
        for (from, to) in pairs {
            if let Some(text) = work.catalog.comment(from, 0) {
                work.put(Object::Comments(Comments { object: to, texts: vec![(0, text)] }));
            }
        }
        let mut texts = Vec::new();
        for (_, source, first) in self.from.iter().filter(|(like, ..)| like.comments) {
            for (place, _) in source.columns.iter().enumerate() {
                if let Some(text) = work.catalog.comment(source.oid, place as u16 + 1) {
                    texts.push((first + place as u16 + 1, text));
                }
            }
        }
        if !texts.is_empty() {
            work.put(Object::Comments(Comments { object: table.oid, texts }));
        }
    }
}

fn all_indexes(table: &Table) -> impl Iterator<Item = &Index> {
    table.indexes.iter().chain(table.nominal.indexes.iter().map(|nominal| &nominal.index))
}

/// Whether an index is the copy of another, over columns that stand `first` places further on.
fn is_copy(copy: &Index, index: &Index, first: u16) -> bool {
    let moved = |column: u16| if column == EXPRESSION { column } else { column + first };
    copy.constraint == index.constraint
        && copy.unique == index.unique
        && copy.predicate == index.predicate
        && copy.columns.iter().map(|part| part.column).eq(index.columns.iter().map(|part| moved(part.column)))
        && copy.include.iter().copied().eq(index.include.iter().map(|column| moved(*column)))
}

/// The source as one of the new table's name would be: its expressions say that name where they say the
/// source's. Expressions that are not asked for are left out.
fn as_named(source: &TableRef, like: &TableLike, table: &Table) -> Result<TableRef> {
    let carry = |text: &mut String, clause| -> Result<()> {
        *text = carried(text, source, &table.name, clause)?;
        Ok(())
    };
    let mut named = (**source).clone();
    for column in &mut named.columns {
        if let Some(text) = column.generated.as_mut().filter(|_| like.generated) {
            carry(text, Clause::Generated)?;
        }
        if let Some(text) = column.default.as_mut().filter(|_| like.defaults) {
            carry(text, Clause::Default)?;
        }
    }
    if like.constraints {
        for check in &mut named.checks {
            carry(&mut check.condition, Clause::Check)?;
        }
    } else {
        named.checks.clear();
    }
    if like.indexes {
        for index in named.all_indexes_mut() {
            if let Some(text) = &mut index.predicate {
                carry(text, Clause::IndexPredicate)?;
            }
            for part in &mut index.expressions {
                carry(&mut part.text, Clause::IndexExpression)?;
            }
        }
    } else {
        named.indexes.clear();
        named.nominal.indexes.clear();
    }
    Ok(TableRef::new(named))
}

/// A sequence as the source's identity column has it.
fn sequence_like(source: &TableRef, place: usize, work: &Work<'_>) -> SequenceRequest {
    let ty = source.columns[place].ty;
    debug_assert!(source.kind == TableKind::Table);
    let known = work
        .catalog
        .owned_sequences(source.oid)
        .into_iter()
        .find(|sequence| sequence.owned_by == Some((source.oid, place as u16)));
    let options = known.map_or_else(Vec::new, |sequence| {
        vec![
            SequenceOption::Increment(sequence.increment),
            SequenceOption::MinValue(Some(sequence.min_value)),
            SequenceOption::MaxValue(Some(sequence.max_value)),
            SequenceOption::Start(sequence.start),
            SequenceOption::Cache(sequence.cache),
            SequenceOption::Cycle(sequence.cycle),
        ]
    });
    SequenceRequest { options, ty }
}
