//! VALUES as a query.

use sqlparser::ast::{OrderByExpr, SetExpr};

use super::query::{CLAUSE, ITEM, Page, direction};
use super::*;

/// What PostgreSQL calls the rows.
const NAME: &str = "*VALUES*";

/// The names that its columns have by themselves.
fn own_names(width: usize) -> Vec<String> {
    (1..=width).map(|number| format!("column{number}")).collect()
}

impl Deparser<'_, '_> {
    /// VALUES by itself, or, where its columns have other names, a query of it (get_simple_values_rte); the
    /// names that they have by themselves.
    pub(super) fn values_query(
        &mut self,
        body: &SetExpr,
        names: Option<&[String]>,
        page: &mut Page,
    ) -> Option<Vec<String>> {
        let literals = self.literals.take().unwrap_or_default();
        let columns = self.binder.set_operand(body).ok()?.columns;
        let types: Vec<Type> = columns
            .iter()
            .enumerate()
            .map(|(place, column)| match column.ty.oid {
                Oid::UNKNOWN => Type::of(literals.get(place).map_or(Oid::TEXT, |ty| ty.oid)),
                oid => Type::of(oid),
            })
            .collect();
        let own = own_names(types.len());
        let names = names.unwrap_or(&own);
        page.indent += CLAUSE;
        self.indent = page.indent as usize;
        if names.iter().eq(&own) {
            page.push(" ");
            let rows = self.over(&[], |shower| shower.rows(body, &types))?;
            page.push(&rows);
            return Some(own);
        }
        page.push(" SELECT ");
        for (place, (column, name)) in own.iter().zip(names).enumerate() {
            if place > 0 {
                page.push(",");
                page.clause("", ITEM);
            }
            page.push(&self.quoting().qualified(NAME, column));
            if column != name {
                page.push(&format!(" AS {}", self.identifier(name)));
            }
        }
        page.clause(" FROM ", 2);
        let rows = self.over(&[], |shower| shower.rows(body, &types))?;
        page.push(&format!("({rows}) {}", self.identifier(NAME)));
        Some(own)
    }

    /// `VALUES (1,2), (3,4)`.
    fn rows(&mut self, body: &SetExpr, types: &[Type]) -> Option<String> {
        let SetExpr::Values(values) = body else { return None };
        self.clause = Clause::Values;
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            if row.content.len() != types.len() {
                return None;
            }
            let mut items = Vec::with_capacity(types.len());
            for (expr, ty) in row.content.iter().zip(types) {
                let mut bound = self.bind(expr)?;
                if bound.ty.oid != ty.oid {
                    bound = self.binder.coerce(bound, *ty, CastContext::Implicit).ok()??;
                }
                let piece = self.piece(expr, &bound, false)?;
                items.push(self.alone(piece));
            }
            rows.push(format!("({})", items.join(",")));
        }
        Some(format!("VALUES {}", rows.join(", ")))
    }

    /// ORDER BY over the rows: their columns, by the names that they have by themselves.
    pub(super) fn order_by_values(
        &mut self,
        keys: &[OrderByExpr],
        own: &[String],
        page: &mut Page,
    ) -> Option<()> {
        for (number, key) in keys.iter().enumerate() {
            match number {
                0 => page.clause(" ORDER BY ", 1),
                _ => page.push(", "),
            }
            let place = match unnest(&key.expr) {
                Expr::Identifier(ident) => {
                    let name = ident_name(ident);
                    own.iter().position(|column| *column == name)?
                }
                Expr::Value(value) => match &value.value {
                    Value::Number(digits, _) => digits.parse::<usize>().ok()?.checked_sub(1)?,
                    _ => return None,
                },
                _ => return None,
            };
            page.push(&self.quoting().qualified(NAME, &format!("column{}", place + 1)));
            page.push(direction(key)?);
        }
        Some(())
    }
}
