//! The state of binding: what a statement is bound against, and what binding it knows so far.

use std::cell::{OnceCell, RefCell};

use archipel_sql::ast::{RowLockClause, TypeName};
use archipel_sql::catalog::{Catalog, Requirement, TableRef, TypesAlong, ViewReference};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::parser::Positions;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use archipel_sql::{interrupt, stack};
use sqlparser::tokenizer::{Location, Span};

use super::clause::Clause;
use super::level::{Level, Relation};
use super::meaning::{Meaning, Named, names_within};
use super::policy_reader::PolicyReader;
use super::{level, span};
use crate::bound::BoundExpr;

/// What a statement is bound against, and what binding finds out about it.
pub struct BindEnv<'a> {
    pub catalog: &'a Catalog,
    pub search_path: &'a [String],
    /// Where messages find names, if not there: a definition's own names have ids.
    pub shown_to: Option<&'a [String]>,
    /// The text the syntax tree's positions refer to; empty: errors carry no position.
    pub text: &'a str,
    /// For reading literals: time zone, date style.
    pub context: &'a FunctionContext<'a>,
    /// Types of `$1`, `$2`, …: declared ones on the way in, inferred ones on the way out.
    pub param_types: Vec<Option<Type>>,
    /// The domains among these types, of which only the plain types count while a statement is bound.
    pub param_domains: Vec<(u16, Oid)>,
    /// Whether `param_types` is all there is, so that `$n` beyond it is 42P02.
    pub params_fixed: bool,
    /// Parameters stand for literals: what nothing gives a type is text.
    pub params_are_literals: bool,
    /// PL/pgSQL variables, or a SQL function's arguments.
    pub variables: Option<&'a dyn VariableScope>,
    /// Set when the tree holds what only this session may use: literals read with its time
    /// zone, names looked up in its search path as values. Such a plan is not shared.
    pub session_dependent: bool,
    /// Literals whose meaning depends on the session are read when the plan runs: routines are
    /// compiled once for all sessions.
    pub late_literals: bool,
    /// Of a piece of a routine whose plan PostgreSQL keeps for a session, what tells its literals from
    /// others': they are read when a session comes to them first.
    pub literals_of: Option<u64>,
    /// The literals of types of time whose meaning depends on the session, as they are met: they are
    /// gathered where there is a list.
    pub moments: Option<Vec<(String, Oid)>>,
    /// What names and literals are found to mean, where somebody keeps the text.
    pub meanings: Option<RefCell<Vec<Meaning>>>,
    /// A definition that is kept: it cannot name what may go without a word, the places of rows.
    pub is_kept: bool,
    /// What is bound was understood when it was defined: nobody is asked again whether he may look into
    /// the schemas that it names, and its names of objects mean what they mean on its own path.
    pub is_settled: bool,
    /// While a view's query is bound: the relations it names by number.
    pub references: &'a [ViewReference],
    /// While a view's query is bound: its owner, whose rights on tables count.
    pub acting: Option<Oid>,
    /// For whom the policies of tables count.
    pub reader: PolicyReader,
    /// The tables whose policies this is bound for, as far as these have queries.
    pub policies_around: Vec<Oid>,
    /// While the query of a view is bound for a change through it: the first table in it is what is changed, and
    /// its policies are the change's.
    pub is_target: bool,
    /// What whoever runs the statement must be allowed.
    pub required: Vec<Requirement>,
    /// The table that the statement, an INSERT, gives the rows that it was made for (CREATE TABLE … AS).
    /// No right to do so is asked for, and no name in the query means it that meant another before.
    pub filled: Option<Oid>,
}

