//! Type conversion by PostgreSQL's rules (chapter 10; parse_coerce.c): which conversions exist,
//! how they are spelled in the bound tree, and which type several expressions have in common.

use archipel_sql::catalog::stored_name::literal_id;
use archipel_sql::datum::{Array, Datum};
use archipel_sql::error::{Result, SqlError, SqlState};
/// Why a conversion is asked for; a wider reason allows more casts.
pub use archipel_sql::function::CastContext as Coercion;
use archipel_sql::function::{CastContext, CastMethod, ResolvedFunction};
use archipel_sql::type_kind::TypeKind;
use archipel_sql::type_table::{TypeNames, element_of, layout, type_info};
use archipel_sql::types::{Oid, Type};
use archipel_sql::{cast, function, interrupt, io};
use sqlparser::ast::Expr;

use super::constant::{depends_on_settings, is_name, relabelled};
use super::row_value::{as_record, is_variable_row};
use crate::bind::binder::{Binder, STEPS_PER_LEVEL};
use crate::bind::meaning::Named;
use crate::bound::{BoundExpr, ExprKind};

/// The way from one type to another.
enum Pathway {
    Relabel,
    Function(&'static function::ScalarFunction),
    ThroughText,
    /// Element by element.
    Array(Oid, Oid),
}

/// pg_type.typcategory; arrays are 'A', unknown types 'U'.
pub fn category(oid: Oid) -> u8 {
    layout(oid).map_or(b'U', |layout| layout.category)
}

/// pg_type.typispreferred.
pub fn is_preferred(oid: Oid) -> bool {
    type_info(oid).is_some_and(|info| info.preferred)
}

/// Whether the type stands for several in a declaration.
pub fn is_polymorphic(oid: Oid) -> bool {
    matches!(
        oid,
        Oid::ANY
            | Oid::ANYELEMENT
            | Oid::ANYARRAY
            | Oid::ANYNONARRAY
            | Oid::ANYCOMPATIBLE
            | Oid::ANYCOMPATIBLEARRAY
            | ANYCOMPATIBLENONARRAY
            | Oid::ANYENUM
            | ANYRANGE
    )
}

pub(super) const ANYCOMPATIBLENONARRAY: Oid = Oid(5079);
const ANYRANGE: Oid = Oid(3831);

fn pathway(from: Oid, to: Oid, context: Coercion) -> Option<Pathway> {
    if from == to {
        return Some(Pathway::Relabel);
    }
    if let Some(cast) = function::cast(from, to) {
        if cast.context < context {
            return None;
        }
        return Some(match cast.method {
            // Values of char(n) are held otherwise than texts.
            CastMethod::Binary if to == Oid::BPCHAR => Pathway::ThroughText,
            CastMethod::Binary => Pathway::Relabel,
            CastMethod::Function(function) => Pathway::Function(function),
            CastMethod::InOut => Pathway::ThroughText,
        });
    }
    if let (Some(from_element), Some(to_element)) = (element_of(from), element_of(to))
        && !matches!(to, Oid::INT2VECTOR | Oid::OIDVECTOR)
        && pathway(from_element, to_element, context).is_some()
    {
        return Some(Pathway::Array(from_element, to_element));
    }
    // Any type goes to a string type in assignments, and from one on request, by way of text.
    if context <= CastContext::Assignment && category(to) == b'S' {
        return Some(Pathway::ThroughText);
    }
    if context == CastContext::Explicit && category(from) == b'S' && from != Oid::UNKNOWN {
        return Some(Pathway::ThroughText);
    }
    None
}

/// Whether a value of one type may become one of the other (can_coerce_type). A polymorphic
/// target accepts by its shape alone; consistency is checked after resolution.
pub fn can_coerce(from: Oid, to: Oid, context: Coercion) -> bool {
    if from == to || from == Oid::UNKNOWN {
        return true;
    }
    match to {
        Oid::ANY | Oid::ANYELEMENT | Oid::ANYCOMPATIBLE => return true,
        Oid::ANYNONARRAY | ANYCOMPATIBLENONARRAY => return element_of(from).is_none(),
        Oid::ANYARRAY | Oid::ANYCOMPATIBLEARRAY => return element_of(from).is_some(),
        Oid::ANYENUM | ANYRANGE => return from.polymorphic() == Some(to),
        _ => {}
    }
    // A composite value fits wherever some record is wanted.
    if to == Oid::RECORD && is_composite(from) {
        return true;
    }
    if from == Oid::RECORD && is_composite(to) {
        return true;
    }
    pathway(from, to, context).is_some()
}

/// Whether the type is a table's row type or another named composite.
pub fn is_composite(oid: Oid) -> bool {
    oid.is_composite()
}

impl Binder<'_, '_> {
    /// Converts an expression (coerce_to_target_type): `None` if there is no such conversion in
    /// this context. Unknown literals are read as the target type and may fail in doing so.
    pub(crate) fn coerce(
        &mut self,
        expr: BoundExpr,
        target: Type,
        context: Coercion,
    ) -> Result<Option<BoundExpr>> {
        let Some(expr) = self.coerce_type(expr, target, context)? else {
            return Ok(None);
        };
        self.coerce_typmod(expr, target, context).map(Some)
    }

