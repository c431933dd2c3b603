//! What the rows of a partition have in common, as SQL text over its columns, in the form in which
//! PostgreSQL's pg_get_partition_constraintdef shows it.

use crate::compare::compare;
use crate::datum::Datum;
use crate::error::Result;
use crate::function::FunctionContext;
use crate::io::{text_in, to_text};
use crate::parser::{LexemeKind, lexemes};
use crate::style::Quoting;
use crate::type_table::{BuiltIn, TypeNames, element_of};
use crate::types::{Oid, Type};

use crate::catalog::names::quote_identifier;
use crate::catalog::stored_name::{stored_type, with_names, with_written_names};
use crate::catalog::{
    Catalog, PartitionBound, PartitionKey, PartitionKeyPart, PartitionStrategy, RangeEnd, Table, TableRef,
};

impl Catalog {
    /// The condition that all rows of a partition meet, those of its ancestors included; `None` where
    /// every row does, or the table is no partition.
    pub fn partition_condition(&self, partition: &Table) -> Result<Option<String>> {
        self.condition_as(partition, None)
    }

    /// The same, with values as a session shows them.
    pub fn shown_partition_condition(
        &self,
        partition: &Table,
        ctx: &FunctionContext<'_>,
    ) -> Result<Option<String>> {
        self.condition_as(partition, Some(ctx))
    }

    fn condition_as(&self, partition: &Table, ctx: Option<&FunctionContext<'_>>) -> Result<Option<String>> {
        let mut parts = Vec::new();
        let mut below = partition.bound.clone();
        for ancestor in self.partition_ancestors(partition.oid) {
            let Some(bound) = &below else { break };
            let mut own = self.bound_condition_as(&ancestor, bound, Some(partition.oid), ctx)?;
            own.append(&mut parts);
            parts = own;
            below = ancestor.bound.clone();
        }
        Ok(joined(parts, " AND "))
    }

    /// The condition of a bound of a partitioned table alone: its parts, all of which hold.
    /// A default partition's, `itself`, is what the others leave.
    pub fn bound_condition(
        &self,
        parent: &Table,
        bound: &PartitionBound,
        itself: Option<Oid>,
    ) -> Result<Vec<String>> {
        self.bound_condition_as(parent, bound, itself, None)
    }

    fn bound_condition_as(
        &self,
        parent: &Table,
        bound: &PartitionBound,
        itself: Option<Oid>,
        ctx: Option<&FunctionContext<'_>>,
    ) -> Result<Vec<String>> {
        let Some(key) = &parent.partitioned_by else { return Ok(Vec::new()) };
        let writer = Writer { catalog: self, parts: key_parts(parent, key), ctx };
        match bound {
            PartitionBound::Default => {
                let mut others: Vec<TableRef> = self.children(parent.oid);
                others.retain(|other| {
                    Some(other.oid) != itself && other.bound != Some(PartitionBound::Default)
                });
                writer.default(key.strategy, &others)
            }
            PartitionBound::List(values) => writer.list(values),
            PartitionBound::Range { from, to } => {
                let mut parts = writer.not_null();
                parts.extend(writer.range(from, to));
                Ok(parts)
            }
            PartitionBound::Hash { modulus, remainder } => {
                let columns: Vec<&str> = writer.parts.iter().map(|(text, _)| text.as_str()).collect();
                let columns = columns.join(", ");
                let oid = parent.oid;
                Ok(vec![format!("satisfies_hash_partition('{oid}'::oid, {modulus}, {remainder}, {columns})")])
            }
        }
    }

    /// The rows of a list or range partition as a condition without tests for NULL, for the
    /// default partition that loses them, in one text.
    pub fn taken_condition(&self, parent: &Table, bound: &PartitionBound) -> Result<Option<String>> {
        Ok(joined(self.bound_condition(parent, bound, None)?, " AND "))
    }
}

/// The parts of a key as they stand in conditions, with their types.
fn key_parts(parent: &Table, key: &PartitionKey) -> Vec<(String, Type)> {
    let text = |part: &PartitionKeyPart| match part {
        PartitionKeyPart::Column(column) => {
            parent.columns.get(usize::from(*column)).map_or_else(String::new, |c| quote_identifier(&c.name))
        }
        PartitionKeyPart::Expression { text, .. } => expression_text(text),
    };
    key.parts.iter().map(|part| (text(part), part.ty(parent))).collect()
}

