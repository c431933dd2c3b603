//! What policies are.
//!
//! A policy's expression is kept as the query `SELECT (expression) FROM table`: so what it names, the table's
//! columns among it, has ids and is followed as what views name ([`View`]).

use serde::{Deserialize, Serialize};

use super::view_definition::View;
use crate::ast::PolicyCommand;
use crate::types::Oid;

/// What is said of who may see and write which rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowSecurity {
    /// ENABLE ROW LEVEL SECURITY.
    pub enabled: bool,
    /// FORCE ROW LEVEL SECURITY: the owner's statements, too.
    pub forced: bool,
    /// By their names.
    pub policies: Vec<Policy>,
}

/// Which rows some roles may see or write (pg_policy).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub oid: Oid,
    pub name: String,
    /// One permissive policy that allows it is enough; restrictive ones must all do.
    pub permissive: bool,
    pub command: PolicyCommand,
    /// Zero alone: PUBLIC.
    pub roles: Vec<Oid>,
    /// USING: of rows that are there.
    pub using: Option<View>,
    /// WITH CHECK: of new rows; as USING if nothing is said.
    pub check: Option<View>,
}

impl Policy {
    /// The expressions that it has.
    pub fn queries(&self) -> impl Iterator<Item = &View> {
        self.using.iter().chain(&self.check)
    }

    /// The same, to be changed.
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut View> {
        self.using.iter_mut().chain(&mut self.check)
    }

    /// The condition that new rows must meet; with `using`, that of rows that are there.
    pub fn condition(&self, using: bool) -> Option<&View> {
        match using {
            true => self.using.as_ref(),
            false => self.check.as_ref().or(self.using.as_ref()),
        }
    }

    /// Whether it reads a relation beside its own table.
    pub fn reads(&self, relation: Oid) -> bool {
        self.queries().any(|query| query.reads(relation))
    }

    /// The letter of pg_policy.polcmd.
    pub fn command_letter(&self) -> &'static str {
        match self.command {
            PolicyCommand::All => "*",
            PolicyCommand::Select => "r",
            PolicyCommand::Insert => "a",
            PolicyCommand::Update => "w",
            PolicyCommand::Delete => "d",
        }
    }

    /// The word of pg_policies.cmd.
    pub fn command_word(&self) -> &'static str {
        match self.command {
            PolicyCommand::All => "ALL",
            PolicyCommand::Select => "SELECT",
            PolicyCommand::Insert => "INSERT",
            PolicyCommand::Update => "UPDATE",
            PolicyCommand::Delete => "DELETE",
        }
    }
}
