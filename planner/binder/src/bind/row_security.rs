//! Row-level security (PostgreSQL's rowsecurity.c): where a table's rows are read or written in the name of a role
//! that its policies are for, these become conditions.
//!
//! USING of rows that are there stands below all else that is asked of them: what could tell of hidden rows by
//! failing, or by what it says, is never asked of one. Where others might be asked first, a barrier keeps them out
//! ([`super::from::view`]). New rows must meet WITH CHECK; rows that INSERT … ON CONFLICT or MERGE would change
//! must meet USING, or the statement fails.
//!
//! What was found holds for one role and one setting of `row_security`: the statement requires both
//! ([`Required::RowSecurity`]), and refuses to run for others whatever keeps its plan.

use archipel_sql::catalog::{
    Authority, Policy, PolicyCommand, Required, Requirement, TableKind, TableRef, View,
};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{ResolvedFunction, lookup_functions};
use archipel_sql::parser::parse_query;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{Expr, Query, SelectItem, SetExpr};

use super::binder::{BindEnv, Binder};
use super::clause::Clause;
use super::expression::subquery::has_subquery;
use super::from::barrier::{all_of, behind_barrier, is_asked_first};
use super::level::{Level, LevelKind};
use super::policy_reader::PolicyReader;
use super::visit::visit_expr;
use crate::bound::*;

/// What policies make of a table.
enum Guard {
    Open,
    Closed,
    /// Those for this role count.
    Policies(Oid),
}

/// What policies demand where rows of a table are changed.
#[derive(Default)]
pub(crate) struct ChangeGuard {
    /// Of the rows that are changed.
    pub using: Vec<BoundExpr>,
    /// Of new rows.
    pub checks: BoundChecks,
}

fn refuses() -> BoundExpr {
    BoundExpr::constant(Datum::Bool(false), Type::BOOL)
}

/// Whether one of these expressions reads one of the first columns of the row they stand over.
pub(crate) fn reads_row<'e>(exprs: impl IntoIterator<Item = &'e BoundExpr>, width: usize) -> bool {
    let mut found = false;
    for expr in exprs {
        visit_expr(expr, 0, &mut |part, nesting| {
            if let ExprKind::Column { depth, index } = part.kind {
                found |= depth == nesting && usize::from(index) < width;
            }
            !found
        });
    }
    found
}

/// The expression of a stored query that is one.
fn only_expression(query: &Query) -> Option<&Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    match &select.projection[..] {
        [SelectItem::UnnamedExpr(expr)] => Some(expr),
        _ => None,
    }
}

/// What holds whatever the row: a policy for everything.
fn says_nothing(condition: &BoundExpr) -> bool {
    matches!(condition.kind, ExprKind::Const(Datum::Bool(true)))
}

/// Adds what is not there yet: a policy for all commands is one for those that change rows and for those that
/// read them, and is asked once.
fn add_others<T: PartialEq>(known: &mut Vec<T>, others: Vec<T>) {
    for other in others {
        if !known.contains(&other) {
            known.push(other);
        }
    }
}

/// What a row that breaks a policy is told: `using` of a row that is there.
fn violation(what: &str, policy: Option<&str>, using: bool, table: &TableRef) -> String {
    let policy = policy.map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let using = if using { " (USING expression)" } else { "" };
    format!("{what} row violates row-level security policy{policy}{using} for table \"{}\"", table.name)
}

/// A condition that fails with this error where it does not hold.
fn raising(condition: BoundExpr, message: String) -> Result<BoundExpr> {
    let [function, ..] = lookup_functions("archipel_policy_check") else {
        return Err(SqlError::internal("there is no archipel_policy_check"));
    };
    let function = ResolvedFunction { function, result: Type::BOOL };
    let message = BoundExpr::constant(Datum::text(&message), Type::TEXT);
    Ok(BoundExpr::new(ExprKind::Call { function, args: vec![condition, message] }, Type::BOOL))
}

