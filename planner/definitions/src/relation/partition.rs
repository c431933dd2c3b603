//! Partitioned tables: their keys, and the bounds of their partitions, as PostgreSQL's
//! `ComputePartitionAttrs`, `transformPartitionBound` and `check_new_partition_bound` have them.

use std::cmp::Ordering;

use archipel_sql::ast::{BoundSpec, BoundSpecKind, Expression, IndexKey, PartitionBy};
use archipel_sql::catalog::names::quote_qualified;
use archipel_sql::catalog::partition_condition::{bound_value_text, ends_text, expression_text};
use archipel_sql::catalog::stored_name::with_written_names;
use archipel_sql::catalog::{
    PartitionBound, PartitionKey, PartitionKeyPart, PartitionStrategy, RangeDatum, RangeEnd, Table, TableRef,
    compare_ends,
};
use archipel_sql::compare::equal;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::unbounded;
use archipel_sql::partition_hash::is_hashable;
use archipel_sql::type_table::{BuiltIn, TypeNames};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::Expr;

use crate::bind::modify::partition_expression_type;
use crate::bind::name::ident_name;
use crate::bind::stored_expression::{About, DEFINITION_PATH};
use crate::bind::{BindEnv, Clause, bind_bound_value};
use crate::evaluate::{RouteInputs, evaluate_row, refusal};
use crate::expression::{check, stored_expression};
use crate::function::operator_class;
use crate::function::operator_class::Decides;
use crate::work::{Work, change};

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

/// A bound that is none of its table's kind.
fn unfit(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

fn at(position: u32) -> Option<u32> {
    (position > 0).then_some(position)
}

/// PARTITION BY of a new table, whose columns are known.
pub(super) fn make_key(by: &PartitionBy, table: &Table, work: &Work<'_>) -> Result<PartitionKey> {
    let strategy = match by.strategy.as_str() {
        "list" => PartitionStrategy::List,
        "range" => PartitionStrategy::Range,
        "hash" => PartitionStrategy::Hash,
        other => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized partitioning strategy \"{other}\""),
            ));
        }
    };
    if strategy == PartitionStrategy::List && by.parts.len() > 1 {
        return Err(invalid("cannot use \"list\" partition strategy with more than one column"));
    }
    const MAX_PARTS: usize = 32;
    if by.parts.len() > MAX_PARTS {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot partition using more than {MAX_PARTS} columns"),
        ));
    }
    let reference = TableRef::new(table.clone());
    let mut parts = Vec::with_capacity(by.parts.len());
    let mut classes: Vec<Oid> = Vec::new();
    for (number, element) in by.parts.iter().enumerate() {
        let column = match &element.key {
            IndexKey::Column(name) => Some(name.clone()),
            IndexKey::Expression(expression) => match &expression.expr {
                Expr::Identifier(ident) => Some(ident_name(ident)),
                _ => None,
            },
        };
        let part = match (&element.key, column) {
            (_, Some(name)) => key_column(&name, element.position, table)?,
            (IndexKey::Expression(expression), None) => key_expression(expression, number, &reference, work)?,
            (IndexKey::Column(_), None) => continue,
        };
        let method = if strategy == PartitionStrategy::Hash { "hash" } else { "btree" };
        operator_class::check_collation_and_class(element, method, part.ty(table), Decides::Rows, work)?;
        let class = element.operator_class.as_ref().and_then(|name| {
            let (schema, path) = (name.schema.as_deref(), work.search_path());
            work.catalog.operator_class(schema, &name.name, method, path)
        });
        if let Some(class) = class {
            classes.resize(parts.len(), Oid(0));
            classes.push(class.oid);
            parts.push(part);
            continue;
        }
        check_key_type(part.ty(table), strategy)?;
        if strategy == PartitionStrategy::Hash && !is_hashable(part.ty(table).oid) {
            let ty = work.type_name(part.ty(table).oid);
            return Err(SqlError::unsupported(format_args!("a hash partition key of type {ty}")));
        }
        parts.push(part);
    }
    Ok(PartitionKey { strategy, parts, classes })
}

fn key_column(name: &str, position: u32, table: &Table) -> Result<PartitionKeyPart> {
    if archipel_sql::catalog::SYSTEM_COLUMNS.contains(&name) {
        let message = format!("cannot use system column \"{name}\" in partition key");
        return Err(invalid(message).at(at(position)));
    }
    let place = table.column_index(name).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" named in partition key does not exist"),
        )
        .at(at(position))
    })?;
    if table.columns[usize::from(place)].generated.is_some() {
        return Err(invalid("cannot use generated column in partition key")
            .with_detail(format!("Column \"{name}\" is a generated column."))
            .at(at(position)));
    }
    Ok(PartitionKeyPart::Column(place))
}

