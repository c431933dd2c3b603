//! What the operators of a plan say of themselves beyond their names, where that is asked for
//! ([`column`](super::column)).

use archipel_sql::catalog::Table;
use archipel_sql::error::Result;
use archipel_sql::types::Type;

use crate::bound::{Alias, BoundExpr, Rel, SetCall, SetItem, SetOp, WindowCall};
use crate::explain;
use crate::explain::plan::{PlanNode, ScanFacts};
use crate::explain::width_of;
use crate::native::plan::compiler::{Compiler, passed_through};

/// What PostgreSQL calls the rows of a VALUES.
const VALUES_NAME: &str = "*VALUES*";

impl Compiler<'_> {
    fn node_at(&mut self, line: usize) -> Option<&mut PlanNode> {
        self.plan.lines.get_mut(line).map(|(_, node)| node)
    }

    /// Several rows of VALUES.
    pub fn describe_values(&mut self, line: usize, rows: usize, slots: &[u32], types: &[Type]) {
        let Some(name) = self.name_rows(&None, VALUES_NAME, slots, types) else { return };
        let output = self.shown(slots);
        if let Some(node) = self.node_at(line) {
            let width = types.iter().map(|ty| width_of(*ty)).sum();
            node.scan = Some(ScanFacts { width, unique: false, rows: Some(rows), conditions: 0, filters: 0 });
            node.relation = Some(name.clone());
            node.alias = Some(name);
            node.output = output;
        }
    }

    /// The only row of VALUES, or none.
    pub fn describe_row(&mut self, line: usize, rows: &[Vec<BoundExpr>], slots: &[u32]) {
        let session = self.env.session();
        let output = self.scoped(&[], |c| {
            let mut output = Vec::new();
            for (expr, slot) in rows.iter().flatten().zip(slots) {
                output.extend(
                    c.describe_computed(*slot, expr.ty, &|name| explain::typed(expr, name, &session)),
                );
            }
            Ok(output)
        });
        if let (Ok(output), Some(node)) = (output, self.node_at(line)) {
            node.output = output;
        }
    }

    /// A function in FROM. In scope: the row that its arguments read.
    pub fn describe_function(&mut self, line: usize, function: &Rel, alias: &Alias, slots: &[u32]) {
        let Rel::Function { call, .. } = function else { return };
        let (schema, other) = match call {
            SetCall::Builtin { function, .. } => (Some("pg_catalog".to_owned()), function.name),
            SetCall::Routine { routine, .. } => (Some(routine.schema.clone()), routine.name.as_str()),
            SetCall::Scalar(_) => (None, "expression"),
        };
        let Some(name) = self.name_rows(alias, other, slots, &function.types()) else { return };
        let output = self.shown(slots);
        let session = self.env.session();
        let told = self.verbose_text(&|name| explain::set_call(call, name, &session));
        if let Some(node) = self.node_at(line) {
            if schema.is_none() {
                node.relation = None;
            }
            node.schema = schema;
            node.alias = Some(name);
            node.output = output;
            node.properties.extend(told.map(|text| ("Function Call", text.into())));
        }
    }

    /// The rows of a query of WITH, of this id and under this name.
    pub fn describe_cte_scan(
        &mut self,
        line: usize,
        (id, alias): (u32, &Alias),
        slots: &[u32],
        types: &[Type],
    ) {
        let Some(cte) = self.cte_name(id) else { return };
        let working = self.ctes.get(&id).is_some_and(|source| source.working);
        let name = self.name_rows(alias, &cte, slots, types);
        let output = self.shown(slots);
        if let Some(node) = self.node_at(line) {
            node.what = if working { "WorkTable Scan" } else { node.what };
            node.relation = Some(cte);
            node.alias = name;
            node.output = output;
        }
    }

    /// Functions that answer sets, over the row in the slots `below`.
    pub fn describe_sets(&mut self, line: usize, items: &[SetItem], below: &[u32], layout: &[u32]) {
        if !self.is_describing() {
            return;
        }
        let session = self.env.session();
        let output = self.scoped(below, |c| {
            let mut output = Vec::new();
            for (item, slot) in items.iter().zip(layout) {
                match item {
                    SetItem::Scalar(expr) if passed_through(expr, below).is_some() => {
                        output.extend(c.shown(&[*slot]));
                    }
                    SetItem::Scalar(expr) => {
                        output.extend(
                            c.describe_computed(*slot, expr.ty, &|name| explain::typed(expr, name, &session)),
                        );
                    }
                    SetItem::Set { call, ty } => {
                        output.extend(
                            c.describe_computed(*slot, *ty, &|name| explain::set_call(call, name, &session)),
                        );
                    }
                }
            }
            Ok(output)
        });
        if let (Ok(output), Some(node)) = (output, self.node_at(line)) {
            node.output = output;
        }
    }

    /// Groups and aggregates.
    pub fn describe_aggregation(&mut self, line: usize, rel: &Rel) -> Result<()> {
        let Rel::Aggregate { input, group_by, sets, aggregates, .. } = rel else { return Ok(()) };
        if !self.is_describing() {
            return Ok(());
        }
        let (slots, below) = (self.declare(rel), self.declare(input));
        let session = self.env.session();
        let (output, keys) = self.scoped(&below, |c| {
            let mut output = Vec::new();
            for (expr, slot) in group_by.iter().zip(&slots) {
                let passed = passed_through(expr, &below);
                match passed {
                    Some(_) => c.name_as(*slot, passed),
                    None => {
                        c.describe_computed(*slot, expr.ty, &|name| explain::typed(expr, name, &session));
                    }
                }
                output.extend(c.shown(&[*slot]));
            }
            for (call, slot) in aggregates.iter().zip(&slots[group_by.len()..]) {
                output.extend(
                    c.describe_computed(*slot, call.result, &|name| explain::aggregate(call, name, &session)),
                );
            }
            for slot in &slots[group_by.len() + aggregates.len()..] {
                output.extend(c.describe_computed(*slot, Type::INT4, &|_| "GROUPING(...)".to_owned()));
            }
            Ok((output, c.keys_told(group_by)))
        })?;
        if let Some(node) = self.node_at(line) {
            node.what = match (sets.len(), group_by.is_empty()) {
                (0 | 1, true) => "Aggregate",
                (0 | 1, false) => "HashAggregate",
                _ => "MixedAggregate",
            };
            node.output = output;
            if !keys.is_empty() {
                node.properties.push(("Group Key", keys.into()));
            }
        }
        Ok(())
    }

    /// Window functions, over the row of their input.
    pub fn describe_windows(
        &mut self,
        line: usize,
        input: &Rel,
        calls: &[WindowCall],
        layout: &[u32],
    ) -> Result<()> {
        if !self.is_describing() {
            return Ok(());
        }
        let below = self.declare(input);
        let mut output = self.shown(&below);
        let session = self.env.session();
        self.scoped(&below, |c| {
            for (call, slot) in calls.iter().zip(&layout[below.len()..]) {
                output.extend(c.describe_computed(*slot, call.result, &|name| {
                    explain::window_call(call, name, &session)
                }));
            }
            Ok(())
        })?;
        if let Some(node) = self.node_at(line) {
            node.output = output;
        }
        Ok(())
    }

    /// Opens the nodes of a set operation; answers how many.
    pub fn open_set_operation(&mut self, op: SetOp, all: bool) -> usize {
        let describing = self.is_describing();
        let outer = match (op, all && describing) {
            (SetOp::Union, _) => (describing && !all).then_some("HashAggregate"),
            (SetOp::Intersect, true) => Some("SetOp Intersect All"),
            (SetOp::Intersect, false) => Some("SetOp Intersect"),
            (SetOp::Except, true) => Some("SetOp Except All"),
            (SetOp::Except, false) => Some("SetOp Except"),
        };
        let appended = (op == SetOp::Union || describing).then_some("Append");
        for node in [outer, appended].into_iter().flatten() {
            self.open(node);
        }
        usize::from(outer.is_some()) + usize::from(appended.is_some())
    }

    /// The columns of a set operation are called as those of its left side are.
    pub fn describe_set_operation(&mut self, slots: &[u32], left: &[u32]) {
        for (slot, left) in slots.iter().zip(left) {
            self.name_as(*slot, Some(*left));
        }
    }

    /// The name of the table whose rows a change has found in these slots.
    pub fn changed_name(&self, table: &Table, slots: &[u32]) -> Option<String> {
        self.is_describing()
            .then(|| self.relation_of_slot(slots.first()).unwrap_or_else(|| table.name.clone()))
    }

    /// Opens the node of a change of a table.
    pub fn open_change(&mut self, what: &'static str, table: &Table, alias: &Alias) -> usize {
        let alias = alias.as_ref().map(|alias| alias.name.clone());
        let node = PlanNode::new(what).on(&table.name).within(&table.schema);
        self.open(PlanNode { alias, ..node })
    }

    /// Opens the node above the inner side of a join, if that is hashed and the plan tells it.
    pub fn open_hashed(&mut self, hashed: bool) -> bool {
        let opens = hashed && self.is_describing();
        if opens {
            self.open("Hash");
        }
        opens
    }
}
