//! Stand-in for the dialect's system tables until they land.
use archipel_sql::catalog::{Catalog, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
pub trait SystemSource {
    fn catalog(&self) -> &Catalog;
    fn search_path(&self) -> &[String];
    fn user(&self) -> &str;
    fn database(&self) -> &str;
}
pub fn tables() -> Vec<Table> {
    Vec::new()
}
pub fn rows(_table: &Table, _source: &dyn SystemSource) -> Option<Result<Vec<Vec<Datum>>>> {
    None
}
pub fn call(name: &str, args: &[Datum], source: &dyn SystemSource) -> Option<Result<Datum>> {
    match (name, args) {
        ("regclassin", [Datum::Text(text)]) => Some(
            source
                .catalog()
                .relation_by_text(text, source.search_path())
                .map(|relation| Datum::Oid(relation.oid())),
        ),
        _ => None,
    }
}
