//! Sequences, as the catalog knows them.

use serde::{Deserialize, Deserializer, Serialize};

use crate::catalog::Persistence;
use crate::types::{Oid, Type};

/// A sequence's definition: where it stands is the engine's to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    /// int2, int4 or int8.
    pub ty: Type,
    pub start: i64,
    pub increment: i64,
    pub min_value: i64,
    pub max_value: i64,
    pub cycle: bool,
    pub cache: i64,
    /// The column that owns it (serial, identity): table and column index.
    pub owned_by: Option<(Oid, u16)>,
    #[serde(default)]
    pub persistence: Persistence,
    /// The engine's number of it. A sequence that was restarted in a transaction block is another one
    /// there, as PostgreSQL gives it a new file.
    #[serde(default, deserialize_with = "number_or_zero")]
    pub file: u32,
}

/// Rows of before sequences had numbers of their own say nothing, or `null`.
fn number_or_zero<'d, D: Deserializer<'d>>(deserializer: D) -> Result<u32, D::Error> {
    Option::<u32>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Sequence {
    /// As it was read: where its row does not say the engine's number, that is its oid.
    pub(in crate::catalog) fn filed(mut self) -> Sequence {
        if self.file == 0 {
            self.file = self.oid.0;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::object::{Object, ObjectKind};

    fn read(file: &str) -> u32 {
        let payload = format!(
            r#"{{"oid":20000,"schema":"public","name":"s","ty":{},"start":1,"increment":1,"min_value":1,
                "max_value":9,"cycle":false,"cache":1,"owned_by":null{file}}}"#,
            serde_json::to_string(&Type::INT8).unwrap()
        );
        match Object::from_payload(ObjectKind::Sequence, payload.as_bytes()) {
            Ok(Object::Sequence(sequence)) => sequence.file,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_row_that_says_no_number_of_the_engine_means_the_oid() {
        assert_eq!((read(""), read(r#","file":null"#), read(r#","file":17"#)), (20_000, 20_000, 17));
    }
}
