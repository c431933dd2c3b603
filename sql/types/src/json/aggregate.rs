//! `json_agg`, `json_object_agg` and their jsonb twins. Their arguments arrive as JSON.

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::signature::Factory;
use crate::function::{AggregateState, FunctionContext, length};

use super::write::quoted;
use super::{Kind, Node};

/// The state factory of one of them.
pub fn factory(name: &str) -> Option<Factory> {
    Some(match name {
        "json_agg" => |_| Box::new(Items { out: None, binary: false }),
        "jsonb_agg" => |_| Box::new(Items { out: None, binary: true }),
        "json_object_agg" => |_| Box::new(Fields { out: None, binary: false }),
        "jsonb_object_agg" => |_| Box::new(Fields { out: None, binary: true }),
        _ => return None,
    })
}

fn text_of(value: Option<&Datum>) -> &str {
    value.and_then(Datum::json_text).unwrap_or("null")
}

fn finished(out: &Option<String>, close: char, binary: bool) -> Result<Datum> {
    let Some(out) = out else { return Ok(Datum::Null) };
    let text = format!("{out}{close}");
    Ok(if binary { Datum::Jsonb(crate::io::jsonb_text(&text)?.into()) } else { Datum::Text(text.into()) })
}

struct Items {
    out: Option<String>,
    binary: bool,
}

impl AggregateState for Items {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        match &mut self.out {
            None => self.out = Some("[".to_owned()),
            Some(out) => {
                out.push_str(", ");
                // Rows and arrays stand on lines of their own; the binder says which they are.
                if !args[0].is_null() && matches!(args.get(1), Some(Datum::Bool(true))) {
                    out.push_str("\n ");
                }
            }
        }
        if let Some(out) = &mut self.out {
            length::push(out, text_of(args.first()))?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        finished(&self.out, ']', self.binary)
    }
}

struct Fields {
    out: Option<String>,
    binary: bool,
}

impl AggregateState for Fields {
    fn update(&mut self, _: &FunctionContext<'_>, args: &[Datum]) -> Result<()> {
        let invalid = |message: &str| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        let Some(key) = args.first().and_then(Datum::json_text) else {
            return Err(invalid("field name must not be null"));
        };
        let node = Node::parse(key)?;
        let key = match &node.kind {
            Kind::String(text) => text.as_ref(),
            Kind::Array(_) | Kind::Object(_) => {
                return Err(invalid("key value must be scalar, not array, composite, or json"));
            }
            _ => node.text,
        };
        let out = match &mut self.out {
            None => self.out.insert("{ ".to_owned()),
            Some(out) => {
                out.push_str(", ");
                out
            }
        };
        quoted(key, out)?;
        out.push_str(" : ");
        length::push(out, text_of(args.get(1)))
    }

    fn finish(&mut self, _: &FunctionContext<'_>) -> Result<Datum> {
        let out = self.out.as_ref().map(|out| format!("{out} "));
        finished(&out, '}', self.binary)
    }
}
