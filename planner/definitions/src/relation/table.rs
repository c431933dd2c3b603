//! CREATE TABLE.

use archipel_engine::txn::DdlOp;
use archipel_sql::ast::{
    ColumnConstraint, ColumnConstraintKind, ColumnDefinition, ColumnOptions, CreateTable, IndexElement,
    QualifiedName, SequenceOption, TableConstraint, TableConstraintKind, TypeName,
};
use archipel_sql::catalog::dependency::sequence_default;
use archipel_sql::catalog::{
    Column, Identity, OnCommit, Persistence, SYSTEM_COLUMNS, Sequence, Table, TableKind,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::is_pseudo_type;
use archipel_sql::types::{Oid, Type};

use super::collation::check_collatable;
use super::constraint::Deferred;
use super::index_placement::check_constraints;
use super::inheritance::Heritage;
use super::sequence::SequenceRequest;
use super::storage_option::{check_no_options, check_said_once, check_table_options, kept_options};
use super::{
    access_method, column_storage, constraint, distribution, inheritance, partition, partition_keys,
    sequence, table_like, tablespace,
};
use crate::bind::Clause;
use crate::data_type::type_name;
use crate::expression::check;
use crate::row::table_def;
use crate::work::plan::Implied;
use crate::work::{Work, change};

/// PostgreSQL's MaxHeapAttributeNumber.
const MAX_COLUMNS: usize = 1600;
/// The collation "default".
const DEFAULT_COLLATION: Oid = Oid(100);

pub(crate) fn create_table(create: &CreateTable, work: &mut Work<'_>) -> Result<()> {
    let persistence = work.persistence(&create.name, create.persistence)?;
    if persistence != Persistence::Temporary && create.on_commit != OnCommit::PreserveRows {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "ON COMMIT can only be used on temporary tables",
        ));
    }
    let schema = target_schema(create, persistence, work)?;
    let name = &create.name.name;
    let known = work.catalog.is_relation(&schema, name);
    // Whether it is there already is asked last, unless it may be.
    let parents = match known && create.if_not_exists {
        true => Vec::new(),
        false => inheritance::parents(create, persistence, work)?,
    };
    if known {
        let message = format!("relation \"{name}\" already exists");
        if create.if_not_exists {
            work.notice_as(SqlState::DUPLICATE_TABLE, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    type_name::check_row_type(&schema, name, work)?;
    check_form(create)?;
    let mut table = Table {
        persistence,
        on_commit: create.on_commit,
        options: kept_options(&create.options),
        tree: if create.partition_by.is_some() { 0 } else { work.tree() },
        ..Table::new(work.oids(3), schema, name.as_str(), TableKind::Table)
    };
    let heritage = Heritage::new(parents, &mut table, work)?;
    let declared = Table::new(table.oid, table.schema.as_str(), name.as_str(), TableKind::Table);
    let mut draft = Draft {
        table,
        declared,
        heritage,
        copies: table_like::Copies::default(),
        constraints: Vec::new(),
        sequences: Vec::new(),
    };
    draft.add_columns(create, work)?;
    tablespace::check(create.tablespace.as_deref(), create.partition_by.is_some(), work)?;
    access_method::check(create.access_method.as_deref(), create.partition_by.is_some())?;
    let Draft { mut table, heritage, copies, mut constraints, sequences, .. } = draft;
    constraints.extend(create.constraints.iter().cloned());
    constraints.extend(copies.constraints()?);
    let constraints = heritage.take_checks(&mut table, constraints, work)?;
    take_place(create, &heritage, &mut table, work)?;
    // Keys first: checks and foreign keys may need to know them, and PostgreSQL names them first.
    for (place, request) in sequences {
        make_owned_sequence(&mut table, place, &request, work)?;
    }
    add_constraints(&mut table, &constraints, work)?;
    check_expressions(create, &table, &constraints, work)?;
    copies.add_indexes(&mut table, work);
    partition_keys::check_keys(&table)?;
    if table.is_partitioned() {
        table.indexes.iter_mut().for_each(|index| index.tree = 0);
    }
    distribution::choose_default(&mut table, work).and_then(|()| check_constraints(&table, 0))?;
    distribution::place_indexes(&mut table, work);
    let table = work.put_table(table);
    copies.add_comments(&table, work);
    work.operation(DdlOp::CreateTable(table_def(&table)));
    tell_others(&table, &heritage, work);
    Ok(())
}

/// The schema that a new table goes to.
fn target_schema(create: &CreateTable, persistence: Persistence, work: &mut Work<'_>) -> Result<String> {
    match persistence {
        Persistence::Temporary => work.temporary_target(&create.name),
        _ => work.target_schema(&create.name).map_err(|error| match error.state() {
            SqlState::INSUFFICIENT_PRIVILEGE => error.at(create.name.at()),
            _ => error,
        }),
    }
}

/// Refuses what the statement alone shows to be wrong.
fn check_form(create: &CreateTable) -> Result<()> {
    check_table_options(&create.options)?;
    check_said_once(&create.options)?;
    if create.partition_by.is_some() {
        check_no_options(&create.options)?;
    }
    if create.columns.len() > MAX_COLUMNS {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("tables can have at most {MAX_COLUMNS} columns"),
        ));
    }
    if create.partition_by.is_some() && !create.inherits.is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            "cannot create partitioned table as inheritance child",
        ));
    }
    Ok(())
}

