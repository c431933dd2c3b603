//! RowDescription.

use archipel_planner::bound::OutputColumn;
use archipel_sql::catalog::OF_DOMAIN;
use archipel_sql::error::Result;
use archipel_sql::type_table::element_of;

use crate::encode::Formats;
use crate::session::Session;
use crate::wire::output::Field;

impl Session {
    /// Errors: 22P05 for a name that the client's encoding does not have.
    pub(super) fn describe_columns(&mut self, columns: &[OutputColumn], formats: &Formats) -> Result<()> {
        // Clients are told of no domain (getBaseTypeAndTypmod), though of arrays of one.
        let holds_arrays = |column: &OutputColumn| element_of(column.ty.oid).is_some();
        let any = columns.iter().any(|column| column.source.is_some() && holds_arrays(column));
        let host = any.then(|| self.host());
        let declared = |column: &OutputColumn| {
            let catalog = &host.as_ref().filter(|_| holds_arrays(column))?.catalog.catalog;
            catalog.array_of_domain(catalog.domain_of(column.source)?)
        };
        let source = |column: &OutputColumn| column.source.filter(|(_, number)| *number != OF_DOMAIN);
        let fields = columns.iter().enumerate().map(|(index, column)| Field {
            name: &column.name,
            table: source(column).map_or(0, |(table, _)| table.0),
            attribute: source(column).map_or(0, |(_, attribute)| attribute),
            type_oid: declared(column).unwrap_or(column.ty.oid).0,
            type_size: crate::encode::type_size(column.ty.oid),
            typmod: column.ty.typmod,
            binary: formats.is_binary(index),
        });
        self.output.row_description(fields)
    }
}
