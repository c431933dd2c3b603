//! `record` variables that take rows of several structures: EXECUTE of a text that speaks now of
//! this table, now of that, or several statements that give them rows.
//!
//! Each structure has registers of its own, and a further register, the tag, holds the number of
//! the one in use. A row of EXECUTE is widened to all that are known at its place: the others' fields
//! are NULL. Where a record may have one of several, reading a field asks the tag which register is
//! meant.

use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{ResolvedFunction, ScalarFunction, Volatility, lookup_operators};
use archipel_sql::types::{Oid, Type};

use super::shape::Structure;
use super::variable::{Field, RecordState, Storage, Tag};
use crate::compile::cast::project_columns;
use crate::compile::compiler::Compiler;
use crate::compile::environment::unsupported;
use crate::compile::statement::assignment::walk;
use crate::plpgsql::ast::*;
use crate::run::operation::Targets;

/// The variables that more than one statement gives a row as a whole.
pub(in crate::compile) fn given_often(body: &Body) -> Vec<VariableId> {
    let given = given(body, |target, _| target.path.is_empty());
    let mut often: Vec<VariableId> =
        given.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    often.dedup();
    often
}

/// The variables that a body gives values, once for each statement that does, in their order. What counts
/// is told the target, and whether an assignment gives it.
pub(in crate::compile) fn given(body: &Body, counts: impl Fn(&Target, bool) -> bool) -> Vec<VariableId> {
    let mut given = Vec::new();
    let declared = |block: &Block, given: &mut Vec<VariableId>| {
        let with_value = |id: &&VariableId| body.variables[**id as usize].default.is_some();
        given.extend(block.declared.iter().filter(with_value));
    };
    let mut see = |statement: &Statement| {
        let assigned = matches!(statement.kind, StatementKind::Assign { .. });
        let targets = match &statement.kind {
            StatementKind::Block(block) => return declared(block, &mut given),
            StatementKind::Assign { target, .. } => std::slice::from_ref(target),
            StatementKind::ForQuery { targets, .. }
            | StatementKind::ForDynamic { targets, .. }
            | StatementKind::ForEach { targets, .. } => &targets[..],
            StatementKind::Sql { into: Some(into), .. }
            | StatementKind::Dynamic { into: Some(into), .. }
            | StatementKind::Fetch { into: Some(into), .. } => &into.targets[..],
            _ => return,
        };
        given.extend(targets.iter().filter(|target| counts(target, assigned)).map(|target| target.variable));
    };
    walk(&body.block.body, &mut see);
    for handler in body.block.exceptions.iter().flat_map(|exceptions| &exceptions.handlers) {
        walk(&handler.body, &mut see);
    }
    declared(&body.block, &mut given);
    given.sort_unstable();
    given
}

/// Types for the columns of one of several structures, after its number.
pub(crate) type Alternatives = Vec<(i32, Vec<Type>)>;

/// The error of reading a field that the structure in use does not have.
static WITHOUT_FIELD: ScalarFunction = ScalarFunction {
    oid: Oid(0),
    name: "record_without_field",
    args: &[Oid::TEXT, Oid::TEXT],
    arg_names: &[],
    defaults: &[],
    variadic: false,
    result: Oid::UNKNOWN,
    columns: &[],
    strict: false,
    volatility: Volatility::Volatile,
    eval: |_, values| {
        let text = |place: usize| match values.get(place) {
            Some(Datum::Text(text)) => text.to_string(),
            _ => String::new(),
        };
        let message = format!("record \"{}\" has no field \"{}\"", text(0), text(1));
        Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
    },
    intrinsic: None,
};