    /// As [`Self::coerce`], where the caller has made sure that the conversion exists.
    pub(crate) fn coerce_or_fail(
        &mut self,
        expr: BoundExpr,
        target: Type,
        context: Coercion,
    ) -> Result<BoundExpr> {
        let from = expr.declared();
        self.coerce(expr, target, context)?.ok_or_else(|| cannot_cast(from, target, self))
    }

    fn coerce_type(&mut self, expr: BoundExpr, target: Type, context: Coercion) -> Result<Option<BoundExpr>> {
        let (from, to) = (expr.ty.oid, target.oid);
        if from == to {
            return Ok(Some(expr));
        }
        if from == Oid::UNKNOWN {
            return self.coerce_unknown(expr, target, context).map(Some);
        }
        // What fits stays of its own type (coerce_type).
        if (to == Oid::RECORD && is_composite(from)) || fits_polymorphic(from, to, context) {
            return Ok(Some(expr));
        }
        if from == Oid::RECORD && is_composite(to) {
            return self.coerce_record(expr, target, context).map(Some);
        }
        if let Some(row) = self.row_of_ancestor(&expr, to) {
            return Ok(Some(row));
        }
        // A literal's conversions fold: `1` for a bigint column is the constant 1::bigint.
        if let ExprKind::Const(value) = &expr.kind
            && let Some(value) = fold_integer(value, to)
            && pathway(from, to, context).is_some()
        {
            return Ok(Some(BoundExpr::constant(value, Type::of(to))));
        }
        let Some(path) = pathway(from, to, context) else { return Ok(None) };
        if let (ExprKind::Const(Datum::Text(text)), Oid::TEXT | Oid::VARCHAR, Oid::BPCHAR) =
            (&expr.kind, from, to)
        {
            return Ok(Some(BoundExpr::constant(Datum::Bpchar(text.clone()), Type::BPCHAR)));
        }
        let ty = Type::of(to);
        let kind = match path {
            Pathway::Relabel => return Ok(Some(relabelled(expr, ty))),
            Pathway::Function(function) => {
                let mut args = vec![expr];
                // Cast functions may take the modifier and whether the cast is explicit.
                if function.args.len() > 1 {
                    args.push(BoundExpr::constant(Datum::Int4(target.typmod), Type::INT4));
                }
                if function.args.len() > 2 {
                    let explicit = Datum::Bool(context == CastContext::Explicit);
                    args.push(BoundExpr::constant(explicit, Type::BOOL));
                }
                let typmod = if args.len() > 1 { target.typmod } else { -1 };
                if cast::relabels(function.result, to) {
                    // `smallint` becomes `oid` by way of `integer`, of which values are held otherwise.
                    let own = Type::of(function.result);
                    return Ok(Some(relabelled(self.folded(function, args, own), ty)));
                }
                return Ok(Some(self.folded(function, args, Type { oid: to, typmod })));
            }
            Pathway::ThroughText if to.holds_fields() => {
                let row = BoundExpr::new(ExprKind::ConvertIo(Box::new(expr)), ty);
                return self.guarded_row(row).map(Some);
            }
            Pathway::ThroughText => ExprKind::ConvertIo(Box::new(expr)),
            Pathway::Array(from_element, to_element) => {
                let element = BoundExpr::column(0, Type { oid: from_element, typmod: expr.ty.typmod });
                let wanted = Type { oid: to_element, typmod: target.typmod };
                let Some(element) = self.coerce(element, wanted, context)? else {
                    return Ok(None);
                };
                let ty = Type { oid: to, typmod: element.ty.typmod };
                let kind = ExprKind::ArrayConvert { array: Box::new(expr), element: Box::new(element) };
                return Ok(Some(BoundExpr::new(kind, ty)));
            }
        };
        Ok(Some(BoundExpr::new(kind, ty)))
    }

