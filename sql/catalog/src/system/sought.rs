//! Which rows of a system relation somebody wants: what conditions say of columns before a row is made.
//!
//! A question about one table names it, by its oid or its name: then its rows alone are made, whatever else
//! there is. [`SELECTIVE`] lists the columns that lead to objects so. What is made may be more than what is
//! wanted; whoever asks looks at each row.

use crate::catalog::selection::Asked;
use crate::catalog::{Catalog, Table};
use crate::datum::Datum;
use crate::types::Oid;

/// More values than that are not looked up one by one.
const VALUES_MAX: usize = 1_000;

/// Columns, by their places in a relation, and the values one of which each has to have.
#[derive(Clone, Debug, Default)]
pub struct Sought {
    columns: Vec<(usize, Vec<Datum>)>,
}

impl Sought {
    /// All rows.
    pub const EVERYTHING: Sought = Sought { columns: Vec::new() };

    /// Those among them in which a column has one of these values. NULLs among them are none.
    pub fn add(&mut self, column: usize, values: Vec<Datum>) {
        self.columns.push((column, values.into_iter().filter(|value| !value.is_null()).collect()));
    }

    /// The oids one of which a column has to have, each once, if few are said.
    pub fn oids(&self, column: usize) -> Option<Vec<Oid>> {
        let values = self.values(column).filter(|values| values.len() <= VALUES_MAX)?;
        let mut oids: Vec<Oid> = values.iter().map(oid_of).collect::<Option<_>>()?;
        oids.sort_unstable();
        oids.dedup();
        Some(oids)
    }

    /// Whether all rows are wanted.
    pub fn is_everything(&self) -> bool {
        self.columns.is_empty()
    }

    /// The values that a column may have, if something is said of it.
    pub(super) fn values(&self, column: usize) -> Option<&[Datum]> {
        self.columns.iter().find(|(of, _)| *of == column).map(|(_, values)| &values[..])
    }

    /// Whether a row with this value in a column may be wanted. It is not compared with more than a few:
    /// whoever asks finds it among those faster.
    pub(super) fn allows(&self, column: usize, value: &Datum) -> bool {
        let mut said = self.columns.iter().filter(|(of, values)| *of == column && values.len() <= VALUES_MAX);
        said.all(|(_, values)| values.iter().any(|wanted| may_equal(wanted, value)))
    }
}

/// Whether two values are the same; of values of different kinds that is not known.
fn may_equal(wanted: &Datum, value: &Datum) -> bool {
    match (wanted, value) {
        (Datum::Oid(wanted), Datum::Oid(value)) => wanted == value,
        (Datum::Text(wanted), Datum::Text(value)) => wanted == value,
        (Datum::Bool(wanted), Datum::Bool(value)) => wanted == value,
        (_, Datum::Null) => false,
        _ => true,
    }
}

/// What the value of a column says of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// The oid of it, or of what it is part of.
    Oid,
    /// The same, or 0 for those that are part of none.
    OidOrNone,
    KeyIndex,
    References,
    Inherits,
    Name,
    Constraint,
    TypeName,
    Needs,
}

/// The columns by which rows are found without making all, the best of each relation first.
const SELECTIVE: &[(&str, &[(&str, Says)])] = &[
    ("pg_class", &[("oid", Says::Oid), ("relname", Says::Name)]),
    ("pg_attribute", &[("attrelid", Says::Oid)]),
    ("pg_attrdef", &[("adrelid", Says::Oid)]),
    ("pg_index", &[("indexrelid", Says::Oid), ("indrelid", Says::Oid)]),
    (
        "pg_constraint",
        &[
            ("oid", Says::Oid),
            ("conrelid", Says::OidOrNone),
            ("contypid", Says::OidOrNone),
            ("conindid", Says::KeyIndex),
            ("confrelid", Says::References),
            ("conname", Says::Constraint),
        ],
    ),
    ("pg_trigger", &[("oid", Says::Oid), ("tgrelid", Says::Oid)]),
    ("pg_policy", &[("oid", Says::Oid), ("polrelid", Says::Oid)]),
    ("pg_policies", &[("tablename", Says::Name)]),
    ("pg_rewrite", &[("ev_class", Says::Oid)]),
    ("pg_inherits", &[("inhrelid", Says::Oid), ("inhparent", Says::Inherits)]),
    ("pg_partitioned_table", &[("partrelid", Says::Oid)]),
    ("pg_sequence", &[("seqrelid", Says::Oid)]),
    ("pg_sequences", &[("sequencename", Says::Name)]),
    ("pg_description", &[("objoid", Says::Oid)]),
    ("pg_depend", &[("objid", Says::Oid), ("refobjid", Says::Needs)]),
    (
        "pg_type",
        &[
            ("oid", Says::Oid),
            ("typrelid", Says::OidOrNone),
            ("typarray", Says::OidOrNone),
            ("typelem", Says::OidOrNone),
            ("typname", Says::TypeName),
        ],
    ),
    ("pg_enum", &[("enumtypid", Says::Oid)]),
    ("pg_proc", &[("oid", Says::Oid), ("proname", Says::Name)]),
    ("pg_tables", &[("tablename", Says::Name)]),
    ("pg_views", &[("viewname", Says::Name)]),
    ("pg_indexes", &[("indexname", Says::Name), ("tablename", Says::Name)]),
    ("tables", &[("table_name", Says::Name)]),
    ("columns", &[("table_name", Says::Name)]),
    ("views", &[("table_name", Says::Name)]),
    ("view_table_usage", &[("view_name", Says::Name)]),
    ("sequences", &[("sequence_name", Says::Name)]),
    ("table_constraints", &[("table_name", Says::Name), ("constraint_name", Says::Constraint)]),
    ("key_column_usage", &[("table_name", Says::Name), ("constraint_name", Says::Constraint)]),
    ("constraint_column_usage", &[("constraint_name", Says::Constraint)]),
    ("constraint_table_usage", &[("constraint_name", Says::Constraint)]),
    ("referential_constraints", &[("constraint_name", Says::Constraint)]),
    ("check_constraints", &[("constraint_name", Says::Constraint)]),
    ("triggers", &[("event_object_table", Says::Name)]),
    ("table_privileges", &[("table_name", Says::Name)]),
    ("role_table_grants", &[("table_name", Says::Name)]),
    ("column_privileges", &[("table_name", Says::Name)]),
    ("role_column_grants", &[("table_name", Says::Name)]),
    ("routines", &[("routine_name", Says::Name)]),
];

