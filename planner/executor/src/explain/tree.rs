//! The tree of a plan: what is printed as text and what documents are made of.
//!
//! ```text
//! lines while compiling          tree
//! 0 CTE c                        CTE Scan
//! 1   Seq Scan                     aside: CTE c
//! 0 CTE Scan                         Seq Scan
//! ```

use archipel_sql::ast::ExplainOptions;

use super::Telling;
use super::document::{Properties, Value, add};
use super::estimate::{self, Estimate};
use super::plan::{CTE, PlanNode, SUB_PLAN};
use super::run::{Figures, Run, WatchedBy};

/// A node with those below it.
#[derive(Debug)]
pub(super) struct PlanTree {
    node: PlanNode,
    /// What it takes its rows from.
    plans: Vec<PlanTree>,
    asides: Vec<Aside>,
}

/// A query that a node asks beside its rows.
#[derive(Debug)]
struct Aside {
    what: &'static str,
    /// `CTE c`, `SubPlan 1`.
    name: String,
    plans: Vec<PlanTree>,
}

/// What stands at one depth.
#[derive(Default)]
struct Level {
    plans: Vec<PlanTree>,
    /// Those that no node at this depth asks: the one above does.
    asides: Vec<Aside>,
}

/// The tops of a plan: one, but for what has no name in a plan.
pub(super) fn tops(lines: &[(usize, PlanNode)]) -> Vec<PlanTree> {
    let mut count = 0;
    let mut level = level(lines, &mut 0, 0, &mut count);
    if level.plans.is_empty() {
        level.plans.push(PlanTree {
            node: PlanNode::new("Result"),
            plans: Vec::new(),
            asides: std::mem::take(&mut level.asides),
        });
    }
    level.plans
}

fn level(lines: &[(usize, PlanNode)], at: &mut usize, depth: usize, count: &mut usize) -> Level {
    let mut found = Level::default();
    while let Some((deep, node)) = lines.get(*at) {
        if *deep < depth {
            break;
        }
        *at += 1;
        if node.is_aside() {
            *count += 1;
            let name = match &node.named {
                Some(name) => format!("{} {name}", node.what),
                None => format!("{} {count}", node.what),
            };
            let below = level(lines, at, deep + 1, count);
            let mut aside = Aside { what: node.what, name, plans: below.plans };
            match aside.plans.last_mut() {
                Some(plan) => plan.asides.extend(below.asides),
                None => found.asides.extend(below.asides),
            }
            // Who reads a WITH follows it; what an expression asks follows the node whose it is.
            match found.plans.last_mut() {
                Some(before) if node.what != CTE => before.asides.push(aside),
                _ => found.asides.push(aside),
            }
            continue;
        }
        let below = level(lines, at, deep + 1, count);
        let mut asides = std::mem::take(&mut found.asides);
        asides.extend(below.asides);
        found.plans.push(PlanTree { node: node.clone(), plans: below.plans, asides });
    }
    if let Some(last) = found.plans.last_mut() {
        last.asides.append(&mut found.asides);
    }
    found
}

impl PlanTree {
    /// As text: `->  Sort` from column `pad` on, or the top of a plan.
    pub fn lines(&self, pad: Option<usize>, options: ExplainOptions, out: &mut Vec<String>) {
        let mut text = self.node.text(options.verbose);
        if let Some(figures) = self.figures() {
            text.push_str(&format!(" {}", figures.text(options)));
        }
        let (first, inner) = match pad {
            Some(pad) => (format!("{}->  {text}", " ".repeat(pad)), pad + 6),
            None => (text, 2),
        };
        out.push(first);
        let pad = " ".repeat(inner);
        if options.verbose && !self.node.output.is_empty() {
            out.push(format!("{pad}Output: {}", self.output().join(", ")));
        }
        for (name, value) in &self.node.properties {
            match value {
                Value::Text(text) | Value::Number(text) => out.push(format!("{pad}{name}: {text}")),
                Value::Texts(texts) | Value::Numbers(texts) => {
                    out.push(format!("{pad}{name}: {}", texts.join(", ")))
                }
                Value::Bool(_) | Value::Null | Value::Group(_) | Value::Groups(..) => {}
            }
        }
        let aside = |aside: &Aside, out: &mut Vec<String>| {
            out.push(format!("{pad}{}", aside.name));
            aside.plans.iter().for_each(|plan| plan.lines(Some(inner + 2), options, out));
        };
        self.asides.iter().filter(|query| query.what != SUB_PLAN).for_each(|query| aside(query, out));
        self.plans.iter().for_each(|plan| plan.lines(Some(inner), options, out));
        self.asides.iter().filter(|query| query.what == SUB_PLAN).for_each(|query| aside(query, out));
    }

