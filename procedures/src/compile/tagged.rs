//! `record` variables that take rows of several structures at one place: EXECUTE of a text that
//! speaks now of this table, now of that.
//!
//! Each structure has registers of its own, and a further register, the tag, holds the number of
//! the one in use. A row that comes is widened to all of them: the others' fields are NULL. Reading
//! a field then asks the tag which register is meant.

use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{ResolvedFunction, ScalarFunction, Volatility, lookup_operators};
use archipel_sql::types::{Oid, Type};

use super::into::project_columns;
use super::shape::Structure;
use super::storage::{Field, RecordState, Storage};
use super::{Compiler, unsupported};
use crate::plpgsql::ast::VariableId;

/// Which structure a record has while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    pub register: u32,
    /// The numbers of the structures, by their places among the variable's.
    pub numbers: Vec<Option<i32>>,
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
};

impl Compiler<'_> {
    /// Gives a variable the structures known of a place: the registers of a widened row, and what
    /// its columns must become.
    pub(super) fn one_of(
        &mut self,
        variable: VariableId,
        structures: &[Structure],
    ) -> Result<(Vec<u32>, Alternatives)> {
        let known = match &self.storage[variable as usize] {
            Storage::Record { tag, .. } => tag.as_ref().map(|tag| tag.register),
            _ => None,
        };
        let register = known.unwrap_or_else(|| self.scratch());
        let (mut registers, mut alternatives, mut places) = (Vec::new(), Vec::new(), 0_u64);
        for structure in structures {
            let fields = self.reshape(variable, &structure.columns);
            registers.extend(fields.iter().map(|field| field.register));
            alternatives.push((structure.number, fields.iter().map(|field| field.declared).collect()));
            let Storage::Record { state: RecordState::Shape(place), tag, .. } =
                &mut self.storage[variable as usize]
            else {
                return Err(SqlError::internal("a record without a structure"));
            };
            let Some(bit) = 1_u64.checked_shl(*place as u32) else {
                return Err(unsupported("a record variable with so many structures"));
            };
            places |= bit;
            let tag = tag.get_or_insert_with(|| Tag { register, numbers: Vec::new() });
            if tag.numbers.len() <= *place {
                tag.numbers.resize(*place + 1, None);
            }
            tag.numbers[*place] = Some(structure.number);
        }
        registers.push(register);
        if structures.len() > 1
            && let Storage::Record { state, .. } = &mut self.storage[variable as usize]
        {
            *state = RecordState::OneOf(places);
        }
        Ok((registers, alternatives))
    }

    /// A variable that may have one of several structures here, or a field of it; `None` for any
    /// other, and for a field that is not of one type.
    pub(super) fn tagged(&self, variable: VariableId, field: Option<&str>) -> Option<BoundExpr> {
        let Storage::Record { shapes, state: RecordState::OneOf(places), tag: Some(tag) } =
            &self.storage[variable as usize]
        else {
            return None;
        };
        let mut arms = vec![(
            BoundExpr { kind: ExprKind::IsNull(Box::new(read(tag.register, Type::INT4))), ty: Type::BOOL },
            BoundExpr { kind: ExprKind::Const(Datum::Null), ty: Type::UNKNOWN },
        )];
        let mut ty = field.is_none().then_some(Type::RECORD);
        let chosen = shapes.iter().enumerate().filter(|(place, _)| places >> place & 1 == 1);
        let mut everywhere = true;
        for (place, fields) in chosen {
            let number = (*tag.numbers.get(place)?)?;
            let value = match field {
                None => {
                    let items = fields.iter().map(|field| read(field.register, field.ty)).collect();
                    BoundExpr { kind: ExprKind::Row(items), ty: Type::RECORD }
                }
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
                Some(Box::new(BoundExpr { kind, ty }))
            }
            _ => None,
        };
        Some(BoundExpr { kind: ExprKind::Case { arms, otherwise }, ty })
    }

    fn has_number(&self, tag: u32, number: i32) -> Option<BoundExpr> {
        let equals = lookup_operators("=");
        let equals = equals.iter().find(|op| op.left == Some(Oid::INT4) && op.right == Oid::INT4)?;
        let function = ResolvedFunction { function: equals.function, result: Type::BOOL };
        let args = vec![read(tag, Type::INT4), Self::constant(Datum::Int4(number), Type::INT4)];
        Some(BoundExpr { kind: ExprKind::Call { function, args }, ty: Type::BOOL })
    }
}

fn read(register: u32, ty: Type) -> BoundExpr {
    BoundExpr { kind: ExprKind::Variable(register), ty }
}

/// Makes a statement whose columns have become those of one structure answer those of all, and the
/// number of the one they are of.
pub(super) fn widen(bound: &mut BoundStatement, place: usize, alternatives: &Alternatives) {
    let Some((number, _)) = alternatives.get(place) else { return };
    project_columns(bound, |own| {
        let null = |ty: &Type| BoundExpr { kind: ExprKind::Const(Datum::Null), ty: *ty };
        let mut own = Some(own);
        let mut row = Vec::new();
        for (at, (_, types)) in alternatives.iter().enumerate() {
            match own.take_if(|_| at == place) {
                Some(own) => row.extend(own),
                None => row.extend(types.iter().map(null)),
            }
        }
        row.push(BoundExpr { kind: ExprKind::Const(Datum::Int4(*number)), ty: Type::INT4 });
        row
    });
}
