//! RowDescription.

use archipel_planner::bound::OutputColumn;
use archipel_sql::catalog::OF_DOMAIN;

use super::Session;
use crate::encode::Formats;
use crate::wire::output::Field;

impl Session {
    pub(super) fn describe_columns(&mut self, columns: &[OutputColumn], formats: &Formats) {
        // Clients are told of no domain.
        let source = |column: &OutputColumn| column.source.filter(|(_, number)| *number != OF_DOMAIN);
        let fields = columns.iter().enumerate().map(|(index, column)| Field {
            name: &column.name,
            table: source(column).map_or(0, |(table, _)| table.0),
            attribute: source(column).map_or(0, |(_, attribute)| attribute),
            type_oid: column.ty.oid.0,
            type_size: crate::encode::type_size(column.ty.oid),
            typmod: column.ty.typmod,
            binary: formats.is_binary(index),
        });
        self.output.row_description(fields);
    }
}
