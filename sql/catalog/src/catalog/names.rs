//! Names in statements: the search path (chapter 5.9.3), and PostgreSQL's errors when a name
//! leads nowhere.

use rustc_hash::FxHashSet;

use crate::ast::QualifiedName;
use crate::error::{Result, SqlError, SqlState};
use crate::parser::truncate_identifier;
pub use crate::parser::{quote_identifier, quote_qualified, too_many_dots};
use crate::types::{Oid, Type};

use super::stored_name::{routine_id, sequence_id, type_id};
use super::{Catalog, Relation, RoutineRef, SequenceRef, TableRef};

impl Catalog {
    /// The schemas of a search path that exist, in the order names are looked up: `pg_catalog`
    /// first unless the path names it.
    pub fn effective_path<'p>(&self, search_path: &'p [String]) -> Vec<&'p str> {
        let mut path = Vec::with_capacity(search_path.len() + 1);
        if !search_path.iter().any(|schema| schema == "pg_catalog") {
            path.push("pg_catalog");
        }
        path.extend(self.named_path(search_path));
        path
    }

    /// The schemas the path names that exist: what `current_schemas(false)` shows.
    pub fn named_path<'p>(&self, search_path: &'p [String]) -> Vec<&'p str> {
        search_path.iter().map(String::as_str).filter(|schema| self.is_named(schema)).collect()
    }

    /// Whether an entry of a search path is a schema that exists, and not a session's own.
    fn is_named(&self, schema: &str) -> bool {
        // The system's schema `archipel` bears the superuser's name and holds only views: `$user` never
        // stands for it.
        schema != "$user" && !is_temporary_schema(schema) && self.schema_exists(schema)
    }

    /// What current_schemas shows: the schemas that exist, with the session's own where the path says
    /// `pg_temp`. With `implicit`, those that are searched without being named, too.
    pub fn current_schemas<'p>(&self, search_path: &'p [String], implicit: bool) -> Vec<&'p str> {
        if implicit {
            return self
                .relation_path(search_path)
                .filter(|schema| !is_temporary_schema(schema) || self.schema_exists(schema))
                .collect();
        }
        let is_shown = |place: usize| {
            let schema = &search_path[place];
            let says_temporary = place > 0 && search_path[place - 1] == "pg_temp";
            match is_temporary_schema(schema) {
                true => says_temporary && self.schema_exists(schema),
                false => self.is_named(schema),
            }
        };
        (0..search_path.len())
            .filter(|&place| is_shown(place))
            .map(|place| search_path[place].as_str())
            .collect()
    }

    /// Where relations are looked up: a session's temporary ones where its path has their schema, which
    /// is at its beginning unless it says `pg_temp` elsewhere.
    ///
    /// Whoever has found what it looks for asks for no further ones: a path may be long.
    pub(super) fn relation_path<'c, 'p: 'c>(
        &'c self,
        search_path: &'p [String],
    ) -> impl Iterator<Item = &'p str> + 'c {
        let temporary = search_path.iter().position(|schema| is_temporary_schema(schema));
        let first = search_path.first().filter(|_| temporary == Some(0)).map(String::as_str);
        let is_implicit = !search_path.iter().any(|schema| schema == "pg_catalog");
        let rest = search_path.iter().enumerate().filter(move |(place, schema)| match temporary {
            Some(temporary) if temporary == *place => temporary > 0,
            _ => self.is_named(schema),
        });
        let rest = rest.map(|(_, schema)| schema.as_str());
        first.into_iter().chain(is_implicit.then_some("pg_catalog")).chain(rest)
    }

    /// The schemas in which what a name means is looked for that is in schemas as relations are: the one
    /// that it says, or 3F000, or else those of the search path with the session's own
    /// (`LookupExplicitNamespace`, `fetch_search_path`); 0A000 for a name in another database.
    pub fn schemas_searched<'p>(
        &self,
        name: &'p QualifiedName,
        search_path: &'p [String],
    ) -> Result<Vec<&'p str>> {
        self.check_database(name).map_err(SqlError::placeless)?;
        let Some(schema) = name.schema.as_deref() else {
            return Ok(self.relation_path(search_path).collect());
        };
        let own = if schema == "pg_temp" { temporary_schema(search_path) } else { Some(schema) };
        match own.filter(|schema| self.schema_exists(schema)) {
            Some(schema) => Ok(vec![schema]),
            None => Err(undefined_schema(schema)),
        }
    }

    /// Whether names are looked up in the same schemas by both paths.
    pub fn is_same_path(&self, a: &[String], b: &[String]) -> bool {
        a == b || self.relation_path(a).eq(self.relation_path(b))
    }

    /// Looks a relation up, along the path unless a schema is given.
    pub fn relation(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<Relation> {
        match schema {
            Some("pg_temp") => self.relation_in(temporary_schema(search_path)?, name),
            Some(schema) => self.relation_in(schema, name),
            None => match sequence_id(name) {
                Some(oid) => self.sequence_by_oid(oid).map(Relation::Sequence),
                None => self.relation_path(search_path).find_map(|schema| self.relation_in(schema, name)),
            },
        }
    }

    /// Looks a table or system view up.
    pub fn table(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<TableRef> {
        match self.relation(schema, name, search_path)? {
            Relation::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn sequence(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<SequenceRef> {
        match self.relation(schema, name, search_path)? {
            Relation::Sequence(sequence) => Some(sequence),
            _ => None,
        }
    }

    /// Every overload of a routine name that the path sees. Of two with the same input types the
    /// earlier schema's hides the other.
    pub fn routines(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Vec<RoutineRef> {
        let Some(schema) = schema else {
            if let Some(oid) = routine_id(name) {
                return self.routine_by_oid(oid).into_iter().collect();
            }
            let mut found: Vec<RoutineRef> = Vec::new();
            for schema in self.effective_path(search_path) {
                let mut own = self.routines_in(schema, name);
                // Those of one schema differ.
                if !(found.is_empty() || own.is_empty()) {
                    let earlier: FxHashSet<Vec<Oid>> =
                        found.iter().map(|routine| routine.input_types()).collect();
                    own.retain(|routine| !earlier.contains(&routine.input_types()));
                }
                found.extend(own);
            }
            return found;
        };
        // Those of the session's own are found by that name alone.
        let schema = if schema == "pg_temp" { temporary_schema(search_path) } else { Some(schema) };
        schema.map_or_else(Vec::new, |schema| self.routines_in(schema, name))
    }

    /// The schema new objects go to, or 3F000.
    pub fn creation_schema(&self, search_path: &[String]) -> Result<String> {
        self.named_path(search_path).first().map(|schema| (*schema).to_string()).ok_or_else(|| {
            SqlError::new(SqlState::INVALID_SCHEMA_NAME, "no schema has been selected to create in")
        })
    }

    /// Whether what a statement makes under this name is the session's own: it says `pg_temp`, or no schema,
    /// and the path begins with that.
    pub fn is_temporary_target(&self, name: &QualifiedName, search_path: &[String]) -> bool {
        match name.schema.as_deref() {
            Some(schema) => schema == "pg_temp",
            None => {
                let mut path = search_path.iter();
                path.find(|schema| *schema == "pg_temp" || self.is_named(schema))
                    .is_some_and(|schema| schema == "pg_temp")
            }
        }
    }

    /// The schema a qualified name asks for, or the creation schema; 3F000 if it does not exist.
    pub fn target_schema(&self, name: &QualifiedName, search_path: &[String]) -> Result<String> {
        self.check_database(name)?;
        match &name.schema {
            Some(schema) if self.schema_exists(schema) => Ok(schema.clone()),
            Some(schema) => Err(undefined_schema(schema).at(name.at())),
            None => self.creation_schema(search_path),
        }
    }

    /// A relation by the name of a statement, or 42P01, or 3F000: of no place, as PostgreSQL looks for what a
    /// statement is about only when it runs.
    pub fn require_relation(&self, name: &QualifiedName, search_path: &[String]) -> Result<Relation> {
        self.relation_at(name, search_path).map_err(SqlError::placeless)
    }

    /// As [`Catalog::require_relation`], for what is looked for in parsing: the error tells its place.
    pub fn relation_at(&self, name: &QualifiedName, search_path: &[String]) -> Result<Relation> {
        self.check_database(name)?;
        self.relation(name.schema.as_deref(), &name.name, search_path).ok_or_else(|| {
            let schema = name.schema.as_deref().filter(|schema| *schema != "pg_temp");
            match schema.filter(|schema| !self.schema_exists(schema)) {
                Some(schema) => undefined_schema(schema).at(name.at()),
                None => undefined_relation(name),
            }
        })
    }

    /// A table by the name of a statement, or 42P01; 42809 if it is another relation.
    pub fn require_table(&self, name: &QualifiedName, search_path: &[String]) -> Result<TableRef> {
        match self.require_relation(name, search_path)? {
            Relation::Table(table) => Ok(table),
            other => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table", other.name()),
            )
            .placeless()),
        }
    }

    /// A sequence by the name of a statement, or 42P01; 42809 if it is another relation.
    pub fn require_sequence(&self, name: &QualifiedName, search_path: &[String]) -> Result<SequenceRef> {
        match self.require_relation(name, search_path)? {
            Relation::Sequence(sequence) => Ok(sequence),
            other => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a sequence", other.name()),
            )
            .placeless()),
        }
    }

    /// 0A000 for a name with a database that is not this one.
    fn check_database(&self, name: &QualifiedName) -> Result<()> {
        match name.catalog.as_deref() {
            None => Ok(()),
            Some(database) if database == self.database_name() => Ok(()),
            Some(_) => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cross-database references are not implemented: \"{name}\""),
            )
            .at(name.at())),
        }
    }

    /// A relation by `regclass` text: `name`, `schema.name`, quoted or not, or an oid.
    pub fn relation_by_text(&self, text: &str, search_path: &[String]) -> Result<Relation> {
        let text = text.trim();
        if let Ok(oid) = text.parse::<u32>() {
            return self.relation_by_oid(Oid(oid)).ok_or_else(|| {
                SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation with OID {oid} does not exist"))
            });
        }
        let name = parse_name_text(text)?;
        match name.schema.as_deref().filter(|schema| *schema != "pg_temp") {
            Some(schema) if name.catalog.is_none() && !self.schema_exists(schema) => {
                Err(undefined_schema(schema))
            }
            _ => self.relation_at(&name, search_path),
        }
    }

    /// The number behind a `regclass` text: a relation's, or that of what stands for a composite type.
    pub fn regclass(&self, text: &str, search_path: &[String]) -> Result<Oid> {
        self.relation_by_text(text, search_path).map(|relation| relation.oid()).or_else(|error| {
            let name = parse_name_text(text.trim()).ok();
            let named = name.and_then(|name| self.user_type(name.schema.as_deref(), &name.name, search_path));
            let relation = named.and_then(|ty| ty.oid.relation_of_row_type());
            relation.ok_or(error)
        })
    }

    /// Whether a plain name finds this relation: pg_table_is_visible.
    pub fn is_visible(&self, relation: &Relation, search_path: &[String]) -> bool {
        self.relation(None, relation.name(), search_path).is_some_and(|found| found.oid() == relation.oid())
    }

    /// A type's oid and typmod from its written name: built-in types, users' and tables' row types.
    /// A domain is the type it is over.
    pub fn resolve_type(&self, ty: &crate::ast::TypeName, search_path: &[String]) -> Result<Type> {
        self.resolve_declared(ty, search_path).map(|(ty, _)| ty)
    }

    /// As [`Catalog::resolve_type`], with the domain (or the array of one) that was named.
    pub fn resolve_declared(
        &self,
        ty: &crate::ast::TypeName,
        search_path: &[String],
    ) -> Result<(Type, Option<Oid>)> {
        if ty.percent_type {
            // `table.column%TYPE`: the column is `name`, its table is `schema`.
            let Some(table) = &ty.name.schema else {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("improper %TYPE reference (too few dotted names): {}", ty.name),
                )
                .at(ty.name.at()));
            };
            let name = QualifiedName {
                catalog: None,
                schema: ty.name.catalog.clone(),
                name: table.clone(),
                position: ty.name.position,
            };
            let table = self.require_table(&name, search_path)?;
            let column = table.column_index(&ty.name.name).ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{}\" of relation \"{}\" does not exist", ty.name.name, table.name),
                )
                .at(ty.name.at())
            })?;
            let column = &table.columns[column as usize];
            return Ok((column.ty, column.domain));
        }
        if let Some(builtin) = ty.builtin()? {
            return Ok((builtin, None));
        }
        if let Some(known) = self.user_type(ty.name.schema.as_deref(), &ty.name.name, search_path) {
            let own = if ty.dimensions > 0 { known.array_type() } else { known.oid };
            let Some(domain) = &known.domain else { return Ok((Type::of(own), None)) };
            if ty.dimensions == 0 {
                return Ok((domain.base, Some(own)));
            }
            let array = crate::type_table::array_of(domain.base.oid)
                .ok_or_else(|| SqlError::unsupported(format_args!("an array of domain {}", known.name)))?;
            return Ok((Type { oid: array, typmod: domain.base.typmod }, Some(own)));
        }
        let table = match type_id(&ty.name.name) {
            Some(oid) => self.table_of_row_type(oid),
            None => self.table(ty.name.schema.as_deref(), &ty.name.name, search_path),
        };
        match (table, ty.dimensions) {
            (Some(table), 0) => Ok((Type::of(table.row_type()), None)),
            (Some(table), _) => Ok((Type::of(table.row_array_type()), None)),
            (None, _) => Err(match &ty.name.schema {
                Some(schema) if schema != "pg_temp" && !self.schema_exists(schema) => {
                    undefined_schema(schema).at(ty.name.at())
                }
                _ => crate::ast::undefined_type(&ty.to_string(), ty.name.at()),
            }),
        }
    }
}

