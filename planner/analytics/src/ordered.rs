//! The last word on conditions: what can fail is tested behind what cannot, on the rows that passed.
//!
//! [`crate::lower::condition`] keeps the order of the parts of one condition. DataFusion puts conditions
//! together that stand in different places of a query — a subquery's and that of the query around
//! it — and tests each part over whole batches, in an order of its own. So filters are looked at
//! once more when the plan is done: rows that a subquery rules out are none that `10 / i` around it
//! may see. Nor may the rows of another table see it, whose column a join compares with `i`.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, BooleanArray};
use datafusion::arrow::compute::{and, prep_null_mask_filter};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{ColumnarValue, Expr, Filter, JoinType, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

use crate::function::RowFunction;

/// DataFusion's rule that takes filters to where their rows come from. What can fail goes below a
/// join without it: it would test the joined column of the other side, too.
#[derive(Debug, Default)]
pub(crate) struct PushDown(PushDownFilter);

impl OptimizerRule for PushDown {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let parted = below_join(plan)?;
        let pushed = self.0.rewrite(parted.data, config)?;
        Ok(Transformed { transformed: pushed.transformed || parted.transformed, ..pushed })
    }
}

/// Takes the tests of a filter over a join that can fail, and are about one side, to that side.
fn below_join(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &plan else { return Ok(Transformed::no(plan)) };
    let LogicalPlan::Join(join) = filter.input.as_ref() else { return Ok(Transformed::no(plan)) };
    let sides = match join.join_type {
        JoinType::Inner => [true, true],
        JoinType::Left => [true, false],
        JoinType::Right => [false, true],
        _ => return Ok(Transformed::no(plan)),
    };
    let inputs = [&join.left, &join.right];
    let (mut below, mut stay): ([Vec<Expr>; 2], Vec<Expr>) = Default::default();
    for test in split_conjunction(&filter.predicate) {
        let columns = test.column_refs();
        let of = |side: usize| {
            sides[side] && columns.iter().all(|column| inputs[side].schema().has_column(column))
        };
        match (calls_row_function(test) && !test.is_volatile() && !columns.is_empty(), of(0), of(1)) {
            (true, true, false) => below[0].push(test.clone()),
            (true, false, true) => below[1].push(test.clone()),
            _ => stay.push(test.clone()),
        }
    }
    if below.iter().all(Vec::is_empty) {
        return Ok(Transformed::no(plan));
    }
    let mut join = join.clone();
    let [left, right] = below;
    for (input, tests) in [(&mut join.left, left), (&mut join.right, right)] {
        if let Some(test) = conjunction(tests) {
            *input = Arc::new(LogicalPlan::Filter(Filter::try_new(test, input.clone())?));
        }
    }
    let join = LogicalPlan::Join(join);
    Ok(Transformed::yes(match conjunction(stay) {
        Some(test) => LogicalPlan::Filter(Filter::try_new(test, Arc::new(join))?),
        None => join,
    }))
}

fn calls_row_function(test: &Expr) -> bool {
    test.exists(|part| {
        let Expr::ScalarFunction(call) = part else { return Ok(false) };
        let function: &dyn std::any::Any = call.func.inner().as_ref();
        Ok(function.is::<RowFunction>())
    })
    // The closure never fails.
    .unwrap_or(true)
}

/// Puts the tests of every filter in order.
#[derive(Debug)]
pub(crate) struct OrderTests;

impl PhysicalOptimizerRule for OrderTests {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ordered = plan.transform_up(|node| {
            let any: &dyn std::any::Any = node.as_ref();
            let Some(filter) = any.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
            let Some(predicate) = in_order(filter.predicate()) else { return Ok(Transformed::no(node)) };
            let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
            Ok(Transformed::yes(Arc::new(filter) as Arc<dyn ExecutionPlan>))
        })?;
        Ok(ordered.data)
    }

    fn name(&self) -> &str {
        "order_tests"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The parts of a condition in order; `None` if that is no matter.
fn in_order(predicate: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let parts = datafusion::physical_expr::split_conjunction(predicate);
    let (fallible, safe): (Vec<_>, Vec<_>) = parts.into_iter().cloned().partition(can_fail);
    if fallible.is_empty() || fallible.len() + safe.len() < 2 {
        return None;
    }
    let and = |one: Arc<dyn PhysicalExpr>, other| -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(one, Operator::And, other))
    };
    let parts = safe.into_iter().reduce(and).into_iter().chain(fallible).collect();
    Some(Arc::new(InOrder { parts }))
}

/// Whether some part of it is evaluated row by row: what has a native form never fails.
fn can_fail(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let any: &dyn std::any::Any = expr.as_ref();
    let own = any.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| {
        let function: &dyn std::any::Any = call.fun().inner().as_ref();
        function.is::<RowFunction>()
    });
    own || expr.children().into_iter().any(can_fail)
}

/// Tests that must all hold: each sees the rows that have passed those before it.
#[derive(Debug)]
struct InOrder {
    parts: Vec<Arc<dyn PhysicalExpr>>,
}

impl PartialEq for InOrder {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for InOrder {}

impl Hash for InOrder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts.hash(state);
    }
}

impl Display for InOrder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, part) in self.parts.iter().enumerate() {
            let between = if place == 0 { "" } else { " THEN " };
            write!(f, "{between}{part}")?;
        }
        Ok(())
    }
}

impl PhysicalExpr for InOrder {
    fn data_type(&self, _input_schema: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _input_schema: &Schema) -> Result<bool> {
        // A row that passes not is as good as false.
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let mut passed = BooleanArray::from(vec![true; rows]);
        for part in &self.parts {
            let value = part.evaluate_selection(batch, &passed)?.into_array(rows)?;
            let holds = as_boolean_array(&value)?;
            passed = match holds.null_count() {
                0 => and(&passed, holds)?,
                _ => and(&passed, &prep_null_mask_filter(holds))?,
            };
        }
        Ok(ColumnarValue::Array(Arc::new(passed)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.parts.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if children.len() != self.parts.len() {
            return internal_err!("tests in order are {}, not {}", self.parts.len(), children.len());
        }
        Ok(Arc::new(InOrder { parts: children }))
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}