    /// An unknown literal becomes a constant of the type; a parameter takes the type on.
    fn coerce_unknown(&mut self, expr: BoundExpr, target: Type, context: Coercion) -> Result<BoundExpr> {
        let to = target.oid;
        if is_polymorphic(to) {
            return self.coerce_unknown_polymorphic(expr, to);
        }
        match &expr.kind {
            ExprKind::Const(Datum::Null) => Ok(BoundExpr::constant(Datum::Null, Type::of(to))),
            ExprKind::Const(Datum::Text(text)) => {
                let text = text.clone();
                self.literal(&text, target)
            }
            ExprKind::Param(number) => {
                let number = *number;
                self.set_parameter_type(number, Type::of(to))?;
                self.guarded_row(BoundExpr::new(ExprKind::Param(number), Type::of(to)))
            }
            // A literal within a row is of no type, and nothing is made of it but strings.
            ExprKind::Field { .. } if pathway(Oid::UNKNOWN, to, context).is_none() => {
                let to = self.type_name(to);
                Err(SqlError::internal(format!("failed to find conversion function from unknown to {to}")))
            }
            _ => self.guarded_row(BoundExpr::new(ExprKind::ConvertIo(Box::new(expr)), Type::of(to))),
        }
    }

    /// Reads a literal's text as a type. What depends on the session (time zone, names, `now`)
    /// is noted, so that nobody shares the plan.
    pub(crate) fn literal(&mut self, text: &str, target: Type) -> Result<BoundExpr> {
        // The modifier belongs to a cast, except for intervals, where it says what `1` means.
        let typmod = if target.oid == Oid::INTERVAL { target.typmod } else { -1 };
        let ty = Type { oid: target.oid, typmod };
        if target.oid.names_object()
            && let Some(named) = literal_id(text)
        {
            return Ok(BoundExpr::constant(Datum::Oid(named), ty));
        }
        if target.oid == Oid::REGCLASS && !text.bytes().all(|byte| byte.is_ascii_digit()) && text != "-" {
            return Ok(BoundExpr::constant(Datum::Oid(self.relation_literal(text)?), ty));
        }
        if target.oid.is_enum() {
            let label = self.label(target.oid, text);
            let label = label.map_err(|error| error.at(self.literal_position(text)))?;
            self.note_literal(text, &Named::Literal(label));
            return Ok(BoundExpr::constant(Datum::Oid(label), ty));
        }
        // Labels in an array's text, and what the fields of a row are, are looked up where there is a session.
        if target.oid.innermost_kind().is_some() {
            if self.env.late_literals {
                let text = BoundExpr::constant(Datum::text(text), Type::TEXT);
                return self.guarded_row(BoundExpr::new(ExprKind::ConvertIo(Box::new(text)), ty));
            }
            // Fields may be read as the session says.
            self.env.session_dependent |= target.oid.holds_fields();
        }
        if target.oid.element_kind() == Some(TypeKind::Enum) {
            return self.labels_literal(text, target);
        }
        // The other names are looked up by the session that the statement runs in.
        let named = is_name(target.oid);
        let late = || {
            let text = BoundExpr::constant(Datum::text(text), Type::TEXT);
            BoundExpr::new(ExprKind::ConvertIo(Box::new(text)), ty)
        };
        if named && self.env.is_settled {
            let found = self.settled_name(text, ty);
            if let Some(ExprKind::Const(value)) = found.as_ref().map(|found| &found.kind) {
                self.note_value(text, value, ty, true);
            }
            return Ok(found.unwrap_or_else(late));
        }
        let of_time = depends_on_settings(target.oid, text);
        if of_time && let Some(moments) = &mut self.env.moments {
            moments.push((text.to_owned(), target.oid));
        }
        if named || of_time {
            if self.env.late_literals {
                return Ok(self.read_once(text, ty).unwrap_or_else(late));
            }
            self.env.session_dependent = true;
        }
        let value = match io::text_in(text, ty, self.env.context) {
            Ok(value) => value,
            // One that PostgreSQL has and this server has not: there may be no row to compare it with.
            Err(_) if named && self.levels.iter().any(|level| !level.relations.is_empty()) => {
                return Ok(late());
            }
            Err(error) => return Err(error.at(self.literal_position(text))),
        };
        self.note_value(text, &value, ty, named);
        self.guarded_row(BoundExpr::constant(value, ty))
    }

