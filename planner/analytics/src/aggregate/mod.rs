//! Aggregates: PostgreSQL's own states behind DataFusion's interface.
//!
//! DISTINCT, ORDER BY and FILTER of a call are handled here, beside the state, so that they
//! compare values as PostgreSQL does. States are not mergeable, which is why aggregation runs in
//! one phase (one target partition).
//!
//! - [`scaled`] sums and averages of numerics of fixed scale, in integers
//! - [`keys`]   numerics as keys of groups, joins and orders

pub(super) mod keys;
pub mod scaled;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use archipel_planner::bound::{AggregateCall, Rel};
use archipel_sql::aggregate::FIRST;
use archipel_sql::compare::compare;
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::{Aggregate, AggregateFunction, AggregateState};
use archipel_sql::interrupt;
use archipel_sql::types::Type;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::datatypes::{Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use datafusion::scalar::ScalarValue;

use crate::error::{external, not_mergeable};
use crate::evaluate::Context;
use crate::scan::carrier::{Reader, data_type, scalar};
use scaled::{Formula, Totals};

/// What an aggregate call does with its columns: first its arguments, then its sort keys, then
/// its filter.
#[derive(Clone, Debug)]
pub struct Call {
    pub function: &'static AggregateFunction,
    pub args: Vec<Type>,
    pub distinct: bool,
    /// Type, descending, NULLs first.
    pub order_by: Vec<(Type, bool, bool)>,
    pub filter: bool,
    pub result: Type,
    /// What is summed up, or averaged, if that can be computed in integers: of the arguments.
    pub formula: Option<Arc<Formula>>,
}

impl Call {
    /// The first value of a group.
    pub fn first_of(ty: Type) -> Call {
        let (args, order_by) = (vec![ty], Vec::new());
        Call { function: &FIRST, args, distinct: false, order_by, filter: false, result: ty, formula: None }
    }

    /// A sum or an average of a formula.
    pub fn of_formula(function: &'static AggregateFunction, formula: Formula, result: Type) -> Call {
        let args = formula.args.iter().map(|arg| arg.ty).collect();
        let formula = Some(Arc::new(formula));
        Call { function, args, distinct: false, order_by: Vec::new(), filter: false, result, formula }
    }

    fn totals(&self) -> Option<Totals> {
        let formula = self.formula.clone()?;
        Some(Totals::new(formula, self.function.is(Aggregate::Average), self.result))
    }
}

/// One aggregate call of a plan.
#[derive(Debug)]
pub struct RowAggregate {
    name: String,
    call: Call,
    context: Arc<Context>,
    signature: Signature,
}

impl RowAggregate {
    /// An aggregate with a name no other of the plan has.
    pub fn new(name: String, call: Call, context: Arc<Context>) -> RowAggregate {
        let mut types: Vec<DataType> = call.args.iter().map(|ty| data_type(*ty)).collect();
        types.extend(call.order_by.iter().map(|(ty, ..)| data_type(*ty)));
        if call.filter {
            types.push(DataType::Boolean);
        }
        let signature = if types.is_empty() {
            Signature::nullary(Volatility::Immutable)
        } else {
            Signature::exact(types, Volatility::Immutable)
        };
        RowAggregate { name, call, context, signature }
    }
}

impl PartialEq for RowAggregate {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RowAggregate {}

impl Hash for RowAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl AggregateUDFImpl for RowAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(data_type(self.call.result))
    }

    fn state_fields(&self, _args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}_state", self.name), DataType::Binary, true))])
    }

    fn accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if std::ptr::eq(self.call.function, &FIRST) {
            return Ok(Box::new(FirstSeen { value: None, ty: self.call.result }));
        }
        if let Some(totals) = self.call.totals() {
            return Ok(Box::new(totals));
        }
        Ok(Box::new(RowAccumulator {
            state: Mutex::new((self.call.function.state)(&self.call.args)),
            held: Vec::new(),
            call: self.call.clone(),
            context: self.context.clone(),
        }))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs<'_>) -> bool {
        self.call.formula.is_some()
    }

    fn create_groups_accumulator(&self, _args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match self.call.totals() {
            Some(totals) => Ok(Box::new(totals)),
            None => Err(external(SqlError::internal("an aggregate whose groups have states of their own"))),
        }
    }
}

/// Whether what an aggregate answers is in the order in which its rows come.
pub(crate) fn keeps_order(call: &AggregateCall) -> bool {
    let gathers = matches!(
        call.function.builtin(),
        Some(Aggregate::Array | Aggregate::Text | Aggregate::JsonArray | Aggregate::JsonObject)
    );
    gathers && call.order_by.is_empty()
}