/// A new table while its columns come together.
struct Draft {
    table: Table,
    /// What the statement itself declares, for names that come twice.
    declared: Table,
    heritage: Heritage,
    copies: table_like::Copies,
    /// Those of columns.
    constraints: Vec<TableConstraint>,
    /// Those of columns, whose places they are with.
    sequences: Vec<(u16, SequenceRequest)>,
}

impl Draft {
    /// Takes the columns in their order: those declared, between those of LIKE clauses, merged with
    /// those of the parents.
    fn add_columns(&mut self, create: &CreateTable, work: &mut Work<'_>) -> Result<()> {
        for (at, definition) in create.columns.iter().enumerate() {
            self.add_likes(create, at, work)?;
            self.add_declared(definition, at, work)?;
        }
        let options = create.partition_of.iter().flat_map(|partition| &partition.columns);
        for made in options {
            let made = column_options(made, &self.table, &self.declared, work)?;
            self.declared.columns.push(made.column.clone());
            self.heritage.take_options(made.column, &mut self.table)?;
            self.constraints.extend(made.constraints);
        }
        self.heritage.check_defaults()?;
        self.add_likes(create, create.columns.len(), work)?;
        check::check_generated(&self.table, &create.columns)
    }

    /// Copies the columns of the LIKE clauses that stand before a declared column.
    fn add_likes(&mut self, create: &CreateTable, at: usize, work: &Work<'_>) -> Result<()> {
        for like in create.likes.iter().filter(|like| like.place == at) {
            self.copies.add_columns(like, &mut self.table, &mut self.sequences, work)?;
        }
        Ok(())
    }

    /// A column that the statement declares, the `at`th.
    fn add_declared(&mut self, definition: &ColumnDefinition, at: usize, work: &mut Work<'_>) -> Result<()> {
        let made = make_column(definition, &self.declared, work)?;
        self.declared.columns.push(made.column.clone());
        let place = self.table.column_index(&definition.name).unwrap_or(self.table.columns.len() as u16);
        if let Some(request) = made.sequence {
            self.sequences.push((place, request));
        }
        if self.table.columns.get(usize::from(place)).is_some_and(|known| known.inherited) {
            self.heritage.merge_declared(made.column, at, &mut self.table, work)?;
        } else {
            self.table.columns.push(made.column);
        }
        self.constraints.extend(made.constraints);
        Ok(())
    }
}

/// What makes a new table a partition, or have some: its bound, its key, and the parent's keys.
fn take_place(
    create: &CreateTable,
    heritage: &Heritage,
    table: &mut Table,
    work: &mut Work<'_>,
) -> Result<()> {
    if let Some(partition) = &create.partition_of {
        let parent = &heritage.parents[0];
        let bound = partition::make_bound(&partition.bound, parent, work)?;
        partition::check_new_bound(&create.name.name, &bound, &partition.bound, parent, work)?;
        partition::check_default_rows(parent, &bound, work)?;
        table.bound = Some(bound);
    }
    if let Some(by) = &create.partition_by {
        table.partitioned_by = Some(partition::make_key(by, table, work)?);
    }
    if create.partition_of.is_some() {
        partition_keys::take(&heritage.parents[0], table, None, work)?;
    }
    Ok(())
}

