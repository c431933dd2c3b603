//! What routines are compiled against, and what messages call them.

use std::borrow::Cow;
use std::sync::Arc;

use archipel_planner::bind::BindEnv;
use archipel_planner::bind::policy_reader::PolicyReader;
use archipel_planner::native::TableSource;
use archipel_sql::catalog::names::{is_temporary_schema, path_with_temporary, quote_identifier};
use archipel_sql::catalog::{ArgMode, Authority, Catalog, Routine, RoutineRef, TypesAlong, ViewReference};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::parser::{Keeps, StringSyntax, standard_strings};
use archipel_sql::system::bare_type_along;
use archipel_sql::types::Oid;

use super::record;
use crate::plpgsql::ast::Conflict;

/// A role and its setting of `row_security`.
pub(crate) type Reader = (Oid, bool);

/// What routines are compiled against: one version of the catalog, and the engine's tables.
#[derive(Clone)]
pub struct Environment {
    pub catalog: Catalog,
    pub tables: Arc<dyn TableSource + Send + Sync>,
    /// Where names are looked up.
    pub search_path: Arc<[String]>,
    /// As the settings have it, `$user` and what the role may not look into included.
    pub written_path: Arc<[String]>,
    /// In whose name they are looked up, and whose policies count.
    pub role: Oid,
    /// Its setting of `row_security`.
    pub row_security: bool,
    /// Structures of rows that runs have found.
    pub shapes: Arc<record::shape::Shapes>,
    /// Whether routines are compiled for runs that stop for their session wherever they can.
    pub in_pieces: bool,
    /// Who wins when a name is both a variable and a column, unless the routine says it.
    pub conflict: Conflict,
    /// How the session reads string constants in bodies and in texts of EXECUTE.
    pub strings: StringSyntax,
    /// What a body that is kept as it was understood names.
    pub references: Arc<[ViewReference]>,
    /// Whether the text is one that was understood when it was defined ([`BindEnv::is_settled`]).
    pub is_settled: bool,
    /// Where routines that are called look names up, if elsewhere than the statement that calls them.
    pub path_of_calls: Option<Arc<[String]>>,
}

impl Environment {
    /// What routines are compiled against where settings have this search path and names are
    /// looked up for this role.
    pub fn new(
        catalog: Catalog,
        tables: Arc<dyn TableSource + Send + Sync>,
        written_path: Arc<[String]>,
        role: Oid,
    ) -> Environment {
        let search_path = Authority { catalog: &catalog, role }.path(&written_path);
        Environment {
            catalog,
            tables,
            search_path,
            written_path,
            role,
            row_security: true,
            shapes: Default::default(),
            in_pieces: false,
            conflict: Conflict::Error,
            strings: StringSyntax::default(),
            references: Arc::from([]),
            is_settled: false,
            path_of_calls: None,
        }
    }

    /// The same for a statement whose own names are looked up in another path than those of the
    /// routines it calls.
    #[must_use]
    pub fn around_calls(mut self, search_path: Arc<[String]>) -> Environment {
        if self.search_path != search_path {
            self.path_of_calls = Some(std::mem::replace(&mut self.search_path, search_path));
        }
        self
    }

