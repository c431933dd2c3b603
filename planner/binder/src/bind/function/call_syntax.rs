//! SQL's special call syntaxes, which PostgreSQL's grammar turns into ordinary functions.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::CastContext;
use archipel_sql::types::Type;
use sqlparser::ast::{
    CeilFloorKind, DateTimeField, Expr, ExtractSyntax, Ident, TrimWhereField, ValueWithSpan,
};

use crate::bind::binder::Binder;
use crate::bind::expression::compare::pair;
use crate::bind::expression::domain::common_domain;
use crate::bind::expression::literal::field_name;
use crate::bind::span::first_span;
use crate::bound::{BoundExpr, ExprKind};

/// The normal form of Unicode that a word of the grammar names.
pub(super) fn normal_form(word: &Ident) -> Option<&'static str> {
    const FORMS: [&str; 4] = ["NFC", "NFD", "NFKC", "NFKD"];
    let plain = Some(&word.value).filter(|_| word.quote_style.is_none())?;
    FORMS.into_iter().find(|form| form.eq_ignore_ascii_case(plain))
}

impl Binder<'_, '_> {
    /// A call of a catalog function by syntax of its own.
    pub(crate) fn special_function(&mut self, name: &str, args: &[&Expr]) -> Result<BoundExpr> {
        let bound = args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        let call = self.builtin_call(name, bound);
        call.map_err(|error| match name {
            // An operator, in a way.
            "timezone" => error.at(args.first().and_then(|arg| self.start(arg))),
            "btrim" | "ltrim" | "rtrim" => error.at(self.word_before("trim", args)),
            word => error.at(self.word_before(word, args)),
        })
    }

    /// The position of the word that a call begins with, whose arguments stand behind it.
    fn word_before(&self, word: &str, args: &[&Expr]) -> Option<u32> {
        let places = args.iter().filter_map(|arg| self.place(first_span(arg).start));
        let (byte, position) = places.min()?;
        let before = self.env.text.get(..byte)?.to_ascii_lowercase();
        let behind = before.get(before.rfind(word)?..)?.chars().count();
        position.checked_sub(u32::try_from(behind).ok()?)
    }