impl<'a> BindEnv<'a> {
    /// Who names types in messages.
    pub fn type_names(&self) -> TypesAlong<'a> {
        TypesAlong { catalog: self.catalog, search_path: self.display_path() }
    }

    /// The path that tells which names messages say without their schemas.
    pub fn display_path(&self) -> &'a [String] {
        self.shown_to.unwrap_or(self.search_path)
    }

    /// An environment without parameters and variables.
    pub fn new(
        catalog: &'a Catalog,
        search_path: &'a [String],
        context: &'a FunctionContext<'a>,
    ) -> BindEnv<'a> {
        BindEnv {
            catalog,
            search_path,
            shown_to: None,
            text: "",
            context,
            param_types: Vec::new(),
            param_domains: Vec::new(),
            params_fixed: false,
            params_are_literals: false,
            variables: None,
            session_dependent: false,
            late_literals: false,
            literals_of: None,
            moments: None,
            meanings: None,
            is_kept: false,
            is_settled: false,
            references: &[],
            acting: None,
            reader: PolicyReader::default(),
            policies_around: Vec::new(),
            is_target: false,
            required: Vec::new(),
            filled: None,
        }
    }

    /// The parameters' types after binding; 42P18 for one that nothing gave a type.
    pub fn parameter_types(&self) -> Result<Vec<Type>> {
        self.param_types
            .iter()
            .enumerate()
            .map(|(i, ty)| {
                ty.ok_or_else(|| {
                    SqlError::new(
                        SqlState::INDETERMINATE_DATATYPE,
                        format!("could not determine data type of parameter ${}", i + 1),
                    )
                })
            })
            .collect()
    }
}

/// Who wins when a name is a column and a variable (plpgsql.variable_conflict).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableConflict {
    /// 42702.
    Error,
    Column,
    Variable,
}

/// Names of a surrounding routine.
pub trait VariableScope {
    /// The variable a (possibly qualified, folded) name means: `x`, `block.x`, `record.field`.
    fn resolve(&self, parts: &[&str]) -> Option<BoundExpr>;

    /// The fields of a record variable, for `record.*`.
    fn fields(&self, _parts: &[&str]) -> Option<Vec<(String, BoundExpr)>> {
        None
    }

    /// The row of a named type that a name means before that of a field of it, where [`Self::resolve`] does
    /// not know fields.
    fn row(&self, _parts: &[&str]) -> Option<BoundExpr> {
        None
    }

    /// What `$n` (zero-based) means, where arguments can be named so.
    fn parameter(&self, _number: u16) -> Option<BoundExpr> {
        None
    }

    /// The rows that a name in FROM means before the catalog's tables: an array of them, and the table
    /// they are of.
    fn relation(&self, _name: &str) -> Option<(BoundExpr, archipel_sql::catalog::TableRef)> {
        None
    }

    fn conflict(&self) -> VariableConflict {
        VariableConflict::Error
    }
}

/// Whether rows of tables without a primary key have their numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowNumbers {
    None,
    /// They have none, and a name was met that means such a number.
    Missed,
    /// They stand behind the columns.
    BehindColumns,
}

impl RowNumbers {
    /// A name was met that means one.
    pub(super) fn ask(&mut self) {
        if *self == RowNumbers::None {
            *self = RowNumbers::Missed;
        }
    }
}

/// Expressions may nest this deep, however much stack there is: what walks the tree later may take
/// the square of it.
const NESTING_MAX: u32 = 1_000;

/// What binding one expression, relation or query counts as ([`interrupt::steps`]).
pub(super) const STEPS_PER_LEVEL: usize = 1 << 10;

/// The state of binding one statement.
pub(crate) struct Binder<'e, 'a> {
    pub(crate) env: &'e mut BindEnv<'a>,
    /// Scopes, outermost first.
    pub(crate) levels: Vec<Level>,
    /// The first level that the FROM clause at hand has made.
    pub(crate) from_start: usize,
    /// CTEs in sight, innermost last.
    pub(crate) ctes: Vec<level::VisibleCte>,
    /// Names of WITH that are not in sight yet: without RECURSIVE a query's own and those behind it.
    pub(crate) future_ctes: Vec<String>,
    /// Whether the FROM clause at hand reads the recursive query whose term this is.
    pub(crate) reads_itself: bool,
    pub(crate) cte_count: u32,
    /// Row locks the FROM clause being bound has to take.
    pub(crate) locks: Vec<RowLockClause>,
    /// String literals met so far: errors of reading one point at it, though that happens
    /// when its type is known, long after.
    pub(crate) literals: Vec<(String, Span)>,
    /// Where parameters were met that had no type yet.
    pub(super) open_parameters: Vec<(u16, Span)>,
    /// The parameter that the last expression gave its type.
    pub(super) typed_last: Option<u16>,
    /// One of them may have been left without: in a row, as an argument of type `any`.
    pub(super) stays_open: bool,
    /// What a MERGE calls its target, which its source may not look at.
    pub(crate) out_of_reach: Option<String>,
    pub(super) row_numbers: RowNumbers,
    pub(super) nesting: u32,
    /// The table whose kept texts were bound last, and what their names stand for: they come one after the
    /// other, and each has all its columns in sight.
    pub(super) row: Option<(TableRef, Relation)>,
    /// Where lines begin in the statement's text, once somebody asks.
    positions: OnceCell<Positions<'a>>,
}

