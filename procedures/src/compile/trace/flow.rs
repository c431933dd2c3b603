//! What of a routine depends on what, found while its statements are compiled in order.
//!
//! Each access of a statement is an action. The actions whose results a variable holds are its
//! sources; an action depends on the sources of the variables that its statement reads, and on
//! those of the conditions and loops around it. Where paths may part, what a variable held before
//! stays among its sources. What one round of a loop leaves to the next is not known at the loop's
//! head: it stands as [`Source::Carried`] until the end of the body tells.
//!
//! Actions that reach the same rows of a table, one of them to write, depend on each other in their
//! order, too; [`Drafts::graph`] adds that, when it is asked for: programs are made far more often
//! than looked at.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use archipel_planner::bound::BoundExpr;
use archipel_planner::route::{Access, RouteKey};
use rustc_hash::FxHashMap;

use crate::compile::trace;
use crate::flow::{Action, Graph};
use crate::plpgsql::ast::*;
use crate::run::flow_draft::{Draft, Drafts, Source, Sources};

/// A statement being compiled.
#[derive(Default)]
struct Frame {
    line: u32,
    /// Variables its expressions have read so far.
    reads: BTreeSet<VariableId>,
    /// Its own actions, those of statements inside not among them.
    own: Sources,
    /// The variables of a loop.
    targets: Vec<VariableId>,
    is_loop: bool,
}

/// See the module's head.
#[derive(Default)]
pub(crate) struct Flow {
    drafts: Vec<Draft>,
    sources: Vec<Sources>,
    frames: Vec<Frame>,
    loops: usize,
}

impl Flow {
    /// How many actions there are so far.
    pub fn actions(&self) -> usize {
        self.drafts.len()
    }

    /// Forgets actions that are compiled once more.
    pub fn truncate(&mut self, actions: usize) {
        self.drafts.truncate(actions);
        let gone = |source: &Source| matches!(source, Source::Action(at) if *at >= actions);
        for sources in &mut self.sources {
            sources.retain(|source| !gone(source));
        }
        for frame in &mut self.frames {
            frame.own.retain(|source| !gone(source));
        }
    }

    fn of(&self, variable: VariableId) -> Sources {
        self.sources.get(variable as usize).cloned().unwrap_or_default()
    }

    fn of_mut(&mut self, variable: VariableId) -> &mut Sources {
        let at = variable as usize;
        if self.sources.len() <= at {
            self.sources.resize_with(at + 1, Sources::default);
        }
        &mut self.sources[at]
    }

    /// What a statement has used up to now: its own actions, which have their sources; without any,
    /// those of what it reads.
    fn used(&self, frame: &Frame) -> Sources {
        if !frame.own.is_empty() {
            return frame.own.clone();
        }
        frame.reads.iter().flat_map(|variable| self.of(*variable)).collect()
    }

    /// What decides whether the innermost statement runs.
    fn control(&self) -> Sources {
        let around = self.frames.len().saturating_sub(1);
        self.frames[..around].iter().flat_map(|frame| self.used(frame)).collect()
    }

    pub fn begin(&mut self, line: u32, loop_targets: Option<Vec<VariableId>>) {
        let is_loop = loop_targets.is_some();
        self.frames.push(Frame {
            line,
            is_loop,
            targets: loop_targets.unwrap_or_default(),
            ..Frame::default()
        });
    }

    /// A statement ends: what it assigns holds what it has used.
    pub fn end(&mut self, assigned: &[VariableId]) {
        let control = self.control();
        let Some(frame) = self.frames.pop() else { return };
        let mut used = self.used(&frame);
        used.extend(control);
        // Only at the top is it sure to run.
        let sure = self.frames.len() <= 1 && !frame.is_loop;
        for variable in assigned {
            let sources = self.of_mut(*variable);
            if sure {
                sources.clear();
            }
            sources.extend(used.iter().copied());
        }
    }

    pub fn read(&mut self, variable: VariableId) {
        if let Some(frame) = self.frames.last_mut() {
            frame.reads.insert(variable);
        }
    }

    /// An access of the innermost statement.
    pub fn add(&mut self, access: &Access) {
        let control = self.control();
        let Some(frame) = self.frames.last() else { return };
        // A write reads the row it writes: one action.
        let same = |draft: &Draft| {
            draft.access.table == access.table && trace::same_key(&draft.access.key, &access.key)
        };
        for source in &frame.own {
            if let Source::Action(at) = source
                && same(&self.drafts[*at])
            {
                self.drafts[*at].access.write |= access.write;
                return;
            }
        }
        let mut sources: Sources = frame.reads.iter().flat_map(|variable| self.of(*variable)).collect();
        sources.extend(control);
        let loops = self.frames.iter().filter(|frame| frame.is_loop).map(|frame| frame.line).collect();
        let at = self.drafts.len();
        self.drafts.push(Draft { access: access.clone(), line: frame.line, loops, sources });
        if let Some(frame) = self.frames.last_mut() {
            frame.own.insert(Source::Action(at));
        }
    }

