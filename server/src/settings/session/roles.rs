//! The settings that are roles: who connected, and in whose name statements run.

use super::{Effective, Name, SessionSettings, find, put};
use crate::settings::value::{RoleValue, Value};

impl Effective {
    /// A setting that is a role.
    pub(super) fn role(&self, name: &str) -> Option<RoleValue> {
        match self.value(name) {
            Some(Value::Role(role)) => Some(role.clone()),
            _ => None,
        }
    }

    /// Whether a SECURITY DEFINER routine runs.
    pub fn is_acting(&self) -> bool {
        self.acting.is_some()
    }

    /// Who is in force: the owner of a routine, SET ROLE, or the session's user.
    pub fn current_role(&self) -> Option<RoleValue> {
        let chosen = self.acting.clone().or_else(|| self.role("role"));
        chosen.or_else(|| self.role("session_authorization"))
    }
}

impl SessionSettings {
    /// Sets who the session is, as it begins.
    pub fn set_user(&mut self, user: RoleValue) {
        if let Some(id) = find("session_authorization") {
            put(&mut self.session, id.0, Value::Role(user));
            self.reset = self.session.clone();
            self.refresh();
        }
    }

    /// SET ROLE (`None`: NONE) and SET SESSION AUTHORIZATION, when it is known that the client may.
    pub fn set_role(&mut self, name: &str, role: Option<RoleValue>, local: bool) {
        let Some(id) = find(name) else { return };
        let value = role.map_or_else(|| Value::Text("none".to_owned()), Value::Role);
        self.put(Name::Known(id), Some(value), local, true);
    }

    /// As [`SessionSettings::set_role`], as the session begins.
    pub fn start_as(&mut self, name: &str, role: Option<RoleValue>) {
        self.set_role(name, role, false);
        self.reset = self.session.clone();
        self.reset_chosen.clone_from(&self.chosen);
        self.commit();
    }

    /// Who connected.
    pub fn authenticated(&self) -> Option<RoleValue> {
        match find("session_authorization").map(|id| &self.reset[id.0]) {
            Some(Value::Role(role)) => Some(role.clone()),
            _ => None,
        }
    }
}
