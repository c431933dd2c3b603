//! Texts that the catalog keeps, on their way into it: ids stand in them for what the session that writes
//! them means by their names ([`archipel_sql::catalog::stored_name`]), so that no renaming and no search path
//! changes them.

use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::stored_name::with_names;
use archipel_sql::catalog::user_type::Domain;
use archipel_sql::catalog::{
    Catalog, CatalogChange, Object, PartitionKeyPart, Routine, Table, TableKind, TableRef,
};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::parser::{Lexeme, LexemeKind, lexemes};
use archipel_sql::types::{Oid, Type};
use rustc_hash::FxHashSet;

use super::check::rename_in_text;
use super::literal;
use crate::bind::Clause;
use crate::bind::stored_expression::{
    About, DEFINITION_PATH, bind_text, mean_the_same, meaning_of_text, text_with_ids,
};
use crate::bound::BoundExpr;
use crate::work::Work;

/// The object of a change with its new texts as they are kept; `None` where they are so already.
fn settled(change: &CatalogChange, work: &Work<'_>) -> Result<Option<CatalogChange>> {
    let CatalogChange::Put(object) = change else { return Ok(None) };
    let settled = match object {
        Object::Table(table) => settled_table(table, work)?.map(|table| Object::Table(table.into())),
        Object::Routine(routine) => {
            settled_routine(routine, work)?.map(|routine| Object::Routine(routine.into()))
        }
        _ => None,
    };
    Ok(settled.map(CatalogChange::Put))
}

/// A new text as it is kept.
pub(crate) fn settled_text(
    text: &str,
    about: &About,
    clause: Clause,
    target: Option<Type>,
    work: &Work<'_>,
) -> Result<String> {
    let mut text = text.to_owned();
    settle_names(&mut text, (about, clause, target), work.search_path(), work)?;
    literal::settle(&mut text, (about, clause), target, work)?;
    Ok(text)
}

/// Puts ids into a new text for what its names mean on a search path; true if there were any.
pub(super) fn settle_names(
    text: &mut String,
    (about, clause, target): (&About, Clause, Option<Type>),
    path: &[String],
    work: &Work<'_>,
) -> Result<bool> {
    let catalog = &work.catalog;
    let stored = match text_with_ids(catalog, path, text, (about, clause, target), work.env.context) {
        Ok(stored) => stored,
        Err(mut error) => {
            // It would be one in the text.
            error.fields_mut().position = None;
            return Err(error);
        }
    };
    let meaning =
        |path, text: &str| meaning_of_text(catalog, path, text, (about, clause, target), work.env.context);
    let (here, there) = (meaning(path, text), meaning(DEFINITION_PATH, &stored));
    let means_the_same = match (&here, &there) {
        (Ok(here), Ok(there)) => mean_the_same(here, there),
        _ => false,
    };
    if here.is_ok() && !means_the_same {
        let what = "a name in a definition that means something else where it is kept";
        return Err(SqlError::unsupported(what)
            .with_hint("Write the names of functions and types with their schemas."));
    }
    let changed = stored != *text;
    *text = stored;
    Ok(changed)
}

/// The texts of a table or a view, `about` being how they see it.
pub(super) fn texts_of<'t>(table: &'t mut Table, about: &TableRef) -> Vec<(&'t mut String, About, Clause)> {
    let row = || About::Row(about.clone());
    let mut texts = Vec::new();
    for column in &mut table.columns {
        texts.extend(column.default.as_mut().map(|text| (text, About::Nothing, Clause::Default)));
        texts.extend(column.generated.as_mut().map(|text| (text, row(), Clause::Generated)));
    }
    texts.extend(table.checks.iter_mut().map(|check| (&mut check.condition, row(), Clause::Check)));
    let nominal = table.nominal.indexes.iter_mut().map(|nominal| &mut nominal.index);
    for index in table.indexes.iter_mut().chain(nominal) {
        texts.extend(index.predicate.as_mut().map(|text| (text, row(), Clause::IndexPredicate)));
        let parts = index.expressions.iter_mut();
        texts.extend(parts.map(|part| (&mut part.text, row(), Clause::IndexExpression)));
    }
    for part in table.partitioned_by.iter_mut().flat_map(|key| &mut key.parts) {
        if let PartitionKeyPart::Expression { text, .. } = part {
            texts.push((text, row(), Clause::PartitionKey));
        }
    }
    let conditions = table.triggers.iter_mut().filter_map(|trigger| trigger.condition.as_mut());
    texts.extend(conditions.map(|text| (text, About::OldAndNew(about.clone()), Clause::Expression)));
    texts
}

