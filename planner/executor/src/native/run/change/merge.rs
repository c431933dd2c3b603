//! MERGE: what all its actions are about is found first, then they write. The triggers of a statement
//! fire once for each event its actions may be: INSERT, UPDATE, DELETE before it, the other way round
//! after it.

use archipel_engine::id::TreeId;
use archipel_sql::error::{SqlError, SqlState};
use rustc_hash::FxHashSet;

use super::inheritance::FoundMembers;
use super::row_trigger::Triggering;
use super::target::Found;
use crate::native::run::constraint::referential_action::with_queue;
use crate::native::run::operator::with::Cte;
use crate::native::run::row::buffer::RowBuffer;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use crate::native::run::statement::Body;

pub(crate) struct Merge {
    pub(crate) source: Cte,
    pub(crate) actions: Vec<Body>,
}

/// What one action is about.
enum Gathered {
    Insert(RowBuffer),
    Change(Found),
    Members(FoundMembers),
}

/// In which order the events of statement triggers come.
fn rank(action: &Body) -> u8 {
    match action {
        Body::Insert(..) => 0,
        Body::Update(..) => 1,
        Body::Members(members, _) if members.updates() => 1,
        _ => 2,
    }
}

impl Merge {
    pub fn run(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<u64> {
        // Keys are judged by what all clauses together leave.
        with_queue(ctx, |ctx| {
            let mut ranked: Vec<&Body> = self.actions.iter().collect();
            ranked.sort_by_key(|action| rank(action));
            for action in &ranked {
                match action {
                    Body::Insert(insert, _) => insert.begin(ctx)?,
                    Body::Update(update, _) => update.begin(ctx)?,
                    Body::Delete(delete, _) => delete.begin(ctx)?,
                    Body::Members(members, _) => members.begin(ctx)?,
                    _ => {}
                }
            }
            let found = self.find(ctx)?;
            let mut count = 0;
            for (action, found) in self.actions.iter().zip(found) {
                count += match (action, found) {
                    (Body::Insert(insert, _), Gathered::Insert(rows)) => insert.write_gathered(ctx, &rows)?,
                    (Body::Update(update, _), Gathered::Change(found)) => {
                        update.write_alone(ctx, &found, None)?
                    }
                    (Body::Delete(delete, _), Gathered::Change(found)) => {
                        delete.write_alone(ctx, &found, None)?
                    }
                    (Body::Members(members, _), Gathered::Members(found)) => {
                        members.write_alone(ctx, &found)?
                    }
                    _ => 0,
                };
            }
            for action in ranked.iter().rev() {
                match action {
                    Body::Insert(insert, _) => insert.end(ctx)?,
                    Body::Update(update, _) => update.end(ctx)?,
                    Body::Delete(delete, _) => delete.end(ctx)?,
                    Body::Members(members, _) => members.end(ctx)?,
                    _ => {}
                }
            }
            Ok(count)
        })
    }

    fn find(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Vec<Gathered>> {
        self.source.prepare(ctx)?;
        let mut found = Vec::with_capacity(self.actions.len());
        let mut touched: FxHashSet<(TreeId, Vec<u8>)> = FxHashSet::default();
        let mut touch = |table: TreeId, change: &Found| {
            if change.repeated || change.keys.iter().any(|key| !touched.insert((table, key.to_vec()))) {
                return Err(SqlError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "MERGE command cannot affect row a second time",
                )
                .with_hint("Ensure that not more than one source row matches any one target row."));
            }
            Ok(())
        };
        for action in &self.actions {
            let (table, change) = match action {
                Body::Insert(insert, _) => {
                    found.push(Gathered::Insert(insert.gather(ctx)?));
                    continue;
                }
                Body::Members(members, _) => {
                    let changes = members.find(ctx)?;
                    for (at, change) in &changes {
                        touch(members.table_of(*at), change)?;
                    }
                    found.push(Gathered::Members(changes));
                    continue;
                }
                Body::Update(update, _) => (update.target.meta.def.id, update.find(ctx)?),
                Body::Delete(delete, _) => (delete.target.meta.def.id, delete.find(ctx)?),
                _ => return Err(SqlError::internal("an action of MERGE writes at once").into()),
            };
            touch(table, &change)?;
            found.push(Gathered::Change(change));
        }
        Ok(found)
    }
}