/// Whether what is written as conditions, generated columns and defaults means something.
fn check_expressions(
    create: &CreateTable,
    table: &Table,
    constraints: &[TableConstraint],
    work: &Work<'_>,
) -> Result<()> {
    for constraint in constraints {
        if let TableConstraintKind::Check(condition) = &constraint.kind {
            check::check_written(table, condition, Clause::Check, work)?;
        }
    }
    for constraint in create.columns.iter().flat_map(|column| &column.constraints) {
        if let ColumnConstraintKind::Generated(own) = &constraint.kind {
            check::check_written(table, own, Clause::Generated, work)?;
        }
    }
    for column in &create.columns {
        for constraint in &column.constraints {
            if let ColumnConstraintKind::Default(default) = &constraint.kind
                && let Some(place) = table.column_index(&column.name)
            {
                let ty = table.columns[usize::from(place)].ty;
                check::check_default_written(default, ty, work)?;
            }
        }
    }
    Ok(())
}

/// Has the tables that a new one points at, or is an heir of, know of it.
fn tell_others(table: &Table, heritage: &Heritage, work: &mut Work<'_>) {
    // Deletes from the tables this one points at must look here from now on.
    let mut referenced: Vec<Oid> = table.foreign_keys.iter().map(|key| key.references).collect();
    referenced.sort_unstable();
    referenced.dedup();
    for oid in referenced.into_iter().filter(|&oid| oid != table.oid) {
        change::touch(oid, work);
    }
    for parent in &heritage.parents {
        change::reshape(parent.oid, work);
    }
}

/// What a partition says of a column that it has from its parent.
fn column_options(
    options: &ColumnOptions,
    table: &Table,
    declared: &Table,
    work: &Work<'_>,
) -> Result<MadeColumn> {
    let name = &options.name;
    if declared.column_index(name).is_some() {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{name}\" specified more than once"),
        ));
    }
    let place = table.column_index(name).ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
    })?;
    let known = &table.columns[usize::from(place)];
    let written = archipel_sql::system::type_as_written(&work.catalog, known.declared());
    let definition = ColumnDefinition {
        name: name.clone(),
        position: options.position,
        ty: archipel_sql::parser::parse_type_name(&written)?,
        collation: None,
        compression: None,
        constraints: options.constraints.clone(),
    };
    let mut made = MadeColumn {
        column: Column { domain: known.domain, ..Column::new(name.clone(), known.ty) },
        constraints: Vec::new(),
        sequence: None,
    };
    let mut said_null = None;
    for constraint in &definition.constraints {
        let refused = match constraint.kind {
            ColumnConstraintKind::Identity { .. } => "identity columns are not supported on partitions",
            ColumnConstraintKind::Generated(_) => "generated columns are not supported on partitions",
            _ => {
                column_constraint(constraint, &definition, table, &mut made, &mut said_null)?;
                continue;
            }
        };
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, refused));
    }
    Ok(made)
}

/// Adds a new table's constraints: keys, then checks, then foreign keys.
fn add_constraints(table: &mut Table, constraints: &[TableConstraint], work: &mut Work<'_>) -> Result<()> {
    let mut deferred = Deferred::default();
    let is_primary = |c: &&TableConstraint| matches!(c.kind, TableConstraintKind::PrimaryKey { .. });
    for constraint in constraints.iter().filter(is_primary) {
        constraint::add(table, constraint, &mut deferred, work)?;
    }
    for constraint in constraints.iter().filter(|c| !is_primary(c)) {
        constraint::add(table, constraint, &mut deferred, work)?;
    }
    deferred.resolve(table, work)
}

pub(crate) struct MadeColumn {
    pub column: Column,
    pub constraints: Vec<TableConstraint>,
    pub sequence: Option<SequenceRequest>,
}

