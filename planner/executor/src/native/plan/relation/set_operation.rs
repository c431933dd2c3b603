//! UNION, INTERSECT and EXCEPT, compiled.

use archipel_sql::error::Result;

use crate::bound::{Rel, SetOp};
use crate::native::plan::compiler::Compiler;
use crate::native::run::operator::node::Node;
use crate::native::run::operator::set_operation::{Arm, SetOperation};

/// The queries of a set operation from left to right. What a UNION is itself made of joins those of the
/// UNION above, which drops what is there twice if it has to: a long chain is one node, and a row passes
/// through one.
fn arms_of<'r>(op: SetOp, all: bool, left: &'r Rel, right: &'r Rel) -> Vec<&'r Rel> {
    let mut arms = Vec::new();
    // From right to left.
    let mut rest = vec![right, left];
    while let Some(rel) = rest.pop() {
        match rel {
            Rel::SetOp { op: SetOp::Union, all: own, left, right }
                if op == SetOp::Union && (*own || !all) =>
            {
                rest.push(right);
                rest.push(left);
            }
            rel => arms.push(rel),
        }
    }
    arms
}

impl Compiler<'_> {
    pub fn set_operation(
        &mut self,
        op: SetOp,
        all: bool,
        left: &Rel,
        right: &Rel,
        slots: Vec<u32>,
    ) -> Result<Node> {
        let opened = self.open_set_operation(op, all);
        let arms = arms_of(op, all, left, right)
            .into_iter()
            .map(|rel| {
                let node = self.relation(rel)?;
                let slots = self.declare(rel);
                self.mark_all(&slots);
                Ok(Arm { node, slots })
            })
            .collect::<Result<Vec<_>>>();
        (0..opened).for_each(|_| self.close());
        let arms = arms?;
        if let Some(first) = arms.first() {
            self.describe_set_operation(&slots, &first.slots);
        }
        Ok(Node::SetOperation(SetOperation { op, all, arms, slots }))
    }
}