/// As the catalog and the search path of the statement name them.
impl TypeNames for Binder<'_, '_> {
    fn user_type(&self, ty: Type) -> Option<String> {
        self.env.type_names().user_type(ty)
    }
}

impl<'e, 'a> Binder<'e, 'a> {
    pub(crate) fn new(env: &'e mut BindEnv<'a>) -> Self {
        Binder {
            env,
            levels: Vec::new(),
            from_start: 0,
            ctes: Vec::new(),
            future_ctes: Vec::new(),
            reads_itself: false,
            cte_count: 0,
            locks: Vec::new(),
            literals: Vec::new(),
            open_parameters: Vec::new(),
            typed_last: None,
            stays_open: false,
            out_of_reach: None,
            row_numbers: RowNumbers::None,
            nesting: 0,
            row: None,
            positions: OnceCell::new(),
        }
    }

    /// Runs `work` one nesting deeper, or refuses with 54001.
    pub(crate) fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting >= NESTING_MAX {
            return Err(stack::too_deep());
        }
        stack::check()?;
        interrupt::steps(STEPS_PER_LEVEL)?;
        self.nesting += 1;
        let result = work(self);
        self.nesting -= 1;
        result
    }

    /// Runs `work` with a scope level, and gives the level back.
    pub(crate) fn with_level<T>(
        &mut self,
        level: Level,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Level)> {
        self.levels.push(level);
        let result = work(self);
        let level = self.levels.pop();
        match (result, level) {
            (Ok(value), Some(level)) => Ok((value, level)),
            (Err(error), _) => Err(error),
            (Ok(_), None) => Err(SqlError::internal("scope levels do not match")),
        }
    }

    /// Binds an expression as part of a clause.
    pub(crate) fn clause_expr(&mut self, expr: &sqlparser::ast::Expr, clause: Clause) -> Result<BoundExpr> {
        let outer = std::mem::replace(&mut self.level()?.clause, clause);
        let result = self.expr(expr);
        self.level()?.clause = outer;
        result
    }

    /// The innermost level.
    pub(crate) fn level(&mut self) -> Result<&mut Level> {
        self.levels.last_mut().ok_or_else(|| SqlError::internal("an expression outside of any scope"))
    }

    /// Where a span starts, as an error position.
    pub(crate) fn position(&self, span: Span) -> Option<u32> {
        self.place(span.start).map(|(_, position)| position)
    }

    /// A location of the statement's text: the byte, and the error position; `None` for one outside of it.
    pub(crate) fn place(&self, at: Location) -> Option<(usize, u32)> {
        let text = self.env.text;
        if at.line == 0 || text.is_empty() {
            return None;
        }
        let positions = self.positions.get_or_init(|| Positions::new(text));
        Some((positions.byte(at), positions.character(at)?))
    }

    /// Where an expression starts, as an error position.
    pub(crate) fn start(&self, expr: &sqlparser::ast::Expr) -> Option<u32> {
        let position = self.position(span::first_span(expr))?;
        // The parenthesis before the query.
        Some(if span::begins_with_query(expr) { position.saturating_sub(1).max(1) } else { position })
    }

    /// Field names and types of a composite type: a table's columns.
    pub(crate) fn composite_fields(&self, oid: Oid) -> Option<Vec<(String, Type)>> {
        let table = self.env.catalog.table_of_row_type(oid)?;
        Some(table.columns.iter().map(|column| (column.name.clone(), column.ty)).collect())
    }

    /// The type a syntax tree names, row types of tables included.
    pub(crate) fn data_type(&self, data_type: &sqlparser::ast::DataType) -> Result<Type> {
        self.declared_type(data_type).map(|(ty, _)| ty)
    }

    /// As [`Self::data_type`], with the domain it may be.
    pub(crate) fn declared_type(&self, data_type: &sqlparser::ast::DataType) -> Result<(Type, Option<Oid>)> {
        let span = span::type_span(data_type);
        let position = self.position(span);
        // It is read from a text of its own.
        let in_statement = |mut error: SqlError| {
            error.fields_mut().position = None;
            error.at(position)
        };
        let mut name = archipel_sql::parser::data_type_name(data_type).map_err(in_statement)?;
        name.name.position = position.unwrap_or(0);
        self.note_type(span, &name);
        self.env.catalog.resolve_declared(&name, self.env.search_path)
    }

    /// The same for a name in front of a literal: `char '…'` and `bit '…'` are as long as they are given
    /// (gram.y, ConstCharacter and ConstBit).
    pub(crate) fn declared_type_of_literal(
        &self,
        data_type: &sqlparser::ast::DataType,
    ) -> Result<(Type, Option<Oid>)> {
        let (ty, domain) = self.declared_type(data_type)?;
        let has_default = domain.is_none() && matches!(ty.oid, Oid::BPCHAR | Oid::BIT);
        let is_measured = !has_default || data_type.to_string().contains('(');
        Ok((if is_measured { ty } else { Type::of(ty.oid) }, domain))
    }
}

