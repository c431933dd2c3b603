//! SET CONSTRAINTS: which constraints are deferred.

use archipel_sql::catalog::{ForeignKey, TriggerTiming};
use archipel_sql::types::Oid;

/// What SET CONSTRAINTS has said in the transaction.
#[derive(Clone, Debug, Default)]
pub struct ConstraintModes {
    /// ALL: deferred or immediate.
    all: Option<bool>,
    /// Constraints named since.
    named: Vec<(Oid, bool)>,
}

impl ConstraintModes {
    /// Whether a foreign key is checked at COMMIT.
    pub fn is_deferred(&self, key: &ForeignKey) -> bool {
        key.deferrable && self.said(key.oid).unwrap_or(key.initially_deferred)
    }

    /// Whether a constraint trigger fires at COMMIT.
    pub fn is_trigger_deferred(&self, trigger: Oid, timing: TriggerTiming) -> bool {
        timing.deferrable && self.said(trigger).unwrap_or(timing.initially_deferred)
    }

    fn said(&self, constraint: Oid) -> Option<bool> {
        let named = self.named.iter().rev().find(|(oid, _)| *oid == constraint);
        named.map(|(_, deferred)| *deferred).or(self.all)
    }

    /// SET CONSTRAINTS ALL.
    pub fn set_all(&mut self, deferred: bool) {
        *self = ConstraintModes { all: Some(deferred), named: Vec::new() };
    }

    /// SET CONSTRAINTS name.
    pub fn set(&mut self, constraint: Oid, deferred: bool) {
        self.named.push((constraint, deferred));
    }
}
