//! Dependencies: what would break if an object went. DROP … RESTRICT refuses with 2BP01 and
//! names them; CASCADE takes them along.

use crate::error::{SqlError, SqlState};
use crate::type_table::TypeNames;
use crate::types::Oid;

use rustc_hash::FxHashSet;

use super::names::{quote_identifier, quote_qualified};
use super::operator_class::{OperatorClassRef, OperatorFamilyRef};
use super::stored_name::sequences_named;
use super::{Catalog, ObjectKind, RoutineRef, SequenceRef, TableKind, TableRef, UserTypeRef};

/// Something that depends on an object.
#[derive(Clone, Debug)]
pub enum Dependent {
    /// A foreign key of this table (by place) that points at the object.
    ForeignKey(TableRef, usize),
    /// A default of this table's column (by place) that calls the sequence.
    Default(TableRef, u16),
    /// A view that reads it, directly or through another view.
    View(TableRef),
    /// A trigger of this table (by place) that calls the routine, or speaks of the column.
    Trigger(TableRef, usize),
    /// A policy of this table (by place) that reads it, or speaks of the column.
    Policy(TableRef, usize),
    /// A generated column of this table (by place) whose expression names the routine or type.
    Generated(TableRef, u16),
    /// A column of this table (by place) of the type.
    Column(TableRef, u16),
    /// An attribute of this composite type (by place) of the type.
    Attribute(UserTypeRef, u16),
    /// An index of this table (by place) whose expressions or condition name it.
    Index(TableRef, usize),
    /// A CHECK of this table (by place) that names it.
    Check(TableRef, usize),
    /// A CHECK of this domain (by place) that names it.
    DomainCheck(UserTypeRef, usize),
    /// A domain whose default names it.
    Domain(UserTypeRef),
    /// A table that inherits from it by INHERITS.
    Heir(TableRef),
    /// A table whose partition key names the routine or type.
    PartitionKey(TableRef),
    /// A routine whose arguments or result use the table's row type, or with an argument whose
    /// default names the object.
    Routine(RoutineRef),
    /// An object inside the schema.
    Table(TableRef),
    Sequence(SequenceRef),
    SchemaRoutine(RoutineRef),
    SchemaType(UserTypeRef),
    /// An operator class that names the function, is over the type, or is in the schema.
    OperatorClass(OperatorClassRef),
    /// An operator family in the schema.
    OperatorFamily(OperatorFamilyRef),
}

impl Dependent {
    /// The catalog object that it is, or is part of.
    pub fn object(&self) -> (ObjectKind, Oid) {
        match self {
            Dependent::ForeignKey(table, _)
            | Dependent::Default(table, _)
            | Dependent::View(table)
            | Dependent::Trigger(table, _)
            | Dependent::Policy(table, _)
            | Dependent::Generated(table, _)
            | Dependent::Column(table, _)
            | Dependent::Index(table, _)
            | Dependent::Check(table, _)
            | Dependent::Heir(table)
            | Dependent::PartitionKey(table)
            | Dependent::Table(table) => (ObjectKind::Table, table.oid),
            Dependent::Attribute(ty, _)
            | Dependent::DomainCheck(ty, _)
            | Dependent::Domain(ty)
            | Dependent::SchemaType(ty) => (ObjectKind::Type, ty.oid),
            Dependent::Routine(routine) | Dependent::SchemaRoutine(routine) => {
                (ObjectKind::Routine, routine.oid)
            }
            Dependent::Sequence(sequence) => (ObjectKind::Sequence, sequence.oid),
            Dependent::OperatorClass(class) => (ObjectKind::OperatorClass, class.oid),
            Dependent::OperatorFamily(family) => (ObjectKind::OperatorFamily, family.oid),
        }
    }

