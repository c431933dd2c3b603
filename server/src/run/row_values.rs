//! What a definition gives the rows that are there, computed before it changes anything.
//!
//! A statement may rewrite a table in several operations: columns of new types, new columns, a key. Their
//! values are computed row by row, through all of the operations, and kept for them. What the definition
//! has to look at (conditions, keys) it looks at in these rows, so that nothing is computed for the look
//! and once more for the table: whoever computes may draw from a sequence, or write.
//!
//! ```text
//! row as it is ──▶ 1st operation ──▶ 2nd operation ──▶ row as it will be
//!                     │ values          │ values           │ conditions, then keys
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::cell::Cell;
use archipel_engine::id::TreeId;
use archipel_engine::schema::TableDef;
use archipel_engine::storage::{KeyBuf, RowLayout};
use archipel_engine::table::storage_key;
use archipel_engine::txn::OwnedCell;
use archipel_engine::{ColumnSource, DdlOp, Direction, KeyRange, TableMeta, Txn};
use archipel_planner::ddl::relabelled;
use archipel_planner::native::{CompiledStatement, ExecContext, ExecError, ExecResult, RunOf, rows_as_table};
use archipel_planner::row::{Codec, datum_to_cell};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::interrupt;
use archipel_sql::types::{Oid, Type};

use super::computed_value::{ComputedRun, ValueRun};
use super::definition::{DefinitionRun, Extent, ValidationRun};
use super::require_silence;

/// What a row counts as beside its bytes ([`interrupt::steps`]): by that it is asked, too, whether there
/// is memory for more of them.
const STEPS_PER_ROW: usize = 64;

/// An operation that rewrites a table, on the way of its rows through all of them.
struct Step<'r> {
    /// Its place among the definition's operations.
    operation: usize,
    def: &'r TableDef,
    columns: &'r [ColumnSource],
    computed: &'r [ComputedRun],
    /// Of the rows that it leaves.
    layout: RowLayout,
    /// The values of each computed column, in the order of the original rows.
    values: Vec<Vec<OwnedCell>>,
    /// The keys that the rows come to it under, if they may be in another order than the original ones.
    keys: Vec<KeyBuf>,
}

/// What a validation reads of the rows of one table that are to be written.
struct Look<'r> {
    validation: &'r ValidationRun,
    /// Which of the relations that it names, and what it reads of a row.
    relation: usize,
    places: &'r [u16],
    codecs: Vec<Codec>,
    /// The rows, for one that is about all of them.
    rows: Vec<Datum>,
}

/// Visits all rows of a table, in the order of their keys.
fn visit_rows(txn: &mut Txn<'_>, table: &TableMeta, visit: &mut dyn FnMut(&[u8])) -> ExecResult<()> {
    let mut looked = Ok(());
    txn.scan(table, KeyRange::ALL, Direction::Ascending, &mut |_, row| {
        looked = interrupt::steps(STEPS_PER_ROW + row.len());
        if looked.is_err() {
            return ControlFlow::Break(());
        }
        visit(row);
        ControlFlow::Continue(())
    })?;
    looked?;
    Ok(())
}

impl DefinitionRun {
    /// Whether it gives rows values of their own, or looks at rows that it is to write.
    pub fn foresees(&self) -> bool {
        self.operations.iter().any(|described| !described.computed.is_empty())
            || self.looking_at_written().next().is_some()
    }