    /// The relation that a literal names.
    fn relation_literal(&mut self, text: &str) -> Result<Oid> {
        self.env.session_dependent = true;
        self.need_schema_of(text);
        let found = self.env.catalog.regclass(text, self.env.search_path);
        let relation = found.map_err(|error| error.at(self.literal_position(text)))?;
        self.note_literal(text, &Named::Literal(relation));
        Ok(relation)
    }

    /// A label that may be used.
    fn label(&self, ty: Oid, text: &str) -> Result<Oid> {
        let label = self.env.catalog.enum_value(ty, text)?;
        self.env.context.session.check_label(label)?;
        Ok(label)
    }

    /// An array of labels, which are those of the catalog that names are looked up in.
    fn labels_literal(&mut self, text: &str, target: Type) -> Result<BoundExpr> {
        let read = io::text_in(text, Type::TEXT_ARRAY, self.env.context);
        let read = read.map_err(|error| error.at(self.literal_position(text)))?;
        let (Datum::Array(array), Some(element)) = (&read, element_of(target.oid)) else {
            return Err(SqlError::internal("an array of labels that is none"));
        };
        let label = |value: &Datum| match value {
            Datum::Text(text) => self.label(element, text).map(Datum::Oid),
            other => Ok(other.clone()),
        };
        let values = array.values.iter().map(label).collect::<Result<_>>();
        let values = values.map_err(|error| error.at(self.literal_position(text)))?;
        let array = Datum::Array(Array { element, dimensions: array.dimensions.clone(), values }.into());
        self.note_value(text, &array, Type::of(target.oid), true);
        Ok(BoundExpr::constant(array, Type::of(target.oid)))
    }

    /// A cast's call; of a constant, its value. A cast that fails is left to fail when it runs.
    fn folded(
        &self,
        function: &'static function::ScalarFunction,
        args: Vec<BoundExpr>,
        result: Type,
    ) -> BoundExpr {
        if function.volatility == function::Volatility::Immutable
            && let Some(values) = BoundExpr::constants(&args)
            && let Ok(value) = function.call(self.env.context, &values)
        {
            return BoundExpr::constant(value, result);
        }
        BoundExpr::new(ExprKind::Call { function: ResolvedFunction { function, result }, args }, result)
    }

    pub(super) fn literal_position(&self, text: &str) -> Option<u32> {
        let (_, span) = self.literals.iter().rev().find(|(known, _)| known == text)?;
        self.position(*span)
    }

    /// Applies a type modifier (length, scale, precision) by PostgreSQL's length functions.
    fn coerce_typmod(&mut self, expr: BoundExpr, target: Type, context: Coercion) -> Result<BoundExpr> {
        if target.typmod < 0 || expr.ty.typmod == target.typmod {
            return Ok(expr);
        }
        if matches!(expr.kind, ExprKind::Const(Datum::Null)) {
            return Ok(BoundExpr { ty: target, ..expr });
        }
        if let Some(element) = element_of(target.oid) {
            let inner = BoundExpr::column(0, Type { oid: element, typmod: expr.ty.typmod });
            let element = self.coerce_typmod(inner, Type { oid: element, typmod: target.typmod }, context)?;
            if matches!(element.kind, ExprKind::Column { .. }) {
                return Ok(expr);
            }
            let kind = ExprKind::ArrayConvert { array: Box::new(expr), element: Box::new(element) };
            return Ok(BoundExpr::new(kind, target));
        }
        let Some(cast) = function::cast(target.oid, target.oid) else {
            return Ok(expr);
        };
        let CastMethod::Function(function) = cast.method else {
            return Ok(expr);
        };
        let explicit = context == CastContext::Explicit;
        let mut args = vec![expr, BoundExpr::constant(Datum::Int4(target.typmod), Type::INT4)];
        if function.args.len() > 2 {
            args.push(BoundExpr::constant(Datum::Bool(explicit), Type::BOOL));
        }
        Ok(self.folded(function, args, target))
    }