/// A column from its definition; its constraints as table constraints over it.
pub(crate) fn make_column(
    definition: &ColumnDefinition,
    table: &Table,
    work: &Work<'_>,
) -> Result<MadeColumn> {
    let name = &definition.name;
    let at = (definition.position > 0).then_some(definition.position);
    if table.column_index(name).is_some() {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{name}\" specified more than once"),
        )
        .at(at));
    }
    if SYSTEM_COLUMNS.contains(&name.as_str()) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column name \"{name}\" conflicts with a system column name"),
        )
        .at(at));
    }
    check_collation(definition.collation.as_ref())?;
    let serial = definition.ty.serial();
    let (ty, domain) = match serial {
        Some(ty) => (ty, None),
        None => named_type(name, &definition.ty, work)?,
    };
    if let Some(collation) = &definition.collation {
        check_collatable(ty, work).map_err(|error| error.at(collation.at()))?;
    }
    let mut made = MadeColumn {
        column: Column {
            domain,
            collation: column_collation(definition.collation.as_ref(), domain, work),
            ..Column::new(name.clone(), ty)
        },
        constraints: Vec::new(),
        sequence: serial.map(|ty| SequenceRequest { options: Vec::new(), ty }),
    };
    if let Some(method) = &definition.compression {
        made.column.storage.compression = column_storage::compression(&made.column, method, work)?;
    }
    made.column.not_null = serial.is_some();
    let mut said_null = None;
    for constraint in &definition.constraints {
        column_constraint(constraint, definition, table, &mut made, &mut said_null)?;
    }
    if serial.is_some() && said_null == Some(false) {
        return Err(contradiction("conflicting NULL/NOT NULL declarations", name, table));
    }
    Ok(made)
}

/// 42601 for constraints of a column that cannot stand together.
fn contradiction(what: &str, column: &str, table: &Table) -> SqlError {
    SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("{what} for column \"{column}\" of table \"{}\"", table.name),
    )
}

fn column_constraint(
    constraint: &ColumnConstraint,
    definition: &ColumnDefinition,
    table: &Table,
    made: &mut MadeColumn,
    said_null: &mut Option<bool>,
) -> Result<()> {
    let name = &definition.name;
    // PostgreSQL adds what serial says behind all else, in no place.
    let placed = constraint.position > 0 && definition.ty.serial().is_none();
    let at = placed.then_some(constraint.position);
    let twice = |what: &str| contradiction(what, name, table).at(at);
    let conflicting_null = || twice("conflicting NULL/NOT NULL declarations");
    let kind = match &constraint.kind {
        ColumnConstraintKind::NotNull | ColumnConstraintKind::Null => {
            let not_null = constraint.kind == ColumnConstraintKind::NotNull;
            if said_null.is_some_and(|said| said != not_null) {
                return Err(conflicting_null());
            }
            *said_null = Some(not_null);
            made.column.not_null |= not_null;
            return Ok(());
        }
        ColumnConstraintKind::Default(default) => {
            if made.column.generated.is_some() {
                return Err(twice("both default and generation expression specified"));
            }
            if made.column.identity.is_some() {
                return Err(twice("both default and identity specified"));
            }
            if made.column.default.is_some() || made.sequence.is_some() {
                return Err(twice("multiple default values specified"));
            }
            check::check_default(default)?;
            made.column.default = Some(default.text.clone());
            return Ok(());
        }
        ColumnConstraintKind::Identity { always, options } => {
            if made.column.identity.is_some() {
                return Err(twice("multiple identity specifications"));
            }
            if made.sequence.is_some() || made.column.default.is_some() {
                return Err(twice("both default and identity specified"));
            }
            if *said_null == Some(false) {
                return Err(conflicting_null());
            }
            *said_null = Some(true);
            if !matches!(made.column.ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8) {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "identity column type must be smallint, integer, or bigint",
                ));
            }
            made.column.not_null = true;
            made.column.identity = Some(if *always { Identity::Always } else { Identity::ByDefault });
            made.sequence = Some(SequenceRequest { options: options.clone(), ty: made.column.ty });
            return Ok(());
        }
        ColumnConstraintKind::Generated(expression) => {
            if made.column.generated.is_some() {
                return Err(twice("multiple generation clauses specified"));
            }
            if made.column.identity.is_some() {
                return Err(twice("both identity and generation expression specified"));
            }
            if made.column.default.is_some() || made.sequence.is_some() {
                return Err(twice("both default and generation expression specified"));
            }
            made.column.generated = Some(expression.text.clone());
            return Ok(());
        }
        ColumnConstraintKind::PrimaryKey => {
            TableConstraintKind::PrimaryKey { columns: vec![name.clone()], include: Vec::new() }
        }
        ColumnConstraintKind::Unique { nulls_not_distinct } => TableConstraintKind::Unique {
            columns: vec![name.clone()],
            include: Vec::new(),
            nulls_not_distinct: *nulls_not_distinct,
        },
        ColumnConstraintKind::Check(condition) => TableConstraintKind::Check(condition.clone()),
        ColumnConstraintKind::References(references) => {
            TableConstraintKind::ForeignKey { columns: vec![name.clone()], references: references.clone() }
        }
    };
    made.constraints.push(TableConstraint {
        name: constraint.name.clone(),
        position: constraint.position,
        kind,
        deferrable: constraint.deferrable,
        options: constraint.options.clone(),
        tablespace: constraint.tablespace.clone(),
        not_valid: false,
        no_inherit: constraint.no_inherit,
    });
    Ok(())
}