/// An expression as a part of another: a call stands for itself, all else in parentheses.
pub fn expression_text(text: &str) -> String {
    if is_enclosed(text) { text.to_owned() } else { format!("({text})") }
}

/// An expression of a partition key as messages show it: as a part of another, with blanks around
/// its operator.
pub fn shown_key_expression(text: &str) -> String {
    let text = with_written_names(text);
    match crate::parser::parse_expression(&text) {
        Ok(operation @ sqlparser::ast::Expr::BinaryOp { .. }) => format!("({operation})"),
        _ => expression_text(&text),
    }
}

/// Whether a text ends with the parenthesis that its first name, or its first sign, opens.
fn is_enclosed(text: &str) -> bool {
    let Ok(parts) = lexemes(text) else { return false };
    let symbols: Vec<&str> = parts.iter().map(|part| &text[part.range.clone()]).collect();
    let Some(open) = symbols.iter().position(|symbol| *symbol == "(") else { return false };
    let named = |(place, symbol): (usize, &&str)| match &parts[place].kind {
        LexemeKind::Word { .. } => place % 2 == 0,
        _ => place % 2 == 1 && *symbol == ".",
    };
    let mut depth = 0_i32;
    let closed = symbols.iter().skip(open).position(|symbol| {
        depth += match *symbol {
            "(" => 1,
            ")" => -1,
            _ => 0,
        };
        depth == 0
    });
    closed.is_some_and(|at| open + at + 1 == symbols.len()) && symbols[..open].iter().enumerate().all(named)
}

/// PARTITION BY's argument, as pg_get_partkeydef shows it to a session with this search path.
pub fn partition_key_text(
    (catalog, search_path): (&Catalog, &[String]),
    table: &Table,
    key: &PartitionKey,
    quoting: Quoting,
) -> String {
    let text = |part: &PartitionKeyPart| match part {
        PartitionKeyPart::Expression { text, .. } => {
            let text = with_names(text, catalog, search_path).unwrap_or_else(|_| text.clone());
            match crate::parser::parse_expression(&text) {
                _ if is_enclosed(&text) && !text.starts_with('(') => text,
                Ok(sqlparser::ast::Expr::BinaryOp { .. } | sqlparser::ast::Expr::UnaryOp { .. }) => {
                    format!("(({text}))")
                }
                _ => format!("({text})"),
            }
        }
        PartitionKeyPart::Column(column) => {
            table.columns.get(usize::from(*column)).map_or_else(String::new, |c| quoting.name(&c.name))
        }
    };
    let class = |place: usize| key.class(place).and_then(|class| catalog.operator_class_by_oid(class));
    let parts = key.parts.iter().map(text).enumerate().map(|(place, text)| match class(place) {
        Some(class) => format!("{text} {}", quoting.name(&class.name)),
        None => text,
    });
    let parts: Vec<String> = parts.collect();
    format!("{} ({})", key.strategy.as_str(), parts.join(", "))
}

/// A value of a bound as a session shows it, where that depends on the session: bounds keep values in one
/// form.
fn in_style(text: &str, ty: Type, ctx: &FunctionContext<'_>) -> Option<String> {
    let depends =
        matches!(ty.oid, Oid::DATE | Oid::TIMESTAMP | Oid::TIMESTAMPTZ | Oid::INTERVAL | Oid::BYTEA);
    let value = depends.then(|| text_in(text, Type::of(ty.oid), &FunctionContext::detached()))?;
    Some(to_text(&value.ok()?, Type::of(ty.oid), ctx))
}