pub(super) fn texts_of_domain(domain: &mut Domain) -> Vec<(&mut String, About, Clause)> {
    let about = About::Value(domain.base);
    let default = domain.default.iter_mut().map(|text| (text, About::Nothing, Clause::Default));
    let checks = domain.checks.iter_mut();
    default.chain(checks.map(|check| (&mut check.condition, about.clone(), Clause::DomainCheck))).collect()
}

pub(super) fn texts_of_routine(routine: &mut Routine) -> Vec<(&mut String, About, Clause)> {
    let defaults = routine.args.iter_mut().filter_map(|arg| arg.default.as_mut());
    defaults.map(|text| (text, About::Nothing, Clause::Default)).collect()
}

fn settled_table(table: &TableRef, work: &Work<'_>) -> Result<Option<Table>> {
    // What it was before, what other names have made of that, and what it has from others, is settled.
    let parents = table.inherits.iter().filter_map(|parent| work.catalog.table_by_oid(*parent));
    let known: FxHashSet<(String, Option<Type>)> = work
        .env
        .catalog
        .table_by_oid(table.oid)
        .into_iter()
        .chain(parents)
        .chain(work.settled.iter().filter_map(|object| match object {
            Object::Table(settled) if settled.oid == table.oid => Some(settled.clone()),
            _ => None,
        }))
        .flat_map(|known| {
            let mut own = (*known).clone();
            let texts = texts_of(&mut own, &known).into_iter().map(|(text, ..)| text.clone());
            texts.zip(targets(&known)).collect::<Vec<_>>()
        })
        .collect();
    let mut after = (**table).clone();
    let mut changed = false;
    for ((text, about, clause), target) in texts_of(&mut after, table).into_iter().zip(targets(table)) {
        // What a literal is depends on the column that it is for.
        if !known.contains(&(text.clone(), target)) {
            changed |= settle_names(text, (&about, clause, target), work.search_path(), work)?;
            changed |= literal::settle(text, (&about, clause), target, work)?;
        }
    }
    Ok(changed.then_some(after))
}

/// What texts that are literals alone are taken as, in the order of [`texts_of`].
pub(super) fn targets(table: &Table) -> impl Iterator<Item = Option<Type>> {
    // Columns come first, each with its default before what it is generated from.
    let of_columns = table
        .columns
        .iter()
        .flat_map(|column| column.default.iter().chain(&column.generated).map(|_| Some(column.ty)));
    of_columns.chain(std::iter::repeat(None))
}

fn settled_routine(routine: &Routine, work: &Work<'_>) -> Result<Option<Routine>> {
    let targets = routine.args.iter().filter(|arg| arg.default.is_some()).map(|arg| Some(arg.ty));
    let before = work.env.catalog.routine_by_oid(routine.oid);
    let settled = work.settled.iter().filter_map(|object| match object {
        Object::Routine(settled) if settled.oid == routine.oid => Some(settled.clone()),
        _ => None,
    });
    let before: Vec<_> = before.into_iter().chain(settled).collect();
    let mut after = routine.clone();
    let mut changed = false;
    for ((text, about, clause), target) in texts_of_routine(&mut after).into_iter().zip(targets) {
        let known = before.iter().flat_map(|routine| &routine.args).filter_map(|arg| arg.default.as_ref());
        if !known.into_iter().any(|known| *known == *text) {
            changed |= settle_names(text, (&about, clause, target), work.search_path(), work)?;
            changed |= literal::settle(text, (&about, clause), target, work)?;
        }
    }
    Ok(changed.then_some(after))
}

