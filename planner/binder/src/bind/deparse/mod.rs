//! Kept expressions as PostgreSQL shows them (ruleutils): with every type said and every cast written
//! that a value of the expression goes through, so that tools which read defaults and conditions find
//! what they find there.
//!
//! The catalog keeps what was written. What it means is bound anew, part by part, beside its syntax: the
//! syntax tells a cast that was written from one that was found. A part that is not known here leaves
//! the whole text as it was written.

pub(crate) mod body;
pub(crate) mod call_syntax;
pub(crate) mod from;
pub(crate) mod gathered;
pub(crate) mod grouping;
pub(crate) mod literal;
pub(crate) mod name;
pub(crate) mod policy;
pub(crate) mod query;
pub(crate) mod sublink;
pub(crate) mod values;
pub(crate) mod with;

use archipel_sql::ast::VARIADIC_ARGUMENT;
use archipel_sql::catalog::Catalog;
use archipel_sql::datum::Datum;
use archipel_sql::function::{CastContext, FunctionContext, OF_ARRAY};
use archipel_sql::io;
use archipel_sql::system::{KeptExpression, Subject};
use archipel_sql::type_table::{BuiltIn, element_of};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value,
};

use super::binder::{BindEnv, Binder, RowNumbers};
use super::clause::Clause;
use super::level::{Level, LevelKind};
use super::name::{ident_name, object_name_parts};
use super::scope::{AGGREGATE_BASE, GROUPING_BASE, SET_BASE, WINDOW_BASE};
use super::span::{chained, is_number, unnest};
use super::stored_expression::{About, DEFINITION_PATH};
use crate::bind::expression::coerce;
use crate::bind::expression::compare::reads_row;
use crate::bind::expression::expr::operator_name;
use crate::bind::expression::record::is_whole_row;
use crate::bound::{BoundExpr, ExprKind};
pub use body::deparse_body;
pub use name::Arguments;
use name::starred_argument;
pub use policy::deparse_policy;
pub use query::deparse_view;

/// The expression as PostgreSQL shows it to a session with this search path; `None` for one that is
/// shown as it was written.
pub fn deparse_expression(
    expression: &KeptExpression<'_>,
    catalog: &Catalog,
    search_path: &[String],
    context: &FunctionContext<'_>,
) -> Option<String> {
    let parsed = archipel_sql::parser::parse_expression(expression.text).ok()?;
    let path = if expression.is_shown { search_path } else { DEFINITION_PATH };
    let mut env = BindEnv::new(catalog, path, context);
    env.is_settled = true;
    let (about, clause) = match expression.subject {
        Subject::Row(table) => (About::Row(catalog.table_by_oid(table)?), Clause::Check),
        Subject::Change(table) => (About::OldAndNew(catalog.table_by_oid(table)?), Clause::Check),
        Subject::Value(ty) => (About::Value(ty), Clause::DomainCheck),
        Subject::Nothing => (About::Nothing, Clause::Default),
    };
    let mut binder = Binder::new(&mut env);
    let relations = binder.named_by(&about).ok()?;
    binder.levels.push(Level::new(LevelKind::Plain, relations));
    let pretty = expression.pretty;
    let names_relations = matches!(expression.subject, Subject::Change(_));
    let mut shower =
        Deparser { pretty, names_relations, ..Deparser::new(binder, clause, catalog, search_path) };
    let mut bound = shower.bind(&parsed)?;
    if let Some(target) = expression.target
        && bound.ty.oid == Oid::UNKNOWN
    {
        let plain = Type::of(target.oid);
        bound = shower.binder.coerce(bound, plain, CastContext::Assignment).ok()??;
    }
    let piece = shower.piece(&parsed, &bound, false)?;
    Some(shower.alone(piece))
}

/// How a piece of text stands among others (isSimpleNode).
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// A name, a constant, a call.
    Simple,
    Cast(Box<Kind>),
    Operator(String),
    /// AND, OR, NOT.
    Logical(&'static str),
    /// IS NULL and its kin.
    Test,
    /// `x = ANY (…)`.
    AnyOf,
}

/// A part of the text, without parentheses of its own.
struct Piece {
    text: String,
    kind: Kind,
}

