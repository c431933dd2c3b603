//! Batches of few rows where rows are wide.
//!
//! A batch has thousands of rows, which is little as long as they are small: of a megabyte each they would
//! be gigabytes at once, in arrays that grow by copying. How wide the rows of tables are, a few of each tell
//! before a query is planned ([`batch_rows`]). How wide the values are that are computed, nobody knows before:
//! below what computes them by row-wise functions, batches are cut ([`Sliced`]) into slices, a single row
//! first, and then as many as what came of the last ones leaves room for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archipel_engine::cell::ColumnKind;
use archipel_engine::{PageRows, Snapshot, TableMeta};
use archipel_planner::native::stop_error;
use archipel_sql::error::Result as SqlResult;
use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, replace_children_if_necessary,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::function::RowFunction;

/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 8192;
/// Of wide rows, a batch has so many at least: operators cost something for each batch.
const BATCH_ROWS_MIN: usize = 64;
/// Bytes of a batch of rows as their tables have them.
const BATCH_BYTES: usize = 16 << 20;

/// So many rows of a table tell how wide it is, and of so many tables.
const SAMPLE_ROWS: usize = 64;
const SAMPLED_TABLES: usize = 16;

/// What is computed of one slice may take so many bytes.
const SLICE_BYTES: usize = 4 << 20;
/// Constants of so many bytes count.
const LARGE_CONSTANT: usize = 1 << 10;
/// A slice has no more than so many times the rows of the one before it.
const GROWTH: usize = 8;

/// How many rows the batches of a plan over these tables have.
pub(crate) async fn batch_rows(tables: &[Arc<TableMeta>], snapshot: &Snapshot) -> SqlResult<usize> {
    let mut width = 1;
    let wide = tables.iter().filter(|table| table.def.columns.contains(&ColumnKind::Bytes));
    for table in wide.take(SAMPLED_TABLES) {
        let page = snapshot.scan_into(table, &[], None, SAMPLE_ROWS, PageRows::default()).await;
        page.outcome.result.map_err(stop_error)?;
        let rows = &page.program.rows;
        // Joined rows have the columns of all tables.
        width += rows.iter().map(<[u8]>::len).sum::<usize>() / rows.len().max(1);
    }
    Ok((BATCH_BYTES / width).clamp(BATCH_ROWS_MIN, BATCH_ROWS))
}

/// An operator that computes wide values, if it does, over slices of its input.
pub(crate) fn sliced(node: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let mut widths = Widths::default();
    let any: &dyn std::any::Any = node.as_ref();
    if let Some(projection) = any.downcast_ref::<ProjectionExec>() {
        projection.expr().iter().for_each(|column| widths.add(&column.expr));
    } else if let Some(filter) = any.downcast_ref::<FilterExec>() {
        widths.add(filter.predicate());
    }
    if widths.computed.is_empty() && widths.constant == 0 {
        return Ok(node);
    }
    let children = node.children();
    let [input] = children.as_slice() else { return Ok(node) };
    let input: Arc<dyn ExecutionPlan> = Arc::new(Sliced { input: Arc::clone(*input), widths });
    replace_children_if_necessary(node, vec![input])
}

/// What makes the values wide that an operator computes.
#[derive(Debug, Clone, Default)]
struct Widths {
    /// What functions have written since somebody asked.
    computed: Vec<Arc<AtomicUsize>>,
    /// Bytes of the large constants, which stand in each row.
    constant: usize,
}

impl Widths {
    fn add(&mut self, expr: &Arc<dyn PhysicalExpr>) {
        let any: &dyn std::any::Any = expr.as_ref();
        if let Some(literal) = any.downcast_ref::<Literal>() {
            let bytes = literal.value().size();
            self.constant += if bytes < LARGE_CONSTANT { 0 } else { bytes };
        }
        if let Some(call) = any.downcast_ref::<ScalarFunctionExpr>()
            && matches!(call.return_type(), DataType::Utf8 | DataType::Binary)
        {
            let function: &dyn std::any::Any = call.fun().inner().as_ref();
            self.computed.extend(function.downcast_ref::<RowFunction>().map(RowFunction::written));
        }
        expr.children().into_iter().for_each(|part| self.add(part));
    }

    /// How many rows may come after a slice of so many, of which there might have been `most`: none before the
    /// first.
    fn rows_after(&self, rows: usize, most: usize) -> usize {
        let computed: usize = self.computed.iter().map(|bytes| bytes.swap(0, Ordering::Relaxed)).sum();
        let fits = SLICE_BYTES / (self.constant + computed / rows.max(1)).max(1);
        let grown = if self.computed.is_empty() { BATCH_ROWS } else { most * GROWTH };
        fits.min(grown).clamp(1, BATCH_ROWS)
    }
}

/// Hands batches on in slices.
#[derive(Debug)]
struct Sliced {
    input: Arc<dyn ExecutionPlan>,
    widths: Widths,
}

impl DisplayAs for Sliced {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sliced")
    }
}

impl ExecutionPlan for Sliced {
    fn name(&self) -> &str {
        "Sliced"
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
            Some(input) if children.is_empty() => Ok(Arc::new(Sliced { input, widths: self.widths.clone() })),
            _ => internal_err!("what is sliced is one operator's"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, task)?;
        let slicer = Slicer { input, widths: self.widths.clone(), rest: None, given: 0, most: 0 };
        let slices = futures::stream::try_unfold(slicer, |mut slicer| async move {
            let slice = slicer.next().await;
            slice.map(|slice| slice.map(|slice| (slice, slicer)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), slices)))
    }
}

/// One run of a [`Sliced`].
struct Slicer {
    input: SendableRecordBatchStream,
    widths: Widths,
    /// What is left of a batch.
    rest: Option<RecordBatch>,
    /// Rows of the last slice, and how many it might have had.
    given: usize,
    most: usize,
}

impl Slicer {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match self.input.next().await {
                Some(batch) => batch?,
                None => return Ok(None),
            },
        };
        let rows = self.widths.rows_after(self.given, self.most);
        let (all, columns) = (batch.num_rows(), batch.num_columns());
        (self.given, self.most) = (all.min(rows), rows);
        if all <= rows {
            return Ok(Some(batch));
        }
        self.rest = Some(batch.slice(rows, all - rows));
        let slice = batch.slice(0, rows);
        if columns == 0 {
            return Ok(Some(slice));
        }
        // Whoever keeps slices would be taken to keep the whole batch in each of them, and does.
        let places = UInt32Array::from_iter_values(0..u32::try_from(rows).unwrap_or(u32::MAX));
        Ok(Some(take_record_batch(&slice, &places)?))
    }
}
