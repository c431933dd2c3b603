//! Texts that the catalog keeps, on their way into it: what their names mean on the path of the
//! session that writes them they must go on meaning on the path of what they belong to
//! ([`crate::bind`], `kept`). Where that path leads elsewhere, names get their schemas.

use archipel_sql::catalog::dependency::Dependent;
use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::user_type::Domain;
use archipel_sql::catalog::{
    Catalog, CatalogChange, Object, PartitionKeyPart, Relation, Routine, Table, TableKind, TableRef,
};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::parser::{Lexeme, LexemeKind, lexemes};
use archipel_sql::types::Type;

use super::check::rename_in_text;
use super::literal;
use crate::bind::stored_expression::{About, bind_text, definition_path, mean_the_same};
use crate::bind::{Clause, visit};
use crate::bound::{BoundExpr, ExprKind};
use crate::relation::view_query;
use crate::work::Work;

/// From the names of a text as one path finds them to the same on another.
struct Move<'w> {
    catalog: &'w Catalog,
    from: Vec<String>,
    to: Vec<String>,
}

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

/// A new text of something in a schema as it is kept.
pub(crate) fn settled_text(
    text: &str,
    schema: &str,
    about: &About,
    clause: Clause,
    target: Option<Type>,
    work: &Work<'_>,
) -> Result<String> {
    let mut text = text.to_owned();
    if let Some(to) = Move::from_session(schema, work) {
        to.settle(&mut text, about, clause)?;
    }
    literal::settle(&mut text, schema, (about, clause), target, work)?;
    Ok(text)
}

/// A kept text of something in a schema as the session would write it.
pub(crate) fn text_for_session(
    text: &str,
    schema: &str,
    about: &About,
    clause: Clause,
    work: &Work<'_>,
) -> Result<String> {
    let mut text = text.to_owned();
    let from = definition_path(schema).to_vec();
    let to = work.search_path().to_vec();
    Move { catalog: &work.catalog, from, to }.settle(&mut text, about, clause)?;
    Ok(text)
}

