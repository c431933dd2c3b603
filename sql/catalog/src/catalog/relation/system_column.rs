//! Tables whose rows are told apart by their numbers, which SQL calls their places: `ctid`.

use crate::catalog::{Column, KeyConstraint, Table};
use crate::types::{Oid, Type};

/// The names that no column of a table may have (SystemAttributes).
pub const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", ROW_PLACE];

/// The system column that tells where a row is.
pub const ROW_PLACE: &str = "ctid";

impl Table {
    /// The same with the number of each row as one more column, `ctid`, which is its primary key; `None`
    /// for a table whose rows have none. For reading alone.
    pub fn with_numbers(&self) -> Option<Table> {
        let mut table = self.has_hidden_id().then(|| self.clone())?;
        table.columns.push(Column { not_null: true, ..Column::new(ROW_PLACE, Type::TID) });
        let (name, columns) = (String::new(), vec![self.columns.len() as u16]);
        let (include, options) = (Vec::new(), Vec::new());
        let key = KeyConstraint { oid: Oid(0), name, columns, include, parent: None, options };
        table.primary_key = Some(key);
        Some(table)
    }

    /// The table that [`Table::with_numbers`] was asked of; `None` for one that it did not make.
    pub fn without_numbers(&self) -> Option<Table> {
        self.columns.last().filter(|column| column.name == ROW_PLACE)?;
        let mut table = self.clone();
        table.columns.pop();
        table.primary_key = None;
        Some(table)
    }
}