fn selective(relation: &str) -> &'static [(&'static str, Says)] {
    SELECTIVE.iter().find(|(name, _)| *name == relation).map_or(&[], |(_, columns)| columns)
}

/// Whether the value of a column, by its place, leads to the rows of a relation.
pub fn is_selective(table: &Table, column: usize) -> bool {
    let Some(column) = table.columns.get(column) else { return false };
    is_of_catalog(&table.schema) && selective(&table.name).iter().any(|(name, _)| *name == column.name)
}

fn is_of_catalog(schema: &str) -> bool {
    matches!(schema, "pg_catalog" | "information_schema")
}

/// An oid that a value is.
fn oid_of(value: &Datum) -> Option<Oid> {
    match value {
        Datum::Oid(oid) => Some(*oid),
        Datum::Int2(number) => u32::try_from(*number).ok().map(Oid),
        Datum::Int4(number) => u32::try_from(*number).ok().map(Oid),
        Datum::Int8(number) => u32::try_from(*number).ok().map(Oid),
        _ => None,
    }
}

fn asked(says: Says, value: &Datum) -> Option<Asked<'_>> {
    let name = || match value {
        Datum::Text(name) => Some(&**name),
        _ => None,
    };
    Some(match says {
        Says::Oid => Asked::Oid(oid_of(value)?),
        Says::OidOrNone => Asked::Oid(oid_of(value).filter(|oid| oid.0 != 0)?),
        Says::KeyIndex => Asked::KeyIndex(oid_of(value)?),
        Says::References => Asked::References(oid_of(value)?),
        Says::Inherits => Asked::Inherits(oid_of(value)?),
        Says::Needs => Asked::Needs(oid_of(value)?),
        Says::Name => Asked::Name(name()?),
        Says::Constraint => Asked::Constraint(name()?),
        Says::TypeName => Asked::TypeName(name()?),
    })
}

impl Sought {
    /// What is asked of the objects that rows of a relation are about, whose columns are at these places;
    /// `None`: nothing that leads to them.
    pub(super) fn asked<'s>(
        &'s self,
        relation: &str,
        place: impl Fn(&str) -> Option<usize>,
        catalog: &Catalog,
    ) -> Option<Vec<Asked<'s>>> {
        if self.is_everything() {
            return None;
        }
        selective(relation).iter().find_map(|(column, says)| {
            let values = self.values(place(column)?).filter(|values| values.len() <= VALUES_MAX)?;
            let asked: Vec<Asked<'s>> =
                values.iter().map(|value| asked(*says, value)).collect::<Option<_>>()?;
            let leads = |asked: &Asked<'_>| match asked {
                // Of others than tables it is not known who needs them.
                Asked::Needs(oid) => catalog.table_in_place(*oid).is_some(),
                Asked::KeyIndex(oid) | Asked::References(oid) | Asked::Inherits(oid) => oid.0 != 0,
                Asked::Oid(_) | Asked::Name(_) | Asked::Constraint(_) | Asked::TypeName(_) => true,
            };
            asked.iter().all(leads).then_some(asked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_tell_rows_apart() {
        let of = |count: usize| {
            let mut sought = Sought::EVERYTHING;
            sought.add(1, (0..count as u32).map(|number| Datum::Oid(Oid(number))).collect());
            sought
        };
        let (inside, outside) = (Datum::Oid(Oid(7)), Datum::Oid(Oid(70_000)));
        let few = of(VALUES_MAX);
        assert!(few.allows(1, &inside) && !few.allows(1, &outside) && few.allows(0, &outside));
        assert!(of(VALUES_MAX + 1).allows(1, &outside));
        // NULL is equal to nothing.
        let mut none = Sought::EVERYTHING;
        none.add(1, vec![Datum::Null]);
        assert!(!none.allows(1, &inside) && !few.allows(1, &Datum::Null));
    }

    #[test]
    fn an_oid_that_is_named_twice_is_one() {
        let mut sought = Sought::EVERYTHING;
        sought.add(0, vec![Datum::Oid(Oid(9)), Datum::Int4(5), Datum::Null, Datum::Oid(Oid(9))]);
        assert_eq!(sought.oids(0), Some(vec![Oid(5), Oid(9)]));
        sought.add(1, vec![Datum::Int4(-1)]);
        assert_eq!((sought.oids(1), sought.oids(2)), (None, None));
    }
}