/// FOR VALUES …, or DEFAULT, as pg_get_expr shows it to a session.
pub fn bound_text(bound: &PartitionBound, types: &[Type], ctx: &FunctionContext<'_>) -> String {
    let literal = |text: &str, ty: Type| match ty.oid {
        Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::NUMERIC | Oid::FLOAT4 | Oid::FLOAT8 | Oid::OID
            if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') =>
        {
            text.to_owned()
        }
        Oid::BOOL => if text.starts_with('t') { "true" } else { "false" }.to_owned(),
        _ => {
            let shown = in_style(text, ty, ctx);
            format!("'{}'", shown.as_deref().unwrap_or(text).replace('\'', "''"))
        }
    };
    let ends = |ends: &[RangeEnd]| {
        let shown: Vec<String> = ends
            .iter()
            .enumerate()
            .map(|(place, end)| match end {
                RangeEnd::MinValue => "MINVALUE".to_owned(),
                RangeEnd::MaxValue => "MAXVALUE".to_owned(),
                RangeEnd::Value(text) => literal(text, types.get(place).copied().unwrap_or(Type::TEXT)),
            })
            .collect();
        shown.join(", ")
    };
    match bound {
        PartitionBound::Default => "DEFAULT".to_owned(),
        PartitionBound::List(values) => {
            let ty = types.first().copied().unwrap_or(Type::TEXT);
            let shown = |value: &Option<String>| match value {
                Some(text) => literal(text, ty),
                None => "NULL".to_owned(),
            };
            let values: Vec<String> = values.iter().map(shown).collect();
            format!("FOR VALUES IN ({})", values.join(", "))
        }
        PartitionBound::Range { from, to } => format!("FOR VALUES FROM ({}) TO ({})", ends(from), ends(to)),
        PartitionBound::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
    }
}

/// Ends of a range without FOR VALUES, as messages show them.
pub fn ends_text(ends: &[RangeEnd], types: &[Type], ctx: &FunctionContext<'_>) -> String {
    let whole = bound_text(&PartitionBound::Range { from: ends.to_vec(), to: Vec::new() }, types, ctx);
    let inner = whole.strip_prefix("FOR VALUES FROM ").and_then(|rest| rest.strip_suffix(" TO ()"));
    inner.unwrap_or_default().to_owned()
}

fn joined(mut parts: Vec<String>, word: &str) -> Option<String> {
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(format!("({})", parts.join(word))),
    }
}

struct Writer<'c> {
    catalog: &'c Catalog,
    parts: Vec<(String, Type)>,
    /// Of whom to show values to, if they are not to stay as they are kept.
    ctx: Option<&'c FunctionContext<'c>>,
}