/// Whether rows come in an order that a query below asks for, which DataFusion forgets.
pub(crate) fn is_sorted(rel: &Rel, ctes: &BTreeMap<u32, Rel>) -> bool {
    match rel {
        Rel::Sort { .. } => true,
        Rel::Project { input, .. } | Rel::Filter { input, .. } | Rel::Limit { input, .. } => {
            is_sorted(input, ctes)
        }
        Rel::With { body, .. } => is_sorted(body, ctes),
        Rel::CteScan { id, .. } => ctes.get(id).is_some_and(|rel| is_sorted(rel, ctes)),
        _ => false,
    }
}

/// What a row counts as ([`interrupt::steps`]).
const STEPS_PER_ROW: usize = 64;

struct RowAccumulator {
    /// Behind a mutex for DataFusion's Sync bound alone; it is only reached through `&mut`.
    state: Mutex<Box<dyn AggregateState>>,
    /// Rows kept back for DISTINCT or ORDER BY: arguments, then sort keys.
    held: Vec<Vec<Datum>>,
    call: Call,
    context: Arc<Context>,
}

impl std::fmt::Debug for RowAccumulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.call)
    }
}

impl RowAccumulator {
    fn holds(&self) -> bool {
        self.call.distinct || !self.call.order_by.is_empty()
    }

    fn take(&mut self, args: &[Datum]) -> Result<()> {
        if self.call.function.strict && args.iter().any(Datum::is_null) {
            return Ok(());
        }
        let state = self
            .state
            .get_mut()
            .map_err(|_| external(SqlError::internal("an aggregate's state was lost")))?;
        state.update(&self.context.functions(), args).map_err(external)
    }

    /// Feeds the held rows in order, without repetitions if DISTINCT.
    fn feed(&mut self) -> Result<()> {
        let mut held = std::mem::take(&mut self.held);
        let width = self.call.args.len();
        let order = self.call.order_by.clone();
        held.sort_by(|a, b| {
            let keys = order.iter().enumerate().map(|(i, (_, descending, nulls_first))| {
                order_datums(&a[width + i], &b[width + i], *descending, *nulls_first)
            });
            // DISTINCT sorts by the arguments where ORDER BY leaves them unordered.
            let args = a[..width].iter().zip(&b[..width]).map(|(a, b)| order_datums(a, b, false, false));
            let all = keys.chain(args.take(if self.call.distinct { width } else { 0 }));
            all.into_iter().find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
        });
        if self.call.distinct {
            held.dedup_by(|a, b| {
                a[..width]
                    .iter()
                    .zip(&b[..width])
                    .all(|(a, b)| order_datums(a, b, false, false) == Ordering::Equal)
            });
        }
        for row in &held {
            interrupt::steps(STEPS_PER_ROW).map_err(external)?;
            self.take(&row[..width])?;
        }
        Ok(())
    }
}

fn order_datums(a: &Datum, b: &Datum, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => {
            if nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (false, true) => {
            if nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (false, false) if descending => compare(b, a),
        (false, false) => compare(a, b),
    }
}

impl Accumulator for RowAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let _watch = self.context.watch();
        let mut types = self.call.args.clone();
        types.extend(self.call.order_by.iter().map(|(ty, ..)| *ty));
        let readers = values
            .iter()
            .zip(&types)
            .map(|(array, ty)| Reader::new(array.as_ref(), *ty))
            .collect::<archipel_sql::error::Result<Vec<_>>>()
            .map_err(external)?;
        let filter = match (self.call.filter, values.last()) {
            (true, Some(last)) => last.as_any().downcast_ref::<BooleanArray>(),
            _ => None,
        };
        let rows = values.first().map_or(0, |array| array.len());
        let mut row: Vec<Datum> = Vec::with_capacity(readers.len());
        for place in 0..rows {
            if let Some(filter) = filter
                && !(filter.is_valid(place) && filter.value(place))
            {
                continue;
            }
            interrupt::steps(STEPS_PER_ROW).map_err(external)?;
            row.clear();
            row.extend(readers.iter().map(|reader| reader.get(place)));
            if self.holds() {
                self.held.push(row.clone());
            } else {
                self.take(&row)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let _watch = self.context.watch();
        self.feed()?;
        let state = self
            .state
            .get_mut()
            .map_err(|_| external(SqlError::internal("an aggregate's state was lost")))?;
        let value = state.finish(&self.context.functions()).map_err(external)?;
        scalar(&value, self.call.result).map_err(external)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.held.iter().map(|row| row.len() * size_of::<Datum>()).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_mergeable()
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        not_mergeable()
    }
}

/// The first value of a group, as it is carried.
#[derive(Debug)]
struct FirstSeen {
    value: Option<ScalarValue>,
    ty: Type,
}

impl Accumulator for FirstSeen {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if self.value.is_none()
            && let Some(array) = values.first().filter(|array| !array.is_empty())
        {
            self.value = Some(ScalarValue::try_from_array(array, 0)?);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match &self.value {
            Some(value) => Ok(value.clone()),
            None => scalar(&Datum::Null, self.ty).map_err(external),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_mergeable()
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        not_mergeable()
    }
}
