//! Composite values: their fields, and what tells of those.
//!
//! A value of a named composite type needs nothing beside its fields as long as the plan knows the type.
//! Where the plan says `record`, the value itself says what it is: a [`RecordDescriptor`], made once
//! where rows are made (ROW, the row of a relation, a function's result) and shared by all of them.

use std::ops::Deref;
use std::sync::Arc;

use compact_str::CompactString;

use crate::datum::Datum;
use crate::types::{Oid, Type};

/// What the fields of a record are (PostgreSQL's TupleDesc).
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum RecordDescriptor {
    /// Those of a named composite type, which the catalog knows.
    Named(Oid),
    /// Names and types, in order. Literals that have no type yet are `unknown`.
    Fields(Box<[(CompactString, Type)]>),
}

impl RecordDescriptor {
    /// Fields of these names and types.
    pub fn of<N: AsRef<str>>(fields: impl IntoIterator<Item = (N, Type)>) -> Arc<RecordDescriptor> {
        let field = |(name, ty): (N, Type)| (CompactString::new(name), ty);
        Arc::new(RecordDescriptor::Fields(fields.into_iter().map(field).collect()))
    }

    /// The fields of ROW(…): `f1` and so on.
    pub fn of_row(types: impl IntoIterator<Item = Type>) -> Arc<RecordDescriptor> {
        let named = types.into_iter().enumerate().map(|(place, ty)| (format!("f{}", place + 1), ty));
        RecordDescriptor::of(named)
    }
}

/// A composite value. It reads as a slice of its fields; what it is made from without a descriptor is
/// of the type that the plan has for it.
#[derive(Clone, Debug)]
pub struct Record {
    fields: Arc<[Datum]>,
    descriptor: Option<Arc<RecordDescriptor>>,
}

impl Record {
    /// Fields, and what they are if the value is to say that.
    pub fn new(fields: impl Into<Arc<[Datum]>>, descriptor: Option<Arc<RecordDescriptor>>) -> Record {
        Record { fields: fields.into(), descriptor }
    }

    /// What its fields are, if it says that.
    #[inline]
    pub fn descriptor(&self) -> Option<&Arc<RecordDescriptor>> {
        self.descriptor.as_ref()
    }

    /// The same fields under a descriptor, unless it has one.
    #[must_use]
    pub fn or_described(mut self, descriptor: impl FnOnce() -> Arc<RecordDescriptor>) -> Record {
        self.descriptor.get_or_insert_with(descriptor);
        self
    }

    /// Other fields, which are what these are.
    #[must_use]
    pub fn with_fields(&self, fields: impl Into<Arc<[Datum]>>) -> Record {
        Record { fields: fields.into(), descriptor: self.descriptor.clone() }
    }

    /// Its fields, shared.
    #[inline]
    pub fn shared(&self) -> &Arc<[Datum]> {
        &self.fields
    }
}

impl Deref for Record {
    type Target = [Datum];

    #[inline]
    fn deref(&self) -> &[Datum] {
        &self.fields
    }
}

impl PartialEq for Record {
    /// Names and types are no part of the value.
    fn eq(&self, other: &Record) -> bool {
        self.fields == other.fields
    }
}

impl From<Arc<[Datum]>> for Record {
    fn from(fields: Arc<[Datum]>) -> Record {
        Record { fields, descriptor: None }
    }
}

impl From<Vec<Datum>> for Record {
    fn from(fields: Vec<Datum>) -> Record {
        Record { fields: fields.into(), descriptor: None }
    }
}

impl From<&[Datum]> for Record {
    fn from(fields: &[Datum]) -> Record {
        Record { fields: fields.into(), descriptor: None }
    }
}

impl<const N: usize> From<[Datum; N]> for Record {
    fn from(fields: [Datum; N]) -> Record {
        Record { fields: fields.into(), descriptor: None }
    }
}

impl FromIterator<Datum> for Record {
    fn from_iter<I: IntoIterator<Item = Datum>>(fields: I) -> Record {
        Record { fields: fields.into_iter().collect(), descriptor: None }
    }
}

/// What says which fields a composite type has.
pub trait RowType: std::fmt::Debug + Send + Sync {
    /// How many there are.
    fn width(&self) -> usize;
    /// The name of the one at a place.
    fn name(&self, place: usize) -> Option<&str>;
    /// Its type.
    fn ty(&self, place: usize) -> Option<Type>;
    /// Its type as it was declared: a domain, where it is of one.
    fn declared(&self, place: usize) -> Option<Type>;
}