impl Writer<'_> {
    fn not_null(&self) -> Vec<String> {
        self.parts.iter().map(|(text, _)| format!("({text} IS NOT NULL)")).collect()
    }

    /// A constant of a type as PostgreSQL writes it back.
    fn constant(&self, text: &str, ty: Type) -> String {
        let shown = self.ctx.and_then(|ctx| in_style(text, ty, ctx));
        let text = shown.as_deref().unwrap_or(text);
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        match ty.oid {
            Oid::INT4 if plain => return text.to_owned(),
            Oid::BOOL => return if text.starts_with('t') { "true" } else { "false" }.to_owned(),
            Oid::NUMERIC if text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                return text.to_owned();
            }
            _ => {}
        }
        format!("'{}'::{}", text.replace('\'', "''"), self.type_name(ty))
    }

    fn type_name(&self, ty: Type) -> String {
        match self.catalog.user_type_of(ty.oid) {
            Some(user) => {
                let suffix = if ty.oid == user.array_type() { "[]" } else { "" };
                format!("{}{suffix}", stored_type(user.oid, &user.name))
            }
            // The length is a part of these constants.
            None if matches!(ty.oid, Oid::VARCHAR | Oid::BPCHAR) => BuiltIn.format_type(ty),
            None => BuiltIn.format_type(Type::of(ty.oid)),
        }
    }

    /// A part of the key as operators of its class take it: varchar has those of text, cidr those of inet.
    fn operand(&self, place: usize) -> String {
        let (text, ty) = &self.parts[place];
        match ty.oid {
            Oid::VARCHAR => format!("({text})::text"),
            Oid::CIDR => format!("({text})::inet"),
            _ => text.clone(),
        }
    }

    fn list(&self, values: &[Option<String>]) -> Result<Vec<String>> {
        let (text, _) = &self.parts[0];
        let given: Vec<&String> = values.iter().flatten().collect();
        let null = values.iter().any(Option::is_none);
        let some = self.any_of(&given);
        let is_null = format!("({text} IS NULL)");
        Ok(match (some, null) {
            (Some(some), true) => vec![format!("({is_null} OR {some})")],
            (None, true) => vec![is_null],
            (Some(some), false) => vec![format!("({text} IS NOT NULL)"), some],
            (None, false) => Vec::new(),
        })
    }

    /// That the key is one of these.
    fn any_of(&self, values: &[&String]) -> Option<String> {
        let (_, ty) = &self.parts[0];
        let operand = self.operand(0);
        let equals = |value: &&String| format!("({operand} = {})", self.constant(value, *ty));
        match values {
            [] => None,
            [only] => Some(equals(only)),
            many if element_of(ty.oid).is_some() => {
                let parts: Vec<String> = many.iter().map(equals).collect();
                joined(parts, " OR ")
            }
            many => {
                let parts: Vec<String> = many.iter().map(|value| self.constant(value, *ty)).collect();
                let array = format!("ARRAY[{}]", parts.join(", "));
                Some(format!("({operand} = ANY ({array}))"))
            }
        }
    }

    /// That the key lies between two ends (get_qual_for_range).
    fn range(&self, from: &[RangeEnd], to: &[RangeEnd]) -> Vec<String> {
        let value = |end: Option<&RangeEnd>| match end {
            Some(RangeEnd::Value(text)) => Some(text.clone()),
            _ => None,
        };
        let mut conditions = Vec::new();
        // Parts in which both ends agree.
        let mut first = 0;
        while let (Some(low), Some(high)) = (value(from.get(first)), value(to.get(first))) {
            let ty = self.parts[first].1;
            let read = |text: &str| self.catalog.bound_value(text, ty).unwrap_or(Datum::Null);
            if compare(&read(&low), &read(&high)) != std::cmp::Ordering::Equal
                || first + 1 == self.parts.len()
            {
                break;
            }
            conditions.push(format!("({} = {})", self.operand(first), self.constant(&low, ty)));
            first += 1;
        }
        conditions.extend(self.end(from, first, true));
        conditions.extend(self.end(to, first, false));
        conditions
    }

    /// One end from a part of the key on: an alternative for each part in which a key may differ.
    fn end(&self, ends: &[RangeEnd], first: usize, lower: bool) -> Option<String> {
        let mut alternatives = Vec::new();
        for last in first..ends.len() {
            let RangeEnd::Value(_) = &ends[last] else { break };
            let unbounded_next = match ends.get(last + 1) {
                Some(RangeEnd::MinValue) => lower,
                Some(RangeEnd::MaxValue) => !lower,
                _ => false,
            };
            let is_last = last + 1 == ends.len();
            let mut parts = Vec::new();
            for (place, end) in ends.iter().enumerate().take(last + 1).skip(first) {
                let RangeEnd::Value(text) = end else { break };
                let operator = match (place == last, lower) {
                    (false, _) => "=",
                    (true, true) if is_last || unbounded_next => ">=",
                    (true, true) => ">",
                    (true, false) if unbounded_next => "<=",
                    (true, false) => "<",
                };
                let ty = self.parts[place].1;
                parts.push(format!("({} {operator} {})", self.operand(place), self.constant(text, ty)));
            }
            alternatives.extend(joined(parts, " AND "));
            if unbounded_next {
                break;
            }
        }
        joined(alternatives, " OR ")
    }

    fn default(&self, strategy: PartitionStrategy, others: &[TableRef]) -> Result<Vec<String>> {
        match strategy {
            PartitionStrategy::List => {
                let mut values: Vec<Option<String>> = Vec::new();
                for other in others {
                    if let Some(PartitionBound::List(of_other)) = &other.bound {
                        values.extend(of_other.iter().cloned());
                    }
                }
                let taken = joined(self.list(&values)?, " AND ");
                Ok(taken.map(|taken| format!("(NOT {taken})")).into_iter().collect())
            }
            PartitionStrategy::Range => {
                let mut taken = Vec::new();
                for other in others {
                    if let Some(PartitionBound::Range { from, to }) = &other.bound {
                        let parts = self.range(from, to);
                        taken.push(joined(parts, " AND ").unwrap_or_else(|| "true".to_owned()));
                    }
                }
                let Some(taken) = joined(taken, " OR ") else { return Ok(Vec::new()) };
                let mut all = self.not_null();
                all.push(taken);
                Ok(joined(all, " AND ").map(|all| format!("(NOT {all})")).into_iter().collect())
            }
            PartitionStrategy::Hash => Ok(Vec::new()),
        }
    }
}