    /// The operations with the values of their computed columns, and with sequences that will have given
    /// values made to go on after them. Fails where the rows that are to be written are refused.
    pub(super) fn foresee(&mut self, txn: &mut Txn<'_>) -> ExecResult<Vec<DdlOp>> {
        let mut operations = self.with_sequences(txn)?;
        let validations: Vec<Arc<ValidationRun>> = self.looking_at_written().cloned().collect();
        let mut trees: Vec<TreeId> = Vec::new();
        for described in &self.operations {
            let DdlOp::AlterTable { def, .. } = &described.operation else { continue };
            if !described.computed.is_empty() && !trees.contains(&def.id) {
                trees.push(def.id);
            }
        }
        let read = validations.iter().flat_map(|validation| &validation.written);
        for part in read.flat_map(|written| &written.parts) {
            if !trees.contains(&part.tree) {
                trees.push(part.tree);
            }
        }
        if trees.is_empty() {
            return Ok(operations);
        }
        let host = self.host.clone().ok_or_else(|| {
            ExecError::Sql(SqlError::internal("a definition that computes without a session"))
        })?;
        let functions = FunctionContext { now: txn.started_at(), session: &*host };
        let mut context = ExecContext::new(txn, functions, &*host);
        context.run_of = RunOf::Bulk;
        let mut gathered: Vec<Vec<Vec<Datum>>> =
            validations.iter().map(|validation| vec![Vec::new(); validation.written.len()]).collect();
        let foreseen = trees.into_iter().try_for_each(|tree| {
            let Some(table) = context.txn.table(tree) else { return Ok(()) };
            self.foresee_table(&table, &validations, &mut gathered, &mut operations, &mut context)
        });
        let foreseen = foreseen.and_then(|()| {
            for (validation, rows) in validations.iter().zip(gathered) {
                *validation.rows.lock() =
                    rows.into_iter().map(|rows| rows_as_table(rows.into_iter())).collect();
            }
            let mut early = validations.iter().filter(|validation| self.looks_at_all(validation));
            early.try_for_each(|validation| validation.run_in(&mut context))?;
            require_silence(&context)
        });
        self.notices.append(&mut context.notices);
        foreseen.map(|()| operations)
    }

    /// The validations that look at rows which are to be written, those for keys that are met twice among
    /// them.
    fn looking_at_written(&self) -> impl Iterator<Item = &Arc<ValidationRun>> {
        let duplicated = self.operations.iter().flat_map(|described| &described.duplicated);
        let all = self.validations.iter().chain(duplicated.map(|(_, query)| query));
        all.filter(|validation| !validation.written.is_empty())
    }

    /// Whether a validation of that kind looks at all rows once they are there. Keys that are met twice are
    /// found when they are written, and told then.
    fn looks_at_all(&self, validation: &Arc<ValidationRun>) -> bool {
        let is_own = self.validations.iter().any(|own| Arc::ptr_eq(own, validation));
        !validation.each && (is_own || self.extent == Extent::Foresight)
    }

    fn foresee_table(
        &self,
        table: &TableMeta,
        validations: &[Arc<ValidationRun>],
        gathered: &mut [Vec<Vec<Datum>>],
        operations: &mut [DdlOp],
        context: &mut ExecContext<'_, '_>,
    ) -> ExecResult<()> {
        let mut rows: Vec<Vec<u8>> = Vec::new();
        visit_rows(context.txn, table, &mut |row| rows.push(row.to_vec()))?;
        let mut steps = self.steps_of(table.def.id);
        let mut looks = looks_at(table.def.id, validations);
        let count = rows.len();
        for (at, row) in rows.into_iter().enumerate() {
            interrupt::steps(STEPS_PER_ROW)?;
            let row = pass(at, row, table, &mut steps, !looks.is_empty(), context)?;
            let layout = steps.last().map_or(&table.layout, |step| &step.layout);
            for look in &mut looks {
                look.at(layout, &row, context)?;
            }
        }
        if count == 0 {
            for column in steps.iter().flat_map(|step| step.computed).filter(|column| column.once) {
                column.without_rows(context)?;
            }
        }
        for look in looks {
            let of = validations.iter().position(|other| std::ptr::eq(&**other, look.validation));
            if let Some(rows) = of.and_then(|of| gathered[of].get_mut(look.relation)) {
                rows.extend(look.rows);
            }
        }
        for step in steps {
            step.hand_over(operations);
        }
        Ok(())
    }

