//! Statements about large objects: GRANT and REVOKE, OWNER TO, COMMENT; and what DROP OWNED, REASSIGN OWNED and
//! DROP ROLE have to do with them.
//!
//! What is said of a large object lies in its row, which no catalog knows. So these are no definitions: each runs
//! as a call of a function that changes rows, in the statement's transaction.
//!
//! - [`file`] the files of `lo_import` and `lo_export`
//! - [`ties`] whose they are, for DROP ROLE

pub(crate) mod file;
mod ties;

use std::sync::Arc;

use archipel_engine::txn::Isolation;
use archipel_sql::ast::{Grant, GrantedPrivilege, LargeObjectStatement, OwnedObjects, RoleName};
use archipel_sql::catalog::access::EVERYBODY;
use archipel_sql::catalog::authority::undefined_role;
use archipel_sql::catalog::{ObjectClass, Privileges};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::quote_literal;
use archipel_sql::types::Oid;

use super::Session;

/// invalid_grant_operation.
const INVALID_GRANT: SqlState = SqlState(*b"0LP01");

/// The rights that a list names, all of which must be such of large objects; and whether it names all.
fn privileges(list: &[GrantedPrivilege]) -> Result<(Privileges, bool)> {
    let valid = ObjectClass::LargeObject.all();
    let (mut found, mut all) = (Privileges::NONE, false);
    for privilege in list {
        if !privilege.columns.is_empty() {
            let message = "column privileges are only valid for relations";
            return Err(SqlError::new(INVALID_GRANT, message));
        }
        let Some(name) = &privilege.name else {
            (found, all) = (valid, true);
            continue;
        };
        let named = Privileges::parse(name).ok_or_else(|| {
            SqlError::new(SqlState::SYNTAX_ERROR, format!("unrecognized privilege type \"{name}\""))
        })?;
        if !valid.contains(named) {
            let message = format!("invalid privilege type {} for large object", name.to_uppercase());
            return Err(SqlError::new(INVALID_GRANT, message));
        }
        found |= named;
    }
    Ok((found, all))
}

/// A list of numbers as an array of oids in SQL.
fn oids(list: impl IntoIterator<Item = u32>) -> String {
    let list: Vec<String> = list.into_iter().map(|oid| oid.to_string()).collect();
    format!("'{{{}}}'::pg_catalog.oid[]", list.join(","))
}

impl Session {
    /// What the statement that has just ended has opened for reading alone shows from now on what there is now, as
    /// in PostgreSQL, whatever others commit until the transaction ends. One that keeps a snapshot for all of its
    /// statements needs no other.
    pub(super) fn pin_large_objects(&mut self) {
        let is_open = self.transaction.is_open() && self.cursors.large_objects().has_unpinned();
        if is_open && self.isolation() == Isolation::ReadCommitted {
            let snapshot = self.server.engine.snapshot_for(self.entry().process_id as u64);
            self.cursors.large_objects_mut().0.pin(&Arc::new(snapshot));
        }
    }

    /// Runs a statement about large objects.
    pub(super) async fn large_object_statement(
        &mut self,
        statement: &LargeObjectStatement,
        alone: bool,
    ) -> Result<()> {
        self.require_writable(statement.tag())?;
        let call = match statement {
            LargeObjectStatement::Access(objects, grant) => {
                return self.grant_large_objects(objects, grant, alone).await;
            }
            LargeObjectStatement::OwnerTo { object, owner } => {
                let owner = self.role_oid(owner)?;
                format!("archipel_large_object_owner({object}::pg_catalog.oid, {owner}::pg_catalog.oid)")
            }
            LargeObjectStatement::Comment { object, text } => {
                let text = text.as_deref().map_or_else(|| "NULL".to_owned(), quote_literal);
                format!("archipel_large_object_comment({object}::pg_catalog.oid, {text})")
            }
        };
        self.call_about_large_objects(&call, alone).await
    }

    async fn call_about_large_objects(&mut self, call: &str, alone: bool) -> Result<()> {
        self.rows_of(&format!("SELECT pg_catalog.{call}"), alone).await?;
        Ok(())
    }