/// What is required of a row where a condition holds: the condition, and behind it what fails.
pub(crate) fn required_where(condition: Option<BoundExpr>, required: Vec<BoundExpr>) -> Option<BoundExpr> {
    match (condition, all_of(required)) {
        (Some(condition), Some(required)) => {
            let otherwise = Some(Box::new(refuses()));
            let kind = ExprKind::Case { arms: vec![(condition, required)], otherwise };
            Some(BoundExpr::new(kind, Type::BOOL))
        }
        (condition, required) => condition.or(required),
    }
}

impl Binder<'_, '_> {
    /// What policies make of a table that is read or changed in a name.
    fn guard(&mut self, table: &TableRef, acting: Option<Oid>) -> Result<Guard> {
        if !table.row_security.enabled || table.kind != TableKind::Table {
            return Ok(Guard::Open);
        }
        let (role, row_security) = match self.env.reader {
            PolicyReader::Exempt => return Ok(Guard::Open),
            PolicyReader::Nobody => return Ok(Guard::Closed),
            PolicyReader::Role { role, row_security } => (role, row_security),
        };
        let what = Required::RowSecurity { role: acting.is_none().then_some(role), on: row_security };
        self.env.need_all(Requirement { acting: None, what });
        let role = acting.unwrap_or(role);
        let authority = Authority { catalog: self.env.catalog, role };
        Ok(match authority.is_under_row_security(table, row_security)? {
            true => Guard::Policies(role),
            false => Guard::Open,
        })
    }

    /// Rows of a table as FROM has them: those that its policies show.
    pub(crate) fn shown_rows(&mut self, rel: Rel, table: &TableRef, lock: Option<RowLock>) -> Result<Rel> {
        let acting = self.env.acting;
        let conditions = match self.guard(table, acting)? {
            Guard::Open => return Ok(rel),
            Guard::Closed => vec![refuses()],
            Guard::Policies(role) => {
                let mut conditions = match lock {
                    Some(_) => self.rows_there(table, (role, acting), PolicyCommand::Update)?,
                    None => Vec::new(),
                };
                add_others(&mut conditions, self.rows_there(table, (role, acting), PolicyCommand::Select)?);
                conditions
            }
        };
        let Some(predicate) = all_of(conditions) else { return Ok(rel) };
        let rel = Rel::Filter { input: Box::new(rel), predicate };
        Ok(if is_asked_first(&rel) { rel } else { behind_barrier(rel) })
    }

    /// The conditions that all must hold for a row to be there for a command (add_security_quals).
    fn rows_there(
        &mut self,
        table: &TableRef,
        (role, acting): (Oid, Option<Oid>),
        command: PolicyCommand,
    ) -> Result<Vec<BoundExpr>> {
        let conditions = self.conditions(table, (role, acting), command, true)?;
        let conditions = conditions.into_iter().map(|(_, condition)| condition);
        Ok(conditions.filter(|condition| !says_nothing(condition)).collect())
    }

    /// The conditions of the policies for a command: with their names those that are restrictive, and one for
    /// the permissive ones. `using` of rows that are there.
    fn conditions(
        &mut self,
        table: &TableRef,
        (role, acting): (Oid, Option<Oid>),
        command: PolicyCommand,
        using: bool,
    ) -> Result<Vec<(Option<String>, BoundExpr)>> {
        let authority = Authority { catalog: self.env.catalog, role };
        let concerned = |policy: &&Policy| policy.concerns(command, &authority);
        let (permissive, restrictive): (Vec<&Policy>, Vec<&Policy>) =
            table.row_security.policies.iter().filter(concerned).partition(|policy| policy.permissive);
        let mut allowed = Vec::new();
        for query in permissive.into_iter().filter_map(|policy| policy.condition(using)) {
            allowed.push(self.policy_condition(table, query, acting)?);
        }
        if let Some(at) = allowed.iter().position(says_nothing) {
            allowed = vec![allowed.swap_remove(at)];
        }
        let allowed = match allowed.len() {
            0 => return Ok(vec![(None, refuses())]),
            1 => allowed.pop(),
            _ => Some(BoundExpr::new(ExprKind::Or(allowed), Type::BOOL)),
        };
        let mut conditions: Vec<(Option<String>, BoundExpr)> =
            allowed.into_iter().map(|allowed| (None, allowed)).collect();
        for policy in restrictive {
            if let Some(query) = policy.condition(using) {
                let bound = self.policy_condition(table, query, acting)?;
                conditions.push((Some(policy.name.clone()), bound));
            }
        }
        Ok(conditions)
    }