    /// The operations on a table's rows, in their order.
    fn steps_of(&self, tree: TreeId) -> Vec<Step<'_>> {
        let mut steps: Vec<Step<'_>> = Vec::new();
        for (operation, described) in self.operations.iter().enumerate() {
            let DdlOp::AlterTable { def, columns } = &described.operation else { continue };
            if def.id != tree {
                continue;
            }
            let computed = &described.computed[..];
            let layout = RowLayout::new(&def.columns);
            let values = computed.iter().map(|_| Vec::new()).collect();
            steps.push(Step { operation, def, columns, computed, layout, values, keys: Vec::new() });
        }
        steps
    }

    /// The operations, with sequences that will have given values made to go on after them.
    fn with_sequences(&self, txn: &mut Txn<'_>) -> ExecResult<Vec<DdlOp>> {
        let mut operations: Vec<DdlOp> = self.ddl().cloned().collect();
        for described in &self.operations {
            let DdlOp::AlterTable { def, .. } = &described.operation else { continue };
            for column in &described.computed {
                let ValueRun::Sequence(sequence) = &column.value else { continue };
                let Some(table) = txn.table(def.id) else { continue };
                let mut count: i64 = 0;
                visit_rows(txn, &table, &mut |_| count += 1)?;
                let next = count
                    .checked_mul(sequence.increment)
                    .and_then(|given| sequence.start.checked_add(given))
                    .filter(|next| (sequence.min..=sequence.max).contains(next))
                    .ok_or_else(|| {
                        SqlError::new(
                            SqlState(*b"2200H"),
                            "nextval: the sequence of the new column has too few values for the rows",
                        )
                    })?;
                for operation in &mut operations {
                    if let DdlOp::CreateSequence(made) = operation
                        && made.id == sequence.id
                    {
                        made.start = next;
                    }
                }
            }
        }
        Ok(operations)
    }
}

/// Takes a row through the operations on its table: computes what they need, and answers it as the last of
/// them leaves it, where somebody asks for that.
fn pass(
    at: usize,
    original: Vec<u8>,
    table: &TableMeta,
    steps: &mut [Step<'_>],
    is_asked: bool,
    context: &mut ExecContext<'_, '_>,
) -> ExecResult<Vec<u8>> {
    let count = steps.len();
    // As the steps so far leave it; nothing before the first.
    let mut passed: Option<Vec<u8>> = None;
    for number in 0..count {
        let (before, from) = steps.split_at_mut(number);
        let (Some(step), previous) = (from.first_mut(), before.last()) else { break };
        let layout = previous.map_or(&table.layout, |previous| &previous.layout);
        let row = passed.as_deref().unwrap_or(&original);
        if let Some(previous) = previous.filter(|_| !step.computed.is_empty()) {
            let mut key = KeyBuf::new();
            storage_key(previous.def, layout, row, &mut key);
            step.keys.push(key);
        }
        let computed = step.computed;
        for (place, column) in computed.iter().enumerate() {
            let value = match (column.once, step.values[place].first()) {
                (true, Some(value)) => value.clone(),
                _ => column.value_of(at, (layout, row), (&table.layout, &original[..]), context)?,
            };
            step.values[place].push(value);
        }
        if is_asked || number + 1 < count {
            let next = step.rewritten(at, layout, row)?;
            passed = Some(next);
        }
    }
    Ok(passed.unwrap_or(original))
}

impl Step<'_> {
    /// A row as the operation leaves it, once its values are there.
    fn rewritten(&self, at: usize, layout: &RowLayout, row: &[u8]) -> ExecResult<Vec<u8>> {
        let mut cells: Vec<Cell<'_>> = Vec::with_capacity(self.columns.len());
        for (place, source) in self.columns.iter().enumerate() {
            let computed = self.computed.iter().position(|column| column.column == place);
            let value = computed.and_then(|computed| self.values[computed].last());
            cells.push(match (value, source) {
                (Some(value), _) => value.as_cell(),
                (None, ColumnSource::Kept(column)) => layout.get(row, usize::from(*column)),
                (None, ColumnSource::Constant(cell)) => cell.as_cell(),
                // In the same order as they will be drawn.
                (None, ColumnSource::HiddenRowId) => Cell::Int8(at as i64),
                (None, ColumnSource::Each(_)) => {
                    return Err(SqlError::internal("values of rows that nobody has computed").into());
                }
            });
        }
        if cells.len() != self.layout.columns().len() {
            return Err(SqlError::internal("an altered table with other columns than its rows").into());
        }
        let mut out = Vec::new();
        self.layout.encode(&cells, &mut out);
        Ok(out)
    }

    /// Gives the operation its values, in the order in which it meets the rows.
    fn hand_over(self, operations: &mut [DdlOp]) {
        let Some(DdlOp::AlterTable { columns, .. }) = operations.get_mut(self.operation) else { return };
        let order: Option<Vec<usize>> = (!self.keys.is_sorted()).then(|| {
            let mut order: Vec<usize> = (0..self.keys.len()).collect();
            order.sort_by(|one, other| self.keys[*one].cmp(&self.keys[*other]));
            order
        });
        for (column, mut values) in self.computed.iter().zip(self.values) {
            if let Some(order) = &order {
                values = order.iter().map(|at| values[*at].clone()).collect();
            }
            if let Some(source) = columns.get_mut(column.column) {
                *source = ColumnSource::Each(Arc::from(values));
            }
        }
    }
}