fn key_expression(
    written: &Expression,
    number: usize,
    table: &TableRef,
    work: &Work<'_>,
) -> Result<PartitionKeyPart> {
    let used = check::check_partition_expression(written, table)?;
    let about = About::Row(table.clone());
    let text = stored_expression::settled_text(&written.text, &about, Clause::PartitionKey, None, work)?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    let ty = partition_expression_type(table, &text, number + 1, &mut env)?;
    if used.is_empty() {
        return Err(invalid("cannot use constant expression as partition key"));
    }
    if used.iter().any(|place| table.columns[usize::from(*place)].generated.is_some()) {
        return Err(invalid("cannot use generated column in partition key"));
    }
    Ok(PartitionKeyPart::Expression { text, ty })
}

fn check_key_type(ty: Type, strategy: PartitionStrategy) -> Result<()> {
    let unordered = matches!(ty.oid, Oid::JSON | Oid::POINT);
    let unhashed = strategy == PartitionStrategy::Hash && matches!(ty.oid, Oid::BIT | Oid::VARBIT);
    if !unordered && !unhashed {
        return Ok(());
    }
    let method = if strategy == PartitionStrategy::Hash { "hash" } else { "btree" };
    Err(SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!(
            "data type {} has no default operator class for access method \"{method}\"",
            BuiltIn.type_name(ty.oid)
        ),
    )
    .with_hint(format!(
        "You must specify a {method} operator class or define a default {method} operator class for the \
         data type."
    )))
}

/// FOR VALUES of a partition of a table.
pub(crate) fn make_bound(spec: &BoundSpec, parent: &Table, work: &Work<'_>) -> Result<PartitionBound> {
    let key = parent.partitioned_by.as_ref().ok_or_else(|| SqlError::internal("no partitioned table"))?;
    let mismatch = || {
        unfit(format!("invalid bound specification for a {} partition", key.strategy.word()))
            .at(at(spec.position))
    };
    match (&spec.kind, key.strategy) {
        (BoundSpecKind::Default, PartitionStrategy::Hash) => {
            Err(unfit("a hash-partitioned table may not have a default partition"))
        }
        (BoundSpecKind::Default, _) => Ok(PartitionBound::Default),
        (BoundSpecKind::List(values), PartitionStrategy::List) => {
            let mut found: Vec<Option<String>> = Vec::with_capacity(values.len());
            for value in values {
                let text = bound_value(value, parent, &key.parts[0], work)?;
                if !found.contains(&text) {
                    found.push(text);
                }
            }
            Ok(PartitionBound::List(found))
        }
        (BoundSpecKind::Range { from, to }, PartitionStrategy::Range) => {
            for (ends, word) in [(from, "FROM"), (to, "TO")] {
                if ends.len() != key.parts.len() {
                    let message = format!("{word} must specify exactly one value per partitioning column");
                    return Err(unfit(message));
                }
            }
            let from = range_ends(from, parent, key, work)?;
            Ok(PartitionBound::Range { from, to: range_ends(to, parent, key, work)? })
        }
        (BoundSpecKind::Hash { modulus, remainder }, PartitionStrategy::Hash) => {
            let integer = |value: i64| u32::try_from(value).ok().filter(|value| *value <= i32::MAX as u32);
            let modulus = integer(*modulus).filter(|modulus| *modulus > 0).ok_or_else(|| {
                unfit("modulus for hash partition must be an integer value greater than zero")
            })?;
            let remainder = integer(*remainder).ok_or_else(|| {
                unfit("remainder for hash partition must be an integer value greater than or equal to zero")
            })?;
            if remainder >= modulus {
                return Err(unfit("remainder for hash partition must be less than modulus"));
            }
            Ok(PartitionBound::Hash { modulus, remainder })
        }
        _ => Err(mismatch()),
    }
}

