//! Values for a new or changed column of rows that are there: computed under the definition's
//! claims, row by row, just before the table is rewritten.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::table::SequenceDef;
use archipel_engine::txn::OwnedCell;
use archipel_engine::{ColumnSource, DdlOp, Direction, KeyRange, TableMeta, Txn};
use archipel_planner::ddl::FieldWay;
use archipel_planner::native::{CompiledStatement, ExecContext, ExecError, ExecResult};
use archipel_planner::row::{Codec, datum_to_cell};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::interrupt;
use archipel_sql::types::Type;

use super::definition::DefinitionRun;
use super::require_silence;

/// What a row counts as beside its bytes ([`interrupt::steps`]): by that it is asked, too, whether there
/// is memory for more of them.
const STEPS_PER_ROW: usize = 64;

/// One column of the operation beside it.
pub struct ComputedRun {
    pub column: usize,
    pub ty: Type,
    pub not_null: Option<SqlError>,
    pub value: ValueRun,
}

pub enum ValueRun {
    /// Over the old row's columns, which are of these types, as parameters.
    Query {
        query: Box<CompiledStatement>,
        types: Vec<Type>,
    },
    /// The old value of a column without a field of the rows in it.
    WithoutField {
        types: Vec<Type>,
        column: usize,
        way: FieldWay,
    },
    Sequence(SequenceDef),
}

fn rows_of(txn: &mut Txn<'_>, table: &TableMeta) -> ExecResult<Vec<Vec<u8>>> {
    let mut rows = Vec::new();
    let mut looked = Ok(());
    txn.scan(table, KeyRange::ALL, Direction::Ascending, &mut |_, row| {
        looked = interrupt::steps(STEPS_PER_ROW + row.len());
        if looked.is_err() {
            return ControlFlow::Break(());
        }
        rows.push(row.to_vec());
        ControlFlow::Continue(())
    })?;
    looked?;
    Ok(rows)
}

impl DefinitionRun {
    /// The operations, with sequences that will have given values made to go on after them.
    pub(super) fn with_computed(&self, txn: &mut Txn<'_>) -> ExecResult<Vec<DdlOp>> {
        let mut operations: Vec<DdlOp> = self.ddl().cloned().collect();
        for described in &self.operations {
            let DdlOp::AlterTable { def, .. } = &described.operation else { continue };
            for column in &described.computed {
                let ValueRun::Sequence(sequence) = &column.value else { continue };
                let Some(table) = txn.table(def.id) else { continue };
                let count = rows_of(txn, &table)?.len() as i64;
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

    /// An operation with the values of its computed columns.
    pub(super) fn compute(
        &self,
        computed: &[ComputedRun],
        operation: DdlOp,
        txn: &mut Txn<'_>,
    ) -> ExecResult<DdlOp> {
        let DdlOp::AlterTable { def, mut columns } = operation else { return Ok(operation) };
        if computed.is_empty() {
            return Ok(DdlOp::AlterTable { def, columns });
        }
        let table = txn
            .table(def.id)
            .ok_or_else(|| ExecError::Sql(SqlError::internal("the table to be altered is not there")))?;
        let rows = rows_of(txn, &table)?;
        for column in computed {
            let cells: Vec<OwnedCell> = match &column.value {
                ValueRun::Sequence(sequence) => (0..rows.len() as i64)
                    .map(|at| {
                        column.cell(sequence_value(column.ty, sequence.start + at * sequence.increment))
                    })
                    .collect::<ExecResult<_>>()?,
                ValueRun::WithoutField { types, column: of, way } => {
                    let codec = Codec::of(types[*of]);
                    let value = |row: &Vec<u8>| way.without(&codec.decode(table.layout.get(row, *of)));
                    rows.iter().map(|row| column.cell(value(row))).collect::<ExecResult<_>>()?
                }
                ValueRun::Query { query, types } => {
                    let mut cells = Vec::with_capacity(rows.len());
                    let host = self.host.clone().ok_or_else(|| {
                        ExecError::Sql(SqlError::internal("a computed column without a session"))
                    })?;
                    let functions = FunctionContext { now: txn.started_at(), session: &*host };
                    let codecs: Vec<Codec> = types.iter().map(|ty| Codec::of(*ty)).collect();
                    let mut context = ExecContext::new(txn, functions, &*host);
                    context.budgeted = false;
                    for row in &rows {
                        context.params = codecs
                            .iter()
                            .enumerate()
                            .map(|(at, codec)| codec.decode(table.layout.get(row, at)))
                            .collect();
                        let mut answer: Vec<Vec<Datum>> = Vec::new();
                        query.run(&mut context, &mut answer)?;
                        let value = answer.pop().and_then(|mut row| row.pop()).unwrap_or(Datum::Null);
                        cells.push(column.cell(value)?);
                    }
                    require_silence(&context)?;
                    cells
                }
            };
            if let Some(source) = columns.get_mut(column.column) {
                *source = ColumnSource::Each(Arc::from(cells));
            }
        }
        Ok(DdlOp::AlterTable { def, columns })
    }
}

fn sequence_value(ty: Type, value: i64) -> Datum {
    match ty.oid {
        archipel_sql::types::Oid::INT2 => Datum::Int2(value as i16),
        archipel_sql::types::Oid::INT4 => Datum::Int4(value as i32),
        _ => Datum::Int8(value),
    }
}

impl ComputedRun {
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
