//! In which order the actions of one ALTER TABLE are done (PostgreSQL's passes of `ATController`): what is dropped
//! first, then the types of columns, then what is added, whatever stands first in the statement.

use archipel_sql::ast::{AlterTableAction, IdentityChange, TableConstraintKind};

/// When an action is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pass {
    /// Sequences that the statement makes are of the kind that the table becomes.
    Persistence,
    Drop,
    AlterType,
    AddColumn,
    /// Attributes of columns that may be new.
    ColumnAttributes,
    AddKey,
    AddOther,
    Rest,
}

/// The actions of a statement in the order in which they are done.
pub(super) fn in_order(actions: &[AlterTableAction]) -> Vec<&AlterTableAction> {
    let mut ordered: Vec<&AlterTableAction> = actions.iter().collect();
    ordered.sort_by_key(|action| pass_of(action));
    ordered
}

fn pass_of(action: &AlterTableAction) -> Pass {
    use AlterTableAction as Action;
    match action {
        Action::SetPersistence(_) => Pass::Persistence,
        Action::DropColumn { .. }
        | Action::DropConstraint { .. }
        | Action::SetDefault { default: None, .. }
        | Action::SetNotNull { not_null: false, .. }
        | Action::Identity { change: IdentityChange::Drop { .. }, .. }
        | Action::DropExpression { .. } => Pass::Drop,
        Action::SetType { .. } => Pass::AlterType,
        Action::AddColumn { .. } => Pass::AddColumn,
        Action::SetNotNull { not_null: true, .. } => Pass::ColumnAttributes,
        Action::AddConstraint(constraint) => match constraint.kind {
            TableConstraintKind::PrimaryKey { .. }
            | TableConstraintKind::Unique { .. }
            | TableConstraintKind::UsingIndex { .. } => Pass::AddKey,
            TableConstraintKind::Check(_)
            | TableConstraintKind::ForeignKey { .. }
            | TableConstraintKind::Exclude => Pass::AddOther,
        },
        Action::SetDefault { default: Some(_), .. }
        | Action::Identity { change: IdentityChange::Add { .. }, .. } => Pass::AddOther,
        // An identity that this statement makes can be changed by it.
        Action::Identity { change: IdentityChange::Set { .. }, .. }
        | Action::RenameTo(_)
        | Action::RenameColumn { .. }
        | Action::RenameConstraint { .. }
        | Action::SetSchema(_)
        | Action::OwnerTo(_)
        | Action::SetTablespace(_)
        | Action::SetAccessMethod(_)
        | Action::SetOptions(_)
        | Action::ResetOptions(_)
        | Action::ReplicaIdentity(_)
        | Action::ValidateConstraint(_)
        | Action::AlterConstraint { .. }
        | Action::SetTrigger { .. }
        | Action::RowSecurity(_)
        | Action::ForceRowSecurity(_)
        | Action::AttachPartition { .. }
        | Action::DetachPartition { .. }
        | Action::Inherit(_)
        | Action::NoInherit(_)
        | Action::SetColumnOption { .. }
        | Action::Unsupported(_) => Pass::Rest,
    }
}
