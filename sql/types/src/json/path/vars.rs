//! The variables of a path.

use std::rc::Rc;

use super::Value;
use crate::error::{Result, SqlError, SqlState};

/// The values of a path's variables.
#[derive(Clone, Debug)]
pub struct Vars(Option<Fields>);

/// The fields of an object, in order.
type Fields = Rc<[(Rc<str>, Value)]>;

impl Vars {
    pub const NONE: Vars = Vars(None);

    /// The fields of an object.
    pub fn of(value: &Value) -> Result<Vars> {
        match value {
            Value::Object(fields) => Ok(Vars(Some(fields.clone()))),
            _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "\"vars\" argument is not an object")
                .with_detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")),
        }
    }

    pub(super) fn get(&self, name: &str) -> Result<Value> {
        let fields = self.0.as_deref().unwrap_or_default();
        let found = fields.iter().find(|(key, _)| key.as_ref() == name);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_OBJECT, format!("could not find jsonpath variable \"{name}\""))
        })
    }
}