impl Compiler<'_> {
    /// Gives a variable the structures known of a place: the registers of a widened row, and what
    /// its columns must become.
    pub(in crate::compile) fn one_of(
        &mut self,
        variable: VariableId,
        structures: &[Structure],
    ) -> Result<(Vec<u32>, Alternatives)> {
        let (mut registers, mut alternatives, mut places) = (Vec::new(), Vec::new(), 0_u64);
        let mut register = None;
        for structure in structures {
            let fields = self.reshape(variable, &structure.columns);
            let (tag, number) = self.tag(variable)?;
            register = Some(tag);
            registers.extend(fields.iter().map(|field| field.register));
            alternatives.push((number, fields.iter().map(|field| field.declared).collect()));
            places |= self.place(variable)?;
        }
        let register = register.unwrap_or_else(|| self.scratch());
        registers.push(register);
        if structures.len() > 1
            && let Storage::Record { state, .. } = &mut self.storage[variable as usize]
        {
            *state = RecordState::OneOf(places);
        }
        Ok((registers, alternatives))
    }

    /// The bit of the structure that a variable has here.
    fn place(&self, variable: VariableId) -> Result<u64> {
        let bit = match &self.storage[variable as usize] {
            Storage::Record { state: RecordState::Shape(place, _), .. } => 1_u64.checked_shl(*place as u32),
            _ => None,
        };
        bit.ok_or_else(|| unsupported("a record variable with so many structures"))
    }

    /// The register of a variable's tag, and the number of the structure that it has here.
    fn tag(&mut self, variable: VariableId) -> Result<(u32, i32)> {
        let known = match &self.storage[variable as usize] {
            Storage::Record { tag, .. } => tag.as_ref().map(|tag| tag.register),
            _ => None,
        };
        let register = known.unwrap_or_else(|| self.scratch());
        let Storage::Record { state: RecordState::Shape(place, _), tag, shapes } =
            &mut self.storage[variable as usize]
        else {
            return Err(SqlError::internal("a record without a structure"));
        };
        let tag = tag.get_or_insert_with(|| Tag { register, numbers: Vec::new() });
        Ok((register, tag.number(*place, &shapes[*place])))
    }

    /// What a statement that gives a variable a row leaves in its tag: nothing, where no other does.
    pub(in crate::compile) fn tag_of(&mut self, variable: VariableId) -> Result<Option<(u32, i32)>> {
        let is_record = matches!(self.storage[variable as usize], Storage::Record { .. });
        let often = is_record && self.given_often.binary_search(&variable).is_ok();
        often.then(|| self.tag(variable)).transpose()
    }

    /// Gives a variable the structures known of a place, each in registers of its own: those, and the types
    /// that columns must become.
    pub(in crate::compile) fn each_of(
        &mut self,
        variable: VariableId,
        structures: &[Structure],
    ) -> Result<Vec<(Targets, Vec<Type>)>> {
        let (mut alternatives, mut places) = (Vec::new(), 0_u64);
        for structure in structures {
            let fields = self.reshape(variable, &structure.columns);
            let tag = Some(self.tag(variable)?);
            places |= self.place(variable)?;
            let targets = Targets { tag, ..Targets::of(fields.iter().map(|field| field.register).collect()) };
            alternatives.push((targets, fields.iter().map(|field| field.declared).collect()));
        }
        if structures.len() > 1
            && let Storage::Record { state, .. } = &mut self.storage[variable as usize]
        {
            *state = RecordState::OneOf(places);
        }
        Ok(alternatives)
    }

    /// A variable that may have one of several structures here, or a field of it; `None` for any
    /// other, and for a field that is not of one type.
    pub(in crate::compile) fn tagged(&self, variable: VariableId, field: Option<&str>) -> Option<BoundExpr> {
        let Storage::Record { shapes, state: RecordState::OneOf(places), tag: Some(tag) } =
            &self.storage[variable as usize]
        else {
            return None;
        };
        let mut arms = vec![(
            BoundExpr::new(ExprKind::IsNull(Box::new(read(tag.register, Type::INT4))), Type::BOOL),
            BoundExpr::new(ExprKind::Const(Datum::Null), Type::UNKNOWN),
        )];
        let mut ty = field.is_none().then_some(Type::RECORD);
        let chosen = shapes.iter().enumerate().filter(|(place, _)| places >> place & 1 == 1);
        let mut everywhere = true;
        for (place, fields) in chosen {
            let number = (*tag.numbers.get(place)?)?;
            let value = match field {
                None => row_of(fields),
                Some(name) => match fields.iter().find(|field| field.name == name) {
                    Some(Field { register, ty, .. }) => read(*register, *ty),
                    None => {
                        everywhere = false;
                        continue;
                    }
                },
            };
            let known = *ty.get_or_insert(value.ty);
            if known.oid != value.ty.oid {
                return None;
            }
            if known != value.ty {
                ty = Some(Type::of(known.oid));
            }
            arms.push((self.has_number(tag.register, number)?, value));
        }
        let ty = ty?;
        arms[0].1.ty = ty;
        let otherwise = match field {
            Some(name) if !everywhere => {
                let text = |text: &str| Self::constant(Datum::text(text), Type::TEXT);
                let variable = &self.body.variables[variable as usize].name;
                let function = ResolvedFunction { function: &WITHOUT_FIELD, result: ty };
                let kind = ExprKind::Call { function, args: vec![text(variable), text(name)] };
                Some(Box::new(BoundExpr::new(kind, ty)))
            }
            _ => None,
        };
        Some(BoundExpr::new(ExprKind::Case { arms, otherwise }, ty))
    }

    fn has_number(&self, tag: u32, number: i32) -> Option<BoundExpr> {
        let equals = lookup_operators("=");
        let equals = equals.iter().find(|op| op.left == Some(Oid::INT4) && op.right == Oid::INT4)?;
        let function = ResolvedFunction { function: equals.function, result: Type::BOOL };
        let args = vec![read(tag, Type::INT4), Self::constant(Datum::Int4(number), Type::INT4)];
        Some(BoundExpr::new(ExprKind::Call { function, args }, Type::BOOL))
    }
}

fn row_of(fields: &[Field]) -> BoundExpr {
    let items = fields.iter().map(|field| read(field.register, field.ty)).collect();
    let names = fields.iter().map(|field| field.name.clone()).collect();
    BoundExpr::new(ExprKind::Row(items, Some(names)), Type::RECORD)
}

fn read(register: u32, ty: Type) -> BoundExpr {
    BoundExpr::new(ExprKind::Variable(register), ty)
}

/// Makes a statement whose columns have become those of one structure answer those of all, and the
/// number of the one they are of.
pub(in crate::compile) fn widen(bound: &mut BoundStatement, place: usize, alternatives: &Alternatives) {
    let Some((number, _)) = alternatives.get(place) else { return };
    project_columns(bound, |own| {
        let null = |ty: &Type| BoundExpr::new(ExprKind::Const(Datum::Null), *ty);
        let mut own = Some(own);
        let mut row = Vec::new();
        for (at, (_, types)) in alternatives.iter().enumerate() {
            match own.take_if(|_| at == place) {
                Some(own) => row.extend(own),
                None => row.extend(types.iter().map(null)),
            }
        }
        row.push(BoundExpr::new(ExprKind::Const(Datum::Int4(*number)), Type::INT4));
        row
    });
}