impl<'w> Move<'w> {
    /// From the session's path to that of a schema's definitions; `None` where they are one.
    fn from_session(schema: &str, work: &'w Work<'_>) -> Option<Move<'w>> {
        let from = work.search_path().to_vec();
        let made = Move { catalog: &work.catalog, from, to: definition_path(schema).to_vec() };
        let distinct = |path: &[String]| {
            let mut names: Vec<String> = Vec::new();
            for name in made.catalog.named_path(path) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            names
        };
        (distinct(&made.from) != distinct(&made.to)).then_some(made)
    }

    /// From one schema to another.
    fn between(from: &str, to: &str, catalog: &'w Catalog) -> Move<'w> {
        Move { catalog, from: definition_path(from).to_vec(), to: definition_path(to).to_vec() }
    }

    /// Rewrites a text where it would mean something else.
    fn settle(&self, text: &mut String, about: &About, clause: Clause) -> Result<bool> {
        let here = bind_text(self.catalog, &self.from, text, about, clause);
        let there = bind_text(self.catalog, &self.to, text, about, clause);
        let here = match (here, &there) {
            (Ok(here), _) => here,
            (Err(error), Ok(_)) => return Err(error),
            // Whoever binds it in its place tells what is wrong with it.
            (Err(_), Err(_)) => return Ok(false),
        };
        if there.is_ok_and(|there| mean_the_same(&here, &there)) {
            return Ok(false);
        }
        let qualified = self.qualified(text, &here)?;
        let settled = bind_text(self.catalog, &self.to, &qualified, about, clause);
        if !settled.is_ok_and(|settled| mean_the_same(&here, &settled)) {
            let what = "a name in a definition that means something else in the schema it belongs to";
            return Err(SqlError::unsupported(what)
                .with_hint("Write the names of functions and types with their schemas."));
        }
        *text = qualified;
        Ok(true)
    }

    /// The text with the schemas of its routines, types and sequences.
    fn qualified(&self, text: &str, bound: &BoundExpr) -> Result<String> {
        let mut routines: Vec<(String, String)> = Vec::new();
        visit::visit_expr(bound, 0, &mut |part, _| {
            if let ExprKind::Routine { routine, .. } = &part.kind {
                routines.push((routine.name.clone(), routine.schema.clone()));
            }
            true
        });
        let parts = lexemes(text)?;
        let symbol = |at: usize| parts.get(at).map(|part| &text[part.range.clone()]);
        let (mut result, mut copied) = (String::with_capacity(text.len() + 16), 0);
        for (at, Lexeme { kind, range }) in parts.iter().enumerate() {
            let before = at.checked_sub(1).and_then(symbol);
            let written = match kind {
                LexemeKind::Word { value, .. } if before != Some(".") && symbol(at + 1) != Some(".") => {
                    let called = symbol(at + 1) == Some("(");
                    let of_routine = || routines.iter().find(|(name, _)| called && name == value);
                    let cast = before == Some("::")
                        || before.is_some_and(|word| word.eq_ignore_ascii_case("as"))
                        || matches!(parts.get(at + 1).map(|part| &part.kind), Some(LexemeKind::String(_)));
                    match (of_routine(), cast) {
                        (Some((name, schema)), _) => Some(quote_qualified(schema, name)),
                        (None, true) => self.type_of(value),
                        _ => None,
                    }
                }
                LexemeKind::String(value) => {
                    let called = before == Some("(")
                        && at.checked_sub(2).and_then(symbol).is_some_and(|name| {
                            ["nextval", "currval", "setval"].iter().any(|of| name.eq_ignore_ascii_case(of))
                        });
                    let cast = symbol(at + 2).filter(|_| symbol(at + 1) == Some("::"));
                    match cast.map(str::to_ascii_lowercase).as_deref() {
                        Some("regtype") => self.type_of(value).map(|name| quoted(&name)),
                        Some("regproc") => self.routine_of(value).map(|name| quoted(&name)),
                        Some("regprocedure") => value.split_once('(').and_then(|(name, arguments)| {
                            let name = self.routine_of(name.trim())?;
                            Some(quoted(&format!("{name}({arguments}")))
                        }),
                        Some("regclass") => self.relation_of(value),
                        _ if called => self.relation_of(value),
                        _ => None,
                    }
                }
                _ => None,
            };
            if let Some(written) = written {
                result.push_str(&text[copied..range.start]);
                result.push_str(&written);
                copied = range.end;
            }
        }
        result.push_str(&text[copied..]);
        Ok(result)
    }

    /// A type's name with its schema.
    fn type_of(&self, name: &str) -> Option<String> {
        let ty = self.catalog.user_type(None, name, &self.from)?;
        Some(quote_qualified(&ty.schema, &ty.name))
    }

    /// A routine's name with its schema.
    fn routine_of(&self, name: &str) -> Option<String> {
        let found = self.catalog.routines(None, name, &self.from);
        found.first().map(|routine| quote_qualified(&routine.schema, &routine.name))
    }

    /// A relation's name with its schema, as a literal.
    fn relation_of(&self, name: &str) -> Option<String> {
        let (schema, name) = match self.catalog.relation(None, name, &self.from)? {
            Relation::Table(table) | Relation::PrimaryKey(table) => {
                (table.schema.clone(), table.name.clone())
            }
            Relation::Sequence(sequence) => (sequence.schema.clone(), sequence.name.clone()),
            Relation::Index(..) | Relation::Nominal(..) => return None,
        };
        Some(quoted(&quote_qualified(&schema, &name)))
    }
}

/// A text as a literal.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
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
    let to = Move::from_session(&table.schema, work);
    // What it was before, what other names have made of that, and what it has from others, is settled.
    let parents = table.inherits.iter().filter_map(|parent| work.catalog.table_by_oid(*parent));
    let known: Vec<(String, Option<Type>)> = work
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
        if !known.iter().any(|(known, of)| known == text && *of == target) {
            if let Some(to) = &to {
                changed |= to.settle(text, &about, clause)?;
            }
            changed |= literal::settle(text, &table.schema, (&about, clause), target, work)?;
        }
    }
    Ok(changed.then_some(after))
}