    /// What it did, where that was counted. What is told beside a node that is counted is not counted itself.
    fn figures(&self) -> Option<Figures> {
        match &self.node.watched {
            Some(WatchedBy(watch)) => Some(watch.figures()),
            // Its rows are those that it is built of, and it hands up none.
            None if self.node.what == "Hash" => self.plans.first()?.figures(),
            None => None,
        }
    }

    /// What the run says of the top of a plan that was not counted itself: a change of rows.
    pub fn figures_of_run(&self, run: Run) -> Option<Figures> {
        let answers_nothing = self.node.is_change() && self.node.output.is_empty();
        self.figures().is_none().then(|| run.of_top(answers_nothing))
    }

    /// Whether its nodes were counted in a run: another plan may have run in the place of this one.
    pub fn has_run(&self) -> bool {
        let of_below = || self.plans.iter().any(PlanTree::has_run);
        self.figures().is_some_and(|figures| figures.loops > 0) || of_below()
    }

    /// Forgets what was not counted.
    pub fn uncounted(mut self) -> PlanTree {
        self.node.watched = None;
        self.plans = self.plans.into_iter().map(PlanTree::uncounted).collect();
        for aside in &mut self.asides {
            aside.plans = std::mem::take(&mut aside.plans).into_iter().map(PlanTree::uncounted).collect();
        }
        self
    }

    fn output(&self) -> Vec<String> {
        self.node.output.iter().map(|column| column.text.clone()).collect()
    }

    /// The members of a family that a change of it is about, as PostgreSQL tells them: the tables beside
    /// each other, and their rows below one node.
    pub fn with_members_together(mut self) -> PlanTree {
        self.plans = self.plans.into_iter().map(PlanTree::with_members_together).collect();
        let alike = |plan: &PlanTree| plan.node.what == self.node.what && plan.asides.is_empty();
        if !self.node.is_change() || self.plans.is_empty() || !self.plans.iter().all(alike) {
            return self;
        }
        let mut tables = Vec::new();
        let mut rows = Vec::new();
        for member in self.plans {
            let mut table = Properties::new();
            target(&mut table, &member.node, true);
            tables.push(table);
            rows.extend(member.plans);
            if self.node.output.is_empty() {
                self.node.output = member.node.output;
            }
        }
        self.node.properties.insert(0, ("Target Tables", Value::Groups("Target Table", tables)));
        if rows.len() > 1 {
            let node = PlanNode::new("Append");
            rows = vec![PlanTree { node, plans: rows, asides: Vec::new() }];
        }
        PlanTree { plans: rows, ..self }
    }