    /// The same for the catalog that the statement under way sees. What is looked up only when a routine
    /// runs is looked up there: the routine is good for more catalogs than it was compiled of.
    pub(crate) fn of_session(&self, session: &dyn SessionHost) -> Cow<'_, Environment> {
        let catalog = Catalog::of_session(session).filter(|catalog| !catalog.same_as(&self.catalog));
        let reader = self.reader_of(session);
        if catalog.is_none() && reader == self.reader() {
            return Cow::Borrowed(self);
        }
        let catalog = catalog.unwrap_or(&self.catalog).clone();
        Cow::Owned(Environment { catalog, ..self.read_by(reader) })
    }

    /// For whom policies are looked at: the role, and its setting of `row_security`.
    pub(crate) fn reader(&self) -> Reader {
        (self.role, self.row_security)
    }

    /// For whom a session's statements look at them.
    pub(crate) fn reader_of(&self, session: &dyn SessionHost) -> Reader {
        session.policy_reader().unwrap_or(self.reader())
    }

    /// The same for another reader.
    #[must_use]
    pub(crate) fn read_by(&self, (role, row_security): Reader) -> Environment {
        Environment { role, row_security, ..self.clone() }
    }

    /// Who names types in messages.
    pub(crate) fn type_names(&self) -> TypesAlong<'_> {
        TypesAlong { catalog: &self.catalog, search_path: &self.search_path }
    }

    /// A routine as it was declared: an instance of a polymorphic one is named by that.
    pub(super) fn declared(&self, routine: &RoutineRef) -> RoutineRef {
        self.catalog.routine_by_oid(routine.oid).unwrap_or_else(|| routine.clone())
    }

    /// The routine with its body as this session reads it. One that was understood when it was made is kept
    /// in a form that all read alike.
    pub(crate) fn read(&self, routine: &RoutineRef) -> Result<RoutineRef> {
        if self.strings.is_usual() || routine.traits.stored.is_some() {
            return Ok(routine.clone());
        }
        let source = standard_strings(&routine.source, self.strings, Keeps::Lines).text?;
        if *source == *routine.source {
            return Ok(routine.clone());
        }
        let source = source.into_owned();
        Ok(Arc::new(Routine { source, ..Routine::clone(routine) }))
    }

    /// What this routine is compiled against: its SET clauses may name a search path, and a
    /// SECURITY DEFINER routine looks where its owner may look.
    pub(crate) fn of(&self, routine: &RoutineRef) -> Environment {
        let traits = &routine.traits;
        let set = traits.settings.iter().find(|(name, _)| name == "search_path");
        let mut environment = self.clone();
        if let Some(path) = environment.path_of_calls.take() {
            environment.search_path = path;
        }
        if let Some(stored) = &traits.stored {
            environment.references = stored.references.clone().into();
        } else if !self.references.is_empty() {
            environment.references = Arc::from([]);
        }
        let conflict = traits.settings.iter().find(|(name, _)| name == "plpgsql.variable_conflict");
        if let Some((_, value)) = conflict {
            environment.conflict = Conflict::of_setting(value);
        }
        let strings = traits.settings.iter().find(|(name, _)| name == "standard_conforming_strings");
        if let Some(on) = strings.and_then(|(_, value)| archipel_sql::io::parse_bool(value)) {
            environment.strings.standard = on;
        }
        if traits.security_definer {
            environment.role = self.catalog.owner(routine.oid);
        }
        let role = traits.settings.iter().find(|(name, _)| name == "role");
        let role = role.and_then(|(_, name)| self.catalog.role(name));
        if let Some(role) = &role {
            environment.role = role.oid;
        }
        let said = traits.settings.iter().find(|(name, _)| name == "row_security");
        if let Some(on) = said.and_then(|(_, value)| archipel_sql::io::parse_bool(value)) {
            environment.row_security = on;
        }
        if let Some((_, value)) = set {
            let names = value.split(',').map(|name| name.trim().trim_matches('"').to_string());
            // The session's own temporary relations are found along any path, and nobody goes along another's.
            let own = self.written_path.iter().find(|name| is_temporary_schema(name));
            environment.written_path = path_with_temporary(names.collect(), own).into();
        }
        if set.is_some() || traits.security_definer || role.is_some() {
            let authority = Authority { catalog: &environment.catalog, role: environment.role };
            environment.search_path = authority.path(&environment.written_path);
        }
        environment.is_settled = traits.stored.is_some();
        match &traits.stored {
            // Whoever runs it, its own names are found where they were found when it was made.
            Some(stored) => environment.around_calls(stored.search_path.clone().into()),
            None => environment,
        }
    }
}

/// `f(integer,text)`, as format_procedure prints it.
pub fn signature_text(routine: &archipel_sql::catalog::Routine, environment: &Environment) -> String {
    if routine.name.is_empty() {
        return "inline_code_block".to_string();
    }
    let args: Vec<String> = routine
        .args
        .iter()
        .filter(|arg| is_input(arg.mode))
        .map(|arg| bare_type_along(&environment.catalog, &environment.search_path, arg.declared().oid))
        .collect();
    let name = quote_identifier(&routine.name);
    let found = environment.catalog.routines(None, &routine.name, &environment.search_path);
    let same = found.iter().find(|other| other.input_types() == routine.input_types());
    let schema = match same {
        Some(visible) if visible.oid == routine.oid => String::new(),
        // Before it is there at all, nobody calls it.
        _ if routine.oid == Oid(0) => String::new(),
        _ => format!("{}.", quote_identifier(&routine.schema)),
    };
    format!("{schema}{name}({})", args.join(","))
}

pub(crate) fn is_input(mode: ArgMode) -> bool {
    matches!(mode, ArgMode::In | ArgMode::InOut | ArgMode::Variadic)
}

/// A binding environment without variables and parameters.
pub(crate) fn bind_env<'b>(
    environment: &'b Environment,
    context: &'b FunctionContext<'b>,
    text: &'b str,
) -> BindEnv<'b> {
    let mut env = BindEnv::new(&environment.catalog, &environment.search_path, context);
    env.text = text;
    env.references = &environment.references;
    env.is_settled = environment.is_settled;
    env.late_literals = true;
    env.reader = PolicyReader::Role { role: environment.role, row_security: environment.row_security };
    // Parameters are variables: whatever else `$n` says is not there.
    env.params_fixed = true;
    env
}

/// A context for reading literals at compile time, without a session: it only names types.
pub(crate) fn no_session<'n>(names: &'n TypesAlong<'_>) -> FunctionContext<'n> {
    FunctionContext { now: 0, session: names }
}

pub(crate) fn unsupported(what: &str) -> SqlError {
    SqlError::unsupported(what)
}