fn range_ends(
    ends: &[Expression],
    parent: &Table,
    key: &PartitionKey,
    work: &Work<'_>,
) -> Result<Vec<RangeEnd>> {
    let mut found: Vec<RangeEnd> = Vec::with_capacity(ends.len());
    for (end, part) in ends.iter().zip(&key.parts) {
        let next = match unbounded(end) {
            Some(true) => RangeEnd::MaxValue,
            Some(false) => RangeEnd::MinValue,
            None => RangeEnd::Value(
                bound_value(end, parent, part, work)?
                    .ok_or_else(|| invalid("cannot specify NULL in range bound"))?,
            ),
        };
        // validateInfiniteBounds.
        let word = match found.last() {
            Some(RangeEnd::MinValue) if next != RangeEnd::MinValue => "MINVALUE",
            Some(RangeEnd::MaxValue) if next != RangeEnd::MaxValue => "MAXVALUE",
            _ => {
                found.push(next);
                continue;
            }
        };
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("every bound following {word} must also be {word}"),
        )
        .at(at(end.position)));
    }
    Ok(found)
}

/// A value of a bound, which is computed once and for all.
fn bound_value(
    written: &Expression,
    parent: &Table,
    part: &PartitionKeyPart,
    work: &Work<'_>,
) -> Result<Option<String>> {
    check::check_bound_expression(written)?;
    let ty = part.ty(parent);
    let domain = match part {
        PartitionKeyPart::Column(place) => parent.columns[usize::from(*place)].domain,
        PartitionKeyPart::Expression { .. } => None,
    };
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    let bound = bind_bound_value(&written.expr, &mut env, ty, domain)
        .map_err(|error| error.at(at(written.position)))?
        .ok_or_else(|| {
            let name = match part {
                PartitionKeyPart::Column(place) => parent.columns[usize::from(*place)].name.clone(),
                PartitionKeyPart::Expression { text, .. } => expression_text(&with_written_names(text)),
            };
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "specified value cannot be cast to type {} for column \"{name}\"",
                    work.type_name(ty.oid)
                ),
            )
            .at(at(written.position))
        })?;
    if refusal(&bound).is_some() {
        return Err(SqlError::unsupported("this expression as a partition's bound").at(at(written.position)));
    }
    let inputs = RouteInputs { params: &[], variables: &[], functions: work.env.context };
    // As PostgreSQL does, whose bounds are of the key's domain, too.
    let value = evaluate_row(&bound, &[], &inputs)?;
    if value.is_null() {
        return Ok(None);
    }
    Ok(Some(bound_value_text(&work.catalog, &value, ty)))
}

/// Has the bounds that speak of an enum's label speak of it by its new name.
pub(crate) fn rename_label(of: Oid, from: &str, to: &str, work: &mut Work<'_>) {
    let partitions: Vec<TableRef> =
        work.catalog.tables().filter(|table| table.bound.is_some()).cloned().collect();
    for partition in partitions {
        let parent = partition.partition_of().and_then(|oid| work.catalog.table_by_oid(oid));
        let types = parent.and_then(|parent| Some(parent.partitioned_by.as_ref()?.types(&parent)));
        let Some(types) = types.filter(|types| types.iter().any(|ty| ty.oid == of)) else { continue };
        let rename = |(value, ty): (&mut String, &Type)| {
            if ty.oid == of && value == from {
                to.clone_into(value);
            }
        };
        let mut changed = (*partition).clone();
        match &mut changed.bound {
            Some(PartitionBound::List(values)) => {
                values.iter_mut().flatten().zip(std::iter::repeat(&types[0])).for_each(rename);
            }
            Some(PartitionBound::Range { from, to }) => {
                for ends in [from, to] {
                    let values = ends.iter_mut().zip(&types).filter_map(|(end, ty)| match end {
                        RangeEnd::Value(value) => Some((value, ty)),
                        RangeEnd::MinValue | RangeEnd::MaxValue => None,
                    });
                    values.for_each(rename);
                }
            }
            Some(PartitionBound::Default | PartitionBound::Hash { .. }) | None => {}
        }
        if changed != *partition {
            change::finish(changed, work);
        }
    }
}

/// Refuses a bound that meets another one of the parent's partitions.
pub(crate) fn check_new_bound(
    name: &str,
    bound: &PartitionBound,
    spec: &BoundSpec,
    parent: &Table,
    work: &Work<'_>,
) -> Result<()> {
    let Some(key) = &parent.partitioned_by else { return Ok(()) };
    let types = key.types(parent);
    let newcomer = Newcomer { name, spec, siblings: work.catalog.children(parent.oid) };
    match bound {
        PartitionBound::Default => match work.catalog.default_partition(parent.oid) {
            Some(known) => Err(invalid(format!(
                "partition \"{name}\" conflicts with existing default partition \"{}\"",
                known.name
            ))
            .at(at(spec.position))),
            None => Ok(()),
        },
        PartitionBound::List(values) => newcomer.check_list(values, types[0], work),
        PartitionBound::Range { from, to } => newcomer.check_range(from, to, &types, work),
        PartitionBound::Hash { modulus, remainder } => newcomer.check_hash(*modulus, *remainder),
    }
}