/// Whether a schema holds a session's temporary relations.
pub fn is_temporary_schema(schema: &str) -> bool {
    schema.starts_with("pg_temp_")
}

/// Whether a schema holds the temporary relations of whoever goes along this path: nobody's leads along
/// another's.
pub fn is_own_temporary_schema(schema: &str, search_path: &[String]) -> bool {
    is_temporary_schema(schema) && search_path.iter().any(|own| own == schema)
}

/// A search path with the schema of the session's temporary relations behind `pg_temp`, where it says that,
/// or else at its beginning. The word stays: a path that begins with it makes what is temporary.
///
/// Invariant: no other session's is in it, whoever has written it: what is in a path is the session's own.
pub fn path_with_temporary(path: Vec<String>, schema: Option<&String>) -> Vec<String> {
    let is_own = |name: &String| name == "pg_temp" || Some(name) == schema;
    let mut whole = Vec::with_capacity(path.len() + 1);
    if !path.iter().any(is_own) {
        whole.extend(schema.cloned());
    }
    for name in path.into_iter().filter(|name| is_own(name) || !is_temporary_schema(name)) {
        let own = if name == "pg_temp" { schema.cloned() } else { None };
        whole.push(name);
        whole.extend(own);
    }
    whole
}

/// The schema of the session's temporary relations, if it has made any.
pub fn temporary_schema(search_path: &[String]) -> Option<&str> {
    search_path.iter().map(String::as_str).find(|schema| is_temporary_schema(schema))
}

