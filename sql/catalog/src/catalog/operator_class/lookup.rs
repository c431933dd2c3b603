//! Operator classes and families by their names, in a catalog.

use super::{ClassFunction, OperatorClass, OperatorClassRef, OperatorFamilyRef};
use crate::catalog::Catalog;
use crate::types::Oid;

impl Catalog {
    /// A family by its number.
    pub fn operator_family_by_oid(&self, oid: Oid) -> Option<OperatorFamilyRef> {
        self.operator_families().find(|family| family.oid == oid).cloned()
    }

    /// A family of a method, along the path unless a schema is given.
    pub fn operator_family(
        &self,
        schema: Option<&str>,
        name: &str,
        method: &str,
        search_path: &[String],
    ) -> Option<OperatorFamilyRef> {
        let found_in = |schema: &str| {
            let is_it = |family: &&OperatorFamilyRef| {
                family.schema == schema && family.name == name && family.method == method
            };
            self.operator_families().find(is_it).cloned()
        };
        match schema {
            Some(schema) => found_in(schema),
            None => self.effective_path(search_path).into_iter().find_map(found_in),
        }
    }

    /// The support function of a number over a class's own type: its own, or one of its family's.
    pub fn class_function(&self, class: &OperatorClass, number: i16) -> Option<Oid> {
        class.function(number).or_else(|| {
            let family = self.operator_family_by_oid(class.family())?;
            let own = (number, class.input.oid, class.input.oid);
            let is_it = |of: &&ClassFunction| (of.number, of.left, of.right) == own;
            family.functions.iter().find(is_it).map(|of| of.function)
        })
    }

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
