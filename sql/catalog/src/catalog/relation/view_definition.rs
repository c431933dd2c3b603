//! What a view is.

use serde::{Deserialize, Serialize};

use super::view_reference::ViewReference;
use crate::ast::CheckOption;

/// A view's query as it was written, but for the relations it reads: they stand there as
/// `"\u{1}relation"."n"`, the n-th of `references`, so that it goes on reading them whatever they are
/// called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub query: String,
    pub references: Vec<ViewReference>,
    /// Where its other names are looked up.
    pub search_path: Vec<String>,
    /// Which conditions rows written through it must meet.
    #[serde(default)]
    pub check_option: Option<CheckOption>,
    /// `security_invoker` and `security_barrier`, as far as somebody has said them, as written.
    #[serde(default)]
    pub options: Vec<(String, String)>,
}
