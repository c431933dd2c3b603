//! Whose objects are: OWNER TO, and what a new object begins with.

use archipel_sql::ast::{RoleName, TypeName};
use archipel_sql::catalog::access::role_dependency::{RoleDependency, RoleTie, RoleUser};
use archipel_sql::catalog::authority::undefined_role;
use archipel_sql::catalog::names::{is_own_temporary_schema, quote_identifier};
use archipel_sql::catalog::parameters::PARAMETERS;
use archipel_sql::catalog::{
    Access, Authority, Database, Object, ObjectClass, ObjectKind, PUBLIC, Parameters, Privileges, Relation,
    Role, SUPERUSER, Table,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Oid;

use super::default_privileges;
use super::dependence::dependencies;
use crate::database::undefined_database;
use crate::work::Work;

impl Work<'_> {
    /// What the role in force may do.
    pub fn authority(&self) -> Authority<'_> {
        Authority { catalog: &self.catalog, role: self.env.roles.current }
    }

    /// Whether policies count for what a role does with a table: then errors tell nothing of its rows.
    pub fn hides_rows(&self, table: &Table, role: Oid) -> bool {
        let authority = Authority { catalog: &self.catalog, role };
        authority.is_under_row_security(table, true).unwrap_or(true)
    }

    /// Whether whoever makes a foreign key looks at the rows of its tables as policies show them
    /// (RI_Initial_Check). Where a table with row security is another's, each key is looked for in its owner's
    /// name, as when rows are written.
    pub fn looks_by_policies(&self, tables: [&Table; 2]) -> bool {
        let authority = self.authority();
        let of_others = |table: &&Table| table.row_security.enabled && !authority.owns(table.oid);
        !self.env.system
            && !tables.iter().any(of_others)
            && tables.iter().any(|table| self.hides_rows(table, self.env.roles.current))
    }

    /// 42501 unless the object belongs to the role in force.
    pub fn require_owner(&self, object: Oid) -> Result<()> {
        if self.env.system { Ok(()) } else { self.authority().require_owner(object) }
    }

    /// As [`Work::require_owner`], for a part of a relation: its kind is named no closer.
    pub fn require_owner_of_part(&self, table: &Table) -> Result<()> {
        if self.env.system || self.authority().owns(table.oid) {
            return Ok(());
        }
        Err(archipel_sql::catalog::authority::must_be_owner("relation", &table.name))
    }

    /// As [`Work::require_owner`], for an index: it is its table's owner's.
    pub fn require_relation_owner(&self, relation: &Relation) -> Result<()> {
        let (Relation::Index(table, _) | Relation::PrimaryKey(table) | Relation::Nominal(table, _)) =
            relation
        else {
            return self.require_owner(relation.oid());
        };
        if self.env.system || self.authority().owns(table.oid) {
            return Ok(());
        }
        Err(archipel_sql::catalog::authority::must_be_owner("index", relation.name()))
    }

    /// Whoever owns an object or the schema it is in may drop it.
    pub fn require_dropper(&self, object: Oid, schema: &str) -> Result<()> {
        let of_schema = self.catalog.schema(schema).is_some_and(|schema| self.authority().owns(schema.oid));
        if of_schema { Ok(()) } else { self.require_owner(object) }
    }

    /// 42501 without these rights.
    pub fn require(&self, object: Oid, class: ObjectClass, privileges: Privileges) -> Result<()> {
        if self.env.system { Ok(()) } else { self.authority().require(object, class, privileges) }
    }

    /// 42501 without these rights on the database that the definition is for.
    pub fn require_in_database(&self, privileges: Privileges) -> Result<()> {
        self.require(self.catalog.database_oid(), ObjectClass::Database, privileges)
    }

    /// The database that a statement names, or 3D000.
    pub fn database(&self, name: &str) -> Result<Oid> {
        let known = self.catalog.database_named(name);
        known.map(|database| database.oid).ok_or_else(|| undefined_database(name))
    }

    /// 42501 for a type in a schema that the role may not look into.
    pub fn require_lookup(&self, ty: &TypeName) -> Result<()> {
        let schema = if ty.percent_type { &ty.name.catalog } else { &ty.name.schema };
        match schema.as_deref().filter(|schema| !is_own_temporary_schema(schema, self.search_path())) {
            Some(schema) if !self.env.system => self.authority().require_schema(schema, Privileges::USAGE),
            _ => Ok(()),
        }
    }

    /// The oid of a role that a statement names.
    pub fn role(&self, name: &RoleName) -> Result<Oid> {
        match name {
            RoleName::Current => Ok(self.env.roles.current),
            RoleName::Session => Ok(self.env.roles.session),
            RoleName::Public => Err(undefined_role("public")),
            RoleName::Name(name) => {
                self.catalog.role(name).map(|role| role.oid).ok_or_else(|| undefined_role(name))
            }
        }
    }

    pub fn role_name(&self, oid: Oid) -> String {
        self.catalog.role_by_oid(oid).map_or_else(|| oid.to_string(), |role| role.name.clone())
    }

    /// The role as it is, to be changed and put again.
    pub fn role_object(&self, oid: Oid) -> Result<Role> {
        let role = self.catalog.role_by_oid(oid).ok_or_else(|| undefined_role(&oid.to_string()))?;
        Ok(Role::clone(&role))
    }

    /// A new object belongs to whoever makes it, and begins with what his default privileges say.
    pub(crate) fn own(&mut self, object: Oid, class: ObjectClass, schema: Option<&str>) {
        let owner = self.env.roles.current;
        let place = schema.and_then(|schema| self.catalog.schema(schema)).map(|schema| schema.oid);
        let acl = default_privileges::of_new(&self.catalog, owner, class, place);
        if owner != SUPERUSER || acl.is_some() || object == PUBLIC {
            self.put(Object::Access(Access { acl, ..Access::of_owner(object, owner) }));
        }
    }

    /// Puts who may do what with an object; nothing is kept of what every object has.
    pub(crate) fn put_access(&mut self, access: Access) {
        if let Some(database) = self.catalog.database(access.object) {
            let (owner, acl) = (access.owner, access.acl);
            self.put(Object::Database(Database { owner, acl, ..Database::clone(&database) }));
            return;
        }
        if self.catalog.parameters().numbered(access.object).is_some() {
            self.put_parameter_access(&access);
            return;
        }
        let plain = access.owner == SUPERUSER && access.acl.is_none() && access.columns.is_empty();
        // The owner of the first schema is another one.
        if plain && access.object != PUBLIC {
            if self.catalog.access(access.object).is_some() {
                self.drop(ObjectKind::Access, access.object);
            }
            return;
        }
        self.put(Object::Access(access));
    }

    /// Nothing is kept of a parameter that nobody was given a right to.
    fn put_parameter_access(&mut self, access: &Access) {
        let mut parameters = self.catalog.parameters().clone();
        let acl = access.acl.clone().unwrap_or_default();
        if acl == ObjectClass::Parameter.default_acl(SUPERUSER) || acl.is_empty() {
            parameters.access.retain(|known| known.oid != access.object);
        } else if let Some(known) = parameters.access.iter_mut().find(|known| known.oid == access.object) {
            known.acl = acl;
        }
        self.put_parameters(parameters);
    }

    /// Puts what is said of configuration parameters.
    pub(crate) fn put_parameters(&mut self, parameters: Parameters) {
        match parameters.is_empty() {
            true if self.catalog.parameters().is_empty() => {}
            true => self.drop(ObjectKind::Parameters, PARAMETERS),
            false => self.put(Object::Parameters(parameters)),
        }
    }

    /// Plans made with an object's rights, or its owner's, are made anew.
    pub(crate) fn set_owner(&mut self, object: Oid, owner: Oid) {
        let mut access = self.catalog.access_of(object);
        access.change_owner(owner);
        self.put_access(access);
        for sequence in self.catalog.owned_sequences(object) {
            let mut access = self.catalog.access_of(sequence.oid);
            access.change_owner(owner);
            self.put_access(access);
        }
    }
}

