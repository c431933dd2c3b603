//! Queries in expressions (get_sublink_expr).

use sqlparser::ast::Query;

use super::query::Page;
use super::*;

/// Whether values of two types are compared as they are.
fn is_compared_plainly(one: Oid, other: Oid) -> bool {
    let integers = [Oid::INT2, Oid::INT4, Oid::INT8];
    let is_own = |oid: Oid| !matches!(oid, Oid::VARCHAR | Oid::CIDR | Oid::UNKNOWN);
    one == other && is_own(one) || integers.contains(&one) && integers.contains(&other)
}

impl Deparser<'_, '_> {
    /// The text of a query within an expression, where it may see the columns around.
    fn inner_query(&mut self, query: &Query) -> Option<String> {
        // Expressions of definitions have none.
        if self.current.is_empty() {
            return None;
        }
        let (indent, clause) = (self.indent, self.clause);
        let literals = self.literals.take();
        let visible = std::mem::replace(&mut self.columns_visible, false);
        // Of several relations in sight columns say theirs.
        let names_relations = std::mem::replace(&mut self.names_relations, true);
        let mut page = Page { text: String::new(), indent: indent as i32 };
        let shown = self.query(query, None, &mut page);
        self.names_relations = names_relations;
        (self.indent, self.clause, self.literals, self.columns_visible) = (indent, clause, literals, visible);
        shown?;
        Some(page.text)
    }

    /// `( SELECT … )`.
    pub(super) fn scalar(&mut self, query: &Query) -> Option<Piece> {
        Some(Piece::simple(format!("({})", self.inner_query(query)?)))
    }

    /// `ARRAY( SELECT … )`.
    pub(super) fn array_of(&mut self, query: &Query) -> Option<Piece> {
        Some(Piece::simple(format!("ARRAY({})", self.inner_query(query)?)))
    }

    /// `(EXISTS ( SELECT … ))`.
    pub(super) fn exists(&mut self, query: &Query, negated: bool) -> Option<Piece> {
        let text = format!("(EXISTS ({}))", self.inner_query(query)?);
        Some(negation(text, negated))
    }

    /// `(a IN ( SELECT … ))`, of one column whose values are compared as they are; `word`: what is between.
    pub(super) fn in_query(
        &mut self,
        (left, word): (&Expr, &str),
        query: &Query,
        negated: bool,
    ) -> Option<Piece> {
        let columns = self.binder.query(query, true).ok()?.columns;
        let own = self.bind(left)?;
        let [column] = &columns[..] else { return None };
        if !is_compared_plainly(own.ty.oid, column.ty.oid) {
            return None;
        }
        let piece = self.piece(left, &own, true)?;
        let text = format!("({} {word} ({}))", self.alone(piece), self.inner_query(query)?);
        Some(negation(text, negated))
    }
}

fn negation(text: String, negated: bool) -> Piece {
    match negated {
        true => Piece { text: format!("NOT {text}"), kind: Kind::Logical("NOT") },
        false => Piece::simple(text),
    }
}
