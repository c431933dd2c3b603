//! Rows that routines answer, as one value.

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_sql::catalog::Routine;
use archipel_sql::datum::Datum;
use archipel_sql::record::{Record, RecordDescriptor};
use archipel_sql::stack;
use archipel_sql::types::{Oid, Type};

use crate::bind::argument::output_arguments;
use crate::native::run::row::sink::RowSink;
use crate::native::run::state::error::ExecResult;

/// What a row that a routine answers is as one value.
#[derive(Clone, Debug)]
pub(crate) enum RowShape {
    /// Its only column.
    Scalar,
    /// A record that stands in one column, or all its columns, which are declared.
    Record(Option<Arc<RecordDescriptor>>),
    /// All its columns: the fields of a composite type.
    Fields,
}

impl RowShape {
    /// What the rows of a routine are for an expression of a type.
    pub fn of(routine: &Routine, ty: Type) -> RowShape {
        match ty.oid {
            Oid::RECORD => {
                let declared = output_arguments(routine);
                RowShape::Record((!declared.is_empty()).then(|| RecordDescriptor::of(declared)))
            }
            oid if oid.is_composite() => RowShape::Fields,
            _ => RowShape::Scalar,
        }
    }

    /// A row as a value. A row without columns stands for NULL of a composite type.
    pub fn value(&self, row: &[Datum]) -> Datum {
        match row {
            [] => Datum::Null,
            [value] if self.is_column(value) => value.clone(),
            row => Datum::Record(Record::new(row, self.descriptor())),
        }
    }

    /// As [`Self::value`], of a row that nobody reads afterwards.
    fn take(&self, row: &mut [Datum]) -> Datum {
        match row {
            [] => Datum::Null,
            [value] if self.is_column(value) => value.take(),
            row => {
                let fields: Arc<[Datum]> = row.iter_mut().map(Datum::take).collect();
                Datum::Record(Record::new(fields, self.descriptor()))
            }
        }
    }

    fn descriptor(&self) -> Option<Arc<RecordDescriptor>> {
        if let RowShape::Record(declared) = self { declared.clone() } else { None }
    }

    /// Whether the only column is the value itself.
    fn is_column(&self, value: &Datum) -> bool {
        match self {
            RowShape::Scalar => true,
            RowShape::Record(declared) => {
                matches!(value, Datum::Record(_)) || (declared.is_none() && value.is_null())
            }
            RowShape::Fields => false,
        }
    }
}

/// Takes the first row a routine answers.
pub(crate) struct FirstRow<'s> {
    pub(crate) value: Datum,
    pub(crate) shape: &'s RowShape,
}

impl RowSink for FirstRow<'_> {
    fn row(&mut self, row: &[Datum]) -> ExecResult<ControlFlow<()>> {
        stack::check_fields(row)?;
        self.value = self.shape.value(row);
        Ok(ControlFlow::Break(()))
    }

    fn given(&mut self, row: &mut [Datum]) -> ExecResult<ControlFlow<()>> {
        stack::check_fields(row)?;
        self.value = self.shape.take(row);
        Ok(ControlFlow::Break(()))
    }
}
