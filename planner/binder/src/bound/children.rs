//! The parts of every node of the bound tree: the one place that knows them.
//!
//! Whoever goes down the tree asks a node for its children, by shared reference (`for_each_child`) or to
//! change them (`for_each_child_mut`), and does with each of them what it will: nothing is allocated, and
//! nothing goes further down by itself. The parts of a kind of node that is new are told of here and nowhere
//! else; no match here has a `_`, so that the compiler asks for them.
//!
//! Children come in the order in which they are evaluated, as far as there is one: the operators below
//! before what is computed of their rows, FILTER before arguments. Each comes with a [`ChildScope`]: whose
//! row it reads, and whether what came before decides that it is evaluated at all.
//!
//! What a domain demands is shared by all who use the domain: it can be looked at, but not changed.

use std::sync::Arc;

use archipel_sql::type_table::element_of;
use archipel_sql::types::Oid;

use super::{
    Accumulator, AggregateCall, BoundExpr, BoundStatement, CteBody, DomainConditions, ExprKind, FrameBound,
    Rel, SetCall, SetItem, Subquery, SubqueryKind, Subscript, WindowCall, WindowFunction,
};

/// A part of a node.
#[derive(Clone, Copy, Debug)]
pub enum BoundChild<'a> {
    Expr(&'a BoundExpr),
    Rel(&'a Rel),
    Statement(&'a BoundStatement),
}

/// A part of a node, to change it.
#[derive(Debug)]
pub enum BoundChildMut<'a> {
    Expr(&'a mut BoundExpr),
    Rel(&'a mut Rel),
    Statement(&'a mut BoundStatement),
}

/// How a part stands to the node it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildScope {
    pub row: ChildRow,
    /// Whether what came before decides if it is evaluated. That there is an error, or a NULL, or nothing to
    /// evaluate it for does not count.
    pub lazy: bool,
}

/// The row that a part reads at depth 0, or one of its operators does, and so where its depths begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildRow {
    /// That of the node, or one that an operator within it makes in its place.
    Same,
    /// One nesting further in: in a subquery, or in the right side of a lateral join.
    Nested,
    /// As far in, and made for a value at hand: an element, a record, a value of a domain.
    Value,
    /// As far in: the state of a defined aggregate, then its arguments.
    State,
}

/// Evaluated with the node, over the same row.
const HERE: ChildScope = ChildScope { row: ChildRow::Same, lazy: false };
/// Over the same row, if it comes to that.
const PERHAPS: ChildScope = here_if(true);
const NESTED: ChildScope = ChildScope { row: ChildRow::Nested, lazy: false };
const VALUE: ChildScope = ChildScope { row: ChildRow::Value, lazy: false };
const STATE: ChildScope = ChildScope { row: ChildRow::State, lazy: false };

const fn here_if(lazy: bool) -> ChildScope {
    ChildScope { row: ChildRow::Same, lazy }
}

impl ChildScope {
    /// How many nestings it is further in than the node.
    pub fn nesting(self) -> u16 {
        match self.row {
            ChildRow::Same => 0,
            ChildRow::Nested | ChildRow::Value | ChildRow::State => 1,
        }
    }
}

impl<'a> BoundChild<'a> {
    /// Calls `f` on each of its own parts.
    pub fn for_each_child(self, f: impl FnMut(BoundChild<'a>, ChildScope)) {
        match self {
            BoundChild::Expr(expr) => expr.for_each_child(f),
            BoundChild::Rel(rel) => rel.for_each_child(f),
            BoundChild::Statement(statement) => statement.for_each_child(f),
        }
    }
}

fn checks(conditions: &Arc<DomainConditions>) -> &[(String, BoundExpr)] {
    &conditions.checks
}

/// None: others have them, too.
fn checks_mut(_: &mut Arc<DomainConditions>) -> &mut [(String, BoundExpr)] {
    &mut []
}

macro_rules! children {
    ($child:ident, $each:ident, $checks:ident, $args:ident, $expressions:ident, $iter:ident, [$($mutability:tt)*]) => {
        impl BoundExpr {
            /// Calls `f` on each part.
            pub fn $each<'a>(&'a $($mutability)* self, mut f: impl FnMut($child<'a>, ChildScope)) {
                match &$($mutability)* self.kind {
                    ExprKind::Const(_) | ExprKind::Param(_) => {}
                    ExprKind::Variable(_) | ExprKind::Column { .. } => {}
                    ExprKind::Call { args: list, .. }
                    | ExprKind::Routine { args: list, .. }
                    | ExprKind::Extreme { args: list, .. }
                    | ExprKind::Array { items: list, .. }
                    | ExprKind::Row(list, _) => {
                        for item in list.$iter() {
                            f($child::Expr(item), HERE);
                        }
                    }
                    ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Coalesce(list) => {
                        for (at, item) in list.$iter().enumerate() {
                            f($child::Expr(item), here_if(at > 0));
                        }
                    }
                    ExprKind::Not(inner)
                    | ExprKind::IsNull(inner)
                    | ExprKind::IsNotNull(inner)
                    | ExprKind::IsBool { expr: inner, .. }
                    | ExprKind::Field { record: inner, .. }
                    | ExprKind::Relabel(inner)
                    | ExprKind::ConvertIo(inner) => f($child::Expr(inner), HERE),
                    ExprKind::ArrayConvert { array, element } => {
                        f($child::Expr(array), HERE);
                        f($child::Expr(element), VALUE);
                    }
                    ExprKind::RowConvert { record, fields } => {
                        f($child::Expr(record), HERE);
                        fields.$iter().for_each(|field| f($child::Expr(field), VALUE));
                    }
                    ExprKind::Domain { expr, conditions } => {
                        f($child::Expr(expr), HERE);
                        for (_, check) in $checks(conditions).$iter() {
                            f($child::Expr(check), VALUE);
                        }
                    }
                    ExprKind::IsDistinctFrom { left, right, .. }
                    | ExprKind::NullIf { left, right, .. }
                    | ExprKind::ArrayOp { left, array: right, .. } => {
                        f($child::Expr(left), HERE);
                        f($child::Expr(right), HERE);
                    }
                    ExprKind::Case { arms, otherwise } => {
                        for (at, (condition, result)) in arms.$iter().enumerate() {
                            f($child::Expr(condition), here_if(at > 0));
                            f($child::Expr(result), PERHAPS);
                        }
                        if let Some(otherwise) = otherwise {
                            f($child::Expr(otherwise), PERHAPS);
                        }
                    }
                    ExprKind::InList { left, list, .. } => {
                        f($child::Expr(left), HERE);
                        list.$iter().for_each(|item| f($child::Expr(item), PERHAPS));
                    }
                    ExprKind::Subscript { array, subscripts } => {
                        f($child::Expr(array), HERE);
                        for subscript in subscripts.$iter() {
                            match subscript {
                                Subscript::Index(index) => f($child::Expr(index), HERE),
                                Subscript::Slice { lower, upper } => {
                                    lower.$iter().for_each(|bound| f($child::Expr(bound), HERE));
                                    upper.$iter().for_each(|bound| f($child::Expr(bound), HERE));
                                }
                            }
                        }
                    }
                    ExprKind::Subquery(subquery) => {
                        let Subquery { kind, rel, .. } = &$($mutability)* **subquery;
                        match kind {
                            SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } => {
                                left.$iter().for_each(|item| f($child::Expr(item), HERE));
                            }
                            SubqueryKind::Scalar | SubqueryKind::Exists | SubqueryKind::Array { .. } => {}
                        }
                        f($child::Rel(rel), NESTED);
                    }
                }
            }
        }

        impl Accumulator {
            /// Calls `f` on each expression that it evaluates for a row or a group.
            fn $each<'a>(&'a $($mutability)* self, mut f: impl FnMut($child<'a>, ChildScope)) {
                match self {
                    Accumulator::Builtin(_) => {}
                    Accumulator::Defined(defined) => {
                        defined.$expressions().for_each(|expr| f($child::Expr(expr), STATE));
                    }
                }
            }
        }

        impl AggregateCall {
            /// Calls `f` on each part.
            fn $each<'a>(&'a $($mutability)* self, mut f: impl FnMut($child<'a>, ChildScope)) {
                let AggregateCall { function, args, distinct: _, filter, order_by, result: _ } = self;
                let arguments = here_if(filter.is_some());
                filter.$iter().for_each(|filter| f($child::Expr(filter), HERE));
                args.$iter().for_each(|arg| f($child::Expr(arg), arguments));
                order_by.$iter().for_each(|key| f($child::Expr(&$($mutability)* key.expr), arguments));
                function.$each(f);
            }
        }

        impl WindowCall {
            /// Calls `f` on each part.
            fn $each<'a>(&'a $($mutability)* self, mut f: impl FnMut($child<'a>, ChildScope)) {
                let WindowCall { function, args, partition_by, order_by, frame, filter, result: _ } = self;
                let arguments = here_if(filter.is_some());
                partition_by.$iter().for_each(|expr| f($child::Expr(expr), HERE));
                order_by.$iter().for_each(|key| f($child::Expr(&$($mutability)* key.expr), HERE));
                for bound in [&$($mutability)* frame.start, &$($mutability)* frame.end] {
                    match bound {
                        FrameBound::Preceding(expr) | FrameBound::Following(expr) => {
                            f($child::Expr(expr), HERE);
                        }
                        FrameBound::UnboundedPreceding
                        | FrameBound::CurrentRow
                        | FrameBound::UnboundedFollowing => {}
                    }
                }
                filter.$iter().for_each(|filter| f($child::Expr(filter), HERE));
                args.$iter().for_each(|arg| f($child::Expr(arg), arguments));
                match function {
                    WindowFunction::Aggregate(function) => function.$each(f),
                    WindowFunction::Ranking(_) => {}
                }
            }
        }

        impl Rel {
            /// Calls `f` on each part: the operators below it, and the expressions that it evaluates.
            pub fn $each<'a>(&'a $($mutability)* self, mut f: impl FnMut($child<'a>, ChildScope)) {
                match self {
                    Rel::Unit | Rel::Scan { .. } | Rel::Family { .. } | Rel::CteScan { .. } => {}
                    Rel::Values { rows, .. } => {
                        rows.$iter().flatten().for_each(|expr| f($child::Expr(expr), HERE));
                    }
                    Rel::Function { call, .. } => {
                        call.$args().$iter().for_each(|arg| f($child::Expr(arg), HERE));
                    }
                    Rel::Explained { statement, .. } => f($child::Statement(statement), HERE),
                    Rel::Filter { input, predicate } => {
                        f($child::Rel(input), HERE);
                        f($child::Expr(predicate), HERE);
                    }
                    Rel::Project { input, exprs } => {
                        f($child::Rel(input), HERE);
                        exprs.$iter().for_each(|expr| f($child::Expr(expr), HERE));
                    }
                    Rel::ProjectSet { input, items } => {
                        f($child::Rel(input), HERE);
                        for item in items.$iter() {
                            match item {
                                SetItem::Scalar(expr) => f($child::Expr(expr), HERE),
                                SetItem::Set { call, .. } => {
                                    call.$args().$iter().for_each(|arg| f($child::Expr(arg), HERE));
                                }
                            }
                        }
                    }
                    Rel::Join { left, right, on, lateral, .. } => {
                        f($child::Rel(left), HERE);
                        f($child::Rel(right), if *lateral { NESTED } else { HERE });
                        on.$iter().for_each(|on| f($child::Expr(on), HERE));
                    }
                    Rel::Aggregate { input, group_by, aggregates, .. } => {
                        f($child::Rel(input), HERE);
                        group_by.$iter().for_each(|expr| f($child::Expr(expr), HERE));
                        aggregates.$iter().for_each(|call| call.$each(&mut f));
                    }
                    Rel::Window { input, calls } => {
                        f($child::Rel(input), HERE);
                        calls.$iter().for_each(|call| call.$each(&mut f));
                    }
                    Rel::Sort { input, keys } => {
                        f($child::Rel(input), HERE);
                        keys.$iter().for_each(|key| f($child::Expr(&$($mutability)* key.expr), HERE));
                    }
                    Rel::Distinct { input, on } => {
                        f($child::Rel(input), HERE);
                        on.$iter().flatten().for_each(|expr| f($child::Expr(expr), HERE));
                    }
                    Rel::Lock { input } => f($child::Rel(input), HERE),
                    Rel::Limit { input, limit, offset, .. } => {
                        offset.$iter().for_each(|count| f($child::Expr(count), HERE));
                        limit.$iter().for_each(|count| f($child::Expr(count), HERE));
                        f($child::Rel(input), HERE);
                    }
                    Rel::SetOp { left, right, .. } => {
                        f($child::Rel(left), HERE);
                        f($child::Rel(right), HERE);
                    }
                    Rel::With { ctes, body } => {
                        ctes.$iter().for_each(|cte| cte.body.$each(&mut f));
                        f($child::Rel(body), HERE);
                    }
                }
            }
        }

        impl CteBody {
            /// Calls `f` on each part. A query that nobody reads is not evaluated.
            pub fn $each<'a>(&'a $($mutability)* self, mut f: impl FnMut($child<'a>, ChildScope)) {
                match self {
                    CteBody::Query(rel) => f($child::Rel(rel), PERHAPS),
                    CteBody::Recursive { initial, recursive, .. } => {
                        f($child::Rel(initial), PERHAPS);
                        f($child::Rel(recursive), PERHAPS);
                    }
                    CteBody::Modify(statement) => f($child::Statement(statement), HERE),
                }
            }
        }

        impl BoundStatement {
            /// Calls `f` on each part: queries, statements within it, and the expressions that it evaluates.
            pub fn $each<'a>(&'a $($mutability)* self, mut f: impl FnMut($child<'a>, ChildScope)) {
                let mut returning = None;
                match self {
                    BoundStatement::Query(query) => f($child::Rel(&$($mutability)* query.rel), HERE),
                    BoundStatement::Insert(insert) => {
                        f($child::Rel(&$($mutability)* insert.source), HERE);
                        for check in insert.checks.$iter() {
                            f($child::Expr(&$($mutability)* check.expr), HERE);
                        }
                        for conflict in insert.on_conflict.$iter() {
                            for (set, filter) in conflict.update.$iter() {
                                filter.$iter().for_each(|filter| f($child::Expr(filter), PERHAPS));
                                set.$iter().for_each(|(_, value)| f($child::Expr(value), PERHAPS));
                            }
                        }
                        returning = Some(&$($mutability)* insert.returning);
                    }
                    BoundStatement::Update(update) => {
                        update.from.$iter().for_each(|from| f($child::Rel(from), HERE));
                        update.filter.$iter().for_each(|filter| f($child::Expr(filter), HERE));
                        update.set.$iter().for_each(|(_, value)| f($child::Expr(value), HERE));
                        for check in update.checks.$iter() {
                            f($child::Expr(&$($mutability)* check.expr), HERE);
                        }
                        returning = Some(&$($mutability)* update.returning);
                    }
                    BoundStatement::Delete(delete) => {
                        delete.using.$iter().for_each(|using| f($child::Rel(using), HERE));
                        delete.filter.$iter().for_each(|filter| f($child::Expr(filter), HERE));
                        returning = Some(&$($mutability)* delete.returning);
                    }
                    BoundStatement::Merge(merge) => {
                        merge.source.body.$each(&mut f);
                        for action in merge.actions.$iter() {
                            f($child::Statement(action), HERE);
                        }
                    }
                    BoundStatement::Call(call) => {
                        call.args.$iter().for_each(|arg| f($child::Expr(arg), HERE));
                    }
                    BoundStatement::With { ctes, statement } => {
                        ctes.$iter().for_each(|cte| cte.body.$each(&mut f));
                        f($child::Statement(statement), HERE);
                    }
                }
                for returning in returning.into_iter().flatten() {
                    returning.exprs.$iter().for_each(|expr| f($child::Expr(expr), HERE));
                }
            }
        }
    };
}

children!(BoundChild, for_each_child, checks, args, expressions, iter, []);
children!(BoundChildMut, for_each_child_mut, checks_mut, args_mut, expressions_mut, iter_mut, [mut]);

impl SetCall {
    /// What it is given; of a scalar expression, that itself.
    pub fn args(&self) -> &[BoundExpr] {
        match self {
            SetCall::Builtin { args, .. } | SetCall::Routine { args, .. } => args,
            SetCall::Scalar(expr) => std::slice::from_ref(&**expr),
        }
    }

    /// The same, to change it.
    pub fn args_mut(&mut self) -> &mut [BoundExpr] {
        match self {
            SetCall::Builtin { args, .. } | SetCall::Routine { args, .. } => args,
            SetCall::Scalar(expr) => std::slice::from_mut(&mut **expr),
        }
    }

    /// Whether each of its rows is one composite value, whose fields are the columns that a query sees of
    /// it in FROM: also where that is a single one.
    pub fn answers_composites(&self) -> bool {
        let SetCall::Builtin { function, args } = self else { return false };
        if !matches!(function.columns, [(_, Oid::ANYELEMENT)]) {
            return false;
        }
        let mut given = function.args.iter().zip(args).filter_map(|(wanted, arg)| match *wanted {
            Oid::ANYELEMENT => Some(arg.ty.oid),
            Oid::ANYARRAY => element_of(arg.ty.oid),
            _ => None,
        });
        given.next().is_some_and(Oid::has_fields)
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::datum::Datum;
    use archipel_sql::types::Type;

    use super::*;
    use crate::bound::JoinKind;

    fn number(value: i32) -> BoundExpr {
        BoundExpr::constant(Datum::Int4(value), Type::INT4)
    }

    fn over(expr: BoundExpr) -> Rel {
        Rel::Project { input: Box::new(Rel::Unit), exprs: vec![expr] }
    }

    /// Numbers among the parts of a node and theirs, in order, each with how it stands to its own node.
    fn numbers(node: BoundChild<'_>) -> Vec<(i32, ChildScope)> {
        let mut found = Vec::new();
        node.for_each_child(|child, scope| match child {
            BoundChild::Expr(BoundExpr { kind: ExprKind::Const(Datum::Int4(value)), .. }) => {
                found.push((*value, scope));
            }
            child => found.extend(numbers(child)),
        });
        found
    }

    #[test]
    fn what_may_not_be_evaluated_is_lazy() {
        let arms = vec![(number(1), number(2)), (number(3), number(4))];
        let case = ExprKind::Case { arms, otherwise: Some(Box::new(number(5))) };
        let case = BoundExpr::new(case, Type::INT4);
        let wanted = [(1, HERE), (2, PERHAPS), (3, PERHAPS), (4, PERHAPS), (5, PERHAPS)];
        assert_eq!(numbers(BoundChild::Expr(&case)), wanted);
        let either = BoundExpr::new(ExprKind::Or(vec![number(1), number(2)]), Type::BOOL);
        assert_eq!(numbers(BoundChild::Expr(&either)), [(1, HERE), (2, PERHAPS)]);
    }

    #[test]
    fn the_right_side_of_a_lateral_join_is_nested() {
        let join = |lateral| Rel::Join {
            kind: JoinKind::Inner,
            left: Box::new(over(number(1))),
            right: Box::new(over(number(2))),
            on: Some(number(3)),
            lateral,
        };
        for lateral in [false, true] {
            let join = join(lateral);
            assert_eq!(numbers(BoundChild::Rel(&join)), [(1, HERE), (2, HERE), (3, HERE)]);
            let mut nestings = Vec::new();
            join.for_each_child(|_, scope| nestings.push(scope.nesting()));
            assert_eq!(nestings, [0, u16::from(lateral), 0]);
        }
    }

    #[test]
    fn a_domain_lends_no_conditions() {
        let conditions = DomainConditions {
            schema: "public".to_owned(),
            name: "d".to_owned(),
            domain: "d".to_owned(),
            not_null: false,
            checks: vec![("c".to_owned(), number(2))],
        };
        let kind = ExprKind::Domain { expr: Box::new(number(1)), conditions: Arc::new(conditions) };
        let mut domain = BoundExpr::new(kind, Type::INT4);
        assert_eq!(numbers(BoundChild::Expr(&domain)), [(1, HERE), (2, VALUE)]);
        let mut lent = 0;
        domain.for_each_child_mut(|_, _| lent += 1);
        assert_eq!(lent, 1);
    }
}
