//! Owners and access control lists, in PostgreSQL's terms (chapter 5.7; acl.c).
//!
//! An object that the superuser made and nobody granted anything on has no row here: its owner is
//! the superuser and its list is the default one. A list holds what each grantor gave each grantee;
//! the owner's own rights begin as a grant by himself, and his grant options go without saying.
//!
//! - [`acl`]        who owns an object and what its list says, in a catalog; lists as text
//! - `database`     the same of databases, which are told by their class
//! - [`authority`]  what a role may do, and the errors when it may not
//! - [`default_access`] what new objects begin with
//! - [`role`]       roles; [`membership`] whose member one is; [`role_dependency`] what needs one

pub mod acl;
pub mod authority;
mod database;
pub mod default_access;
mod membership;
pub mod role;
pub mod role_dependency;

use serde::{Deserialize, Serialize};

use crate::error::{Result, SqlError, SqlState};
pub use crate::rights::Privileges;
use crate::types::Oid;

/// What kinds of object differ in their rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectClass {
    /// Tables and views.
    Relation,
    Sequence,
    Database,
    Routine,
    Language,
    Schema,
    Type,
    /// A configuration parameter.
    Parameter,
    /// Its list lies with its rows: no catalog knows it.
    LargeObject,
}

impl ObjectClass {
    /// Every right there is on such an object.
    pub fn all(self) -> Privileges {
        match self {
            ObjectClass::Relation => Privileges(0x7f),
            ObjectClass::Sequence => Privileges::SELECT | Privileges::UPDATE | Privileges::USAGE,
            ObjectClass::Database => Privileges::CREATE | Privileges::TEMPORARY | Privileges::CONNECT,
            ObjectClass::Routine => Privileges::EXECUTE,
            ObjectClass::Language | ObjectClass::Type => Privileges::USAGE,
            ObjectClass::Schema => Privileges::USAGE | Privileges::CREATE,
            ObjectClass::Parameter => Privileges::SET | Privileges::ALTER_SYSTEM,
            ObjectClass::LargeObject => Privileges::SELECT | Privileges::UPDATE,
        }
    }

    /// What everybody may with a new one.
    fn of_everybody(self) -> Privileges {
        match self {
            ObjectClass::Database => Privileges::TEMPORARY | Privileges::CONNECT,
            ObjectClass::Routine => Privileges::EXECUTE,
            ObjectClass::Language | ObjectClass::Type => Privileges::USAGE,
            ObjectClass::Relation
            | ObjectClass::Sequence
            | ObjectClass::Schema
            | ObjectClass::Parameter
            | ObjectClass::LargeObject => Privileges::NONE,
        }
    }

    /// acldefault: the list of an object on which nobody granted anything.
    pub fn default_acl(self, owner: Oid) -> Vec<AclItem> {
        let everybody = AclItem::new(EVERYBODY, owner, self.of_everybody());
        let own = AclItem::new(owner, owner, self.all());
        [everybody, own].into_iter().filter(|item| !item.privileges.is_empty()).collect()
    }

    /// pg_default_acl.defaclobjtype, and the argument of acldefault().
    pub fn letter(self) -> char {
        match self {
            ObjectClass::Relation => 'r',
            ObjectClass::Sequence => 's',
            ObjectClass::Database => 'd',
            ObjectClass::Routine => 'f',
            ObjectClass::Language => 'l',
            ObjectClass::Schema => 'n',
            ObjectClass::Type => 'T',
            ObjectClass::Parameter => 'p',
            ObjectClass::LargeObject => 'L',
        }
    }

    pub fn of_letter(letter: char) -> Option<ObjectClass> {
        use ObjectClass::*;
        [Relation, Sequence, Database, Routine, Language, Schema, Type, Parameter, LargeObject]
            .into_iter()
            .find(|class| class.letter() == letter)
    }
}

/// PUBLIC as a grantee.
pub const EVERYBODY: Oid = Oid(0);

/// What one role gave another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclItem {
    pub grantee: Oid,
    pub grantor: Oid,
    pub privileges: Privileges,
    /// Those of them the grantee may pass on.
    pub options: Privileges,
}