    /// A row becomes a named composite field by field (coerce_record_to_complex).
    fn coerce_record(&mut self, expr: BoundExpr, target: Type, context: Coercion) -> Result<BoundExpr> {
        let from = expr.ty;
        let items = match expr.kind {
            ExprKind::Row(..) if is_variable_row(&expr) => return Err(cannot_cast(from, target, self)),
            ExprKind::Row(items, _) => items,
            // Of any other record the fields are not known.
            _ => return Err(cannot_cast(from, target, self)),
        };
        let fields = self.env.catalog.table_of_row_type(target.oid);
        let columns = fields.as_ref().map_or(&[][..], |relation| &relation.columns[..]);
        let names = self.env.type_names();
        let wrong = |detail: String| Err(cannot_cast(from, target, &names).with_detail(detail));
        if items.len() < columns.len() {
            return wrong("Input has too few columns.".to_owned());
        }
        if items.len() > columns.len() {
            return wrong("Input has too many columns.".to_owned());
        }
        let mut converted = Vec::with_capacity(items.len());
        for (place, (item, column)) in items.into_iter().zip(columns).enumerate() {
            let ty = item.declared();
            let Some(item) = self.coerce(item, column.ty, context)? else {
                return wrong(format!(
                    "Cannot cast type {} to {} in column {}.",
                    self.type_name(ty.oid),
                    self.type_name(column.ty.oid),
                    place + 1
                ));
            };
            converted.push(self.coerce_domain(item, column.domain)?);
        }
        Ok(BoundExpr::new(ExprKind::Row(converted, None), target))
    }

    /// The row of a table as one of a table that it inherits from: the columns of the same names
    /// (ConvertRowtypeExpr).
    fn row_of_ancestor(&self, expr: &BoundExpr, to: Oid) -> Option<BoundExpr> {
        if !is_composite(expr.ty.oid) || !is_composite(to) {
            return None;
        }
        let catalog = self.env.catalog;
        let (own, ancestor) = (catalog.table_of_row_type(expr.ty.oid)?, catalog.table_of_row_type(to)?);
        if !catalog.inherits_from(own.oid, ancestor.oid) {
            return None;
        }
        let whole = BoundExpr::column(0, expr.ty);
        let field = |column: &archipel_sql::catalog::Column| {
            let place = usize::from(own.column_index(&column.name)?);
            Some(super::row_value::record_field(whole.clone(), place, own.columns[place].ty))
        };
        let fields = ancestor.columns.iter().map(field).collect::<Option<Vec<_>>>()?;
        let kind = ExprKind::RowConvert { record: Box::new(expr.clone()), fields };
        Some(BoundExpr::new(kind, Type::of(to)))
    }

    /// As the free function of this name.
    pub(crate) fn common_type(&self, types: &[Type], what: &str) -> Result<Type> {
        common_type(types, what, self)
    }

    /// Converts to a common type found before (coerce_to_common_type). The modifier is not
    /// forced: a common type has one only if all inputs have it.
    pub(crate) fn coerce_common(&mut self, expr: BoundExpr, common: Type, what: &str) -> Result<BoundExpr> {
        interrupt::steps(STEPS_PER_LEVEL)?;
        let from = expr.declared();
        let converted = self.coerce(expr, Type::of(common.oid), CastContext::Implicit)?.ok_or_else(|| {
            let (from, common) = (self.type_name(from.oid), self.type_name(common.oid));
            SqlError::new(
                SqlState::CANNOT_COERCE,
                format!("{what} could not convert type {from} to {common}"),
            )
        })?;
        Ok(if common.oid == Oid::RECORD { as_record(converted) } else { converted })
    }

    /// Unifies a list of expressions and answers their type.
    /// `written` says how each stands in the statement; errors are told of the one that is wrong.
    pub(crate) fn unify(
        &mut self,
        exprs: Vec<BoundExpr>,
        written: &[&Expr],
        what: &str,
    ) -> Result<(Vec<BoundExpr>, Type)> {
        let types: Vec<Type> = exprs.iter().map(|expr| expr.ty).collect();
        let place = |binder: &Self, place: usize| written.get(place).and_then(|expr| binder.start(expr));
        let common = matched_type(&types, what, self).map_err(|(at, error)| error.at(place(self, at)))?;
        let mut unified = Vec::with_capacity(exprs.len());
        for (at, expr) in exprs.into_iter().enumerate() {
            // What ELSE says comes first.
            let of_case = if at == 0 { "CASE/ELSE" } else { "CASE/WHEN" };
            let what = if what == "CASE" { of_case } else { what };
            unified.push(self.coerce_common(expr, common, what).map_err(|error| error.at(place(self, at)))?);
        }
        Ok((unified, common))
    }