/// A value of a bound in the form in which bounds keep it.
pub fn bound_value_text(catalog: &Catalog, value: &Datum, ty: Type) -> String {
    if let Datum::Oid(oid) = value
        && let Some(label) = catalog.enum_label(*oid)
    {
        return label.to_string();
    }
    to_text(value, Type::of(ty.oid), &FunctionContext::detached())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CatalogChange, Column, Object, TableKind};

    const PARENT: Oid = Oid(20_000);

    fn value(text: &str) -> RangeEnd {
        RangeEnd::Value(text.to_owned())
    }

    /// A table of two columns, partitioned by both or by the first, with these partitions.
    fn catalog(strategy: PartitionStrategy, parts: u16, bounds: Vec<PartitionBound>) -> Catalog {
        let columns = vec![Column::new("a", Type::INT4), Column::new("b", Type::TEXT)];
        let key = PartitionKey {
            strategy,
            parts: (0..parts).map(PartitionKeyPart::Column).collect(),
            classes: Vec::new(),
        };
        let parent = Table {
            columns: columns.clone(),
            partitioned_by: Some(key),
            ..Table::new(PARENT, "public", "parent", TableKind::Table)
        };
        let partitions = bounds.into_iter().enumerate().map(|(place, bound)| Table {
            columns: columns.clone(),
            inherits: vec![PARENT],
            bound: Some(bound),
            ..Table::new(Oid(20_010 + place as u32), "public", format!("p{place}"), TableKind::Table)
        });
        let changes: Vec<CatalogChange> = std::iter::once(parent)
            .chain(partitions)
            .map(|table| CatalogChange::Put(Object::Table(table.into())))
            .collect();
        Catalog::initial(Vec::new()).apply(&changes)
    }

    fn condition(catalog: &Catalog, name: &str) -> Option<String> {
        let table = catalog.tables().find(|table| table.name == name).unwrap().clone();
        catalog.partition_condition(&table).unwrap()
    }

    #[test]
    fn lists_read_as_postgresql_writes_them() {
        let some = |text: &str| Some(text.to_owned());
        let bounds = vec![
            PartitionBound::List(vec![some("1"), some("2")]),
            PartitionBound::List(vec![None, some("9")]),
            PartitionBound::Default,
        ];
        let catalog = catalog(PartitionStrategy::List, 1, bounds);
        let of = |name| condition(&catalog, name);
        assert_eq!(of("p0").unwrap(), "((a IS NOT NULL) AND (a = ANY (ARRAY[1, 2])))");
        assert_eq!(of("p1").unwrap(), "((a IS NULL) OR (a = 9))");
        assert_eq!(of("p2").unwrap(), "(NOT ((a IS NULL) OR (a = ANY (ARRAY[1, 2, 9]))))");
    }

    #[test]
    fn ranges_read_as_postgresql_writes_them() {
        let bounds = vec![
            PartitionBound::Range {
                from: vec![value("-1"), value("aaaaa")],
                to: vec![value("100"), value("ccccc")],
            },
            PartitionBound::Range {
                from: vec![value("200"), value("x")],
                to: vec![value("200"), RangeEnd::MaxValue],
            },
        ];
        let catalog = catalog(PartitionStrategy::Range, 2, bounds);
        assert_eq!(
            condition(&catalog, "p0").unwrap(),
            "((a IS NOT NULL) AND (b IS NOT NULL) AND ((a > '-1'::integer) OR ((a = '-1'::integer) AND \
             (b >= 'aaaaa'::text))) AND ((a < 100) OR ((a = 100) AND (b < 'ccccc'::text))))"
        );
        assert_eq!(
            condition(&catalog, "p1").unwrap(),
            "((a IS NOT NULL) AND (b IS NOT NULL) AND (a = 200) AND (b >= 'x'::text))"
        );
    }

    #[test]
    fn partitions_stand_in_the_order_of_their_bounds() {
        let range =
            |from: RangeEnd, to: &str| PartitionBound::Range { from: vec![from], to: vec![value(to)] };
        let bounds = vec![
            PartitionBound::Default,
            range(value("20"), "30"),
            range(value("9"), "20"),
            range(RangeEnd::MinValue, "9"),
        ];
        let catalog = catalog(PartitionStrategy::Range, 1, bounds);
        let names = |tables: Vec<TableRef>| tables.iter().map(|table| table.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(catalog.children(PARENT)), ["p3", "p2", "p1", "p0"]);
        assert_eq!(names(catalog.heirs(PARENT)), ["p0", "p1", "p2", "p3"]);
        assert_eq!(catalog.default_partition(PARENT).unwrap().name, "p0");
        let gone = catalog.apply(&[CatalogChange::Drop(crate::catalog::ObjectKind::Table, Oid(20_012))]);
        assert_eq!(names(gone.leaves(PARENT)), ["p3", "p1", "p0"]);
    }
}
