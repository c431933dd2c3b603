//! Set-returning functions, in FROM and in a SELECT list, compiled.

use archipel_sql::error::Result;
use archipel_sql::function::Intrinsic;
use archipel_sql::type_table::element_of;
use archipel_sql::types::Type;

use super::node::Planned;
use crate::bound::{Alias, Rel, SetCall, SetItem};
use crate::explain::plan::PlanNode;
use crate::native::plan::access::conjunct::Conjunct;
use crate::native::plan::compiler::{Compiler, passed_through};
use crate::native::run::expression::row_shape::RowShape;
use crate::native::run::function::column_definition::{DefinedRow, declared};
use crate::native::run::operator::node::Node;
use crate::native::run::operator::set_function::{Expansion, SetCode, SetSource};
use crate::route::RouteKey;

impl Compiler<'_> {
    /// Plans a function in FROM; `rel` is the relation it is.
    pub(crate) fn plan_function(
        &mut self,
        rel: &Rel,
        call: &SetCall,
        ordinality: bool,
        types: &[Type],
        alias: &Alias,
        pushed: &[Conjunct<'_>],
    ) -> Result<Planned> {
        let slots = self.declare(rel);
        let defined = DefinedRow::of(call, types);
        let node = self.scoped(&[], |c| {
            if let ([slot], [ty]) = (&slots[..types.len()], types) {
                c.know_elements(call, *slot, *ty);
            }
            let (name, source) = c.set_call(call)?;
            let line = c.line(PlanNode::new("Function Scan").on(name));
            c.describe_function(line, rel, alias, &slots);
            let composites = call.answers_composites();
            Ok(Node::Set(SetSource { source, slots, ordinality, composites, defined }))
        })?;
        self.filtered(node, pushed)
    }

    /// Plans a projection with set-returning functions; `rel` is the relation it is.
    pub(crate) fn plan_project_set<'b>(
        &mut self,
        rel: &'b Rel,
        input: &'b Rel,
        items: &'b [SetItem],
        pushed: Vec<Conjunct<'b>>,
    ) -> Result<Planned> {
        let below = self.declare(input);
        let layout = self.declare(rel);
        let computed: Vec<u32> = layout.iter().copied().filter(|slot| !below.contains(slot)).collect();
        let (above, pushable): (Vec<_>, Vec<_>) = pushed.into_iter().partition(|c| c.reads_any(&computed));
        let line = self.open("ProjectSet");
        let input = self.plan(input, pushable, &[]);
        self.close();
        self.describe_sets(line, items, &below, &layout);
        let input = Box::new(input?.node);
        let mut scalars = Vec::new();
        let mut sets = Vec::new();
        self.scoped(&below, |c| {
            for (item, slot) in items.iter().zip(&layout) {
                match item {
                    SetItem::Scalar(expr) if passed_through(expr, &below).is_some() => {}
                    SetItem::Scalar(expr) => scalars.push((*slot, c.source(expr)?)),
                    SetItem::Set { call, ty } => {
                        let shape = match call {
                            SetCall::Routine { routine, .. } => RowShape::of(routine, *ty),
                            SetCall::Builtin { function, .. } if function.columns.len() > 1 => {
                                RowShape::Record(Some(declared(function.columns)))
                            }
                            _ => RowShape::Scalar,
                        };
                        c.know_elements(call, *slot, *ty);
                        sets.push((*slot, c.set_call(call)?.1, shape));
                    }
                }
            }
            Ok(())
        })?;
        self.filtered(Node::Expand(Expansion { input, scalars, sets }), &above)
    }

    /// What is known beforehand of a column with what a call answers: of which array it takes the
    /// elements. In scope: the row its arguments read.
    fn know_elements(&mut self, call: &SetCall, slot: u32, ty: Type) {
        if let SetCall::Builtin { function, args } = call
            && function.intrinsic == Some(Intrinsic::Unnest)
            && let [array] = &args[..]
            && element_of(array.ty.oid) == Some(ty.oid)
            && let Some(array) = self.row_free(array)
        {
            self.in_turn.insert(slot, RouteKey::EachOf(array));
        }
    }

    /// Compiles a call of a set-returning function. In scope: the row its arguments read.
    pub fn set_call(&mut self, call: &SetCall) -> Result<(String, SetCode)> {
        Ok(match call {
            SetCall::Builtin { function, args } => {
                (function.name.to_owned(), SetCode::Builtin { function, args: self.exprs(args)? })
            }
            SetCall::Routine { routine, args } => {
                let compiled = self.link(routine, args)?;
                let args = self.exprs(args)?;
                let strict = routine.strict.then_some(!routine.returns_set);
                let volatile = routine.volatility == 'v';
                (routine.name.clone(), SetCode::Routine { compiled, args, strict, volatile })
            }
            SetCall::Scalar(expr) => ("expression".to_owned(), SetCode::Scalar(self.source(expr)?)),
        })
    }
}