impl Piece {
    fn simple(text: impl Into<String>) -> Piece {
        Piece { text: text.into(), kind: Kind::Simple }
    }
}

/// What a piece is a part of.
enum Around<'k> {
    Operator { name: &'k str, first: bool },
    Logical(&'static str),
    Other,
}

struct Deparser<'b, 'e> {
    binder: Binder<'b, 'e>,
    clause: Clause,
    catalog: &'b Catalog,
    search_path: &'b [String],
    pretty: bool,
    /// Whether columns are shown with the names of their relations.
    names_relations: bool,
    /// What tables are called, by the level of their query.
    current: Vec<Vec<name::CurrentName>>,
    /// What names of arguments mean.
    arguments: Option<&'b name::Arguments<'b>>,
    /// Whether long forms take several lines.
    in_lines: bool,
    /// How far in a line begins.
    indent: usize,
    /// Whether a column that is called `?column?` is shown with that name.
    columns_visible: bool,
    /// What literals of no type become in the next list of result columns; text, where it does not say.
    literals: Option<Vec<Type>>,
}

/// Whether a piece needs no parentheses where it stands.
fn is_simple(kind: &Kind, around: &Around<'_>) -> bool {
    match (kind, around) {
        (Kind::Simple, _) => true,
        (Kind::Cast(inner), _) => is_simple(inner, &Around::Other),
        (Kind::Operator(name), Around::Operator { name: outer, first }) => {
            let rank = |name: &str| match name {
                "+" | "-" => Some(0),
                "*" | "/" | "%" => Some(1),
                _ => None,
            };
            match (rank(name), rank(outer)) {
                (Some(own), Some(outer)) => own > outer || own == outer && *first,
                _ => false,
            }
        }
        (Kind::Operator(_) | Kind::Test, Around::Logical(_)) => true,
        (Kind::Logical("OR"), Around::Logical(outer)) => *outer == "OR",
        (Kind::Logical(_), Around::Logical(outer)) => matches!(*outer, "AND" | "OR"),
        _ => false,
    }
}

impl<'b, 'e> Deparser<'b, 'e> {
    fn new(
        mut binder: Binder<'b, 'e>,
        clause: Clause,
        catalog: &'b Catalog,
        search_path: &'b [String],
    ) -> Deparser<'b, 'e> {
        // Names of places are shown, whoever has them.
        binder.row_numbers = RowNumbers::BehindColumns;
        Deparser {
            binder,
            clause,
            catalog,
            search_path,
            pretty: false,
            names_relations: false,
            current: Vec::new(),
            arguments: None,
            in_lines: true,
            indent: 0,
            columns_visible: true,
            literals: None,
        }
    }

    fn bind(&mut self, expr: &Expr) -> Option<BoundExpr> {
        self.binder.clause_expr(expr, self.clause).ok()
    }

    /// A piece as the whole, or between commas.
    fn alone(&self, piece: Piece) -> String {
        match piece.kind {
            Kind::Simple | Kind::Cast(_) => piece.text,
            _ if self.pretty => piece.text,
            _ => format!("({})", piece.text),
        }
    }

    /// A piece as an operand (get_rule_expr_paren).
    fn within(&self, piece: Piece, around: &Around<'_>) -> String {
        if self.pretty && !is_simple(&piece.kind, around) {
            return format!("({})", piece.text);
        }
        self.alone(piece)
    }

    fn cast(&self, piece: Piece, ty: Type) -> Piece {
        let kind = Kind::Cast(Box::new(piece.kind.clone()));
        let inner = self.within(piece, &Around::Other);
        let inner = if self.pretty { inner } else { format!("({inner})") };
        Piece { text: format!("{inner}::{}", self.type_name(ty)), kind }
    }

    /// A part that is bound to something of this type. `implicit`: with the casts that were found.
    fn piece(&mut self, expr: &Expr, bound: &BoundExpr, implicit: bool) -> Option<Piece> {
        let expr = unnest(expr);
        if let Expr::Value(value) = expr
            && !matches!(value.value, Value::Placeholder(_))
        {
            return self.literal(&value.value, bound, implicit);
        }
        let natural = self.bind(expr)?;
        let piece = self.natural(expr, &natural)?;
        Some(match implicit && natural.ty.oid != bound.ty.oid && natural.ty.oid != Oid::UNKNOWN {
            true => self.cast(piece, Type::of(bound.ty.oid)),
            false => piece,
        })
    }

    fn literal(&mut self, value: &Value, bound: &BoundExpr, implicit: bool) -> Option<Piece> {
        let natural = self.binder.value(value).ok()?;
        // A literal that is read as another type, or late.
        let constant = match &bound.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::ConvertIo(inner) => match &inner.kind {
                ExprKind::Const(Datum::Text(text)) => {
                    let text = quoted(text);
                    return Some(Piece::simple(format!(
                        "{text}::{}",
                        self.type_name(Type::of(bound.ty.oid))
                    )));
                }
                _ => return None,
            },
            _ => match &natural.kind {
                ExprKind::Const(value) if natural.ty.oid != Oid::UNKNOWN => value.clone(),
                _ => return None,
            },
        };
        let has_type = matches!(value, Value::Number(..)) || natural.ty.oid == Oid::BIT;
        if has_type && natural.ty.oid != bound.ty.oid {
            let ExprKind::Const(own) = &natural.kind else { return None };
            let piece = Piece::simple(self.constant(own, natural.ty));
            return Some(if implicit { self.cast(piece, Type::of(bound.ty.oid)) } else { piece });
        }
        Some(Piece::simple(self.constant(&constant, bound.ty)))
    }

    /// The arguments of a call beside what they became.
    fn list(&mut self, exprs: &[&Expr], bound: &[BoundExpr]) -> Option<String> {
        if exprs.len() != bound.len() {
            return None;
        }
        let items = exprs.iter().zip(bound).map(|(expr, bound)| {
            let piece = self.piece(expr, bound, true)?;
            Some(self.alone(piece))
        });
        Some(items.collect::<Option<Vec<_>>>()?.join(", "))
    }

    fn named(&mut self, name: &str, exprs: &[&Expr], bound: &[BoundExpr]) -> Option<Piece> {
        Some(Piece::simple(format!("{name}({})", self.list(exprs, bound)?)))
    }

    fn operation(&mut self, name: &str, (left, right): (&Expr, &Expr), args: &[BoundExpr]) -> Option<Piece> {
        let [one, other, ..] = args else { return None };
        let (one, other) = (self.piece(left, one, true)?, self.piece(right, other, true)?);
        let one = self.within(one, &Around::Operator { name, first: true });
        let other = self.within(other, &Around::Operator { name, first: false });
        Some(Piece { text: format!("{one} {name} {other}"), kind: Kind::Operator(name.to_owned()) })
    }

    fn logical(&mut self, word: &'static str, parts: &[&Expr]) -> Option<Piece> {
        let mut texts = Vec::with_capacity(parts.len());
        for part in parts {
            let bound = self.bind(part)?;
            let piece = self.piece(part, &bound, false)?;
            texts.push(self.within(piece, &Around::Logical(word)));
        }
        Some(Piece { text: texts.join(&format!(" {word} ")), kind: Kind::Logical(word) })
    }

    fn test(&mut self, operand: &Expr, what: &str) -> Option<Piece> {
        let bound = self.bind(operand)?;
        let piece = self.piece(operand, &bound, true)?;
        Some(Piece { text: format!("{} {what}", self.within(piece, &Around::Other)), kind: Kind::Test })
    }

    fn distinct(&mut self, left: &Expr, right: &Expr, bound: &BoundExpr) -> Option<Piece> {
        let ExprKind::IsDistinctFrom { left: one, right: other, .. } = &bound.kind else { return None };
        let (one, other) = (self.piece(left, one, true)?, self.piece(right, other, true)?);
        let (one, other) = (self.within(one, &Around::Other), self.within(other, &Around::Other));
        Some(Piece { text: format!("{one} IS DISTINCT FROM {other}"), kind: Kind::Test })
    }

    /// An expression as it is by itself.
    fn natural(&mut self, expr: &Expr, bound: &BoundExpr) -> Option<Piece> {
        if let Some((relation, column)) = self.system_column(expr) {
            return Some(Piece::simple(match self.names_relations {
                true => format!("{}.{column}", self.identifier(&relation)),
                false => column,
            }));
        }
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::QualifiedWildcard(..)
                if is_whole_row(bound) =>
            {
                self.whole_row(bound)
            }
            Expr::Identifier(ident) => self.column(&ident_name(ident), bound),
            Expr::CompoundIdentifier(parts) => match (&parts[..], &bound.kind) {
                ([row, _], ExprKind::Routine { .. }) => {
                    self.function_of_row(&Expr::Identifier(row.clone()), bound)
                }
                _ => self.column(&ident_name(parts.last()?), bound),
            },
            Expr::Value(_) => self.column("", bound),
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And | BinaryOperator::Or => {
                    let word = if *op == BinaryOperator::And { "AND" } else { "OR" };
                    self.logical(word, &chained(expr, op))
                }
                _ => {
                    let ExprKind::Call { args, .. } = &bound.kind else { return None };
                    let name = match operator_name(op).ok()?.as_str() {
                        "!=" => "<>".to_owned(),
                        name => name.to_owned(),
                    };
                    self.operation(&name, (left, right), args)
                }
            },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                let inner = self.bind(expr)?;
                let piece = self.piece(expr, &inner, false)?;
                let text = format!("NOT {}", self.within(piece, &Around::Logical("NOT")));
                Some(Piece { text, kind: Kind::Logical("NOT") })
            }
            Expr::UnaryOp { op, expr } => match (&bound.kind, op) {
                (ExprKind::Const(value), UnaryOperator::Minus) => {
                    Some(Piece::simple(self.constant(value, bound.ty)))
                }
                (ExprKind::Call { args, .. }, UnaryOperator::Minus) => {
                    let piece = self.piece(expr, args.first()?, true)?;
                    let text = format!("- {}", self.within(piece, &Around::Other));
                    Some(Piece { text, kind: Kind::Operator("prefix".to_owned()) })
                }
                _ => None,
            },
            Expr::IsNull(operand) => self.test(operand, "IS NULL"),
            Expr::IsNotNull(operand) => self.test(operand, "IS NOT NULL"),
            Expr::IsTrue(operand) => self.test(operand, "IS TRUE"),
            Expr::IsNotTrue(operand) => self.test(operand, "IS NOT TRUE"),
            Expr::IsFalse(operand) => self.test(operand, "IS FALSE"),
            Expr::IsNotFalse(operand) => self.test(operand, "IS NOT FALSE"),
            Expr::IsDistinctFrom(left, right) => self.distinct(left, right, bound),
            Expr::IsNotDistinctFrom(left, right) => {
                let piece = self.distinct(left, right, bound)?;
                let text = format!("NOT {}", self.within(piece, &Around::Logical("NOT")));
                Some(Piece { text, kind: Kind::Logical("NOT") })
            }
            Expr::Between { expr, negated, low, high } => {
                let (first, second, word) = if *negated { ("<", ">", "OR") } else { (">=", "<=", "AND") };
                let (ExprKind::And(parts) | ExprKind::Or(parts)) = &bound.kind else { return None };
                let [ExprKind::Call { args: lower, .. }, ExprKind::Call { args: upper, .. }] =
                    [&parts.first()?.kind, &parts.get(1)?.kind]
                else {
                    return None;
                };
                let lower = self.operation(first, (expr, low), lower)?;
                let upper = self.operation(second, (expr, high), upper)?;
                let around = Around::Logical(word);
                let text = format!("{} {word} {}", self.within(lower, &around), self.within(upper, &around));
                Some(Piece { text, kind: Kind::Logical(word) })
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                self.any_of((left, right), compare_op, "ANY", bound)
            }
            Expr::AllOp { left, compare_op, right } => self.any_of((left, right), compare_op, "ALL", bound),
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated, bound),
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                let name = if *negated { "!~~" } else { "~~" };
                self.like(name, "like_escape", (expr, pattern), escape_char.as_ref(), bound)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                let name = if *negated { "!~~*" } else { "~~*" };
                self.like(name, "like_escape", (expr, pattern), escape_char.as_ref(), bound)
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                let name = if *negated { "!~" } else { "~" };
                self.like(name, "similar_to_escape", (expr, pattern), escape_char.as_ref(), bound)
            }
            Expr::Cast { expr: operand, data_type, .. } => {
                let (ty, domain) = self.binder.declared_type(data_type).ok()?;
                self.written_cast(operand, domain.map_or(ty, Type::of), ty, bound)
            }
            Expr::TypedString(typed) => {
                let declared = self.binder.declared_type_of_literal(&typed.data_type).ok()?;
                let (ty, None) = declared else { return None };
                if ty.typmod >= 0 {
                    return self.written_cast(&Expr::Value(typed.value.clone()), ty, ty, bound);
                }
                self.literal(&typed.value.value, &BoundExpr::new(bound.kind.clone(), ty), false)
            }
            Expr::Interval(_) => match &bound.kind {
                ExprKind::Const(value) => Some(Piece::simple(self.cut_constant(value, bound.ty))),
                _ => None,
            },
            Expr::Function(function) => self.call(function, bound),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), bound)
            }
            Expr::Array(array) => {
                let ExprKind::Array { items, .. } = &bound.kind else { return None };
                let exprs: Vec<&Expr> = array.elem.iter().collect();
                Some(Piece::simple(format!("ARRAY[{}]", self.list(&exprs, items)?)))
            }
            other => self.syntax(other, bound),
        }
    }

    fn any_of(
        &mut self,
        (left, right): (&Expr, &Expr),
        op: &BinaryOperator,
        word: &str,
        bound: &BoundExpr,
    ) -> Option<Piece> {
        if let Expr::Subquery(query) = unnest(right) {
            let is_in = *op == BinaryOperator::Eq && word == "ANY";
            let word = if is_in { "IN".to_owned() } else { format!("{} {word}", operator_name(op).ok()?) };
            return self.in_query((left, &word), query, false);
        }
        let ExprKind::ArrayOp { left: own, array, .. } = &bound.kind else { return None };
        let (own, array) = (self.piece(left, own, true)?, self.piece(right, array, true)?);
        let (own, array) = (self.within(own, &Around::Other), self.within(array, &Around::Other));
        let text = format!("{own} {} {word} ({array})", operator_name(op).ok()?);
        Some(Piece { text, kind: Kind::AnyOf })
    }

    fn argument(&self, number: u16) -> Option<Piece> {
        let among_relations = self.binder.levels.iter().any(|level| !level.relations.is_empty());
        self.arguments?.shown(number, among_relations, self.quoting()).map(Piece::simple)
    }

    fn in_list(&mut self, left: &Expr, list: &[Expr], negated: bool, bound: &BoundExpr) -> Option<Piece> {
        if let ([only], ExprKind::Call { args, .. }) = (list, &bound.kind) {
            return self.operation(if negated { "<>" } else { "=" }, (left, only), args);
        }
        let (mut listed, mut single) = (Vec::new(), Vec::new());
        for item in list {
            let of = if reads_row(&self.bind(item)?) { &mut single } else { &mut listed };
            of.push(item.clone());
        }
        if !single.is_empty() {
            return self.in_parts(left, list, (listed, single), negated);
        }
        let ExprKind::InList { left: own, list: items, .. } = &bound.kind else { return None };
        let target = items.first()?.ty.oid;
        let natural = self.bind(left)?;
        let mut types = vec![natural.ty];
        for item in list {
            types.push(self.bind(item)?.ty);
        }
        let common = coerce::common_type(&types, "IN", &BuiltIn).ok()?;
        let mut texts = Vec::new();
        for item in list {
            let own = self.bind(item)?;
            let own = self.binder.coerce(own, Type::of(common.oid), CastContext::Implicit).ok()??;
            let piece = self.piece(item, &own, true)?;
            texts.push(self.alone(piece));
        }
        let mut array = Piece::simple(format!("ARRAY[{}]", texts.join(", ")));
        if common.oid != target {
            array = self.cast(array, Type::of(archipel_sql::type_table::array_of(target)?));
        }
        let piece = self.piece(left, own, true)?;
        let left = self.within(piece, &Around::Other);
        let word = if negated { "<> ALL" } else { "= ANY" };
        Some(Piece { text: format!("{left} {word} ({})", array.text), kind: Kind::AnyOf })
    }

    /// A list with items that read the row: those are compared one by one.
    fn in_parts(
        &mut self,
        left: &Expr,
        list: &[Expr],
        (listed, single): (Vec<Expr>, Vec<Expr>),
        negated: bool,
    ) -> Option<Piece> {
        let (op, word) = if negated { (BinaryOperator::NotEq, "AND") } else { (BinaryOperator::Eq, "OR") };
        let left = Box::new(left.clone());
        let (array, compared) = match listed.len() > 1 {
            true => (Some(Expr::InList { expr: left.clone(), list: listed, negated }), single),
            false => (None, list.to_vec()),
        };
        let compare =
            |item: Expr| Expr::BinaryOp { left: left.clone(), op: op.clone(), right: Box::new(item) };
        let tests: Vec<Expr> = array.into_iter().chain(compared.into_iter().map(compare)).collect();
        self.logical(word, &tests.iter().collect::<Vec<_>>())
    }

    fn written_cast(&mut self, operand: &Expr, named: Type, ty: Type, bound: &BoundExpr) -> Option<Piece> {
        let operand = unnest(operand);
        if let Expr::Value(value) = operand
            && !matches!(value.value, Value::Number(..) | Value::Placeholder(_))
            && let Ok(literal) = self.binder.value(&value.value)
            && (literal.ty.oid != Oid::BIT || ty.oid == Oid::BIT)
        {
            let read = self.binder.coerce(literal, Type::of(ty.oid), CastContext::Explicit).ok()??;
            if named == ty && ty.typmod < 0 {
                return self.literal(&value.value, &read, false);
            }
            let ExprKind::Const(value) = &read.kind else { return None };
            if value.is_null() {
                return Some(Piece::simple(format!("NULL::{}", self.type_name(named))));
            }
            let text = io::to_text(value, Type::of(ty.oid), self.binder.env.context);
            let text = quoted(&text);
            return Some(Piece::simple(format!("{text}::{}", self.type_name(named))));
        }
        if let (Expr::Array(array), ExprKind::Array { items, .. }) = (operand, &bound.kind) {
            return self.cast_array(array, items, named, ty);
        }
        let inner = self.bind(operand)?;
        if inner.ty.oid == Oid::UNKNOWN {
            return None;
        }
        let piece = match operand {
            Expr::Value(value) if !matches!(value.value, Value::Placeholder(_)) => {
                self.literal(&value.value, &inner, false)?
            }
            operand => self.natural(operand, &inner)?,
        };
        if inner.ty.oid == ty.oid && named == ty && (ty.typmod < 0 || inner.ty.typmod == ty.typmod) {
            return Some(piece);
        }
        // A number that is given its scale stands without parentheses (get_coercion_expr).
        if let ExprKind::Const(value) = &inner.kind
            && is_number(operand)
            && inner.ty == Type::of(ty.oid)
            && named == ty
        {
            let text = io::to_text(value, inner.ty, self.binder.env.context);
            let plain =
                text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(['.', 'e', 'E']);
            let text = if plain { text } else { quoted(&text) };
            let text = format!("{text}::{}", self.type_name(named));
            return Some(Piece { text, kind: Kind::Cast(Box::new(Kind::Simple)) });
        }
        Some(self.cast(piece, named))
    }

    /// An array constructor beneath a cast, which each of its elements is given (transformArrayExpr).
    fn cast_array(
        &mut self,
        array: &sqlparser::ast::Array,
        items: &[BoundExpr],
        named: Type,
        ty: Type,
    ) -> Option<Piece> {
        if array.elem.len() != items.len() {
            return None;
        }
        if items.is_empty() {
            let plain = Type::of(ty.oid);
            let empty = Piece::simple(format!("ARRAY[]::{}", self.type_name(plain)));
            return Some(if named == plain { empty } else { self.cast(empty, named) });
        }
        let element = Type { oid: element_of(ty.oid)?, typmod: ty.typmod };
        let mut texts = Vec::with_capacity(items.len());
        for (expr, item) in array.elem.iter().zip(items) {
            let piece = match (unnest(expr), &item.kind) {
                (Expr::Array(inner), ExprKind::Array { items, .. }) => {
                    self.cast_array(inner, items, ty, ty)?
                }
                (expr, _) if element.typmod >= 0 => self.written_cast(expr, element, element, item)?,
                _ => self.piece(expr, item, true)?,
            };
            texts.push(self.alone(piece));
        }
        let written = Piece::simple(format!("ARRAY[{}]", texts.join(", ")));
        Some(if named.oid == ty.oid { written } else { self.cast(written, named) })
    }

    fn call(&mut self, function: &Function, bound: &BoundExpr) -> Option<Piece> {
        if let ExprKind::Column { index, depth: 0 } = bound.kind {
            match index {
                AGGREGATE_BASE..GROUPING_BASE => return self.aggregate(function, index - AGGREGATE_BASE),
                GROUPING_BASE..WINDOW_BASE => return self.grouping_call(function),
                WINDOW_BASE..SET_BASE => return self.window_call(function, index - WINDOW_BASE),
                _ => {}
            }
        }
        if let FunctionArguments::Subquery(query) = &function.args {
            return self.array_of(query);
        }
        let plain = function.filter.is_none() && function.over.is_none() && function.within_group.is_empty();
        let list = match &function.args {
            // CURRENT_DATE and its kin.
            FunctionArguments::None => {
                let [name] = &object_name_parts(&function.name).ok()?[..] else { return None };
                return Some(Piece::simple(name.to_uppercase()));
            }
            FunctionArguments::List(list) if plain && list.clauses.is_empty() => list,
            _ => return None,
        };
        let rows: Vec<Expr> = list.args.iter().filter_map(starred_argument).collect();
        let (mut exprs, mut variadic, mut rows) = (Vec::new(), false, rows.iter());
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)) => exprs.push(rows.next()?),
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => exprs.push(expr),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. }
                    if name.value == VARIADIC_ARGUMENT =>
                {
                    variadic = true;
                    exprs.push(expr);
                }
                _ => return None,
            }
        }
        match &bound.kind {
            ExprKind::Coalesce(args) => self.named("COALESCE", &exprs, args),
            ExprKind::NullIf { left, right, .. } => {
                self.named("NULLIF", &exprs, &[(**left).clone(), (**right).clone()])
            }
            ExprKind::Extreme { greatest, args, .. } => {
                self.named(if *greatest { "GREATEST" } else { "LEAST" }, &exprs, args)
            }
            ExprKind::Call { function, args } => {
                let name = function.function.name;
                let name = self.identifier(name.strip_prefix(OF_ARRAY).unwrap_or(name));
                if variadic {
                    return self.named_variadic(&name, &exprs, args);
                }
                let of_any = function.function.args.iter().position(|ty| *ty == Oid::ANY);
                let Some(first) = of_any else { return self.named(&name, &exprs, args) };
                if exprs.len() != args.len() {
                    return None;
                }
                let mut texts = Vec::with_capacity(exprs.len());
                for (place, (expr, arg)) in exprs.iter().zip(args).enumerate() {
                    texts.push(match unnest(expr) {
                        // Of no type yet.
                        Expr::Value(value) if place >= first => match &value.value {
                            Value::SingleQuotedString(text) => quoted(text),
                            other => {
                                let piece = self.literal(other, arg, true)?;
                                self.alone(piece)
                            }
                        },
                        expr => {
                            let piece = self.piece(expr, arg, place < first)?;
                            self.alone(piece)
                        }
                    });
                }
                Some(Piece::simple(format!("{name}({})", texts.join(", "))))
            }
            ExprKind::Routine { routine, args } => {
                let name = self.routine_name(routine);
                match variadic {
                    true => self.named_variadic(&name, &exprs, args),
                    false => self.of_routine(&name, routine, &exprs, args),
                }
            }
            _ => None,
        }
    }
}

/// A literal: backslashes stand for themselves.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// What a call of a function is given.
fn arguments(bound: &BoundExpr) -> Option<&[BoundExpr]> {
    match &bound.kind {
        ExprKind::Call { args, .. } => Some(args),
        _ => None,
    }
}
