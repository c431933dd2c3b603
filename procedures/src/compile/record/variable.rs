//! Where one variable lives: a register, or one for each field of its structures.

use std::hash::{Hash, Hasher};

use archipel_sql::types::Type;
use rustc_hash::FxHasher;

/// A field of a record: one register.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub name: String,
    pub ty: Type,
    /// What is assigned to it becomes this: `ty`, or a domain over it.
    pub declared: Type,
    pub register: u32,
}

/// One variable's place.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Scalar {
        register: u32,
        ty: Type,
        /// What is assigned to it becomes this: `ty`, or a domain over it.
        declared: Type,
    },
    /// `table%ROWTYPE`, or a variable of a named composite type.
    Row {
        fields: Vec<Field>,
        ty: Type,
        /// The register that is NULL as long as no row was assigned: where all fields are NULL, it tells
        /// whether the row is. The rows of triggers need none.
        present: Option<u32>,
    },
    /// `record`: takes the structure of what is assigned, each with registers of its own.
    Record {
        shapes: Vec<Vec<Field>>,
        state: RecordState,
        /// Which of them it has while it runs, where it takes several.
        tag: Option<Tag>,
    },
}

/// What structure a `record` variable has at the place being compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordState {
    /// NULL, for certain: nothing was assigned, or NULL was.
    Null,
    /// It may not have been assigned.
    Unassigned,
    /// The structure at a place among its own, and the type of its rows: `record`, unless they were
    /// assigned as values of a named one.
    Shape(usize, Type),
    /// One of these, a bit each: its tag says which.
    OneOf(u64),
    /// Paths with different structures meet here.
    Ambiguous,
}

impl RecordState {
    /// The structures it may be, a bit each; `None` where that is not known.
    pub(super) fn places(self) -> Option<u64> {
        match self {
            RecordState::Shape(place, _) => 1_u64.checked_shl(u32::try_from(place).ok()?),
            RecordState::OneOf(places) => Some(places),
            _ => None,
        }
    }
}

impl Storage {
    /// The fields a record variable has here.
    pub fn fields(&self) -> Option<&[Field]> {
        match self {
            Storage::Row { fields, .. } => Some(fields),
            Storage::Record { shapes, state: RecordState::Shape(shape, _), .. } => Some(&shapes[*shape]),
            _ => None,
        }
    }

    /// The type of the rows it has here.
    pub fn row_type(&self) -> Type {
        match self {
            Storage::Row { ty, .. } | Storage::Record { state: RecordState::Shape(_, ty), .. } => *ty,
            _ => Type::RECORD,
        }
    }

    pub fn is_record(&self) -> bool {
        !matches!(self, Storage::Scalar { .. })
    }

    /// Whether it has fields, all of it in one register: one of a domain over a composite type.
    pub fn is_row_value(&self) -> bool {
        matches!(self, Storage::Scalar { ty, .. } if ty.oid.is_composite())
    }

    /// Whether it is a record in one register, of which nothing but the whole is known.
    pub fn is_whole_record(&self) -> bool {
        matches!(self, Storage::Scalar { ty: Type::RECORD, .. })
    }
}

/// Which structure a record has while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    pub register: u32,
    /// The numbers of the structures, by their places among the variable's.
    pub numbers: Vec<Option<i32>>,
}

impl Tag {
    /// The number of the structure at a place: told by its fields, so that it is the same in every form of
    /// the routine.
    pub(super) fn number(&mut self, place: usize, fields: &[Field]) -> i32 {
        if self.numbers.len() <= place {
            self.numbers.resize(place + 1, None);
        }
        if let Some(number) = self.numbers[place] {
            return number;
        }
        let mut hasher = FxHasher::default();
        for field in fields {
            (&field.name, field.declared).hash(&mut hasher);
        }
        let mut number = hasher.finish() as i32;
        while self.numbers.contains(&Some(number)) {
            number = number.wrapping_add(1);
        }
        self.numbers[place] = Some(number);
        number
    }
}
