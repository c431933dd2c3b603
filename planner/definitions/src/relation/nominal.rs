//! Definitions that have no effect here and are kept for those who ask: indexes by methods that serve no
//! query (gin, gist, spgist, brin), and REPLICA IDENTITY. They are checked as PostgreSQL checks them, so
//! that what is kept is what it would take.

use archipel_sql::ast::{CreateIndex, IndexElement, IndexKey, QualifiedName, WrittenReplicaIdentity};
use archipel_sql::catalog::names::undefined_schema;
use archipel_sql::catalog::nominal::operator_classes;
use archipel_sql::catalog::{
    EXPRESSION, Index, IndexColumn, IndexExpression, NominalIndex, Relation, ReplicaIdentity, Table, TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{TypeNames, element_of};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::Expr;

use super::constraint::included;
use super::storage_option::{Written, index_options};
use super::table::other_collation;
use crate::alter::alter_inheritance::mark;
use crate::bind::modify::{check_index_predicate, index_expression_type};
use crate::bind::name::{ident_name, name_of};
use crate::bind::stored_expression::About;
use crate::bind::{BindEnv, Clause};
use crate::expression::check::{check_index_condition, check_index_expression};
use crate::expression::{check, stored_expression};
use crate::work::Work;

fn refused(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
}

/// CREATE INDEX … USING such a method.
pub(super) fn create_index(
    create: &CreateIndex,
    method: &str,
    table: &TableRef,
    work: &mut Work<'_>,
) -> Result<()> {
    check_method(create, method)?;
    let include = included(table, &create.include)?;
    let predicate = match &create.predicate {
        Some(predicate) => {
            check_index_condition(predicate, table)?;
            let about = About::Row(table.clone());
            let clause = Clause::IndexPredicate;
            Some(stored_expression::settled_text(&predicate.text, &about, clause, None, work)?)
        }
        None => None,
    };
    let options = index_options(method, &create.options)?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    if let Some(predicate) = &predicate {
        check_index_predicate(table, predicate, &mut env)?;
    }
    let mut parts = Parts::default();
    for (place, element) in create.elements.iter().enumerate() {
        parts.add(place, element, (method, table), &mut env, work)?;
    }
    let name = match &create.name {
        Some(name) => name.clone(),
        None => {
            let included = include.iter().map(|&column| table.columns[usize::from(column)].name.clone());
            let names: Vec<String> = parts.names.iter().cloned().chain(included).collect();
            work.free_relation_name(&table.schema, [&table.name, &names.join("_"), "idx"], &[])
        }
    };
    let index = Index {
        oid: work.oids(1),
        name: name.clone(),
        columns: parts.columns,
        unique: false,
        nulls_equal: false,
        constraint: false,
        tree: 0,
        global_group: None,
        include,
        predicate,
        expressions: parts.expressions,
        parent: None,
        hash: false,
        classes: Vec::new(),
        options: Vec::new(),
    };
    let nominal = NominalIndex { index, method: method.to_owned(), classes: parts.classes, options };
    mark(table.oid, work, |table| table.nominal.indexes.push(nominal));
    work.notice(format!(
        "index \"{name}\" is kept as a definition: access method \"{method}\" serves no query here"
    ));
    Ok(())
}

/// What the methods cannot do.
fn check_method(create: &CreateIndex, method: &str) -> Result<()> {
    let missing = |what: &str| Err(refused(format!("access method \"{method}\" does not support {what}")));
    if create.unique {
        return missing("unique indexes");
    }
    if !create.include.is_empty() && matches!(method, "gin" | "brin") {
        return missing("included columns");
    }
    if create.elements.len() > 1 && method == "spgist" {
        return missing("multicolumn indexes");
    }
    if create.elements.iter().any(|element| element.descending) {
        return missing("ASC/DESC options");
    }
    if create.elements.iter().any(|element| element.nulls_first.is_some()) {
        return missing("NULLS FIRST/LAST options");
    }
    Ok(())
}

/// The key of an index while it is read.
#[derive(Default)]
struct Parts {
    columns: Vec<IndexColumn>,
    expressions: Vec<IndexExpression>,
    /// What the parts lend to the index's name.
    names: Vec<String>,
    classes: Vec<Option<String>>,
}

impl Parts {
    fn add(
        &mut self,
        place: usize,
        element: &IndexElement,
        (method, table): (&str, &TableRef),
        env: &mut BindEnv<'_>,
        work: &Work<'_>,
    ) -> Result<()> {
        let written = match &element.key {
            IndexKey::Column(name) => Some(name.clone()),
            // A column in parentheses is a column.
            IndexKey::Expression(expression) => match &expression.expr {
                Expr::Identifier(ident) => Some(ident_name(ident)),
                _ => None,
            },
        };
        let (column, stem, ty) = match (&element.key, written) {
            (_, Some(name)) => {
                let column = table.column_index(&name).ok_or_else(|| {
                    let message = format!("column \"{name}\" does not exist");
                    SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(Some(element.position))
                })?;
                (column, name, table.columns[usize::from(column)].ty)
            }
            (IndexKey::Expression(expression), None) => {
                check_index_expression(expression, table)?;
                let (about, clause) = (About::Row(table.clone()), Clause::IndexExpression);
                let text = stored_expression::settled_text(&expression.text, &about, clause, None, work)?;
                let ty = index_expression_type(table, &text, env)?;
                let place = place as u16;
                let part = IndexExpression { place, text, ty, guarded: false, name: String::new() };
                self.expressions.push(part);
                (EXPRESSION, name_of(&expression.expr).unwrap_or_else(|| "expr".to_owned()), ty)
            }
            (IndexKey::Column(_), None) => return Err(SqlError::internal("a column without a name")),
        };
        let mut name = stem.clone();
        for number in 1.. {
            if !self.names.contains(&name) {
                break;
            }
            name = format!("{stem}{number}");
        }
        if let Some(expression) = self.expressions.last_mut().filter(|_| column == EXPRESSION) {
            expression.name.clone_from(&name);
        }
        self.names.push(name);
        self.classes.push(class_of(element.operator_class.as_ref(), method, ty, work)?);
        let own = match self.expressions.last().filter(|_| column == EXPRESSION) {
            Some(expression) => check::collation(&expression.text, table)?,
            None => table.columns[usize::from(column)].collation,
        };
        let collation = other_collation(element, own);
        self.columns.push(IndexColumn { column, descending: false, nulls_first: false, collation });
        Ok(())
    }
}

/// The operator class of a part of a key, if it is another one than the type's own.
fn class_of(
    written: Option<&QualifiedName>,
    method: &str,
    ty: Type,
    work: &Work<'_>,
) -> Result<Option<String>> {
    let fits = |input: Oid| {
        input == ty.oid
            || input == Oid::TEXT && ty.oid == Oid::VARCHAR
            || input == Oid::INET && ty.oid == Oid::CIDR
            || input == Oid::ANYARRAY && element_of(ty.oid).is_some()
            || ty.oid.polymorphic() == Some(input)
    };
    let own =
        operator_classes(method).find(|(_, input, default)| *default && fits(*input)).map(|(name, ..)| name);
    let Some(written) = written else {
        return match own {
            Some(_) => Ok(None),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "data type {} has no default operator class for access method \"{method}\"",
                    work.type_name(ty.oid)
                ),
            )
            .with_hint(
                "You must specify an operator class for the index or define a default operator class for the data type.",
            )),
        };
    };
    if let Some(schema) = written.schema.as_deref().filter(|schema| !work.catalog.schema_exists(schema)) {
        return Err(undefined_schema(schema));
    }
    let of_system = written.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
    let mut named =
        operator_classes(method).filter(|(name, ..)| of_system && *name == written.name).peekable();
    if named.peek().is_none() {
        let shown = match &written.schema {
            Some(schema) => format!("{schema}.{}", written.name),
            None => written.name.clone(),
        };
        let message = format!("operator class \"{shown}\" does not exist for access method \"{method}\"");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
    }
    if !named.any(|(_, input, _)| fits(input)) {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "operator class \"{}\" does not accept data type {}",
                written.name,
                work.type_name(ty.oid)
            ),
        ));
    }
    Ok((own != Some(written.name.as_str())).then(|| written.name.clone()))
}