    /// An expression of a policy over a row of its table.
    fn policy_condition(
        &mut self,
        table: &TableRef,
        stored: &View,
        acting: Option<Oid>,
    ) -> Result<BoundExpr> {
        let query = parse_query(&stored.query)?;
        let (Some(expr), Some(own)) = (only_expression(&query), stored.references.first()) else {
            return Err(SqlError::internal("a policy without an expression"));
        };
        let mut env = BindEnv::new(self.env.catalog, &stored.search_path, self.env.context);
        env.shown_to = Some(self.env.display_path());
        env.references = &stored.references;
        (env.params_fixed, env.is_settled) = (true, true);
        env.late_literals = self.env.late_literals;
        (env.acting, env.reader) = (acting, self.env.reader);
        env.policies_around = self.env.policies_around.clone();
        if has_subquery(expr) {
            if env.policies_around.contains(&table.oid) {
                let message =
                    format!("infinite recursion detected in policy for relation \"{}\"", table.name);
                return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
            }
            env.policies_around.push(table.oid);
        }
        let mut binder = Binder::new(&mut env);
        (binder.nesting, binder.cte_count) = (self.nesting, self.cte_count);
        let level = Level::new(LevelKind::Plain, vec![binder.referenced_relation(table, own)]);
        let (bound, _) = binder.nested(|binder| {
            binder.with_level(level, |binder| {
                let bound = binder.clause_expr(expr, Clause::Policy)?;
                binder.boolean(bound, "POLICY")
            })
        })?;
        self.cte_count = binder.cte_count;
        self.env.session_dependent |= env.session_dependent;
        let needed = std::mem::take(&mut env.required);
        self.env.need_of(needed);
        Ok(bound)
    }

    /// What new rows must meet by the policies for a command.
    fn new_row_checks(
        &mut self,
        table: &TableRef,
        reader: (Oid, Option<Oid>),
        (command, using): (PolicyCommand, bool),
        kind: CheckKind,
    ) -> Result<BoundChecks> {
        let conditions = self.conditions(table, reader, command, using)?;
        let check = |(policy, condition): (Option<String>, BoundExpr)| BoundCheck {
            name: violation("new", policy.as_deref(), false, table),
            expr: condition,
            kind,
            always: true,
        };
        Ok(conditions.into_iter().filter(|(_, condition)| !says_nothing(condition)).map(check).collect())
    }

    /// What rows that are there must meet by the policies for a command, or the statement fails.
    fn required_of_rows(
        &mut self,
        table: &TableRef,
        reader: (Oid, Option<Oid>),
        command: PolicyCommand,
        what: &str,
    ) -> Result<Vec<BoundExpr>> {
        let conditions = self.conditions(table, reader, command, true)?;
        let required = |(policy, condition): (Option<String>, BoundExpr)| {
            raising(condition, violation(what, policy.as_deref(), true, table))
        };
        conditions.into_iter().map(required).collect()
    }

    /// What policies demand of an UPDATE or DELETE, which `reads` the rows or not.
    pub(crate) fn change_guard(
        &mut self,
        table: &TableRef,
        acting: Option<Oid>,
        command: PolicyCommand,
        reads: bool,
    ) -> Result<ChangeGuard> {
        let role = match self.guard(table, acting)? {
            Guard::Open => return Ok(ChangeGuard::default()),
            Guard::Closed => return Ok(ChangeGuard { using: vec![refuses()], checks: Vec::new() }),
            Guard::Policies(role) => role,
        };
        let reader = (role, acting);
        let mut using = self.rows_there(table, reader, command)?;
        if reads {
            add_others(&mut using, self.rows_there(table, reader, PolicyCommand::Select)?);
        }
        let mut checks = Vec::new();
        if command == PolicyCommand::Update {
            checks = self.new_row_checks(table, reader, (command, false), CheckKind::PolicyOfUpdate)?;
            if reads {
                let selects = (PolicyCommand::Select, true);
                add_others(
                    &mut checks,
                    self.new_row_checks(table, reader, selects, CheckKind::PolicyOfUpdate)?,
                );
            }
        }
        Ok(ChangeGuard { using, checks })
    }