/// After a table got another name: puts that before the columns that a text says with the old one.
pub(crate) fn follow_name(before: &TableRef, table: &mut Table, catalog: &Catalog) -> Result<()> {
    let (mut old, about) = ((**before).clone(), TableRef::new(table.clone()));
    let name = table.name.clone();
    for ((was, seen, _), (text, about, clause)) in
        texts_of(&mut old, before).into_iter().zip(texts_of(table, &about))
    {
        let Ok(meant) = bind_text(catalog, DEFINITION_PATH, was, &seen, clause) else { continue };
        let means = |text: &str| {
            bind_text(catalog, DEFINITION_PATH, text, &about, clause)
                .is_ok_and(|now| mean_the_same(&meant, &now))
        };
        if means(text) {
            continue;
        }
        let mut renamed = with_schema(text, &before.name, &name)?;
        // By its name alone a table is its whole row.
        if !means(&renamed) {
            renamed = rename_in_text(&renamed, &before.name, &name)?;
        }
        if !means(&renamed) {
            let text = with_names(text, catalog, DEFINITION_PATH)?;
            return Err(SqlError::unsupported(format_args!("renaming a table in the expression {text}")));
        }
        *text = renamed;
    }
    Ok(())
}

/// A text with another schema, or another table, before its qualified names.
fn with_schema(text: &str, from: &str, to: &str) -> Result<String> {
    let parts = lexemes(text)?;
    let symbol = |at: usize| parts.get(at).map(|part| &text[part.range.clone()]);
    let (mut result, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, Lexeme { kind, range }) in parts.iter().enumerate() {
        let written = match kind {
            LexemeKind::Word { value, .. } if value == from && symbol(at + 1) == Some(".") => {
                quote_identifier(to)
            }
            LexemeKind::String(value) => {
                let rest = [from.to_owned(), quote_identifier(from)]
                    .iter()
                    .find_map(|schema| value.strip_prefix(schema.as_str())?.strip_prefix('.'));
                let Some(rest) = rest else { continue };
                format!("'{}'", format!("{}.{rest}", quote_identifier(to)).replace('\'', "''"))
            }
            _ => continue,
        };
        result.push_str(&text[copied..range.start]);
        result.push_str(&written);
        copied = range.end;
    }
    result.push_str(&text[copied..]);
    Ok(result)
}

/// Refuses a column's new name where a text would not mean what it means.
pub(crate) fn check_renamed(before: &TableRef, after: &Table, catalog: &Catalog) -> Result<()> {
    let (mut old, mut new) = ((**before).clone(), after.clone());
    let about = TableRef::new(after.clone());
    let names = names_that_differ(before, after);
    for ((text, about, clause), (renamed, now, _)) in
        texts_of(&mut old, before).into_iter().zip(texts_of(&mut new, &about))
    {
        if text == renamed && !may_say(text, &names) {
            continue;
        }
        let Ok(meant) = bind_text(catalog, DEFINITION_PATH, text, &about, clause) else { continue };
        if !bind_text(catalog, DEFINITION_PATH, renamed, &now, clause)
            .is_ok_and(|means| mean_the_same(&meant, &means))
        {
            let text = with_names(text, catalog, DEFINITION_PATH)?;
            return Err(SqlError::unsupported(format_args!("renaming a column in the expression {text}")));
        }
    }
    Ok(())
}

/// The names of a table and its columns that are others now, before and after, in lower case.
fn names_that_differ(before: &Table, after: &Table) -> Vec<String> {
    let columns = before.columns.iter().zip(&after.columns).map(|(old, new)| (&old.name, &new.name));
    let pairs = columns.chain([(&before.name, &after.name)]).filter(|(old, new)| old != new);
    pairs.flat_map(|(old, new)| [old.to_lowercase(), new.to_lowercase()]).collect()
}

