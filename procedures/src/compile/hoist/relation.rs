//! Calls in joins, window functions and the parts of WITH.
//!
//! What a query reads beside a call is read before the call is made, as the snapshot of the whole has it:
//! rows of the left side of a join, and of CTEs, wait in registers like answers do.

use archipel_planner::bind::visit;
use archipel_planner::bound::{
    BoundQuery, BoundStatement, Cte, CteBody, ExprKind, JoinKind, Rel, SetCall, SetItem,
};
use archipel_sql::error::Result;

use super::condition::{holds_call, reads_query};
use super::join_side::{may_wait, on_to_right};
use super::reads::{
    reads_its_table, reads_table, reads_tables, relations, relations_of, relations_of_cte, shift_from,
    without_answers,
};
use super::state::{EachRow, Walk};

impl Walk<'_, '_> {
    pub(super) fn join(&mut self, rel: &mut Rel) -> Result<bool> {
        on_to_right(rel);
        let Rel::Join { left, right, on, lateral, .. } = &mut *rel else { return Ok(false) };
        let (in_left, in_right) = (self.is_called_in(left), self.is_called_in(right));
        if self.blocked || on.as_ref().is_some_and(holds_call) || !(in_left || in_right) {
            self.blocked = true;
            return Ok(false);
        }
        let lateral = *lateral;
        if in_left && !lateral && may_wait(right) {
            self.keep_tables(right)?;
        }
        let reads = in_left && reads_tables(right);
        self.contained(left)?;
        // In which order a join comes to its rows nobody knows.
        self.tested = false;
        if lateral {
            return self.lateral(rel, reads);
        }
        if in_right && self.blocked && !self.is_called_in(left) && left.width() > 0 {
            self.keep(left)?;
            self.blocked = false;
        }
        self.contained(right)?;
        self.tested = false;
        Ok(false)
    }

    /// A function on the right side, or a query, called for each row of the left one; whether it `reads`
    /// what calls on the left side may have changed.
    fn lateral(&mut self, rel: &mut Rel, reads: bool) -> Result<bool> {
        let Rel::Join { kind: JoinKind::Inner | JoinKind::Left, left, right, on, .. } = &mut *rel else {
            self.blocked = true;
            return Ok(false);
        };
        let Rel::Function { call: SetCall::Routine { routine, args }, .. } = &mut **right else {
            if reads {
                self.blocked = true;
                return Ok(false);
            }
            return self.lateral_query(rel);
        };
        if !self.is_call(routine) || args.iter().any(reads_query) {
            self.blocked = true;
            return Ok(false);
        }
        let columns = left.types();
        args.iter_mut().for_each(|arg| visit::lower_depth(arg, 1));
        self.each_row(left, &mut |walk| walk.routine(routine, args))?;
        args.iter_mut().for_each(|arg| visit::raise_depth(arg, 1));
        let answers = left.width() - columns.len();
        if answers == 0 {
            self.blocked = true;
            return Ok(false);
        }
        // Whatever was read has been.
        self.blocked = false;
        if let Some(on) = on {
            shift_from(on, columns.len(), answers);
        }
        without_answers(rel, columns.len(), answers);
        Ok(false)
    }

    pub(super) fn window(&mut self, rel: &mut Rel) -> Result<bool> {
        let Rel::Window { input, calls } = &mut *rel else { return Ok(false) };
        let width = input.width();
        self.below(input)?;
        let mut parts = calls.iter().flat_map(|call| {
            let sorted = call.order_by.iter().map(|key| &key.expr);
            call.args.iter().chain(&call.partition_by).chain(&call.filter).chain(sorted)
        });
        if !parts.any(reads_query) {
            self.each_tested_row(input, &mut |walk| {
                for call in calls.iter_mut() {
                    walk.list(&mut call.partition_by)?;
                    call.order_by.iter_mut().try_for_each(|key| walk.expr(&mut key.expr))?;
                    // A filter with calls is asked by the function, as it goes.
                    if call.filter.is_none() {
                        walk.list(&mut call.args)?;
                    }
                }
                Ok(())
            })?;
        }
        // All rows are there before the first is answered.
        self.tested = false;
        let answers = input.width() - width;
        without_answers(rel, width, answers);
        Ok(false)
    }