impl AclItem {
    pub fn new(grantee: Oid, grantor: Oid, privileges: Privileges) -> AclItem {
        AclItem { grantee, grantor, privileges, options: Privileges::NONE }
    }
}

/// Whose an object is, and who may do what with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub object: Oid,
    pub owner: Oid,
    /// `None`: the default.
    pub acl: Option<Vec<AclItem>>,
    /// Rights on single columns, by their one-based numbers.
    pub columns: Vec<(u16, Vec<AclItem>)>,
}

impl Access {
    /// An object nobody has granted anything on.
    pub fn of_owner(object: Oid, owner: Oid) -> Access {
        Access { object, owner, acl: None, columns: Vec::new() }
    }

    /// The rights on a column.
    pub fn column(&self, column: u16) -> &[AclItem] {
        self.columns.iter().find(|(number, _)| *number == column).map_or(&[], |(_, acl)| acl)
    }

    /// Replaces the rights on a column.
    pub fn set_column(&mut self, column: u16, acl: Vec<AclItem>) {
        self.columns.retain(|(number, _)| *number != column);
        if !acl.is_empty() {
            self.columns.push((column, acl));
            self.columns.sort_by_key(|(number, _)| *number);
        }
    }

    /// A column has gone: those after it move up.
    pub fn drop_column(&mut self, column: u16) {
        self.columns.retain(|(number, _)| *number != column);
        for (number, _) in self.columns.iter_mut().filter(|(number, _)| *number > column) {
            *number -= 1;
        }
    }

    /// Every list in it.
    pub fn lists(&self) -> impl Iterator<Item = &Vec<AclItem>> {
        self.acl.iter().chain(self.columns.iter().map(|(_, acl)| acl))
    }

    /// Another owner: what the old one gave and had is the new one's (aclnewowner).
    pub fn change_owner(&mut self, to: Oid) {
        let from = std::mem::replace(&mut self.owner, to);
        let lists = self.acl.iter_mut().chain(self.columns.iter_mut().map(|(_, acl)| acl));
        for list in lists {
            let mut merged: Vec<AclItem> = Vec::with_capacity(list.len());
            for item in list.iter() {
                let name = |oid: Oid| if oid == from { to } else { oid };
                let item = AclItem { grantee: name(item.grantee), grantor: name(item.grantor), ..*item };
                match merged.iter_mut().find(|m| m.grantee == item.grantee && m.grantor == item.grantor) {
                    Some(known) => {
                        known.privileges |= item.privileges;
                        known.options |= item.options;
                    }
                    None => merged.push(item),
                }
            }
            *list = merged;
        }
    }
}

/// Gives or takes rights in a list (aclupdate). `options_only` takes the grant options alone.
pub struct AclChange {
    pub grantee: Oid,
    pub grantor: Oid,
    pub privileges: Privileges,
    pub grant_option: bool,
    pub revoke: bool,
    pub cascade: bool,
}

impl AclChange {
    /// Takes all that a role was given, and what it passed on.
    ///
    /// # Errors
    /// As [`AclChange::apply`].
    pub fn take_all(acl: &mut Vec<AclItem>, role: Oid, owner: Oid) -> Result<()> {
        while let Some(item) = acl.iter().find(|item| item.grantee == role).copied() {
            let change = AclChange {
                grantee: role,
                grantor: item.grantor,
                privileges: item.privileges | item.options,
                grant_option: false,
                revoke: true,
                cascade: true,
            };
            change.apply(acl, owner)?;
        }
        Ok(())
    }

    pub fn apply(&self, acl: &mut Vec<AclItem>, owner: Oid) -> Result<()> {
        if !self.revoke && self.grant_option && self.grantee != owner {
            self.check_circle(acl, owner)?;
        }
        let place = acl.iter().position(|i| i.grantee == self.grantee && i.grantor == self.grantor);
        let place = place.unwrap_or_else(|| {
            acl.push(AclItem::new(self.grantee, self.grantor, Privileges::NONE));
            acl.len() - 1
        });
        let before = acl[place];
        let mut after = before;
        if self.revoke {
            after.options = after.options & !self.privileges;
            if !self.grant_option {
                after.privileges = after.privileges & !self.privileges;
            }
        } else {
            after.privileges |= self.privileges;
            if self.grant_option {
                after.options |= self.privileges;
            }
        }
        acl[place] = after;
        if after.privileges.is_empty() && after.options.is_empty() {
            acl.remove(place);
        }
        let lost = before.options & !after.options;
        if !lost.is_empty() {
            self.take_back(acl, owner, lost)?;
        }
        Ok(())
    }

