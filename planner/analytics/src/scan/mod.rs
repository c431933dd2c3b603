//! Tables as DataFusion sees them: pages of a snapshot, as Arrow batches.
//!
//! - [`pace`]    how fast a scan asks for pages; [`batch_slices`] batches of few rows where rows are wide
//! - [`carrier`] values in Arrow arrays

pub(super) mod batch_slices;
pub mod carrier;
mod pace;

use std::sync::Arc;

use archipel_engine::storage::key::{KeyBuf, encode_cell, successor};
use archipel_engine::{PageRows, ScanPage, Snapshot, Submission, TableMeta};
use archipel_planner::native::stop_error;
use archipel_planner::row::Codec;
use archipel_sql::error::SqlError;
use archipel_sql::types::Type;
use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::array::RecordBatchOptions;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use datafusion::scalar::ScalarValue;

use crate::error::external;
use crate::evaluate::Context;
use batch_slices::BATCH_ROWS;
use carrier::{Reader, Writer, comparable, data_type};
use pace::Pace;

/// Bytes of rows that end a batch early: they are copied more than once on their way.
const BATCH_BYTES: usize = 16 << 20;
/// Rows of a page: copying one holds its partition for some tens of microseconds, which is what
/// a transaction that comes meanwhile waits.
const PAGE_ROWS: usize = 512;

/// One table at one snapshot.
pub struct SnapshotTable {
    name: String,
    meta: Arc<TableMeta>,
    snapshot: Arc<Snapshot>,
    types: Vec<Type>,
    schema: SchemaRef,
    context: Arc<Context>,
}

impl std::fmt::Debug for SnapshotTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SnapshotTable({})", self.meta.def.name)
    }
}

/// The name of a scanned column. No two tables of a plan share one: the optimiser finds columns
/// of a physical plan by their bare names where it moves a filter below a join.
pub fn column_name(table: &str, index: usize) -> String {
    format!("{table}c{index}")
}

impl SnapshotTable {
    /// `name` is the scan's own in its plan.
    pub fn new(
        name: &str,
        meta: Arc<TableMeta>,
        snapshot: Arc<Snapshot>,
        types: Vec<Type>,
        context: Arc<Context>,
    ) -> SnapshotTable {
        let fields: Vec<Field> = types
            .iter()
            .enumerate()
            .map(|(i, ty)| Field::new(column_name(name, i), data_type(*ty), true))
            .collect();
        SnapshotTable {
            name: name.to_owned(),
            meta,
            snapshot,
            types,
            schema: Arc::new(Schema::new(fields)),
            context,
        }
    }

    /// The part of the key space that a filter on the first key column leaves: `[low, high)`.
    fn range(&self, filters: &[Expr]) -> (KeyBuf, Option<KeyBuf>) {
        let (mut low, mut high) = (KeyBuf::new(), None::<KeyBuf>);
        for (operator, value) in filters.iter().filter_map(|filter| self.key_condition(filter)) {
            let Some(key) = self.key_of(&value) else { continue };
            let mut after = key.clone();
            let bounded = successor(&mut after);
            let mut raise = |bound: KeyBuf| {
                if bound > low {
                    low = bound;
                }
            };
            let mut lower = |bound: KeyBuf| {
                if high.as_ref().is_none_or(|known| bound < *known) {
                    high = Some(bound);
                }
            };
            match operator {
                Operator::Eq => {
                    raise(key);
                    if bounded {
                        lower(after);
                    }
                }
                Operator::GtEq | Operator::Gt => raise(key),
                Operator::LtEq if bounded => lower(after),
                Operator::Lt => lower(key),
                _ => {}
            }
        }
        (low, high)
    }