    pub(super) fn with(&mut self, ctes: &mut Vec<Cte>, body: &mut Rel) -> Result<bool> {
        let called = self.is_called_in(body) || ctes.iter().any(|cte| self.is_called_in_cte(cte));
        if called && !self.blocked && !is_cut_short(body) {
            self.keep_read(ctes)?;
            self.keep_tables_of(body)?;
        }
        let reads = reads_tables(body);
        let mut read_ctes = Vec::new();
        relations(body, &mut |rel| read_ctes.extend(cte_read(rel)));
        if self.blocked || !called || is_cut_short(body) || !self.answer_ctes(ctes, reads, read_ctes)? {
            self.blocked = true;
            return Ok(false);
        }
        let around = self.ctes.len();
        self.ctes.extend(ctes.iter().cloned());
        let once = self.contained(body);
        self.ctes.truncate(around);
        once
    }

    /// The same of a statement.
    pub(super) fn statement_with(
        &mut self,
        ctes: &mut Vec<Cte>,
        statement: &mut BoundStatement,
    ) -> Result<()> {
        let called = self.is_called_in_statement(statement)
            || self.fires_definitions(statement)
            || ctes.iter().any(|cte| self.is_called_in_cte(cte));
        let mut cut = false;
        relations_of(statement, &mut |rel| cut |= matches!(rel, Rel::Limit { .. }));
        if called && !self.blocked && !cut {
            self.keep_read(ctes)?;
            match statement {
                BoundStatement::Query(query) => self.keep_tables_of(&mut query.rel)?,
                BoundStatement::Insert(insert) => self.keep_tables_of(&mut insert.source)?,
                _ => {}
            }
        }
        let mut reads = reads_its_table(statement);
        let mut read_ctes = Vec::new();
        relations_of(statement, &mut |rel| {
            reads |= reads_table(rel);
            read_ctes.extend(cte_read(rel));
        });
        if self.blocked || !called || cut || !self.answer_ctes(ctes, reads, read_ctes)? {
            self.blocked = true;
            return Ok(());
        }
        let around = self.ctes.len();
        self.ctes.extend(ctes.iter().cloned());
        let walked = self.statement(statement);
        self.ctes.truncate(around);
        walked
    }

    /// Reads the tables of CTEs that come behind others before any of them is computed: no part of a
    /// statement sees what another one does.
    fn keep_read(&mut self, ctes: &mut [Cte]) -> Result<()> {
        for cte in ctes.iter_mut().skip(1) {
            match &mut cte.body {
                CteBody::Query(rel) => self.keep_tables_of(rel)?,
                CteBody::Modify(statement) => {
                    if let BoundStatement::Insert(insert) = &mut **statement {
                        self.keep_tables_of(&mut insert.source)?;
                    }
                }
                CteBody::Recursive { .. } => {}
            }
        }
        Ok(())
    }

    fn keep_tables_of(&mut self, rel: &mut Rel) -> Result<()> {
        if may_wait(rel) { self.keep_tables(rel) } else { Ok(()) }
    }

    /// Computes the CTEs of a WITH before the statement, in order; false if that cannot be. What follows
    /// them reads tables, if it `reads`, and these CTEs.
    fn answer_ctes(&mut self, ctes: &mut Vec<Cte>, reads: bool, mut read: Vec<u32>) -> Result<bool> {
        // What nobody reads is not computed, unless it changes data.
        for at in (0..ctes.len()).rev() {
            let cte = &ctes[at];
            match &cte.body {
                CteBody::Modify(_) => {}
                _ if !read.contains(&cte.id) => {
                    ctes.remove(at);
                    continue;
                }
                _ => {}
            }
            relations_of_cte(&ctes[at], &mut |rel| read.extend(cte_read(rel)));
        }
        // No part of a statement sees what another one changes.
        for (at, cte) in ctes.iter().enumerate() {
            let sees = |cte: &Cte| {
                let mut sees = matches!(&cte.body, CteBody::Modify(statement) if reads_its_table(statement));
                relations_of_cte(cte, &mut |rel| sees |= reads_table(rel));
                sees
            };
            let seen = reads || ctes[at + 1..].iter().any(sees);
            if matches!(cte.body, CteBody::Modify(_)) && seen {
                return Ok(false);
            }
        }
        let wide = |cte: &Cte| match &cte.body {
            CteBody::Query(rel) | CteBody::Recursive { initial: rel, .. } => rel.width() > 0,
            CteBody::Modify(statement) => {
                !matches!(**statement, BoundStatement::Merge(_) | BoundStatement::Call(_))
            }
        };
        if !ctes.iter().all(wide) {
            return Ok(false);
        }
        let around = self.ctes.len();
        let answered = ctes.iter_mut().try_for_each(|cte| self.answer_cte(cte));
        self.ctes.truncate(around);
        answered.map(|()| true)
    }

