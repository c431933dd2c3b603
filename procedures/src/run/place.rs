//! Where values go: registers, the fields of rows, the columns of what a routine answers.

use archipel_sql::datum::Datum;

/// Where a value is stored.
#[derive(Clone, Debug)]
pub enum Place {
    Scalar {
        register: u32,
        not_null: Option<Box<str>>,
    },
    /// `present` is set unless the record is NULL.
    Record {
        base: u32,
        width: u32,
        present: Option<u32>,
    },
}

/// Where the columns of a row are stored: one place for each, in order.
#[derive(Clone, Debug)]
pub struct Targets {
    pub registers: Vec<u32>,
    /// Variables among them declared NOT NULL: position and name.
    pub not_null: Vec<(u32, Box<str>)>,
    /// The register that says that a row is there, where they are a row's.
    pub present: Option<u32>,
    /// The variable, if it is one as a whole and declared NOT NULL.
    pub whole_not_null: Option<Box<str>>,
    /// The register that says which structure a record has, and the number of this one.
    pub tag: Option<(u32, i32)>,
    /// What they take where there is no row: NULL, or a row of NULLs where the only one takes rows.
    pub without_row: Datum,
}

impl Targets {
    /// Registers that are not those of one row.
    pub fn of(registers: Vec<u32>) -> Targets {
        Targets {
            registers,
            not_null: Vec::new(),
            present: None,
            whole_not_null: None,
            tag: None,
            without_row: Datum::Null,
        }
    }
}

/// Where a column of a result comes from.
#[derive(Clone, Debug)]
pub enum OutColumn {
    Register(u32),
    /// A variable of a composite type, which is NULL while `present` and all its fields are; `spread`
    /// where the fields are the columns.
    Row {
        registers: Vec<u32>,
        present: Option<u32>,
        spread: bool,
    },
    /// A variable of a domain over a composite type, in one register, whose fields are the columns.
    Spread(u32),
}
