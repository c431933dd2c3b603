//! JSON input: validity for `json`, the canonical form for `jsonb`.

use crate::error::Result;
use crate::json::{Node, write};

/// Refuses what is not JSON.
pub fn validate_json(text: &str) -> Result<()> {
    Node::validate(text)
}

/// Rewrites JSON as jsonb keeps and shows it.
pub fn jsonb_text(text: &str) -> Result<String> {
    let node = Node::parse(text)?;
    let mut out = String::with_capacity(text.len() + 8);
    write::canonical(&node, &mut out)?;
    Ok(out)
}