    /// A comparison of the first key column with a literal, the column on the left.
    fn key_condition(&self, filter: &Expr) -> Option<(Operator, ScalarValue)> {
        let key = self.meta.def.key.first()?;
        if key.descending || key.nullable || !comparable(*self.types.get(usize::from(key.column))?) {
            return None;
        }
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
        let name = column_name(&self.name, usize::from(key.column));
        match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _)) if column.name == name => {
                Some((*op, value.clone()))
            }
            (Expr::Literal(value, _), Expr::Column(column)) if column.name == name => {
                Some((op.swap()?, value.clone()))
            }
            _ => None,
        }
    }

    fn key_of(&self, value: &ScalarValue) -> Option<KeyBuf> {
        let key = self.meta.def.key.first()?;
        let ty = *self.types.get(usize::from(key.column))?;
        if value.is_null() || value.data_type() != data_type(ty) {
            return None;
        }
        let array = value.to_array().ok()?;
        let datum = Reader::new(array.as_ref(), ty).ok()?.get(0);
        let mut space = Vec::new();
        let cell = Codec::of(ty).encode(&datum, &mut space).ok()?;
        let mut out = KeyBuf::new();
        encode_cell(&mut out, cell, key, *self.meta.def.columns.get(usize::from(key.column))?);
        Some(out)
    }
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.types.len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        let (low, high) = self.range(filters);
        let pages = Pages {
            meta: self.meta.clone(),
            snapshot: self.snapshot.clone(),
            types: columns.iter().map(|column| self.types[*column]).collect(),
            columns,
            low,
            high,
            schema: schema.clone(),
            context: self.context.clone(),
        };
        let pages: Arc<dyn PartitionStream> = Arc::new(pages);
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![pages], None, Vec::new(), false, limit)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // A range narrows the scan; the filter above still decides.
        Ok(filters
            .iter()
            .map(|filter| match self.key_condition(filter) {
                Some(_) => TableProviderFilterPushDown::Inexact,
                None => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }
}

/// The pages of one scan.
struct Pages {
    meta: Arc<TableMeta>,
    snapshot: Arc<Snapshot>,
    columns: Vec<usize>,
    types: Vec<Type>,
    low: KeyBuf,
    high: Option<KeyBuf>,
    schema: SchemaRef,
    context: Arc<Context>,
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pages({})", self.meta.def.name)
    }
}

/// What one scan carries from page to page.
struct Cursor {
    meta: Arc<TableMeta>,
    snapshot: Arc<Snapshot>,
    columns: Vec<usize>,
    types: Vec<Type>,
    next: Option<KeyBuf>,
    /// The page from `next` on, if it is on its way already.
    ahead: Option<Submission<ScanPage>>,
    /// Where the rows of a page lay that was read: room for the next.
    room: PageRows,
    pace: Pace,
    high: Option<KeyBuf>,
    schema: SchemaRef,
    context: Arc<Context>,
}

impl Cursor {
    fn ask(&mut self, low: &[u8], limit: usize) -> Submission<ScanPage> {
        let room = std::mem::take(&mut self.room);
        self.snapshot.scan_into(&self.meta, low, self.high.as_deref(), limit, room)
    }

    /// The next batch, page by page.
    async fn batch(&mut self) -> archipel_sql::error::Result<Option<RecordBatch>> {
        if self.next.is_none() {
            return Ok(None);
        }
        let mut writers: Vec<Writer> = self.types.iter().map(|ty| Writer::new(*ty, PAGE_ROWS)).collect();
        let (mut rows, mut bytes) = (0, 0);
        while rows < BATCH_ROWS
            && bytes < BATCH_BYTES
            && let Some(low) = self.next.take()
        {
            self.context.functions().check_interrupts()?;
            let limit = PAGE_ROWS.min(BATCH_ROWS - rows);
            let page = match self.ahead.take() {
                Some(ahead) => ahead.await,
                None => {
                    self.pace.rest().await;
                    self.ask(&low, limit).await
                }
            };
            page.outcome.result.map_err(stop_error)?;
            let page = page.program;
            self.pace.note(page.waited_nanos, page.held_nanos);
            // An executor copies the next page while this thread reads this one. At the end of a
            // batch nobody may want another.
            let missing = BATCH_ROWS.saturating_sub(rows + page.rows.len());
            if let Some(next) = page.next.as_deref().filter(|_| missing > 0 && !self.pace.is_resting()) {
                self.ahead = Some(self.ask(next, PAGE_ROWS.min(missing)));
            }
            rows += page.rows.len();
            bytes += page.rows.iter().map(<[u8]>::len).sum::<usize>();
            for (column, writer) in self.columns.iter().zip(&mut writers) {
                for row in page.rows.iter() {
                    writer.push_cell(self.meta.layout.get(row, *column))?;
                }
            }
            self.next = page.next;
            self.room = page.rows;
        }
        let arrays = writers.into_iter().map(Writer::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map(Some)
            .map_err(|error| SqlError::internal(error.to_string()))
    }
}

impl PartitionStream for Pages {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _ctx: Arc<TaskContext>) -> SendableRecordBatchStream {
        let cursor = Cursor {
            meta: self.meta.clone(),
            snapshot: self.snapshot.clone(),
            columns: self.columns.clone(),
            types: self.types.clone(),
            next: Some(self.low.clone()),
            ahead: None,
            room: PageRows::default(),
            pace: Pace::default(),
            high: self.high.clone(),
            schema: self.schema.clone(),
            context: self.context.clone(),
        };
        let batches = futures::stream::try_unfold(cursor, |mut cursor| async move {
            match cursor.batch().await {
                Ok(Some(batch)) => Ok(Some((batch, cursor))),
                Ok(None) => Ok(None),
                Err(error) => Err(external(error)),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}