    /// What policies demand of an INSERT: of its rows, and with `updates` of those that ON CONFLICT changes, as
    /// they are (`using`) and as they become.
    pub(crate) fn insert_guard(
        &mut self,
        table: &TableRef,
        acting: Option<Oid>,
        (reads, updates): (bool, bool),
    ) -> Result<ChangeGuard> {
        let role = match self.guard(table, acting)? {
            Guard::Open => return Ok(ChangeGuard::default()),
            Guard::Closed => return Ok(closed(table)),
            Guard::Policies(role) => role,
        };
        let reader = (role, acting);
        let selects = (PolicyCommand::Select, true);
        let inserts = (PolicyCommand::Insert, false);
        let mut checks = self.new_row_checks(table, reader, inserts, CheckKind::PolicyOfInsert)?;
        if reads {
            add_others(&mut checks, self.new_row_checks(table, reader, selects, CheckKind::PolicyOfInsert)?);
        }
        let mut using = Vec::new();
        if updates {
            using = self.required_of_rows(table, reader, PolicyCommand::Update, "new")?;
            let changes = (PolicyCommand::Update, false);
            checks.extend(self.new_row_checks(table, reader, changes, CheckKind::PolicyOfUpdate)?);
            if reads {
                using.extend(self.required_of_rows(table, reader, PolicyCommand::Select, "new")?);
                add_others(
                    &mut checks,
                    self.new_row_checks(table, reader, selects, CheckKind::PolicyOfUpdate)?,
                );
            }
        }
        Ok(ChangeGuard { using, checks })
    }

    /// The rows of its target that a MERGE looks at.
    pub(crate) fn merge_target_guard(&mut self, table: &TableRef) -> Result<Vec<BoundExpr>> {
        let acting = self.env.acting;
        match self.guard(table, acting)? {
            Guard::Open => Ok(Vec::new()),
            Guard::Closed => Ok(vec![refuses()]),
            Guard::Policies(role) => self.rows_there(table, (role, acting), PolicyCommand::Select),
        }
    }

    /// What policies demand of an action of MERGE: of the rows it takes, which fails where they do not meet it,
    /// and of new ones.
    pub(crate) fn merge_guard(&mut self, table: &TableRef, command: PolicyCommand) -> Result<ChangeGuard> {
        let acting = self.env.acting;
        let role = match self.guard(table, acting)? {
            Guard::Open => return Ok(ChangeGuard::default()),
            Guard::Closed => return Ok(closed(table)),
            Guard::Policies(role) => role,
        };
        let reader = (role, acting);
        let (using, checks) = match command {
            PolicyCommand::Insert => {
                let checks =
                    self.new_row_checks(table, reader, (command, false), CheckKind::PolicyOfInsert)?;
                (Vec::new(), checks)
            }
            PolicyCommand::Update => {
                let kind = CheckKind::PolicyOfUpdate;
                let mut checks = self.new_row_checks(table, reader, (command, false), kind)?;
                add_others(
                    &mut checks,
                    self.new_row_checks(table, reader, (PolicyCommand::Select, true), kind)?,
                );
                (self.required_of_rows(table, reader, command, "target")?, checks)
            }
            _ => (self.required_of_rows(table, reader, command, "target")?, Vec::new()),
        };
        Ok(ChangeGuard { using, checks })
    }
}

/// Of a table that nobody has said who changes it.
fn closed(table: &TableRef) -> ChangeGuard {
    let check =
        |kind| BoundCheck { name: violation("new", None, false, table), expr: refuses(), kind, always: true };
    let checks = vec![check(CheckKind::PolicyOfInsert), check(CheckKind::PolicyOfUpdate)];
    ChangeGuard { using: vec![refuses()], checks }
}