/// DROP INDEX.
pub(super) fn drop_index(table: &Table, place: usize, work: &mut Work<'_>) {
    let oid = table.nominal.indexes[place].index.oid;
    mark(table.oid, work, |table| table.nominal.indexes.retain(|known| known.index.oid != oid));
}

/// SET and RESET of a table's storage parameters: those that are `written` go, and these come.
pub(crate) fn set_table_options(
    table: Oid,
    written: &Written,
    set: Vec<(String, String)>,
    work: &mut Work<'_>,
) {
    mark(table, work, |table| {
        table.options.retain(|(name, _)| written.iter().all(|(changed, _)| changed != name));
        table.options.extend(set);
    });
}

/// ALTER TABLE … REPLICA IDENTITY.
pub(crate) fn set_replica_identity(
    table: &Table,
    written: &WrittenReplicaIdentity,
    work: &mut Work<'_>,
) -> Result<()> {
    let identity = match written {
        WrittenReplicaIdentity::Default => ReplicaIdentity::Default,
        WrittenReplicaIdentity::Nothing => ReplicaIdentity::Nothing,
        WrittenReplicaIdentity::Full => ReplicaIdentity::Full,
        WrittenReplicaIdentity::Index(name) => ReplicaIdentity::Index(identifying(table, name, work)?),
    };
    mark(table.oid, work, |table| table.nominal.replica_identity = identity);
    Ok(())
}

/// The index of this name, if it tells rows apart.
fn identifying(table: &Table, name: &str, work: &Work<'_>) -> Result<Oid> {
    let (of, index) = match work.catalog.relation_in(&table.schema, name) {
        None => {
            let message = format!("index \"{name}\" for table \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        Some(Relation::PrimaryKey(of)) if of.oid == table.oid => {
            return Ok(of.primary_key.as_ref().map_or(Oid(0), |key| key.oid));
        }
        Some(Relation::Index(of, place)) if of.oid == table.oid => {
            let index = of.indexes[place].clone();
            (of, index)
        }
        Some(Relation::Nominal(of, _)) if of.oid == table.oid => {
            return Err(wrong(format!("cannot use non-unique index \"{name}\" as replica identity")));
        }
        Some(_) => return Err(wrong(format!("\"{name}\" is not an index for table \"{}\"", table.name))),
    };
    if !index.unique {
        return Err(wrong(format!("cannot use non-unique index \"{name}\" as replica identity")));
    }
    if index.columns.iter().any(|part| part.column == EXPRESSION) {
        return Err(refused(format!("cannot use expression index \"{name}\" as replica identity")));
    }
    if index.predicate.is_some() {
        return Err(refused(format!("cannot use partial index \"{name}\" as replica identity")));
    }
    let mut columns = index.columns.iter().filter_map(|part| of.columns.get(usize::from(part.column)));
    if let Some(nullable) = columns.find(|column| !column.not_null) {
        return Err(wrong(format!(
            "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
            nullable.name
        )));
    }
    Ok(index.oid)
}