/// What texts that are literals alone are taken as, in the order of [`texts_of`].
fn targets(table: &Table) -> impl Iterator<Item = Option<Type>> {
    // Columns come first, each with its default before what it is generated from.
    let of_columns = table
        .columns
        .iter()
        .flat_map(|column| column.default.iter().chain(&column.generated).map(|_| Some(column.ty)));
    of_columns.chain(std::iter::repeat(None))
}

fn settled_routine(routine: &Routine, work: &Work<'_>) -> Result<Option<Routine>> {
    let to = Move::from_session(&routine.schema, work);
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
            if let Some(to) = &to {
                changed |= to.settle(text, &about, clause)?;
            }
            changed |= literal::settle(text, &routine.schema, (&about, clause), target, work)?;
        }
    }
    Ok(changed.then_some(after))
}

/// Lets the texts of a table that has gone to another schema mean what they meant.
pub(crate) fn follow_table(table: &mut Table, from: &str, work: &Work<'_>) -> Result<()> {
    let to = Move::between(from, &table.schema, &work.catalog);
    let about = TableRef::new(table.clone());
    texts_of(table, &about)
        .into_iter()
        .try_for_each(|(text, about, clause)| to.settle(text, &about, clause).map(drop))
}

/// Lets a text of one schema mean the same in another.
pub(crate) fn carry(
    text: &mut String,
    from: &str,
    to: &str,
    about: &About,
    clause: Clause,
    work: &Work<'_>,
) -> Result<()> {
    Move::between(from, to, &work.catalog).settle(text, about, clause).map(drop)
}

/// As [`follow_table`], of a domain.
pub(crate) fn follow_domain(domain: &mut Domain, from: &str, to: &str, work: &Work<'_>) -> Result<()> {
    let to = Move::between(from, to, &work.catalog);
    texts_of_domain(domain)
        .into_iter()
        .try_for_each(|(text, about, clause)| to.settle(text, &about, clause).map(drop))
}

/// As [`follow_table`], of a routine.
pub(crate) fn follow_routine(routine: &mut Routine, from: &str, work: &Work<'_>) -> Result<()> {
    let to = Move::between(from, &routine.schema, &work.catalog);
    texts_of_routine(routine)
        .into_iter()
        .try_for_each(|(text, about, clause)| to.settle(text, &about, clause).map(drop))
}

/// After a schema got another name: puts that into every text which says the old one.
pub(crate) fn follow_schema(from: &str, to: &str, work: &mut Work<'_>) -> Result<()> {
    let anew = |texts: Vec<(&mut String, About, Clause)>, schema: &str, catalog: &Catalog| -> Result<bool> {
        let path = definition_path(schema);
        let mut changed = false;
        for (text, about, clause) in texts {
            // What still means something does not speak of the schema.
            if bind_text(catalog, &path, text, &about, clause).is_ok() {
                continue;
            }
            let renamed = with_schema(text, from, to)?;
            if bind_text(catalog, &path, &renamed, &about, clause).is_ok() {
                *text = renamed;
                changed = true;
            }
        }
        Ok(changed)
    };
    for table in work.catalog.tables().cloned().collect::<Vec<_>>() {
        let mut after = (*table).clone();
        let mut changed = anew(texts_of(&mut after, &table), &table.schema, &work.catalog)?;
        if let Some(view) = &mut after.view {
            for name in view.search_path.iter_mut().filter(|name| *name == from) {
                *name = to.to_owned();
                changed = true;
            }
            if view_query::bound(view, &work.catalog, work).is_err() {
                view.query = with_schema(&view.query, from, to)?;
                changed = true;
            }
        }
        if changed {
            work.settled.push(Object::Table(after.clone().into()));
            work.put_table(after);
        }
    }
    for ty in work.catalog.user_types().cloned().collect::<Vec<_>>() {
        let mut after = (*ty).clone();
        let texts = after.domain.iter_mut().flat_map(texts_of_domain).collect();
        if anew(texts, &ty.schema, &work.catalog)? {
            work.put(Object::Type(after.into()));
        }
    }
    for routine in work.catalog.routines_all().cloned().collect::<Vec<_>>() {
        let mut after = (*routine).clone();
        if anew(texts_of_routine(&mut after), &routine.schema, &work.catalog)? {
            after.version += 1;
            work.settled.push(Object::Routine(after.clone().into()));
            work.put(Object::Routine(after.into()));
        }
    }
    Ok(())
}