    /// As a group of a document. `place`: how it stands to the node above, and as what.
    fn group(
        &self,
        place: Option<(&'static str, Option<&str>)>,
        telling: &Telling,
    ) -> (Properties, Estimate) {
        let options = telling.options;
        let node = &self.node;
        let mut own = Properties::new();
        kind(&mut own, node.what);
        if let Some((relationship, subplan)) = place {
            add(&mut own, "Parent Relationship", relationship);
            if let Some(name) = subplan {
                add(&mut own, "Subplan Name", name);
            }
        }
        add(&mut own, "Parallel Aware", false);
        add(&mut own, "Async Capable", false);
        if let Some(index) = &node.index {
            add(&mut own, "Scan Direction", if node.backward { "Backward" } else { "Forward" });
            add(&mut own, "Index Name", index.as_str());
        }
        target(&mut own, node, options.verbose);
        let joins = matches!(node.what, "Nested Loop" | "Hash Join");
        if joins {
            add(&mut own, "Join Type", node.join.unwrap_or("Inner"));
        }
        if let Some(command) = node.what.strip_prefix("SetOp ") {
            add(&mut own, "Command", command);
        }
        let (plans, below) = self.groups_below(telling);
        let expected = estimate::of_node(node, &below);
        if options.costs != Some(false) {
            add(&mut own, "Startup Cost", Value::decimal(expected.startup, 2));
            add(&mut own, "Total Cost", Value::decimal(expected.total.max(expected.startup), 2));
            add(&mut own, "Plan Rows", Value::decimal(expected.rows, 0));
            add(&mut own, "Plan Width", u64::from(expected.width));
        }
        let of_run = telling.run.filter(|_| place.is_none()).and_then(|run| self.figures_of_run(run));
        if let Some(figures) = self.figures().or(of_run) {
            figures.add_to(&mut own, options);
        }
        if options.verbose && !node.output.is_empty() {
            add(&mut own, "Output", self.output());
        }
        if joins {
            add(&mut own, "Inner Unique", self.plans.get(1).is_some_and(PlanTree::finds_one_row));
        }
        for &(name, ref value) in &node.properties {
            add(&mut own, name, value.clone());
        }
        if options.buffers == Some(true) {
            add_buffers(&mut own);
        }
        if node.what == "Append" {
            add(&mut own, "Subplans Removed", 0u64);
        }
        if !plans.is_empty() {
            add(&mut own, "Plans", Value::Groups("Plan", plans));
        }
        (own, expected)
    }

    /// The top of a document.
    pub fn top(&self, telling: &Telling) -> Properties {
        self.group(None, telling).0
    }

    /// What stands below it in a document, and what is expected of what it takes its rows from.
    fn groups_below(&self, telling: &Telling) -> (Vec<Properties>, Vec<Estimate>) {
        let asides = |late: bool| {
            let asides = self.asides.iter().filter(move |aside| (aside.what == SUB_PLAN) == late);
            asides.map(|aside| aside.group(telling)).collect::<Vec<_>>()
        };
        let mut groups = asides(false);
        let mut expected = Vec::with_capacity(self.plans.len());
        for (at, plan) in self.plans.iter().enumerate() {
            let relationship = match (self.node.what, at) {
                ("Append", _) => "Member",
                (_, 0) => "Outer",
                _ if self.node.is_change() => "Member",
                _ => "Inner",
            };
            let (group, estimate) = plan.group(Some((relationship, None)), telling);
            groups.push(group);
            expected.push(estimate);
        }
        groups.extend(asides(true));
        (groups, expected)
    }

    fn finds_one_row(&self) -> bool {
        match self.node.what {
            "Hash" => self.plans.first().is_some_and(PlanTree::finds_one_row),
            _ => self.node.scan.is_some_and(|facts| facts.unique),
        }
    }
}

impl Aside {
    fn group(&self, telling: &Telling) -> Properties {
        let relationship = if self.what == SUB_PLAN { "SubPlan" } else { "InitPlan" };
        let place = Some((relationship, Some(self.name.as_str())));
        match &self.plans[..] {
            [plan] => plan.group(place, telling).0,
            _ => {
                let nothing =
                    PlanTree { node: PlanNode::new("Result"), plans: Vec::new(), asides: Vec::new() };
                nothing.group(place, telling).0
            }
        }
    }
}

/// What kind of node it is.
fn kind(own: &mut Properties, what: &'static str) {
    let (kind, strategy) = match what {
        "Insert" | "Update" | "Delete" | "Merge" => {
            add(own, "Node Type", "ModifyTable");
            add(own, "Operation", what);
            return;
        }
        "Aggregate" => ("Aggregate", "Plain"),
        "HashAggregate" => ("Aggregate", "Hashed"),
        "MixedAggregate" => ("Aggregate", "Mixed"),
        "Scan" => ("Seq Scan", ""),
        "SetOp Intersect" | "SetOp Intersect All" | "SetOp Except" | "SetOp Except All" => {
            ("SetOp", "Hashed")
        }
        other => (other, ""),
    };
    add(own, "Node Type", kind);
    if !strategy.is_empty() {
        add(own, "Strategy", strategy);
    }
    if kind == "Aggregate" {
        add(own, "Partial Mode", "Simple");
    }
}

/// What a node scans or changes (ExplainTargetRel).
fn target(own: &mut Properties, node: &PlanNode, with_schema: bool) {
    let named = match node.what {
        "CTE Scan" | "WorkTable Scan" => "CTE Name",
        "Function Scan" => "Function Name",
        "Values Scan" => "",
        _ => "Relation Name",
    };
    if let Some(relation) = node.relation.as_deref().filter(|_| !named.is_empty()) {
        add(own, named, relation);
        if let Some(schema) = node.schema.as_deref().filter(|_| with_schema) {
            add(own, "Schema", schema);
        }
    }
    if let Some(alias) = node.alias.as_ref().or(node.relation.as_ref()) {
        add(own, "Alias", alias.as_str());
    }
}

/// Blocks that were read and written: there are none.
pub(super) fn add_buffers(own: &mut Properties) {
    for name in [
        "Shared Hit Blocks",
        "Shared Read Blocks",
        "Shared Dirtied Blocks",
        "Shared Written Blocks",
        "Local Hit Blocks",
        "Local Read Blocks",
        "Local Dirtied Blocks",
        "Local Written Blocks",
        "Temp Read Blocks",
        "Temp Written Blocks",
    ] {
        add(own, name, 0u64);
    }
}
