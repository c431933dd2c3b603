//! Types that users make: enums, domains and composite types.
//!
//! A domain is no type of its own for values: a column, a parameter or a variable of a domain has
//! the type the domain is over, and remembers whose conditions its values must meet
//! ([`Column::domain`](super::Column::domain)).
//!
//! What kind of type a number stands for must be plain from the number alone, for values are
//! stored and compared where no catalog is at hand: numbers are drawn from the counter of all oids and
//! moved into the block of the kind ([`type_kind`](crate::type_kind)). A value of an enum is the oid of
//! its label; labels have a block, too ([`Oid::is_enum_label`]), and draw rising oids, so that they sort
//! as they were declared. Composite types share theirs with tables' row types; the number drawn is that
//! of the relation that stands for the type in pg_class.
//!
//! - [`lookup`]    finds them by their names and by what they are made of
//! - [`row_type`]  what the crate of types asks of a catalog
//! - [`renumber`]  row types as data directories of before numbered them

mod lookup;
mod renumber;
pub(super) mod row_type;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::types::{Oid, Type};

use super::{Check, Column, Table, TableKind};

/// A type with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserType {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    /// An enum's, in their order.
    pub labels: Vec<EnumLabel>,
    /// What makes it a domain.
    #[serde(default)]
    pub domain: Option<Domain>,
    /// What makes it a composite type: its fields in order.
    #[serde(default)]
    pub attributes: Option<Vec<Column>>,
}

/// What a domain says of its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// The type of its values, found through all the domains it is over.
    pub base: Type,
    /// The domain it is over, whose conditions come first.
    pub parent: Option<Oid>,
    pub not_null: bool,
    /// SQL text.
    pub default: Option<String>,
    /// By name.
    pub checks: Vec<Check>,
    /// Whether it has no other default than that, whatever those have that it is over. Data directories of
    /// before say nothing of it.
    #[serde(default)]
    pub owns_default: bool,
    /// The collation of its values, where it is not their type's own.
    #[serde(default)]
    pub collation: Option<Oid>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumLabel {
    pub oid: Oid,
    pub name: String,
    /// The bits of the number it sorts by (pg_enum.enumsortorder), where that is not its place
    /// among the labels.
    #[serde(default)]
    pub order: Option<u32>,
}

pub type UserTypeRef = Arc<UserType>;

/// PostgreSQL's limit on the bytes of a label (NAMEDATALEN - 1).
pub const LABEL_BYTES_MAX: usize = 63;

impl UserType {
    /// The array type over it.
    pub fn array_type(&self) -> Oid {
        Oid(self.oid.0 + 1)
    }

    /// The relation that has a composite type's fields as its columns (pg_type.typrelid).
    pub fn relation(&self) -> Option<Table> {
        let columns = self.attributes.clone()?;
        let oid = self.oid.relation_of_row_type()?;
        let (schema, name) = (self.schema.clone(), self.name.clone());
        Some(Table { columns, ..Table::new(oid, schema, name, TableKind::Composite) })
    }

    pub fn label(&self, name: &str) -> Option<&EnumLabel> {
        self.labels.iter().find(|label| label.name == name)
    }

    /// The number that the label at a place sorts by: the places as the type was made, and numbers
    /// in between for labels that came to stand among others.
    pub fn label_order(&self, place: usize) -> f32 {
        let kept = self.labels.get(place).and_then(|label| label.order);
        kept.map_or(place as f32 + 1.0, f32::from_bits)
    }

    /// Inserts a label that is to stand at a place. Where no number is left between its neighbours,
    /// all labels are numbered anew (RenumberEnumType).
    pub fn insert_label(&mut self, place: usize, oid: Oid, name: String) {
        let mut orders: Vec<f32> = (0..self.labels.len()).map(|place| self.label_order(place)).collect();
        let before = place.checked_sub(1).and_then(|before| orders.get(before)).copied();
        let order = match (before, orders.get(place).copied()) {
            (None, None) => 1.0,
            (Some(before), None) => before + 1.0,
            (None, Some(after)) => after - 1.0,
            (Some(before), Some(after)) => (before + after) / 2.0,
        };
        self.labels.insert(place, EnumLabel { oid, name, order: None });
        if orders.contains(&order) {
            self.labels.iter_mut().for_each(|label| label.order = None);
            return;
        }
        orders.insert(place, order);
        for (label, order) in self.labels.iter_mut().zip(orders) {
            label.order = Some(order.to_bits());
        }
    }
}

/// The oid of a label whose number is drawn as `number`.
pub fn label_oid(number: Oid) -> Oid {
    Oid(Oid::ENUM_LABELS + number.0)
}

/// In the place of a column's number, which is never that: a value that is no column is of the domain that
/// stands in the place of the table.
pub const OF_DOMAIN: u16 = 0;