    pub(crate) fn extract(
        &mut self,
        field: &DateTimeField,
        syntax: &ExtractSyntax,
        expr: &Expr,
    ) -> Result<BoundExpr> {
        if *syntax != ExtractSyntax::From {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \",\""));
        }
        let value = self.expr(expr)?;
        let field = BoundExpr::constant(Datum::text(&field_name(field)), Type::UNKNOWN);
        let call = self.builtin_call("extract", vec![field, value]);
        call.map_err(|error| error.at(self.word_before("extract", &[expr])))
    }

    pub(crate) fn ceil_floor(&mut self, name: &str, expr: &Expr, field: &CeilFloorKind) -> Result<BoundExpr> {
        match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => self.special_function(name, &[expr]),
            CeilFloorKind::DateTimeField(_) | CeilFloorKind::Scale(_) => {
                Err(SqlError::unsupported(format_args!("{name} with a field or scale")))
            }
        }
    }

    pub(crate) fn substring(
        &mut self,
        expr: &Expr,
        from: Option<&Expr>,
        length: Option<&Expr>,
        shorthand: bool,
    ) -> Result<BoundExpr> {
        let name = if shorthand { "substr" } else { "substring" };
        let mut args = vec![self.expr(expr)?];
        match (from, length) {
            (Some(from), length) => {
                args.push(self.expr(from)?);
                if let Some(length) = length {
                    args.push(self.expr(length)?);
                }
            }
            // SUBSTRING(x FOR n) starts at 1.
            (None, Some(length)) => {
                args.push(BoundExpr::constant(Datum::Int4(1), Type::INT4));
                let length = self.expr(length)?;
                args.push(self.coerce_or_fail(length, Type::INT4, CastContext::Explicit)?);
            }
            (None, None) => {}
        }
        let call = self.builtin_call(name, args);
        call.map_err(|error| error.at(self.word_before(name, &[expr])))
    }

    pub(crate) fn trim(
        &mut self,
        side: Option<TrimWhereField>,
        what: Option<&Expr>,
        expr: &Expr,
        characters: Option<&[Expr]>,
    ) -> Result<BoundExpr> {
        let name = match side {
            None | Some(TrimWhereField::Both) => "btrim",
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
        };
        let mut args = vec![expr];
        args.extend(what);
        args.extend(characters.into_iter().flatten());
        self.special_function(name, &args)
    }

    /// `normalize(text, form)`, whose form is a word.
    pub(crate) fn normalize(&mut self, value: &Expr, form: &str, position: Option<u32>) -> Result<BoundExpr> {
        let value = self.expr(value)?;
        self.of_normal_form("normalize", value, form).map_err(|error| error.at(position))
    }

    /// `IS [NOT] [form] NORMALIZED`.
    pub(crate) fn is_normalized(&mut self, expr: &Expr, form: &str, negated: bool) -> Result<BoundExpr> {
        let value = self.expr(expr)?;
        let test = self.of_normal_form("is_normalized", value, form);
        let test = test.map_err(|error| error.at(self.position_after(expr, "IS")))?;
        Ok(if negated { BoundExpr::new(ExprKind::Not(Box::new(test)), Type::BOOL) } else { test })
    }

    /// A call of a function of the normal forms, which messages say with its schema.
    fn of_normal_form(&mut self, name: &str, value: BoundExpr, form: &str) -> Result<BoundExpr> {
        // The form that is meant where none is written is no argument in messages.
        let given = match form {
            "NFC" => vec![value],
            form => vec![value, BoundExpr::constant(Datum::text(form), Type::TEXT)],
        };
        self.builtin_call(name, given)
    }

    /// LIKE and ILIKE are operators; ESCAPE rewrites the pattern first.
    pub(crate) fn like(
        &mut self,
        operator: &str,
        any: bool,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
    ) -> Result<BoundExpr> {
        if any {
            return Err(SqlError::unsupported("LIKE ANY without parentheses"));
        }
        let value = self.expr(expr)?;
        let mut pattern = self.expr(pattern)?;
        if let Some(escape) = escape {
            let escape = self.value(&escape.value)?;
            pattern = self.builtin_call("like_escape", vec![pattern, escape])?;
        }
        let test = self.binary_operator(operator, value, pattern);
        test.map_err(|error| {
            let word = match operator.starts_with('!') {
                true => "NOT",
                false if operator.ends_with('*') => "ILIKE",
                false => "LIKE",
            };
            error.at(self.position_after(expr, word))
        })
    }

    pub(crate) fn similar_to(
        &mut self,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
        negated: bool,
    ) -> Result<BoundExpr> {
        let value = self.expr(expr)?;
        let mut args = vec![self.expr(pattern)?];
        if let Some(escape) = escape {
            args.push(self.value(&escape.value)?);
        }
        let pattern = self.builtin_call("similar_to_escape", args)?;
        self.binary_operator(if negated { "!~" } else { "~" }, value, pattern)
    }

    /// `(a, b) OVERLAPS (c, d)` is a function of four arguments.
    pub(crate) fn overlaps(&mut self, left: Vec<BoundExpr>, right: &Expr) -> Result<BoundExpr> {
        let right = self.expr(right)?;
        let ExprKind::Row(right, _) = right.kind else {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "wrong number of parameters on right side of OVERLAPS expression",
            ));
        };
        for (side, items) in [("left", &left), ("right", &right)] {
            if items.len() != 2 {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("wrong number of parameters on {side} side of OVERLAPS expression"),
                ));
            }
        }
        let args = left.into_iter().chain(right).collect();
        self.builtin_call("overlaps", args)
    }

    /// COALESCE, NULLIF, GREATEST, LEAST: grammar of their own in PostgreSQL, calls in the tree.
    /// `position` is that of its word.
    pub(crate) fn conditional_form(
        &mut self,
        name: &str,
        args: &[&Expr],
        position: Option<u32>,
    ) -> Result<BoundExpr> {
        let upper = name.to_uppercase();
        if args.is_empty() || (name == "nullif" && args.len() != 2) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of arguments to {upper}"),
            ));
        }
        let each = |binder: &mut Self| args.iter().map(|arg| binder.expr(arg)).collect::<Result<Vec<_>>>();
        let bound = match name {
            "coalesce" => self.within_conditional("COALESCE", each)?,
            _ => each(self)?,
        };
        self.conditional(name, &upper, bound, args).map_err(|error| error.at(position))
    }

    fn conditional(
        &mut self,
        name: &str,
        upper: &str,
        args: Vec<BoundExpr>,
        written: &[&Expr],
    ) -> Result<BoundExpr> {
        match name {
            "nullif" => {
                let [left, right] = pair(args)?;
                let (operator, args, result) = self.find_binary("=", left, right)?;
                let [left, right] = pair(args)?;
                // The result is the left operand as the operator takes it.
                let ty = left.ty;
                let equality =
                    archipel_sql::function::ResolvedFunction { function: operator.function, result };
                Ok(BoundExpr::new(
                    ExprKind::NullIf { left: Box::new(left), right: Box::new(right), equality },
                    ty,
                ))
            }
            "coalesce" => {
                let domain = common_domain(&args);
                let (args, ty) = self.unify(args, written, upper)?;
                Ok(BoundExpr::new(ExprKind::Coalesce(args), ty).of_domain(domain))
            }
            _ => {
                let domain = common_domain(&args);
                let (args, ty) = self.unify(args, written, upper)?;
                let less = self.operator_of("<", ty.oid, ty.oid)?;
                let kind = ExprKind::Extreme { greatest: name == "greatest", args, less };
                Ok(BoundExpr::new(kind, ty).of_domain(domain))
            }
        }
    }
}