/// A partition that is to stand beside others.
struct Newcomer<'a> {
    name: &'a str,
    spec: &'a BoundSpec,
    siblings: Vec<TableRef>,
}

impl Newcomer<'_> {
    fn overlap(&self, sibling: &Table, position: u32) -> SqlError {
        let message = format!("partition \"{}\" would overlap partition \"{}\"", self.name, sibling.name);
        invalid(message).at(at(position))
    }

    /// No value of a list is in another one.
    fn check_list(&self, values: &[Option<String>], ty: Type, work: &Work<'_>) -> Result<()> {
        let read = |value: &Option<String>| match value {
            Some(text) => work.catalog.bound_value(text, ty),
            None => Ok(Datum::Null),
        };
        let position = |place: usize| match &self.spec.kind {
            BoundSpecKind::List(written) => written.get(place).map_or(self.spec.position, |v| v.position),
            _ => self.spec.position,
        };
        for (place, value) in values.iter().enumerate() {
            let value = read(value)?;
            for sibling in &self.siblings {
                let Some(PartitionBound::List(taken)) = &sibling.bound else { continue };
                for other in taken {
                    let other = read(other)?;
                    if value.is_null() && other.is_null()
                        || !value.is_null() && !other.is_null() && equal(&value, &other)
                    {
                        return Err(self.overlap(sibling, position(place)));
                    }
                }
            }
        }
        Ok(())
    }

    /// A range is not empty, and meets no other one.
    fn check_range(&self, from: &[RangeEnd], to: &[RangeEnd], types: &[Type], work: &Work<'_>) -> Result<()> {
        let (written_from, written_to) = match &self.spec.kind {
            BoundSpecKind::Range { from, to } => (&from[..], &to[..]),
            _ => (&[][..], &[][..]),
        };
        let position = |written: &[Expression], place: usize| {
            written.get(place).map_or(self.spec.position, |value| value.position)
        };
        let low = work.catalog.range_ends(from, types)?;
        let high = work.catalog.range_ends(to, types)?;
        if compare_ends(&low, &high) != Ordering::Less {
            return Err(invalid(format!("empty range bound specified for partition \"{}\"", self.name))
                .with_detail(format!(
                    "Specified lower bound {} is greater than or equal to upper bound {}.",
                    ends_text(from, types, work.env.context),
                    ends_text(to, types, work.env.context)
                ))
                .at(at(position(written_from, first_difference(&low, &high)))));
        }
        for sibling in &self.siblings {
            let Some(PartitionBound::Range { from, to }) = &sibling.bound else { continue };
            let other_low = work.catalog.range_ends(from, types)?;
            let other_high = work.catalog.range_ends(to, types)?;
            if compare_ends(&low, &other_high) != Ordering::Less
                || compare_ends(&other_low, &high) != Ordering::Less
            {
                continue;
            }
            // Whichever end of the new range lies in the other one is to blame.
            let order = compare_ends(&other_low, &low);
            let position = if order == Ordering::Greater {
                position(written_to, first_difference(&other_low, &high))
            } else if order == Ordering::Equal {
                position(written_from, 0)
            } else {
                position(written_from, first_difference(&other_low, &low))
            };
            return Err(self.overlap(sibling, position));
        }
        Ok(())
    }

    /// A remainder is taken by no other one.
    fn check_hash(&self, modulus: u32, remainder: u32) -> Result<()> {
        check_hash_bound((modulus, remainder), &self.siblings)?;
        let of = |sibling: &TableRef| match sibling.bound {
            Some(PartitionBound::Hash { modulus, remainder }) => Some((modulus, remainder)),
            _ => None,
        };
        let Some(greatest) = self.siblings.iter().filter_map(of).map(|(modulus, _)| modulus).max() else {
            return Ok(());
        };
        // One modulus is a factor of the other: the first remainder to the greatest one that both
        // take, if there is any.
        let met = |sibling: &&TableRef| {
            let (known, taken) = of(sibling)?;
            match known <= modulus {
                true => (remainder % known == taken).then_some(remainder % greatest),
                false => (taken % modulus == remainder).then_some(taken),
            }
        };
        let first = self.siblings.iter().filter_map(|sibling| Some((met(&sibling)?, sibling)));
        match first.min_by_key(|(slot, _)| *slot) {
            Some((_, sibling)) => Err(self.overlap(sibling, self.spec.position)),
            None => Ok(()),
        }
    }
}

