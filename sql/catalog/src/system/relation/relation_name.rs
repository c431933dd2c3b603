//! Names of relations and types as the search path finds them.

use crate::system::SystemSource;
use crate::types::Oid;

/// The name of a relation, qualified if the search path does not find it.
pub(in crate::system) fn relation_name(source: &dyn SystemSource, oid: Oid) -> Option<String> {
    let Some(relation) = source.catalog().relation_by_oid(oid) else {
        let composite = source.catalog().table_of_row_type(Oid::row_type_of(oid))?;
        return Some(match type_is_found(source, &composite) {
            true => source.quoting().name(&composite.name),
            false => source.quoting().qualified(&composite.schema, &composite.name),
        });
    };
    Some(if source.catalog().is_visible(&relation, source.search_path()) {
        source.quoting().name(relation.name())
    } else {
        source.quoting().qualified(relation.schema(), relation.name())
    })
}

/// Whether a plain name finds this composite type.
pub(in crate::system) fn type_is_found(source: &dyn SystemSource, composite: &crate::catalog::Table) -> bool {
    let found = source.catalog().user_type(None, &composite.name, source.search_path());
    found.is_some_and(|ty| ty.oid == composite.row_type())
}