    /// As PostgreSQL's DETAIL names it.
    pub fn describe(&self, names: &dyn TypeNames) -> String {
        match self {
            Dependent::ForeignKey(table, key) => {
                format!("constraint {} on table {}", table.foreign_keys[*key].name, table.name)
            }
            Dependent::Default(table, column) => {
                format!(
                    "default value for column {} of table {}",
                    table.columns[*column as usize].name, table.name
                )
            }
            Dependent::Trigger(table, place) => {
                format!("trigger {} on table {}", table.triggers[*place].name, table.name)
            }
            Dependent::Policy(table, place) => {
                format!("policy {} on table {}", table.row_security.policies[*place].name, table.name)
            }
            // A partitioned table goes with what says where its rows lie.
            Dependent::Column(table, column) if table.is_partitioned_by(*column) => {
                format!("table {}", table.name)
            }
            Dependent::Generated(table, column) | Dependent::Column(table, column) => {
                format!("column {} of table {}", table.columns[*column as usize].name, table.name)
            }
            Dependent::Check(table, place) => {
                format!("constraint {} on table {}", table.checks[*place].name, table.name)
            }
            Dependent::DomainCheck(ty, place) => {
                let check = ty.domain.as_ref().and_then(|domain| domain.checks.get(*place));
                format!("constraint {}", check.map_or("", |check| &check.name))
            }
            Dependent::Domain(ty) => format!("type {}", ty.name),
            Dependent::Attribute(ty, place) => {
                let attribute = ty.attributes.iter().flatten().nth(usize::from(*place));
                let name = attribute.map_or("", |column| &column.name);
                format!("column {name} of composite type {}", ty.name)
            }
            Dependent::Index(table, place) => format!("index {}", table.indexes[*place].name),
            Dependent::OperatorClass(class) => class.describe(),
            Dependent::OperatorFamily(family) => {
                let name = quote_qualified(&family.schema, &family.name);
                format!("operator family {name} for access method {}", family.method)
            }
            Dependent::Heir(table) | Dependent::PartitionKey(table) => format!("table {}", table.name),
            Dependent::View(view) => format!("view {}", view.name),
            Dependent::Table(table) if table.kind == TableKind::View => {
                format!("view {}", quote_qualified(&table.schema, &table.name))
            }
            Dependent::Table(table) => format!("table {}", quote_qualified(&table.schema, &table.name)),
            Dependent::SchemaType(ty) => format!("type {}", quote_qualified(&ty.schema, &ty.name)),
            Dependent::Sequence(sequence) => {
                format!("sequence {}", quote_qualified(&sequence.schema, &sequence.name))
            }
            // Procedures, too.
            Dependent::Routine(routine) => format!("function {}", routine_signature(routine, names)),
            Dependent::SchemaRoutine(routine) => {
                let schema = quote_identifier(&routine.schema);
                format!("function {schema}.{}", routine_signature(routine, names))
            }
        }
    }
}

impl super::Routine {
    /// Whether its body is one that names the relation for good.
    pub fn names(&self, relation: Oid) -> bool {
        let stored = self.traits.stored.as_ref();
        stored.is_some_and(|body| body.references.iter().any(|known| known.relation == relation))
    }
}

/// `name(type, type)`, as messages show a routine.
pub fn routine_signature(routine: &super::Routine, names: &dyn TypeNames) -> String {
    let types: Vec<String> = routine.input_types().into_iter().map(|ty| names.type_name(ty)).collect();
    format!("{}({})", routine.name, types.join(","))
}

impl Catalog {
    /// What depends on a table, apart from what is part of it (its indexes, its owned
    /// sequences, its own foreign keys).
    pub fn dependents_of_table(&self, table: &TableRef) -> Vec<Dependent> {
        let mut dependents = Vec::new();
        for other in self.tables_saying(&[table.oid]).filter(|other| other.oid != table.oid) {
            for (place, key) in other.foreign_keys.iter().enumerate() {
                // Those of partitions go with that of the table they are part of.
                if key.references == table.oid && key.parent.is_none() {
                    dependents.push(Dependent::ForeignKey(other.clone(), place));
                }
            }
            let policies = other.row_security.policies.iter().enumerate();
            let reading = policies.filter(|(_, policy)| policy.reads(table.oid));
            dependents.extend(reading.map(|(place, _)| Dependent::Policy(other.clone(), place)));
        }
        let heirs = self.heirs(table.oid).into_iter().filter(|heir| heir.bound.is_none());
        dependents.extend(heirs.map(Dependent::Heir));
        let views = self.views_over(table.oid);
        let over: Vec<Oid> = views.iter().map(|view| view.oid).collect();
        dependents.extend(views.into_iter().map(Dependent::View));
        let others = self.policies_over(&over).into_iter().filter(|policy| match policy {
            Dependent::Policy(other, place) => {
                other.oid != table.oid && !other.row_security.policies[*place].reads(table.oid)
            }
            _ => false,
        });
        dependents.extend(others);
        let (row, array) = (table.row_type(), table.row_array_type());
        for routine in self.routines_saying(&[table.oid, row, array]) {
            let uses = |ty: Oid| ty == row || ty == array;
            let mut states = routine.aggregate.iter().flat_map(|aggregate| aggregate.states());
            if uses(routine.result.oid)
                || routine.args.iter().any(|arg| uses(arg.ty.oid))
                || states.any(|ty| uses(ty.oid))
                || routine.names(table.oid)
            {
                dependents.push(Dependent::Routine(routine.clone()));
            }
        }
        let uses = |ty: Oid| ty == row || ty == array;
        let others = self.tables_saying(&[row, array]);
        for other in others.filter(|other| other.kind == TableKind::Table && other.oid != table.oid) {
            let columns = other.columns.iter().enumerate().filter(|(_, column)| uses(column.declared().oid));
            dependents.extend(columns.map(|(place, _)| Dependent::Column(other.clone(), place as u16)));
        }
        for ty in self.types_saying(&[row, array]) {
            let attributes = ty.attributes.iter().flatten().enumerate();
            let of_rows = attributes.filter(|(_, column)| uses(column.declared().oid));
            dependents.extend(of_rows.map(|(place, _)| Dependent::Attribute(ty.clone(), place as u16)));
        }
        dependents
    }