/// Whether a text could say one of these names, which are in lower case: some are not written as they are.
pub(crate) fn may_say(text: &str, names: &[String]) -> bool {
    let text = text.to_lowercase();
    text.contains("u&") || names.iter().any(|name| name.contains('"') || text.contains(name))
}

/// A text the catalog keeps.
pub(crate) struct Kept {
    /// What would have to go if it did not mean anything any more.
    pub owner: Dependent,
    about: About,
    clause: Clause,
    pub text: String,
}

impl Kept {
    /// The text as statements bind it.
    pub fn bind(&self, catalog: &Catalog) -> Result<BoundExpr> {
        bind_text(catalog, DEFINITION_PATH, &self.text, &self.about, self.clause)
    }
}

/// All texts that the catalog keeps of objects that say one of these numbers, but for the queries of views: of
/// tables, domains, routines.
pub(crate) fn saying(oids: &[Oid], catalog: &Catalog) -> Vec<Kept> {
    let mut found = Vec::new();
    for table in catalog.tables_saying(oids).filter(|table| table.kind != TableKind::System) {
        of_table(table, &mut found);
    }
    for ty in catalog.types_saying(oids) {
        let Some(domain) = &ty.domain else { continue };
        let mut add = |owner, about, clause, text: &String| {
            found.push(Kept { owner, about, clause, text: text.clone() });
        };
        if let Some(text) = &domain.default {
            add(Dependent::Domain(ty.clone()), About::Nothing, Clause::Default, text);
        }
        for (place, check) in domain.checks.iter().enumerate() {
            let owner = Dependent::DomainCheck(ty.clone(), place);
            add(owner, About::Value(domain.base), Clause::DomainCheck, &check.condition);
        }
    }
    for routine in catalog.routines_saying(oids) {
        for text in routine.args.iter().filter_map(|arg| arg.default.as_ref()) {
            found.push(Kept {
                owner: Dependent::Routine(routine.clone()),
                about: About::Nothing,
                clause: Clause::Default,
                text: text.clone(),
            });
        }
    }
    found
}

fn of_table(table: &TableRef, found: &mut Vec<Kept>) {
    let row = About::Row(table.clone());
    let mut add = |owner, about: &About, clause, text: &String| {
        let (about, text) = (about.clone(), text.clone());
        found.push(Kept { owner, about, clause, text });
    };
    for (place, column) in table.columns.iter().enumerate() {
        let place = place as u16;
        if let Some(text) = &column.default {
            add(Dependent::Default(table.clone(), place), &About::Nothing, Clause::Default, text);
        }
        if let Some(text) = &column.generated {
            add(Dependent::Generated(table.clone(), place), &row, Clause::Generated, text);
        }
    }
    for (place, check) in table.checks.iter().enumerate() {
        add(Dependent::Check(table.clone(), place), &row, Clause::Check, &check.condition);
    }
    for (place, index) in table.indexes.iter().enumerate() {
        if let Some(text) = &index.predicate {
            add(Dependent::Index(table.clone(), place), &row, Clause::IndexPredicate, text);
        }
        for part in &index.expressions {
            add(Dependent::Index(table.clone(), place), &row, Clause::IndexExpression, &part.text);
        }
    }
    for part in table.partitioned_by.iter().flat_map(|key| &key.parts) {
        if let PartitionKeyPart::Expression { text, .. } = part {
            add(Dependent::PartitionKey(table.clone()), &row, Clause::PartitionKey, text);
        }
    }
    for (place, trigger) in table.triggers.iter().enumerate() {
        if let Some(text) = &trigger.condition {
            let about = About::OldAndNew(table.clone());
            add(Dependent::Trigger(table.clone(), place), &about, Clause::Expression, text);
        }
    }
}

impl Work<'_> {
    /// A change whose texts mean the same under the path of definitions; `None` if they do as they are.
    pub(crate) fn settled_change(&self, change: &CatalogChange) -> Result<Option<CatalogChange>> {
        settled(change, self)
    }
}
