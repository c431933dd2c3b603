//! Blocks and branches; what is known where paths meet.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Type;

use super::assignment::{assigned_in, walk};
use super::path::{Path, PathEnd};
use crate::compile::compiler::{Compiler, OpenLabel};
use crate::compile::error_context::expression_line;
use crate::compile::record::variable::{RecordState, Storage};
use crate::plpgsql::ast::*;
use crate::run::operation::expression::Expression;
use crate::run::operation::site::Site;
use crate::run::operation::*;

impl Compiler<'_> {
    fn path_end(&self) -> PathEnd {
        PathEnd { symbols: self.trace.snapshot(), records: self.record_states() }
    }

    fn go_to(&mut self, end: &PathEnd) {
        self.trace.restore(end.symbols.clone());
        self.set_record_states(&end.records);
    }

    /// Continues where several paths meet.
    fn meet(&mut self, ends: Vec<PathEnd>) {
        let Some(first) = ends.first() else { return };
        let mut records = first.records.clone();
        for end in &ends[1..] {
            records = self.records_meet(&records, &end.records);
        }
        self.set_record_states(&records);
        self.trace.join(ends.into_iter().map(|end| end.symbols).collect());
    }

    /// The outermost block.
    pub fn block(&mut self, block: &Block) -> Result<Operation> {
        Ok(self.inner_block(block)?.0)
    }

    pub(super) fn inner_block(&mut self, block: &Block) -> Result<Path> {
        let site = Self::site(block.line, "statement block");
        let number = self.open(block.label.clone(), false);
        // Handlers are for what follows: an initial value that fails is the block's around it.
        let mut before = self.initialise(&block.declared)?;
        let entry = self.path_end();
        let (mut body, mut through) = self.statements(&block.body)?;
        let mut ends = Vec::new();
        if through {
            ends.push(self.path_end());
        }
        let handlers = match &block.exceptions {
            None => None,
            Some(exceptions) => {
                let assigned = assigned_in(self, &block.body);
                let mut plans = Vec::new();
                for handler in &exceptions.handlers {
                    // The error may have come from anywhere in the body.
                    self.go_to(&entry);
                    self.doubt_null_records(&assigned);
                    self.doubt_structures(&assigned);
                    self.forget_all(&assigned, "assigned in a block that failed");
                    let (operations, falls) = self.statements(&handler.body)?;
                    if falls {
                        ends.push(self.path_end());
                    }
                    through |= falls;
                    plans.push(HandlerPlan { conditions: handler.conditions.clone(), body: operations });
                }
                Some(Handlers {
                    sqlstate: self.register_of(exceptions.sqlstate),
                    sqlerrm: self.register_of(exceptions.sqlerrm),
                    handlers: plans,
                })
            }
        };
        let left = self.labels.pop().map(|open| open.left).unwrap_or_default();
        let falls = !ends.is_empty();
        self.meet(ends);
        self.left_with(left, falls);
        if block.label.is_some() && self.left_early(&block.body) {
            let assigned = assigned_in(self, &block.body);
            self.doubt_null_records(&assigned);
            self.forget_all(&assigned, "assigned in a block that may be left early");
            through = true;
        }
        let operation = |kind| Operation { site, rights: None, kind };
        if handlers.is_none() && block.label.is_none() {
            before.append(&mut body);
            return Ok((operation(OperationKind::Sequence(before)), through));
        }
        let inner = operation(OperationKind::Block { number, body, handlers });
        if before.is_empty() {
            return Ok((inner, through));
        }
        before.push(inner);
        Ok((operation(OperationKind::Sequence(before)), through))
    }

    /// Whether some EXIT names a label.
    fn left_early(&self, body: &[Statement]) -> bool {
        let mut found = false;
        walk(body, &mut |statement| {
            found |= matches!(&statement.kind, StatementKind::Leave { exit: true, label: Some(_), .. });
        });
        found
    }

    pub(in crate::compile) fn open(&mut self, label: Option<String>, is_loop: bool) -> u32 {
        self.numbers += 1;
        let (left, continued) = Default::default();
        let number = self.numbers;
        self.labels.push(OpenLabel { label, number, is_loop, left, continued, changing: false });
        self.numbers
    }

    /// Goes on where a block or loop has ended, or was left with these structures of the records. Unless
    /// it `falls` through, what is known here counts for nothing.
    pub(super) fn left_with(&mut self, left: Vec<Vec<RecordState>>, falls: bool) {
        let mut ends = left.into_iter();
        let known = if falls { Some(self.record_states()) } else { ends.next() };
        let Some(mut known) = known else { return };
        for end in ends {
            known = self.records_meet(&known, &end);
        }
        self.set_record_states(&known);
    }

    pub(super) fn forget_all(&mut self, variables: &[VariableId], reason: &str) {
        for id in variables {
            let registers: Vec<u32> = match &self.storage[*id as usize] {
                Storage::Scalar { register, .. } => vec![*register],
                Storage::Row { fields, present, .. } => {
                    fields.iter().map(|f| f.register).chain(*present).collect()
                }
                Storage::Record { shapes, tag, .. } => {
                    let fields = shapes.iter().flatten().map(|f| f.register);
                    fields.chain(tag.iter().map(|tag| tag.register)).collect()
                }
            };
            for register in registers {
                self.trace.forget(register, reason);
            }
        }
    }

    pub(super) fn if_statement(
        &mut self,
        site: Site,
        arms: &[(Fragment, Vec<Statement>)],
        otherwise: &[Statement],
    ) -> Result<Path> {
        let entry = self.path_end();
        let mut ends = Vec::new();
        let mut compiled = Vec::new();
        let mut failed = None;
        for (condition, body) in arms {
            let condition = self.condition(condition);
            // Whether the others are asked depends on the first.
            self.open_for_calls(false);
            let (body, through) = self.statements(body)?;
            if through {
                ends.push(self.path_end());
            }
            self.go_to(&entry);
            match condition {
                Ok(condition) => compiled.push((condition, body)),
                // Reached when the conditions before it are false.
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let otherwise = match failed {
            Some(error) => vec![self.or_fail(site, Err(error))],
            None => {
                let (body, through) = self.statements(otherwise)?;
                if through {
                    ends.push(self.path_end());
                }
                body
            }
        };
        let through = !ends.is_empty();
        self.meet(ends);
        Ok((Operation { site, rights: None, kind: OperationKind::If { arms: compiled, otherwise } }, through))
    }

    pub(super) fn case_statement(
        &mut self,
        site: Site,
        operand: Option<&Fragment>,
        arms: &[(Vec<Fragment>, Vec<Statement>)],
        otherwise: Option<&[Statement]>,
    ) -> Result<Path> {
        let mut before = Vec::new();
        let mut tested = None;
        if let Some(operand) = operand {
            match self.bind(operand, None).and_then(|bound| {
                let ty = bound.ty;
                Ok((self.plan_typed(&bound, expression_line(operand))?, ty))
            }) {
                Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
                Ok((value, ty)) => {
                    let register = self.scratch();
                    self.trace.forget(register, "the value of a CASE");
                    before.push(Operation {
                        site,
                        rights: None,
                        kind: OperationKind::Assign { register, value },
                    });
                    tested = Some(BoundExpr::new(ExprKind::Variable(register), ty));
                }
            }
        }
        let entry = self.path_end();
        let mut ends = Vec::new();
        let mut compiled = Vec::new();
        let mut failed = None;
        if tested.is_some() {
            self.open_for_calls(false);
        }
        for (tests, body) in arms {
            let condition = self.case_condition(tested.as_ref(), tests);
            // Whether the others are asked depends on the first.
            self.open_for_calls(false);
            let (body, through) = self.statements(body)?;
            if through {
                ends.push(self.path_end());
            }
            self.go_to(&entry);
            match condition {
                Ok(condition) => compiled.push((condition, body)),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let otherwise = match (failed, otherwise) {
            (Some(error), _) => vec![self.or_fail(site, Err(error))],
            (None, Some(body)) => {
                let (body, through) = self.statements(body)?;
                if through {
                    ends.push(self.path_end());
                }
                body
            }
            (None, None) => {
                let error = SqlError::new(SqlState::CASE_NOT_FOUND, "case not found")
                    .with_hint("CASE statement is missing ELSE part.");
                vec![Operation { site, rights: None, kind: OperationKind::Fail { error: Box::new(error) } }]
            }
        };
        let through = !ends.is_empty();
        self.meet(ends);
        let kind = OperationKind::If { arms: compiled, otherwise };
        before.push(Operation { site, rights: None, kind });
        Ok((Operation { site, rights: None, kind: OperationKind::Sequence(before) }, through))
    }

    /// `operand = test OR …`, or the one condition of a searched CASE.
    fn case_condition(&mut self, tested: Option<&BoundExpr>, tests: &[Fragment]) -> Result<Expression> {
        let Some(tested) = tested else {
            return match tests {
                [condition] => self.condition(condition),
                _ => Err(SqlError::internal("a searched CASE tests one condition an arm")),
            };
        };
        let mut conditions = Vec::new();
        for test in tests {
            conditions.push(self.equality(tested, test)?);
        }
        let bound = match conditions.len() {
            1 => conditions.remove(0),
            _ => BoundExpr::new(ExprKind::Or(conditions), Type::BOOL),
        };
        self.plan_part(&bound)
    }

    /// `tested = test`, by the rules of the operator.
    fn equality(&self, tested: &BoundExpr, test: &Fragment) -> Result<BoundExpr> {
        let expr = archipel_sql::parser::parse_expression(&test.text)?;
        self.binding(test, |env| archipel_planner::bind::bind_equality(tested.clone(), &expr, env))
    }

    pub(in crate::compile) fn leave(
        &mut self,
        exit: bool,
        label: Option<&str>,
        when: Option<&Fragment>,
    ) -> Result<OperationKind> {
        let when = when.map(|when| self.condition(when)).transpose()?;
        let records = self.record_states();
        let target = self.labels.iter_mut().rev().find(|open| match label {
            Some(label) => open.label.as_deref() == Some(label),
            None => open.is_loop,
        });
        match target {
            Some(open) => {
                let ends = if exit { &mut open.left } else { &mut open.continued };
                ends.push(records);
                Ok(OperationKind::Leave { exit, target: open.number, when })
            }
            // The routine's own name labels the whole of it.
            None => Ok(OperationKind::Leave { exit, target: 0, when }),
        }
    }
}