    /// The policies that read one of these relations beside their own tables, by their age.
    pub fn policies_over(&self, relations: &[Oid]) -> Vec<Dependent> {
        let mut found = Vec::new();
        for table in self.tables_saying(relations) {
            for (place, policy) in table.row_security.policies.iter().enumerate() {
                if relations.iter().any(|relation| policy.reads(*relation)) {
                    found.push((policy.oid, Dependent::Policy(table.clone(), place)));
                }
            }
        }
        found.sort_by_key(|(oid, _)| *oid);
        found.into_iter().map(|(_, policy)| policy).collect()
    }

    /// Foreign keys that reference a partition's rows as those of what it is part of, if that stays.
    pub fn keys_over_partition(&self, partition: &TableRef, dropped: &FxHashSet<Oid>) -> Vec<Dependent> {
        let above = self.partition_ancestors(partition.oid).into_iter();
        let above: Vec<Oid> = above.map(|table| table.oid).filter(|oid| !dropped.contains(oid)).collect();
        if above.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for other in self.tables_saying(&above) {
            let keys = other.foreign_keys.iter().enumerate();
            let over = keys.filter(|(_, key)| above.contains(&key.references) && key.parent.is_none());
            found.extend(over.map(|(place, _)| Dependent::ForeignKey(other.clone(), place)));
        }
        found
    }

    /// Defaults that call a sequence.
    pub fn dependents_of_sequence(&self, sequence: &SequenceRef) -> Vec<Dependent> {
        let mut dependents = Vec::new();
        for table in self.tables_saying(&[sequence.oid]) {
            for (place, column) in table.columns.iter().enumerate() {
                let default = column.default.as_deref().unwrap_or_default();
                if sequences_named(default, self).contains(&sequence.oid) {
                    dependents.push(Dependent::Default(table.clone(), place as u16));
                }
            }
        }
        dependents
    }

    /// Sequences that a column of the table owns: they go with it.
    pub fn owned_sequences(&self, table: Oid) -> Vec<SequenceRef> {
        self.sequences_owned_by(table).cloned().collect()
    }

    /// Everything inside a schema; sequences that a table there owns are left to it.
    pub fn dependents_of_schema(&self, schema: &str) -> Vec<Dependent> {
        let mut dependents: Vec<Dependent> =
            self.tables().filter(|table| table.schema == schema).cloned().map(Dependent::Table).collect();
        dependents.extend(
            self.sequences()
                .filter(|sequence| sequence.schema == schema && sequence.owned_by.is_none())
                .cloned()
                .map(Dependent::Sequence),
        );
        dependents
            .extend(self.user_types().filter(|ty| ty.schema == schema).cloned().map(Dependent::SchemaType));
        dependents.extend(
            self.routines_all()
                .filter(|routine| routine.schema == schema)
                .cloned()
                .map(Dependent::SchemaRoutine),
        );
        let families: Vec<OperatorFamilyRef> =
            self.operator_families().filter(|family| family.schema == schema).cloned().collect();
        // A class goes with its family, and nobody speaks of it.
        let is_told = |class: &&OperatorClassRef| {
            class.schema == schema && !families.iter().any(|family| family.oid == class.family())
        };
        dependents.extend(self.operator_classes().filter(is_told).cloned().map(Dependent::OperatorClass));
        dependents.extend(families.into_iter().map(Dependent::OperatorFamily));
        // As they came to be, whatever they are.
        dependents.sort_by_key(|dependent| dependent.object().1);
        dependents
    }
}

/// The default expression of a column that draws from a sequence.
pub fn sequence_default(sequence: &super::Sequence) -> String {
    format!("nextval('{}'::regclass)", super::stored_name::stored_literal(sequence.oid))
}

/// 2BP01 for an object others depend on.
pub fn still_depended_on(object: &str, dependents: &[Dependent], names: &dyn TypeNames) -> SqlError {
    let line = |dependent: &Dependent| format!("{} depends on {object}", dependent.describe(names));
    let lines: Vec<String> = dependents.iter().map(line).collect();
    SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop {object} because other objects depend on it"),
    )
    .with_detail(lines.join("\n"))
    .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}
