//! Calls about large objects, compiled: they read and write the rows of two tables.

use archipel_sql::catalog::Table;
use archipel_sql::catalog::large_object::{LARGE_OBJECT_PAGES, LARGE_OBJECTS};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{Intrinsic, LargeObjectCall, ScalarFunction};

use crate::bound::BoundExpr;
use crate::native::plan::compiler::Compiler;
use crate::native::run::change::write::Target;
use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::Source;
use crate::native::run::function::large_object::table::Tables;
use crate::native::run::function::large_object::{self, CLASS};
use crate::native::run::operator::node::MoreRows;
use crate::route::RouteKey;

/// What a function does with a large object, if it does something.
pub(crate) fn call_of(function: &ScalarFunction, args: &[Source]) -> Option<LargeObjectCall> {
    let Some(Intrinsic::LargeObject(call)) = function.intrinsic else { return None };
    let is_of_others = match (call, args.get(1).and_then(Source::constant)) {
        // Other objects have comments, too.
        (LargeObjectCall::Description, Some(Datum::Text(class))) => *class != CLASS,
        _ => false,
    };
    (!is_of_others).then_some(call)
}

impl Compiler<'_> {
    /// The tables of large objects, with a note of what is known of the objects that are reached.
    fn large_objects(&mut self, note: Option<(bool, &RouteKey)>) -> Result<Tables> {
        let (objects, pages) = (self.table_by_oid(LARGE_OBJECTS)?, self.table_by_oid(LARGE_OBJECT_PAGES)?);
        let (objects_meta, pages_meta) = (self.table(&objects)?, self.table(&pages)?);
        if let Some((writes, key)) = note {
            self.note_table(&objects, &objects_meta, writes, key.clone());
            self.note_table(&pages, &pages_meta, writes, key.clone());
        }
        Ok(Tables { objects: Target::new(&objects, objects_meta), pages: Target::new(&pages, pages_meta) })
    }

    /// Compiles a call.
    pub(super) fn large_object_call(
        &mut self,
        call: LargeObjectCall,
        function: &'static ScalarFunction,
        written: &[BoundExpr],
        args: Vec<Source>,
    ) -> Result<CompiledExpr> {
        let named = written.first().filter(|_| call.names_object());
        let key = match named.and_then(|object| self.row_free(object)) {
            Some(object) => RouteKey::Point(object),
            None => RouteKey::Unknown("which large object is told when the statement runs".to_owned()),
        };
        let tables = self.large_objects(Some((call.writes(), &key)))?;
        // The statement itself sees nothing of what it writes so.
        self.calls_routines |= call.writes();
        Ok(large_object::compile(call, function, tables, args))
    }

    /// Reads what a system relation tells of large objects, if it tells of them. Nothing is said of what that
    /// reaches: a look at descriptions is no statement about large objects.
    pub(in crate::native::plan) fn large_objects_in(&mut self, table: &Table) -> Result<Option<MoreRows>> {
        let relation = table.oid;
        if !large_object::system_rows::tells_of(relation)
            || self.env.catalog.table_by_oid(LARGE_OBJECTS).is_none()
        {
            return Ok(None);
        }
        let tables = self.large_objects(None)?;
        let more: MoreRows =
            Box::new(move |ctx, sought| large_object::system_rows::rows(&tables, ctx, relation, sought));
        Ok(Some(more))
    }
}