    /// A loop's body begins; `assigned` are the variables it assigns. Answers the loop.
    pub fn enter_loop(&mut self, assigned: &[VariableId]) -> usize {
        self.loops += 1;
        let number = self.loops;
        for variable in assigned {
            self.of_mut(*variable).insert(Source::Carried(number, *variable));
        }
        if let Some(frame) = self.frames.last() {
            let used = self.used(frame);
            for variable in frame.targets.clone() {
                *self.of_mut(variable) = used.clone();
            }
        }
        number
    }

    /// It ends: what its rounds leave to each other is known.
    pub fn leave_loop(&mut self, number: usize, assigned: &[VariableId], first: usize) {
        // Variables may hold what others have carried, and so on.
        let mut carried: Vec<(VariableId, Sources)> = assigned.iter().map(|v| (*v, self.of(*v))).collect();
        for _ in 0..carried.len() {
            let known = carried.clone();
            for (_, sources) in &mut carried {
                *sources = resolved(sources, number, &known, true);
            }
        }
        for sources in self.sources.iter_mut() {
            *sources = resolved(sources, number, &carried, false);
        }
        for draft in &mut self.drafts[first..] {
            draft.sources = resolved(&draft.sources, number, &carried, false);
        }
    }

    /// What the graph of all actions is made of, once somebody asks for it.
    pub fn finish(self) -> Drafts {
        Drafts { drafts: self.drafts, graph: OnceLock::new() }
    }
}

impl Drafts {
    /// The graph of all actions.
    pub fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| self.build())
    }

    fn build(&self) -> Graph {
        let mut actions: Vec<Action> = Vec::with_capacity(self.drafts.len());
        // Of each table: the actions that later ones have to be asked about. Those before a write
        // that reaches what they do are behind it.
        let mut open: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (at, draft) in self.drafts.iter().enumerate() {
            let mut depends: BTreeSet<usize> = draft
                .sources
                .iter()
                .filter_map(|source| match source {
                    Source::Action(other) if *other != at => Some(*other),
                    _ => None,
                })
                .collect();
            let open = open.entry(&draft.access.table).or_default();
            open.retain(|&other| {
                let earlier = &self.drafts[other].access;
                if meet(earlier, &draft.access) {
                    depends.insert(other);
                }
                !covers(&draft.access, earlier)
            });
            open.push(at);
            actions.push(Action {
                line: draft.line,
                access: draft.access.clone(),
                loops: draft.loops.clone(),
                depends: depends.into_iter().collect(),
                point: 0,
            });
        }
        Graph::of(actions)
    }
}

/// Sources with what a loop carried put in the place of [`Source::Carried`].
fn resolved(sources: &Sources, number: usize, known: &[(VariableId, Sources)], keep: bool) -> Sources {
    let mut result = Sources::new();
    for source in sources {
        match source {
            Source::Carried(here, variable) if *here == number => {
                if keep {
                    result.insert(*source);
                }
                let carried = known.iter().find(|(other, _)| other == variable);
                let carried = carried.into_iter().flat_map(|(_, sources)| sources);
                result
                    .extend(carried.filter(|s| keep || !matches!(s, Source::Carried(n, _) if *n == number)));
            }
            other => {
                result.insert(*other);
            }
        }
    }
    result
}

/// Whether two actions may reach the same rows, one of them to write.
fn meet(left: &Access, right: &Access) -> bool {
    use archipel_planner::bound::ExprKind::Const;
    if left.table != right.table || !(left.write || right.write) {
        return false;
    }
    match (&left.key, &right.key) {
        (RouteKey::Point(left), RouteKey::Point(right)) => match (&left.kind, &right.kind) {
            (Const(left), Const(right)) => left == right,
            _ => true,
        },
        _ => true,
    }
}

/// Whether everything that meets the earlier action meets the later one, which waits for it.
fn covers(later: &Access, earlier: &Access) -> bool {
    use archipel_planner::bound::ExprKind::Const;
    let constant = |access: &Access| match &access.key {
        RouteKey::Point(BoundExpr { kind: Const(value), .. }) => Some(value.clone()),
        _ => None,
    };
    later.write && constant(later).is_none_or(|here| constant(earlier) == Some(here))
}

/// The variables of a loop; `None` for what is no loop.
pub(in crate::compile) fn loop_targets(kind: &StatementKind) -> Option<Vec<VariableId>> {
    match kind {
        StatementKind::Loop { .. } | StatementKind::While { .. } => Some(Vec::new()),
        StatementKind::ForInteger { variable, .. } => Some(vec![*variable]),
        StatementKind::ForQuery { targets, .. }
        | StatementKind::ForDynamic { targets, .. }
        | StatementKind::ForEach { targets, .. } => Some(targets.iter().map(|t| t.variable).collect()),
        StatementKind::ForCursor { record, .. } => Some(vec![*record]),
        _ => None,
    }
}

/// Whether a statement has others inside, which speak for themselves.
pub(in crate::compile) fn is_compound(kind: &StatementKind) -> bool {
    matches!(kind, StatementKind::Block(_) | StatementKind::If { .. } | StatementKind::Case { .. })
        || loop_targets(kind).is_some()
}

/// Whether a statement sets FOUND.
pub(in crate::compile) fn sets_found(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Sql { .. }
            | StatementKind::Perform { .. }
            | StatementKind::Fetch { .. }
            | StatementKind::ReturnQuery { .. }
            | StatementKind::ReturnQueryDynamic { .. }
    )
}