    /// An expression that must be boolean (coerce_to_boolean): WHERE, AND, CASE WHEN.
    pub(crate) fn boolean(&mut self, expr: BoundExpr, what: &str) -> Result<BoundExpr> {
        let from = expr.declared();
        self.coerce(expr, Type::BOOL, CastContext::Assignment)?.ok_or_else(|| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {what} must be type boolean, not type {}", self.type_name(from.oid)),
            )
        })
    }

    /// What is still unknown becomes text (resolveTargetListUnknowns).
    pub(crate) fn resolve_unknown(&mut self, expr: BoundExpr) -> Result<BoundExpr> {
        if expr.ty.oid == Oid::UNKNOWN {
            self.coerce_or_fail(expr, Type::TEXT, CastContext::Implicit)
        } else {
            Ok(expr)
        }
    }

    /// A value for a column or variable, converted as by assignment; 42804 as PostgreSQL words it.
    pub(crate) fn assign(&mut self, expr: BoundExpr, target: Type, column: &str) -> Result<BoundExpr> {
        self.assign_declared(expr, target, target.oid, column)
    }

    /// The same where messages call the target by its domain.
    pub(crate) fn assign_declared(
        &mut self,
        expr: BoundExpr,
        target: Type,
        declared: Oid,
        column: &str,
    ) -> Result<BoundExpr> {
        let from = expr.declared();
        self.coerce(expr, target, CastContext::Assignment)?.ok_or_else(|| {
            let (wanted, given) = (self.type_name(declared), self.type_name(from.oid));
            let message =
                format!("column \"{column}\" is of type {wanted} but expression is of type {given}");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("You will need to rewrite or cast the expression.")
        })
    }
}

/// The type several expressions have in common (select_common_type). `what` opens the error
/// message: "CASE", "UNION".
pub(crate) fn common_type(types: &[Type], what: &str, names: &dyn TypeNames) -> Result<Type> {
    matched_type(types, what, names).map_err(|(_, error)| error)
}

/// As [`common_type`]; where there is none, which of the expressions does not match those before it.
fn matched_type(types: &[Type], what: &str, names: &dyn TypeNames) -> Result<Type, (usize, SqlError)> {
    let mut common = types.first().map_or(Oid::UNKNOWN, |ty| ty.oid);
    if common != Oid::UNKNOWN && types.iter().all(|ty| ty.oid == common) {
        let typmod = types[0].typmod;
        let same = types.iter().all(|ty| ty.typmod == typmod);
        return Ok(Type { oid: common, typmod: if same { typmod } else { -1 } });
    }
    for (place, ty) in types.iter().enumerate().skip(1) {
        let next = ty.oid;
        if next == Oid::UNKNOWN || next == common {
            continue;
        }
        if common == Oid::UNKNOWN {
            common = next;
        } else if category(next) != category(common) {
            let (one, other) = (names.type_name(common), names.type_name(next));
            let message = format!("{what} types {one} and {other} cannot be matched");
            return Err((place, SqlError::new(SqlState::DATATYPE_MISMATCH, message)));
        } else if !is_preferred(common)
            && can_coerce(common, next, CastContext::Implicit)
            && !can_coerce(next, common, CastContext::Implicit)
        {
            common = next;
        }
    }
    // Of several types, a literal's unknown one among them, no modifier survives (exprTypmod,
    // select_common_typmod).
    Ok(Type::of(if common == Oid::UNKNOWN { Oid::TEXT } else { common }))
}

/// Whether a value of one type may stand for a type that stands for others.
fn fits_polymorphic(from: Oid, to: Oid, context: Coercion) -> bool {
    is_polymorphic(to) && can_coerce(from, to, context)
}

/// 42846 as PostgreSQL words it.
pub fn cannot_cast(from: Type, to: Type, names: &dyn TypeNames) -> SqlError {
    SqlError::new(
        SqlState::CANNOT_COERCE,
        format!("cannot cast type {} to {}", names.type_name(from.oid), names.type_name(to.oid)),
    )
}

/// Integer constants change width without a call, as PostgreSQL's planner would fold them.
fn fold_integer(value: &Datum, to: Oid) -> Option<Datum> {
    let value = match *value {
        Datum::Int2(value) => i64::from(value),
        Datum::Int4(value) => i64::from(value),
        Datum::Int8(value) => value,
        _ => return None,
    };
    match to {
        Oid::INT2 => i16::try_from(value).ok().map(Datum::Int2),
        Oid::INT4 => i32::try_from(value).ok().map(Datum::Int4),
        Oid::INT8 => Some(Datum::Int8(value)),
        Oid::FLOAT8 if value.unsigned_abs() <= 1 << 53 => Some(Datum::Float8(value as f64)),
        _ => None,
    }
}