/// SEQUENCE NAME: what an identity column's sequence is to be called.
fn sequence_name(table: &Table, name: &QualifiedName, work: &Work<'_>) -> Result<String> {
    let schema = match &name.schema {
        Some(_) => work.target_schema(name)?,
        None => table.schema.clone(),
    };
    if work.catalog.is_relation(&schema, &name.name) {
        let message = format!("relation \"{}\" already exists", name.name);
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    if schema != table.schema {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "sequence must be in same schema as table it is linked to",
        ));
    }
    Ok(name.name.clone())
}

/// Makes the sequence of a serial or identity column, and the default that calls it.
pub(crate) fn make_owned_sequence(
    table: &mut Table,
    place: u16,
    request: &SequenceRequest,
    work: &mut Work<'_>,
) -> Result<Sequence> {
    let column = table.columns[usize::from(place)].name.clone();
    let named = request.options.iter().find_map(|option| match option {
        SequenceOption::Name(name) => Some(name),
        _ => None,
    });
    let name = match named {
        Some(name) => sequence_name(table, name, work)?,
        None => work.free_relation_name(
            &table.schema,
            [&table.name, &column, "seq"],
            std::slice::from_ref(&table.name),
        ),
    };
    work.plan.imply(Implied::Sequence, &name, &format!("{}.{column}", table.name));
    let options = request.options.iter().filter(|option| !matches!(option, SequenceOption::Name(_)));
    let options: Vec<SequenceOption> = options.cloned().collect();
    let mut owned = sequence::make(work, &table.schema, &name, request.ty, &options)?;
    owned.owned_by = Some((table.oid, place));
    owned.persistence = table.persistence;
    table.columns[usize::from(place)].default = Some(sequence_default(&owned));
    sequence::add(owned.clone(), &options, work)?;
    Ok(owned)
}

/// The type a column is given by name, and the domain that it is; pseudo-types and sets cannot be
/// stored.
pub(crate) fn named_type(name: &str, written: &TypeName, work: &Work<'_>) -> Result<(Type, Option<Oid>)> {
    let at = written.name.at();
    let invalid = |message: String| SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message).at(at);
    if written.setof {
        return Err(invalid(format!("column \"{name}\" cannot be declared SETOF")));
    }
    work.require_lookup(written)?;
    let (ty, domain) = work.catalog.resolve_declared(written, work.search_path())?;
    if is_pseudo_type(ty.oid) {
        return Err(invalid(format!("column \"{name}\" has pseudo-type {written}")));
    }
    work.require_type(ty, domain)?;
    Ok((ty, domain))
}

pub(crate) fn check_collation(named: Option<&QualifiedName>) -> Result<()> {
    let Some(collation) = named else {
        return Ok(());
    };
    match collation.name.as_str() {
        "default" | "C" | "POSIX" | "ucs_basic" => Ok(()),
        _ => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("collation \"{}\" for encoding \"UTF8\" does not exist", collation.name),
        )
        .at(collation.at())),
    }
}

/// The collation of a column of a domain, if it is not the default: the one that is named, or else the
/// domain's.
pub(crate) fn column_collation(
    named: Option<&QualifiedName>,
    domain: Option<Oid>,
    work: &Work<'_>,
) -> Option<Oid> {
    match (named, domain) {
        (None, Some(domain)) => work.catalog.domain_collation(domain),
        (named, _) => collation_of(named),
    }
}

/// The collation of a name, if it is not the default.
fn collation_of(named: Option<&QualifiedName>) -> Option<Oid> {
    match named?.name.as_str() {
        "C" | "ucs_basic" => Some(Oid(950)),
        "POSIX" => Some(Oid(951)),
        _ => None,
    }
}

/// The collation that a part of a key is given, if it is another one than its own.
pub(super) fn other_collation(element: &IndexElement, own: Option<Oid>) -> Option<Oid> {
    element.collation.as_ref()?;
    let named = collation_of(element.collation.as_ref());
    (named != own).then(|| named.unwrap_or(DEFAULT_COLLATION))
}