/// After a table got another name: puts that before the columns that a text says with the old one.
pub(crate) fn follow_name(before: &TableRef, table: &mut Table, catalog: &Catalog) -> Result<()> {
    let (mut old, about) = ((**before).clone(), TableRef::new(table.clone()));
    let (path, name) = (definition_path(&table.schema), table.name.clone());
    for ((was, seen, _), (text, about, clause)) in
        texts_of(&mut old, before).into_iter().zip(texts_of(table, &about))
    {
        let Ok(meant) = bind_text(catalog, &path, was, &seen, clause) else { continue };
        let means = |text: &str| {
            bind_text(catalog, &path, text, &about, clause).is_ok_and(|now| mean_the_same(&meant, &now))
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
    let path = definition_path(&after.schema);
    for ((text, about, clause), (renamed, now, _)) in
        texts_of(&mut old, before).into_iter().zip(texts_of(&mut new, &about))
    {
        let Ok(meant) = bind_text(catalog, &path, text, &about, clause) else { continue };
        if !bind_text(catalog, &path, renamed, &now, clause).is_ok_and(|means| mean_the_same(&meant, &means))
        {
            return Err(SqlError::unsupported(format_args!("renaming a column in the expression {text}")));
        }
    }
    Ok(())
}

/// A text the catalog keeps.
pub(crate) struct Kept {
    /// What would have to go if it did not mean anything any more.
    pub owner: Dependent,
    schema: String,
    about: About,
    clause: Clause,
    pub text: String,
}

impl Kept {
    /// The text as statements bind it.
    pub fn bind(&self, catalog: &Catalog) -> Result<BoundExpr> {
        bind_text(catalog, &definition_path(&self.schema), &self.text, &self.about, self.clause)
    }
}

/// All texts that the catalog keeps, but for the queries of views: of tables, domains, routines.
pub(crate) fn all(catalog: &Catalog) -> Vec<Kept> {
    let mut found = Vec::new();
    let mut tables: Vec<_> =
        catalog.tables().filter(|table| table.kind != TableKind::System).cloned().collect();
    tables.sort_by_key(|table| table.oid);
    for table in &tables {
        of_table(table, &mut found);
    }
    let mut types: Vec<_> = catalog.user_types().cloned().collect();
    types.sort_by_key(|ty| ty.oid);
    for ty in &types {
        let Some(domain) = &ty.domain else { continue };
        let mut add = |owner, about, clause, text: &String| {
            found.push(Kept { owner, schema: ty.schema.clone(), about, clause, text: text.clone() });
        };
        if let Some(text) = &domain.default {
            add(Dependent::Domain(ty.clone()), About::Nothing, Clause::Default, text);
        }
        for (place, check) in domain.checks.iter().enumerate() {
            let owner = Dependent::DomainCheck(ty.clone(), place);
            add(owner, About::Value(domain.base), Clause::DomainCheck, &check.condition);
        }
    }
    let mut routines: Vec<_> = catalog.routines_all().cloned().collect();
    routines.sort_by_key(|routine| routine.oid);
    for routine in &routines {
        for text in routine.args.iter().filter_map(|arg| arg.default.as_ref()) {
            found.push(Kept {
                owner: Dependent::Routine(routine.clone()),
                schema: routine.schema.clone(),
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
        let (schema, about, text) = (table.schema.clone(), about.clone(), text.clone());
        found.push(Kept { owner, schema, about, clause, text });
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