/// What validations read of a table's rows.
fn looks_at(tree: TreeId, validations: &[Arc<ValidationRun>]) -> Vec<Look<'_>> {
    let mut looks = Vec::new();
    for validation in validations {
        for (relation, written) in validation.written.iter().enumerate() {
            for part in written.parts.iter().filter(|part| part.tree == tree) {
                let codecs = written.types.iter().map(|ty| Codec::of(*ty)).collect();
                looks.push(Look { validation, relation, places: &part.places, codecs, rows: Vec::new() });
            }
        }
    }
    looks
}

impl Look<'_> {
    /// Looks at a row that is to be written, or keeps it.
    fn at(&mut self, layout: &RowLayout, row: &[u8], context: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        interrupt::steps(STEPS_PER_ROW)?;
        let places = self.places.iter().zip(&self.codecs);
        let values = places.map(|(place, codec)| codec.decode(layout.get(row, usize::from(*place))));
        let record = Datum::Record(values.collect::<Vec<Datum>>().into());
        if self.validation.each {
            return self.validation.run_over(context, vec![rows_as_table(std::iter::once(record))]);
        }
        self.rows.push(record);
        Ok(())
    }
}

fn sequence_value(ty: Type, value: i64) -> Datum {
    match ty.oid {
        Oid::INT2 => Datum::Int2(value as i16),
        Oid::INT4 => Datum::Int4(value as i32),
        _ => Datum::Int8(value),
    }
}

impl ComputedRun {
    /// The value for a row, the `at`-th; and what that was before all operations.
    fn value_of(
        &self,
        at: usize,
        (layout, row): (&RowLayout, &[u8]),
        (original_layout, original): (&RowLayout, &[u8]),
        context: &mut ExecContext<'_, '_>,
    ) -> ExecResult<OwnedCell> {
        let value = match &self.value {
            ValueRun::Sequence(sequence) => {
                sequence_value(self.ty, sequence.start + at as i64 * sequence.increment)
            }
            ValueRun::WithoutField { types, column, way } => {
                way.without(&Codec::of(types[*column]).decode(layout.get(row, *column)))
            }
            ValueRun::Relabelled { column, ty, labels } => {
                relabelled(&Codec::of(*ty).decode(layout.get(row, *column)), labels)
            }
            ValueRun::Query { query, types, of_original } => {
                let (layout, row) = if *of_original { (original_layout, original) } else { (layout, row) };
                let types = types.iter().enumerate();
                context.params = types.map(|(at, ty)| Codec::of(*ty).decode(layout.get(row, at))).collect();
                answer(query, context)?
            }
        };
        self.cell(value)
    }

    /// Computes the value of all rows where there are none, for what that does.
    fn without_rows(&self, context: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        let ValueRun::Query { query, types, .. } = &self.value else { return Ok(()) };
        context.params = vec![Datum::Null; types.len()];
        let value = answer(query, context)?;
        archipel_sql::typmod::coerce_typmod(value, self.ty, false)?;
        Ok(())
    }

    fn cell(&self, value: Datum) -> ExecResult<OwnedCell> {
        let value = archipel_sql::typmod::coerce_typmod(value, self.ty, false)?;
        if let (Datum::Null, Some(error)) = (&value, &self.not_null) {
            return Err(error.clone().into());
        }
        let mut space = Vec::new();
        let cell = OwnedCell::from(datum_to_cell(&value, self.ty, &mut space)?);
        // All of them are there before the first row is written.
        let bytes = if let OwnedCell::Bytes(bytes) = &cell { bytes.len() } else { 0 };
        interrupt::steps(STEPS_PER_ROW + bytes)?;
        Ok(cell)
    }
}

/// The one value of a query's one row.
fn answer(query: &CompiledStatement, context: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
    let mut rows: Vec<Vec<Datum>> = Vec::new();
    query.run(context, &mut rows)?;
    Ok(rows.pop().and_then(|mut row| row.pop()).unwrap_or(Datum::Null))
}