impl Binder<'_, '_> {
    /// Notes what a name or a literal means, for those who ask for it.
    pub(crate) fn note_meaning(&self, span: Span, named: Named) {
        let Some(meanings) = &self.env.meanings else { return };
        if let Some((at, _)) = self.place(span.start) {
            meanings.borrow_mut().push(Meaning { at, named });
        }
    }

    /// As [`Self::note_meaning`], of the type that a text names.
    pub(crate) fn note_type(&self, span: Span, name: &TypeName) {
        if self.env.meanings.is_none() || !matches!(name.builtin(), Ok(None)) {
            return;
        }
        if let Some(ty) = type_named(self.env.catalog, name, self.env.search_path) {
            self.note_meaning(span, Named::Type(ty));
        }
    }

    /// As [`Self::note_meaning`], of the literals with this text that were met since one of them was read.
    pub(crate) fn note_literal(&self, text: &str, named: &Named) {
        let Some(meanings) = &self.env.meanings else { return };
        for (_, span) in self.literals.iter().filter(|(known, _)| known == text) {
            let place = self.place(span.start).map(|(at, _)| at);
            if place.is_some_and(|at| meanings.borrow().iter().all(|known| known.at != at)) {
                self.note_meaning(*span, named.clone());
            }
        }
    }

    /// As [`Self::note_literal`], of those that were read as this value.
    pub(crate) fn note_value(&self, text: &str, value: &Datum, ty: Type, is_name: bool) {
        if self.env.meanings.is_none() {
            return;
        }
        let named = match value {
            Datum::Oid(oid) if is_name => Named::Literal(*oid),
            other if is_name || ty.oid.innermost_kind().is_some() => {
                names_within(other, Type::of(ty.oid), self.env.catalog, self.env.context)
            }
            _ => Named::Plain,
        };
        self.note_literal(text, &named);
    }
}

fn type_named(catalog: &Catalog, name: &TypeName, search_path: &[String]) -> Option<Oid> {
    let (schema, name) = (name.name.schema.as_deref(), &name.name.name);
    let ty = catalog.user_type(schema, name, search_path).map(|ty| ty.oid);
    ty.or_else(|| catalog.table(schema, name, search_path).map(|table| table.row_type()))
}