    /// What the grantee passed on and may no longer goes too, or forbids it (recursive_revoke).
    fn take_back(&self, acl: &mut Vec<AclItem>, owner: Oid, lost: Privileges) -> Result<()> {
        // The owner can never truly lose grant options.
        if self.grantee == owner {
            return Ok(());
        }
        let still = grant_options(acl, self.grantee, owner);
        let lost = lost & !still;
        while let Some(passed) =
            acl.iter().find(|item| item.grantor == self.grantee && !(item.privileges & lost).is_empty())
        {
            if !self.cascade {
                return Err(SqlError::new(
                    SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                    "dependent privileges exist",
                )
                .with_hint("Use CASCADE to revoke them too."));
            }
            let change = AclChange {
                grantee: passed.grantee,
                grantor: self.grantee,
                privileges: lost,
                grant_option: false,
                revoke: true,
                cascade: true,
            };
            change.apply(acl, owner)?;
        }
        Ok(())
    }

    /// Nobody may pass on to those from whom alone he has it (check_circularity).
    fn check_circle(&self, acl: &[AclItem], owner: Oid) -> Result<()> {
        let mut without = acl.to_vec();
        // All that the grantee could have passed on, taken away.
        while let Some(item) =
            without.iter().find(|item| item.grantee == self.grantee && !item.options.is_empty()).copied()
        {
            let change = AclChange {
                grantee: self.grantee,
                grantor: item.grantor,
                privileges: item.options,
                grant_option: false,
                revoke: true,
                cascade: true,
            };
            change.apply(&mut without, owner)?;
        }
        let held = if self.grantor == owner {
            Privileges(u16::MAX)
        } else {
            grant_options(&without, self.grantor, owner)
        };
        if held.contains(self.privileges) {
            return Ok(());
        }
        let message = "grant options cannot be granted back to your own grantor";
        Err(SqlError::new(SqlState(*b"0LP01"), message))
    }
}

/// The grant options a role has by itself (aclmask_direct).
pub fn grant_options(acl: &[AclItem], role: Oid, owner: Oid) -> Privileges {
    if role == owner {
        return Privileges(u16::MAX);
    }
    let own = acl.iter().filter(|item| item.grantee == role);
    own.fold(Privileges::NONE, |all, item| all | item.options)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Oid = Oid(100);
    const ALICE: Oid = Oid(101);
    const BOB: Oid = Oid(102);

    fn grant(grantee: Oid, grantor: Oid, grant_option: bool) -> AclChange {
        let privileges = Privileges::SELECT;
        AclChange { grantee, grantor, privileges, grant_option, revoke: false, cascade: false }
    }

    #[test]
    fn what_was_passed_on_goes_with_the_option_it_came_by() {
        let mut acl = ObjectClass::Relation.default_acl(OWNER);
        grant(ALICE, OWNER, true).apply(&mut acl, OWNER).unwrap();
        grant(BOB, ALICE, false).apply(&mut acl, OWNER).unwrap();
        let mut revoke = AclChange { revoke: true, ..grant(ALICE, OWNER, true) };
        let refused = revoke.apply(&mut acl.clone(), OWNER).unwrap_err();
        assert_eq!(refused.state(), SqlState::DEPENDENT_OBJECTS_STILL_EXIST);
        revoke.cascade = true;
        revoke.apply(&mut acl, OWNER).unwrap();
        assert!(acl.iter().all(|item| item.grantee != BOB));
        assert!(acl.iter().any(|item| item.grantee == ALICE && item.options.is_empty()));
    }

    #[test]
    fn options_do_not_go_in_circles() {
        let mut acl = ObjectClass::Relation.default_acl(OWNER);
        grant(ALICE, OWNER, true).apply(&mut acl, OWNER).unwrap();
        grant(BOB, ALICE, true).apply(&mut acl, OWNER).unwrap();
        assert!(grant(ALICE, BOB, true).apply(&mut acl, OWNER).is_err());
    }
}
