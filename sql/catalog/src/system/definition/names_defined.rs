//! Names of objects in what was defined: they mean what they meant on the path of the definition,
//! whoever uses it, and nobody is asked whether he may look into their schemas.

use crate::catalog::{Catalog, SessionRoles, TypesAlong};
use crate::datum::Datum;
use crate::error::{Result, SqlError};
use crate::function::SessionHost;
use crate::system::SystemSource;
use crate::type_table::TypeNames;
use crate::types::Type;

/// Whom literals of reg* types in a definition ask for what they name, and values in a plan that is told for
/// what they are.
pub struct Defined<'a> {
    pub catalog: &'a Catalog,
    /// Where the definition's names are looked up.
    pub search_path: &'a [String],
}

impl SystemSource for Defined<'_> {
    fn catalog(&self) -> &Catalog {
        self.catalog
    }

    fn search_path(&self) -> &[String] {
        self.search_path
    }

    fn roles(&self) -> SessionRoles {
        SessionRoles::default()
    }

    /// A definition does not say which database it is in.
    fn database(&self) -> &str {
        ""
    }
}

impl TypeNames for Defined<'_> {
    fn user_type(&self, ty: Type) -> Option<String> {
        TypesAlong { catalog: self.catalog, search_path: self.search_path }.user_type(ty)
    }
}

impl SessionHost for Defined<'_> {
    fn type_names(&self) -> &dyn TypeNames {
        self
    }

    fn call(&self, name: &str, args: &[Datum]) -> Result<Datum> {
        crate::system::call(name, args, self)
            .unwrap_or_else(|| Err(SqlError::unsupported(format_args!("function {name} in a definition"))))
    }
}
