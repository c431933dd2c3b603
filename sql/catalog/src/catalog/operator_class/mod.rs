//! Operator classes that users define (chapter 38.16): how values of a type are compared or hashed
//! where somebody asks for that by name; and the families that they are in.
//!
//! - [`lookup`] finds classes and families by their names

mod lookup;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::types::{Oid, Type};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorClass {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    /// The access method: `btree` or `hash`.
    pub method: String,
    /// The type of the values.
    pub input: Type,
    pub default: bool,
    pub operators: Vec<ClassOperator>,
    pub functions: Vec<ClassFunction>,
    /// The family it is in. Classes of older data directories say none: they have one each, of their name.
    #[serde(default)]
    pub in_family: Option<Oid>,
}

/// Classes of a method that go together, with operators and functions that are in none of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorFamily {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub method: String,
    pub operators: Vec<ClassOperator>,
    pub functions: Vec<ClassFunction>,
}

/// A family as catalogs share it.
pub type OperatorFamilyRef = Arc<OperatorFamily>;

impl OperatorFamily {
    /// `operator family f for access method hash`, as messages name it.
    pub fn describe(&self) -> String {
        format!("operator family {} for access method {}", self.name, self.method)
    }
}

/// The number of the access method of this name in pg_am.
pub fn access_method(name: &str) -> Oid {
    Oid(match name {
        "hash" => 405,
        "gist" => 783,
        "gin" => 2742,
        "brin" => 3580,
        "spgist" => 4000,
        _ => 403,
    })
}

/// A row of pg_amop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassOperator {
    pub strategy: i16,
    pub left: Oid,
    pub right: Oid,
    pub operator: Oid,
}

/// A row of pg_amproc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassFunction {
    pub number: i16,
    pub left: Oid,
    pub right: Oid,
    pub function: Oid,
}

pub type OperatorClassRef = Arc<OperatorClass>;

/// The support function of hash classes that takes a seed.
pub const HASH_WITH_SEED: i16 = 2;

impl OperatorClass {
    /// The oid of its family.
    pub fn family(&self) -> Oid {
        self.in_family.unwrap_or(Oid(self.oid.0 + 1))
    }

    /// The support function of a number over values of its own type.
    pub fn function(&self, number: i16) -> Option<Oid> {
        let own = self.functions.iter().find(|function| function.number == number);
        own.map(|function| function.function)
    }

    /// `operator class c for access method hash`, as messages name it.
    pub fn describe(&self) -> String {
        format!("operator class {} for access method {}", self.name, self.method)
    }
}
