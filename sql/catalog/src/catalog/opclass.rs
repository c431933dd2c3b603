//! Operator classes by their names, in a catalog.

use super::Catalog;
use super::operator_class::OperatorClassRef;

impl Catalog {
    /// A defined class of a method, along the path unless a schema is given.
    pub fn operator_class(
        &self,
        schema: Option<&str>,
        name: &str,
        method: &str,
        search_path: &[String],
    ) -> Option<OperatorClassRef> {
        let found_in = |schema: &str| {
            let is_it = |class: &&OperatorClassRef| {
                class.schema == schema && class.name == name && class.method == method
            };
            self.operator_classes().find(is_it).cloned()
        };
        match schema {
            Some(schema) => found_in(schema),
            None => self.effective_path(search_path).into_iter().find_map(found_in),
        }
    }
}
