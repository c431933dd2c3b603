//! The end of a query that nobody waits for any longer: cancelled, timed out, its client gone; or that
//! there is no memory for.
//!
//! DataFusion ends a query by dropping its stream, which needs a poll that returns. A join whose
//! condition holds for no row returns none before it has compared all of them, an aggregate none
//! before its last input. So the plan is laid out once more before it runs: every operator's
//! batches pass a [`Watched`] that asks the session, and so does every condition of a join
//! ([`Asking`]), which is evaluated for each row of one side. What comes between two questions is
//! the work of one batch.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use archipel_sql::memory;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::error::external;
use crate::evaluate::Context;
use crate::scan::batch_slices::sliced;

/// So many batches of each operator pass where there is no memory left: small queries still answer.
const UNASKED_BATCHES: u64 = 8;

/// The plan with a question between any two pieces of its work.
pub(crate) fn watched(
    plan: Arc<dyn ExecutionPlan>,
    context: &Arc<Context>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let watched = plan.transform_up(|node| {
        let input = sliced(asking(node, context)?)?;
        Ok(Transformed::yes(Arc::new(Watched { input, context: context.clone() }) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(watched.data)
}

/// A join whose condition asks.
fn asking(node: Arc<dyn ExecutionPlan>, context: &Arc<Context>) -> Result<Arc<dyn ExecutionPlan>> {
    let any: &dyn std::any::Any = node.as_ref();
    if let Some(join) = any.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = Some(asking_filter(filter, context));
        return Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?));
    }
    if let Some(join) = any.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = Some(asking_filter(filter, context));
        return join.builder().with_filter(filter).build_exec();
    }
    Ok(node)
}

fn asking_filter(filter: &JoinFilter, context: &Arc<Context>) -> JoinFilter {
    let condition = Asking { condition: filter.expression().clone(), context: context.clone() };
    JoinFilter::new(Arc::new(condition), filter.column_indices().to_vec(), filter.schema().clone())
}

/// An operator whose batches are handed on only while somebody waits for the query.
#[derive(Debug)]
struct Watched {
    input: Arc<dyn ExecutionPlan>,
    context: Arc<Context>,
}

impl DisplayAs for Watched {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl ExecutionPlan for Watched {
    fn name(&self) -> &str {
        "Watched"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _apply: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => {
                Ok(Arc::new(Watched { input, context: self.context.clone() }))
            }
            _ => internal_err!("a watched operator is one"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(
                datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute,
            ),
        )
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let context = self.context.clone();
        let mut seen = 0;
        let batches = self.input.execute(partition, task)?.map(move |batch| {
            context.functions().check_interrupts().map_err(external)?;
            // What it holds of them nobody knows; a few are no matter.
            seen += 1;
            if seen > UNASKED_BATCHES
                && let Ok(batch) = &batch
            {
                memory::require(batch.get_array_memory_size(), "AnalyticsContext").map_err(external)?;
            }
            batch
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), batches)))
    }
}

/// A join's condition that asks before it is evaluated over a batch.
#[derive(Debug)]
struct Asking {
    condition: Arc<dyn PhysicalExpr>,
    context: Arc<Context>,
}

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Asking {}

impl Hash for Asking {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl Display for Asking {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.condition, f)
    }
}

impl PhysicalExpr for Asking {
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        self.condition.data_type(input_schema)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.condition.nullable(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let _watch = self.context.watch();
        self.context.functions().check_interrupts().map_err(external)?;
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(condition) if children.is_empty() => {
                Ok(Arc::new(Asking { condition, context: self.context.clone() }))
            }
            _ => internal_err!("a join has one condition"),
        }
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