/// ALTER … OWNER TO: whoever owned it must be able to become the new owner, who must be able to
/// make such an object where it is.
pub(crate) fn change(object: Oid, schema: Option<&str>, to: &RoleName, work: &mut Work<'_>) -> Result<()> {
    let to = work.role(to)?;
    if let Some(sequence) = work.catalog.sequence_by_oid(object)
        && let Some((table, _)) = sequence.owned_by
        && to != work.catalog.owner(object)
    {
        let table = work.catalog.kind_and_name(table).1;
        let message = format!("cannot change owner of sequence \"{}\"", sequence.name);
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_detail(format!("Sequence \"{}\" is linked to table \"{table}\".", sequence.name)));
    }
    if to == work.catalog.owner(object) {
        return Ok(());
    }
    require_change(object, schema, to, work)?;
    work.set_owner(object, to);
    Ok(())
}

/// 42501 unless the role in force may give an object to another: it owns it, belongs to the new owner, and that
/// one may make objects in the schema; a schema itself (`None`) may be made by the role in force.
pub(super) fn require_change(object: Oid, schema: Option<&str>, to: Oid, work: &Work<'_>) -> Result<()> {
    if work.env.system || work.authority().is_superuser() {
        return Ok(());
    }
    work.require_owner(object)?;
    work.authority().require_member(to)?;
    match schema.and_then(|schema| work.catalog.schema(schema)) {
        Some(schema) => {
            let new = Authority { catalog: &work.catalog, role: to };
            new.require(schema.oid, ObjectClass::Schema, Privileges::CREATE)
        }
        None => work.require_in_database(Privileges::CREATE),
    }
}