/// Parses `a`, `a.b` or `a.b.c` with quotes, as regclass input takes it.
pub fn parse_name_text(text: &str) -> Result<QualifiedName> {
    let invalid = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let part;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut value = String::new();
            let mut characters = quoted.char_indices().peekable();
            let end = loop {
                match characters.next() {
                    Some((_, '"')) if characters.peek().is_some_and(|&(_, next)| next == '"') => {
                        characters.next();
                        value.push('"');
                    }
                    Some((at, '"')) => break at + 1,
                    Some((_, character)) => value.push(character),
                    None => return Err(invalid()),
                }
            };
            part = value;
            rest = quoted[end..].trim_start();
        } else {
            let end = rest.find(|c: char| c == '.' || c.is_ascii_whitespace()).unwrap_or(rest.len());
            part = rest[..end].to_lowercase();
            rest = rest[end..].trim_start();
        }
        if part.is_empty() {
            return Err(invalid());
        }
        let mut part = part;
        truncate_identifier(&mut part);
        parts.push(part);
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() => break,
            None => return Err(invalid()),
        }
    }
    let mut parts = parts.into_iter().rev();
    let name = parts.next().ok_or_else(invalid)?;
    let (schema, catalog) = (parts.next(), parts.next());
    if parts.next().is_some() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("improper relation name (too many dotted names): {text}"),
        ));
    }
    Ok(QualifiedName { catalog, schema, name, position: 0 })
}

