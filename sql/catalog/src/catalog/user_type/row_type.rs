//! What the crate of types asks a catalog: the fields of a composite type, the names of users' types.

use crate::error::Result;
use crate::function::SessionHost;
use crate::record::RowType;
use crate::style::Quoting;
use crate::type_table::TypeNames;
use crate::types::{Oid, Type};

use crate::catalog::names::is_temporary_schema;
use crate::catalog::{Catalog, Table};

impl RowType for Table {
    fn width(&self) -> usize {
        self.columns.len()
    }

    fn name(&self, place: usize) -> Option<&str> {
        self.columns.get(place).map(|column| column.name.as_str())
    }

    fn ty(&self, place: usize) -> Option<Type> {
        self.columns.get(place).map(|column| column.ty)
    }

    fn declared(&self, place: usize) -> Option<Type> {
        self.columns.get(place).map(|column| column.declared())
    }
}

/// The types of a catalog by name: with their schemas, unless their names alone lead to them along this
/// path. As a session, one that knows nothing else: for what is read in nobody's name.
#[derive(Clone, Copy)]
pub struct TypesAlong<'c> {
    pub catalog: &'c Catalog,
    pub search_path: &'c [String],
}

impl TypeNames for TypesAlong<'_> {
    /// Types of users, those of tables' rows, and arrays of both.
    fn user_type(&self, ty: Type) -> Option<String> {
        self.quoted(ty, Quoting::WhereNeeded)
    }
}

impl SessionHost for TypesAlong<'_> {
    // What a definition is made of was bound in a session before.
    fn check_label(&self, _label: Oid) -> Result<()> {
        Ok(())
    }

    fn type_names(&self) -> &dyn TypeNames {
        self
    }
}

/// As [`TypesAlong`], with such names in quotes as a session wants.
pub(crate) struct QuotedTypes<'c> {
    pub along: TypesAlong<'c>,
    pub quoting: Quoting,
}

impl TypeNames for QuotedTypes<'_> {
    fn user_type(&self, ty: Type) -> Option<String> {
        self.along.quoted(ty, self.quoting)
    }

    fn quoting(&self) -> Quoting {
        self.quoting
    }
}

impl TypesAlong<'_> {
    /// The name of a type of a user's, that of a table's rows, or of an array of one.
    pub fn quoted(&self, ty: Type, quoting: Quoting) -> Option<String> {
        let (schema, name, element) = defined_type(self.catalog, ty.oid)?;
        let shown = match type_is_visible(self.catalog, self.search_path, &name, element) {
            true => quoting.name(&name),
            false => quoting.qualified(&schema, &name),
        };
        Some(if ty.oid == element { shown } else { format!("{shown}[]") })
    }

    /// Whether the name alone of a type that is not built in leads to it; `None` where there is none.
    pub(crate) fn is_visible(&self, ty: Oid) -> Option<bool> {
        let (_, name, element) = defined_type(self.catalog, ty)?;
        Some(type_is_visible(self.catalog, self.search_path, &name, element))
    }
}

impl Catalog {
    /// The catalog that a session's statement sees, where the session knows it.
    pub fn of_session(session: &dyn SessionHost) -> Option<&Catalog> {
        session.current_catalog()?.downcast_ref()
    }
}

/// The schema, name and number of a type of a user's or of a table's rows, or of what its arrays hold.
fn defined_type(catalog: &Catalog, oid: Oid) -> Option<(String, String, Oid)> {
    if let Some(known) = catalog.user_type_of(oid) {
        return Some((known.schema.clone(), known.name.clone(), known.oid));
    }
    let table = catalog.table_of_row_type(oid);
    let table = table.or_else(|| catalog.table_of_row_type(Oid(oid.0.wrapping_sub(1))))?;
    Some((table.schema.clone(), table.name.clone(), table.row_type()))
}

/// Whether a plain name leads to a type of a user's, its own or that of a table's rows.
fn type_is_visible(catalog: &Catalog, search_path: &[String], name: &str, ty: Oid) -> bool {
    let temporary = search_path.iter().map(String::as_str).filter(|schema| is_temporary_schema(schema));
    for schema in temporary.chain(catalog.effective_path(search_path)) {
        if schema == "pg_catalog" && crate::type_table::all_types().iter().any(|known| known.name == name) {
            return false;
        }
        let known = catalog.user_type(Some(schema), name, search_path).map(|known| known.oid);
        let of_rows = || catalog.table(Some(schema), name, search_path).map(|table| table.row_type());
        if let Some(found) = known.or_else(of_rows) {
            return found == ty;
        }
    }
    false
}