/// What stands in the way of dropping a role in this database, a line each, as PostgreSQL's DETAIL names it.
pub(super) fn in_the_way(role: Oid, work: &Work<'_>) -> Vec<String> {
    let mut lines: Vec<(u32, i32, String)> = Vec::new();
    for known in dependencies(role, &work.catalog) {
        let how = match known.tie {
            RoleTie::Owner => "owner of",
            RoleTie::Granted => "privileges for",
            RoleTie::Policy => "target of",
        };
        let (drawn, place) = age(&known, work);
        lines.push((drawn, place, format!("{how} {}", describe_dependency(&known, work))));
    }
    lines.sort();
    lines.into_iter().map(|(_, _, line)| line).collect()
}

/// By what PostgreSQL orders what needs a role: its number, and the place of a part.
fn age(known: &RoleDependency, work: &Work<'_>) -> (u32, i32) {
    // PostgreSQL makes a column's sequence before the table.
    let sequence = work.catalog.sequence_by_oid(known.object).and_then(|sequence| sequence.owned_by);
    match sequence.filter(|_| known.tie == RoleTie::Owner) {
        Some((table, column)) => (table.0, i32::from(column) - i32::from(u16::MAX)),
        // Types are numbered apart, by the number they drew.
        None => (known.object.drawn().0, i32::from(known.column)),
    }
}

fn describe_dependency(known: &RoleDependency, work: &Work<'_>) -> String {
    let catalog = &work.catalog;
    match known.user {
        RoleUser::Policy => match catalog.policy_by_oid(known.object) {
            Some((table, place)) => {
                let name = &table.row_security.policies[place].name;
                format!("policy {name} on {}", describe(table.oid, work))
            }
            None => format!("policy {}", known.object),
        },
        RoleUser::DefaultAccess => {
            let entry = catalog.default_access_all().find(|entry| entry.oid == known.object);
            entry.map_or_else(String::new, |entry| default_privileges::describe(entry, work))
        }
        RoleUser::Object(_) => match known.column.checked_sub(1) {
            Some(place) => {
                let table = catalog.table_by_oid(known.object);
                let column = table.as_ref().and_then(|table| table.columns.get(usize::from(place)));
                let name = column.map_or("", |column| &column.name);
                format!("column {name} of {}", describe(known.object, work))
            }
            None => describe(known.object, work),
        },
    }
}

/// getObjectDescription, as far as objects have owners.
fn describe(object: Oid, work: &Work<'_>) -> String {
    let catalog = &work.catalog;
    let (kind, name) = catalog.kind_and_name(object);
    if let Some(relation) = catalog.relation_by_oid(object) {
        let visible = catalog.is_visible(&relation, work.search_path());
        let name = if visible { name } else { format!("{}.{name}", relation.schema()) };
        return format!("{kind} {name}");
    }
    if let Some(ty) = catalog.user_type_by_oid(object) {
        let found = catalog.user_type(None, &ty.name, work.search_path());
        let is_visible = found.is_some_and(|found| found.oid == ty.oid);
        let name = if is_visible { name } else { format!("{}.{name}", quote_identifier(&ty.schema)) };
        return format!("{kind} {name}");
    }
    // Procedures are functions here.
    if let Some(routine) = catalog.routine_by_oid(object) {
        let signature = archipel_sql::catalog::dependency::routine_signature(&routine, work);
        let found = catalog.routines(None, &routine.name, work.search_path());
        return match found.iter().any(|found| found.oid == routine.oid) {
            true => format!("function {signature}"),
            false => format!("function {}.{signature}", quote_identifier(&routine.schema)),
        };
    }
    format!("{kind} {name}")
}
