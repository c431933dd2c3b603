//! What joins put in order: tables and other relations of FROM.

use crate::bound::Rel;
use crate::native::plan::compiler::Layout;
use crate::native::plan::relation::node::ScanUse;

/// What stands in a FROM clause.
pub(crate) struct Item<'b> {
    pub rel: &'b Rel,
    pub layout: Layout,
    /// The row a lateral item reads one depth out.
    pub(crate) lateral: Option<Layout>,
    /// What it reads of that row.
    pub read: Vec<u32>,
    /// Whether it is lateral, and how often its rows are made shows.
    pub effects: bool,
    pub usage: ScanUse,
}

impl<'b> Item<'b> {
    pub(crate) fn new(rel: &'b Rel, layout: Layout) -> Item<'b> {
        Item { rel, layout, lateral: None, read: Vec::new(), effects: false, usage: ScanUse::default() }
    }
}
