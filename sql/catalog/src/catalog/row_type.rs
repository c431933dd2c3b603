//! What the crate of types asks a catalog: the fields of a composite type, the names of users' types.

use crate::function::SessionHost;
use crate::record::RowType;
use crate::type_table::TypeNames;
use crate::types::Type;

use super::{Catalog, Table};

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

impl TypeNames for Catalog {
    fn type_along(&self, search_path: &[String], ty: Type) -> String {
        crate::system::type_along(self, search_path, ty)
    }
}

impl Catalog {
    /// The catalog that a session's statement sees, where the session knows it.
    pub fn of_session(session: &dyn SessionHost) -> Option<&Catalog> {
        session.current_catalog()?.downcast_ref()
    }
}
