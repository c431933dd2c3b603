//! Where an expression stands, which decides what calls it may hold.

/// Where an expression stands (ParseExprKind), which decides what calls it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    Select,
    Where,
    JoinOn,
    FromFunction,
    GroupBy,
    Having,
    OrderBy,
    DistinctOn,
    WindowDefinition,
    Filter,
    Limit,
    Offset,
    Values,
    UpdateSet,
    Returning,
    Check,
    DomainCheck,
    IndexPredicate,
    IndexExpression,
    Default,
    Generated,
    CallArgument,
    ExecuteParameter,
    PartitionKey,
    PartitionBound,
    /// A trigger's WHEN.
    TriggerWhen,
    Policy,
    /// USING of ALTER COLUMN … TYPE.
    Transform,
    /// WHERE of COPY FROM.
    CopyWhere,
    Expression,
}

impl Clause {
    /// As PostgreSQL names it in "… are not allowed in …".
    pub(super) fn describe(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::Where => "WHERE",
            Clause::JoinOn => "JOIN conditions",
            Clause::FromFunction => "functions in FROM",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::WindowDefinition => "window definitions",
            Clause::Filter => "FILTER",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Values => "VALUES",
            Clause::UpdateSet => "UPDATE",
            Clause::Returning => "RETURNING",
            Clause::Check | Clause::DomainCheck => "check constraints",
            Clause::IndexPredicate => "index predicates",
            Clause::IndexExpression => "index expressions",
            Clause::Default => "DEFAULT expressions",
            Clause::Generated => "column generation expressions",
            Clause::CallArgument => "CALL arguments",
            Clause::ExecuteParameter => "EXECUTE parameters",
            Clause::PartitionKey => "partition key expressions",
            Clause::PartitionBound => "partition bound",
            Clause::TriggerWhen => "trigger WHEN conditions",
            Clause::Policy => "policy expressions",
            Clause::Transform => "transform expressions",
            Clause::CopyWhere => "COPY FROM WHERE conditions",
            Clause::Expression => "this expression",
        }
    }

    pub(super) fn allows_aggregates(self) -> bool {
        matches!(
            self,
            Clause::Select | Clause::Having | Clause::OrderBy | Clause::DistinctOn | Clause::WindowDefinition
        )
    }

    pub(super) fn allows_windows(self) -> bool {
        matches!(self, Clause::Select | Clause::OrderBy | Clause::DistinctOn)
    }

    pub(super) fn allows_sets(self) -> bool {
        matches!(self, Clause::Select | Clause::OrderBy | Clause::DistinctOn | Clause::GroupBy)
    }
}