    fn answer_cte(&mut self, cte: &mut Cte) -> Result<()> {
        let whole = cte.clone();
        let rows = match &mut cte.body {
            CteBody::Query(rel) => {
                self.contained(rel)?;
                self.keep(rel)?;
                std::mem::replace(rel, Rel::Unit)
            }
            CteBody::Recursive { initial, .. } => {
                let scan = Rel::CteScan { id: cte.id, types: initial.types(), alias: None };
                let mut rel = Rel::With { ctes: vec![whole], body: Box::new(scan) };
                self.keep(&mut rel)?;
                rel
            }
            CteBody::Modify(statement) => {
                self.statement(statement)?;
                let types: Vec<_> = statement.columns().iter().map(|column| column.ty).collect();
                let row = EachRow::of(types.len());
                let statement = self.among_ctes((**statement).clone());
                let without_rows = types.is_empty();
                let rows = self.answered_rows(&statement, types, row)?;
                if without_rows { Rel::Unit } else { rows }
            }
        };
        // What stayed in it has run by then.
        self.blocked = false;
        cte.body = CteBody::Query(rows);
        self.ctes.push(cte.clone());
        Ok(())
    }

    /// A statement that may read the CTEs around it.
    pub(super) fn among_ctes(&self, statement: BoundStatement) -> BoundStatement {
        if self.ctes.is_empty() {
            return statement;
        }
        match statement {
            BoundStatement::Query(BoundQuery { rel, columns }) => {
                let rel = Rel::With { ctes: self.ctes.clone(), body: Box::new(rel) };
                BoundStatement::Query(BoundQuery { rel, columns })
            }
            statement => BoundStatement::With { ctes: self.ctes.clone(), statement: Box::new(statement) },
        }
    }

    /// Reads the rows of a query before the statement.
    pub(super) fn keep(&mut self, rel: &mut Rel) -> Result<()> {
        let row = EachRow::of(rel.width());
        *rel = self.answered_query(std::mem::replace(rel, Rel::Unit), row)?;
        Ok(())
    }

    /// Whether a query holds a call that may be taken out.
    pub(super) fn is_called_in(&self, rel: &Rel) -> bool {
        let mut found = false;
        relations(rel, &mut |rel| found |= self.is_called_by(rel));
        visit::visit_rel(rel, 0, &mut |part, _| {
            found |= matches!(&part.kind, ExprKind::Routine { routine, .. } if self.is_call(routine));
            !found
        });
        found
    }

    fn is_called_in_cte(&self, cte: &Cte) -> bool {
        match &cte.body {
            CteBody::Query(rel) => self.is_called_in(rel),
            CteBody::Recursive { .. } => false,
            CteBody::Modify(statement) => {
                self.is_called_in_statement(statement) || self.fires_definitions(statement)
            }
        }
    }

    pub(super) fn is_called_in_statement(&self, statement: &BoundStatement) -> bool {
        let mut found = false;
        relations_of(statement, &mut |rel| found |= self.is_called_by(rel));
        visit::visit_statement(statement, 0, &mut |part, _| {
            found |= matches!(&part.kind, ExprKind::Routine { routine, .. } if self.is_call(routine));
            !found
        });
        found
    }

    /// Whether an operator calls a routine for a set of rows.
    fn is_called_by(&self, rel: &Rel) -> bool {
        let called =
            |call: &SetCall| matches!(call, SetCall::Routine { routine, .. } if self.is_call(routine));
        match rel {
            Rel::Function { call, .. } => called(call),
            Rel::ProjectSet { items, .. } => {
                items.iter().any(|item| matches!(item, SetItem::Set { call, .. } if called(call)))
            }
            _ => false,
        }
    }
}

/// Whether less than all of a query's rows may be asked for.
fn is_cut_short(rel: &Rel) -> bool {
    let mut found = false;
    relations(rel, &mut |rel| found |= matches!(rel, Rel::Limit { .. }));
    found
}

fn cte_read(rel: &Rel) -> Option<u32> {
    match rel {
        Rel::CteScan { id, .. } => Some(*id),
        _ => None,
    }
}
