//! A bound expression as a DataFusion function of the columns it reads.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archipel_planner::bound::BoundExpr;
use archipel_planner::evaluate::evaluate_row;
use archipel_planner::native::hash::ValueSet;
use archipel_sql::datum::Datum;
use archipel_sql::interrupt;
use archipel_sql::types::Type;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::error::external;
use crate::evaluate::{Context, is_volatile};
use crate::scan::carrier::{Reader, Writer, data_type};

/// Rows after which a function asks whether its query is still wanted.
const ASKS_EVERY: usize = 16;

/// Evaluates `expr` row by row; its columns are places in the argument list.
#[derive(Debug)]
pub struct RowFunction {
    name: String,
    expr: BoundExpr,
    /// Where the value is looked for; the function's answer then is whether it is there.
    within: Option<ValueSet>,
    args: Vec<Type>,
    context: Arc<Context>,
    signature: Signature,
    /// Bytes of the texts and the like that it has answered, until somebody takes note of them.
    written: Arc<AtomicUsize>,
}

impl RowFunction {
    /// A function with a name no other function of the plan has.
    pub fn new(
        name: String,
        expr: BoundExpr,
        within: Option<ValueSet>,
        args: Vec<Type>,
        context: Arc<Context>,
    ) -> RowFunction {
        // What reads no column would be computed while DataFusion plans, and its error told where no row
        // comes to it: what has a value beforehand is a constant already.
        let is_left_to_rows = args.is_empty() || is_volatile(&expr);
        let volatility = if is_left_to_rows { Volatility::Volatile } else { Volatility::Immutable };
        let signature = if args.is_empty() {
            Signature::nullary(volatility)
        } else {
            Signature::exact(args.iter().map(|ty| data_type(*ty)).collect(), volatility)
        };
        RowFunction { name, expr, within, args, context, signature, written: Arc::default() }
    }

    /// Counts the bytes of the texts and the like that it answers.
    pub(crate) fn written(&self) -> Arc<AtomicUsize> {
        self.written.clone()
    }

    fn result(&self) -> Type {
        if self.within.is_some() { Type::BOOL } else { self.expr.ty }
    }
}

// The name is unique within a plan, and functions of different plans never meet.
impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(data_type(self.result()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let _watch = self.context.watch();
        let rows = args.number_rows;
        let arrays: Vec<ArrayRef> =
            args.args.iter().map(|value| value.to_array(rows)).collect::<Result<_>>()?;
        let readers = arrays
            .iter()
            .zip(&self.args)
            .map(|(array, ty)| Reader::new(array.as_ref(), *ty))
            .collect::<archipel_sql::error::Result<Vec<_>>>()
            .map_err(external)?;
        let mut writer = Writer::new(self.result(), rows);
        let mut row: Vec<Datum> = Vec::with_capacity(readers.len());
        let functions = self.context.functions();
        let inputs = self.context.inputs(&functions);
        for place in 0..rows {
            if place % ASKS_EVERY == ASKS_EVERY - 1 {
                functions.check_interrupts().map_err(external)?;
            }
            row.clear();
            row.extend(readers.iter().map(|reader| reader.get(place)));
            let value = evaluate_row(&self.expr, &row, &inputs).map_err(external)?;
            let value = match &self.within {
                Some(values) => values.contains(value).map_or(Datum::Null, Datum::Bool),
                None => value,
            };
            // A batch holds thousands of them, however large they are.
            if let Datum::Text(text) | Datum::Bpchar(text) | Datum::Jsonb(text) = &value {
                interrupt::steps(text.len()).map_err(external)?;
            } else if let Datum::Bytea(bytes) = &value {
                interrupt::steps(bytes.len()).map_err(external)?;
            } else if let Datum::Bits(bits) = &value {
                interrupt::steps(bits.bytes().len()).map_err(external)?;
            }
            writer.push(&value).map_err(external)?;
        }
        self.written.fetch_add(writer.bytes(), Ordering::Relaxed);
        Ok(ColumnarValue::Array(writer.finish()))
    }
}