    async fn grant_large_objects(&mut self, objects: &[u32], grant: &Grant, alone: bool) -> Result<()> {
        if let Some(by) = &grant.granted_by
            && self.role_oid(by)? != self.settings.effective().roles.current
        {
            let message = "grantor must be current user";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let objects = oids(objects.iter().copied());
        match self.granted(grant) {
            Ok((grantees, privileges, how)) => {
                let grantees = oids(grantees.into_iter().map(|oid| oid.0));
                let (privileges, objects) = (privileges.0, &objects);
                let call = format!("archipel_large_object_grant({objects}, {grantees}, {privileges}, {how})");
                self.call_about_large_objects(&call, alone).await
            }
            Err(error) => {
                // PostgreSQL looks the objects up first.
                let call = format!("archipel_large_object_grant({objects}, '{{}}', 0, 0)");
                self.call_about_large_objects(&call, alone).await?;
                Err(error)
            }
        }
    }

    /// To whom what is granted, and how, in the bits of the function.
    fn granted(&mut self, grant: &Grant) -> Result<(Vec<Oid>, Privileges, i32)> {
        let with_option = grant.grant_option && !grant.revoke;
        let mut grantees = Vec::with_capacity(grant.grantees.len());
        for name in &grant.grantees {
            grantees.push(match name {
                RoleName::Public if with_option => {
                    let message = "grant options can only be granted to roles";
                    return Err(SqlError::new(INVALID_GRANT, message));
                }
                RoleName::Public => EVERYBODY,
                name => self.role_oid(name)?,
            });
        }
        let (privileges, all) = privileges(&grant.privileges)?;
        let bits = [grant.revoke, grant.grant_option, grant.cascade, all];
        let how = bits.iter().rev().fold(0, |bits, bit| bits << 1 | i32::from(*bit));
        Ok((grantees, privileges, how))
    }

    /// The oid of a role that a statement names.
    fn role_oid(&mut self, name: &RoleName) -> Result<Oid> {
        let host = self.host();
        match name {
            RoleName::Current => Ok(host.settings.roles.current),
            RoleName::Session => Ok(host.settings.roles.session),
            RoleName::Public => Err(undefined_role("public")),
            RoleName::Name(name) => {
                let role = host.catalog.catalog.role(name);
                role.map(|role| role.oid).ok_or_else(|| undefined_role(name))
            }
        }
    }

    /// Does with large objects what DROP OWNED and REASSIGN OWNED do. Answers whether the statement is still alone
    /// in its transaction: where there are large objects, their rows and the catalog's go together.
    pub(super) async fn large_objects_of_roles(&mut self, owned: &OwnedObjects, alone: bool) -> Result<bool> {
        let roles = owned.roles.iter().map(|role| self.role_oid(role)).collect::<Result<Vec<Oid>>>();
        let heir = owned.to.as_ref().map_or(Ok(Oid(0)), |role| self.role_oid(role));
        // Roles that are not there are the definition's to refuse.
        let (Ok(roles), Ok(heir)) = (roles, heir) else { return Ok(alone) };
        self.require_writable(if owned.to.is_some() { "REASSIGN OWNED" } else { "DROP OWNED" })?;
        let any = self.rows_of("SELECT 1 FROM pg_catalog.archipel_large_objects LIMIT 1", alone).await?;
        if any.is_empty() {
            return Ok(alone);
        }
        let roles = oids(roles.into_iter().map(|role| role.0));
        let call = format!("archipel_large_objects_of_roles({roles}, {heir}::pg_catalog.oid)");
        self.call_about_large_objects(&call, false).await?;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[Option<&str>]) -> Result<(Privileges, bool)> {
        let privilege =
            |name: &Option<&str>| GrantedPrivilege { name: name.map(str::to_owned), columns: Vec::new() };
        privileges(&names.iter().map(privilege).collect::<Vec<_>>())
    }

    #[test]
    fn large_objects_are_read_and_written() {
        let both = Privileges::SELECT | Privileges::UPDATE;
        assert_eq!(named(&[Some("select"), Some("update")]), Ok((both, false)));
        assert_eq!(named(&[None]), Ok((both, true)));
        let message = |names: &[Option<&str>]| named(names).unwrap_err().message().to_owned();
        assert_eq!(message(&[Some("insert")]), "invalid privilege type INSERT for large object");
        assert_eq!(message(&[Some("fly")]), "unrecognized privilege type \"fly\"");
    }

    #[test]
    fn lists_are_arrays() {
        assert_eq!(oids([1, 4_294_967_295]), "'{1,4294967295}'::pg_catalog.oid[]");
        assert_eq!(oids([]), "'{}'::pg_catalog.oid[]");
    }
}