/// The first part in which two ends differ; the last that says something, if none does.
fn first_difference(one: &[RangeDatum], other: &[RangeDatum]) -> usize {
    let settles = |(a, b): (&RangeDatum, &RangeDatum)| {
        a.compare(b) != Ordering::Equal || !matches!(a, RangeDatum::Value(_))
    };
    one.iter().zip(other).position(settles).unwrap_or(one.len().saturating_sub(1))
}

/// Every modulus is a factor of the next larger one.
fn check_hash_bound((modulus, remainder): (u32, u32), siblings: &[TableRef]) -> Result<()> {
    let refused = |detail: String| {
        Err(invalid("every hash partition modulus must be a factor of the next larger modulus")
            .with_detail(detail))
    };
    let known: Vec<(u32, u32, &str)> = siblings
        .iter()
        .filter_map(|sibling| match sibling.bound {
            Some(PartitionBound::Hash { modulus, remainder }) => {
                Some((modulus, remainder, sibling.name.as_str()))
            }
            _ => None,
        })
        .collect();
    let after = known.partition_point(|(m, r, _)| (*m, *r) <= (modulus, remainder));
    if let Some((previous, _, name)) = after.checked_sub(1).map(|place| known[place])
        && modulus % previous != 0
    {
        return refused(format!(
            "The new modulus {modulus} is not divisible by {previous}, the modulus of existing partition \
             \"{name}\"."
        ));
    }
    if let Some((next, _, name)) = known.get(after)
        && next % modulus != 0
    {
        return refused(format!(
            "The new modulus {modulus} is not a factor of {next}, the modulus of existing partition \
             \"{name}\"."
        ));
    }
    Ok(())
}

/// The rows of the default partition are none that a new sibling takes.
pub(crate) fn check_default_rows(parent: &Table, bound: &PartitionBound, work: &mut Work<'_>) -> Result<()> {
    if *bound == PartitionBound::Default {
        return Ok(());
    }
    let Some(default) = work.catalog.default_partition(parent.oid) else { return Ok(()) };
    let Some(taken) = work.catalog.taken_condition(parent, bound)? else { return Ok(()) };
    for leaf in stored(&default, work) {
        violated_by_none(&leaf, &taken, true, work);
    }
    Ok(())
}

/// A table, or the partitions below it that have rows.
pub(crate) fn stored(table: &TableRef, work: &Work<'_>) -> Vec<TableRef> {
    if table.is_stored() { vec![table.clone()] } else { work.catalog.leaves(table.oid) }
}

/// The rows of a table that is to become a partition lie in its bound, and in those of the tables
/// that this is part of.
pub(crate) fn check_rows(
    table: &TableRef,
    parent: &Table,
    bound: &PartitionBound,
    work: &mut Work<'_>,
) -> Result<()> {
    let mut parts = work.catalog.bound_condition(parent, bound, Some(table.oid))?;
    parts.extend(work.catalog.partition_condition(parent)?);
    if parts.is_empty() {
        return Ok(());
    }
    let condition = parts.join(" AND ");
    for leaf in stored(table, work) {
        violated_by_none(&leaf, &format!("NOT ({condition})"), false, work);
    }
    Ok(())
}

fn violated_by_none(leaf: &TableRef, condition: &str, default: bool, work: &mut Work<'_>) {
    // One that the same statement makes has no rows, and no query finds it yet.
    if work.env.catalog.table_by_oid(leaf.oid).is_none() {
        return;
    }
    let message = match default {
        true => format!(
            "updated partition constraint for default partition \"{}\" would be violated by some row",
            leaf.name
        ),
        false => format!("partition constraint of relation \"{}\" is violated by some row", leaf.name),
    };
    let rows = quote_qualified(&leaf.schema, &leaf.name);
    // A condition that is neither true nor false is met, as a CHECK's is.
    let query = format!("SELECT 1 FROM {rows} WHERE {condition} LIMIT 1");
    let mut error = SqlError::new(SqlState::CHECK_VIOLATION, message);
    error.fields_mut().schema = Some(leaf.schema.clone());
    error.fields_mut().table = Some(leaf.name.clone());
    work.validate(query, error);
    if let Some(validation) = work.plan.validations.last_mut() {
        validation.search_path = Some(DEFINITION_PATH);
    }
}