/// 42P01.
pub fn undefined_relation(name: &QualifiedName) -> SqlError {
    let shown = match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    };
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{shown}\" does not exist")).at(name.at())
}

/// 3F000.
pub fn undefined_schema(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
}

/// 42703 for a column of a table that DDL names.
pub fn undefined_column(column: &str, table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{column}\" of relation \"{table}\" does not exist"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CatalogChange, Object, Schema};

    #[test]
    fn relations_are_looked_up_where_the_path_says() {
        let schema = |oid: u32, name: &str| {
            CatalogChange::Put(Object::Schema(Schema { oid: Oid(oid), name: name.to_owned() }))
        };
        let catalog = Catalog::initial(Vec::new()).apply(&[schema(20_000, "a"), schema(20_001, "b")]);
        let path = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            catalog.relation_path(&names).map(str::to_owned).collect::<Vec<String>>()
        };
        assert_eq!(path(&[]), ["pg_catalog"]);
        assert_eq!(path(&["$user", "b", "missing", "a"]), ["pg_catalog", "b", "a"]);
        assert_eq!(path(&["b", "pg_catalog", "a"]), ["b", "pg_catalog", "a"]);
        assert_eq!(path(&["pg_temp_7", "a"]), ["pg_temp_7", "pg_catalog", "a"]);
        assert_eq!(path(&["a", "pg_temp_7", "b"]), ["pg_catalog", "a", "pg_temp_7", "b"]);
        assert_eq!(path(&["pg_temp_7", "pg_catalog"]), ["pg_temp_7", "pg_catalog"]);
    }

    #[test]
    fn no_path_leads_along_another_sessions_schema() {
        let own = "pg_temp_7".to_owned();
        let path = |names: &[&str], schema: Option<&String>| {
            path_with_temporary(names.iter().map(|name| (*name).to_owned()).collect(), schema)
        };
        assert_eq!(path(&["pg_temp_8", "public"], None), ["public"]);
        assert_eq!(path(&["pg_temp_8", "public"], Some(&own)), ["pg_temp_7", "public"]);
        assert_eq!(path(&["public", "pg_temp_8", "pg_temp"], None), ["public", "pg_temp"]);
        // Its own is where it says.
        assert_eq!(path(&["public"], Some(&own)), ["pg_temp_7", "public"]);
        assert_eq!(path(&["public", "pg_temp_7"], Some(&own)), ["public", "pg_temp_7"]);
        assert_eq!(path(&["public", "pg_temp"], Some(&own)), ["public", "pg_temp", "pg_temp_7"]);
    }
}
