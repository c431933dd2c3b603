//! Calls that have a syntax of their own, calls of users' routines, whole rows, LIKE with an escape, and
//! CASE.

use archipel_sql::catalog::{ArgMode, Routine};
use archipel_sql::types::Type;
use sqlparser::ast::{AccessExpr, CaseWhen, Expr, TrimWhereField, ValueWithSpan};

use super::{Around, Deparser, Kind, Piece, arguments};
use crate::bind::expression::literal::field_name;
use crate::bind::expression::record::is_whole_row;
use crate::bind::name::{ident_name, object_name_parts};
use crate::bind::span::unnest;
use crate::bound::{BoundExpr, ExprKind, Subscript};

impl Deparser<'_, '_> {
    /// A user's routine by a name that leads to it.
    pub(super) fn routine_name(&self, routine: &Routine) -> String {
        let mut found = self.catalog.routines(None, &routine.name, self.search_path).into_iter();
        match found.any(|known| known.oid == routine.oid) {
            true => self.identifier(&routine.name),
            false => self.quoting().qualified(&routine.schema, &routine.name),
        }
    }

    /// A call of a user's routine by what stands in its parentheses. Any number of arguments are an array,
    /// and what is left to defaults is left out.
    pub(super) fn of_routine(
        &mut self,
        name: &str,
        routine: &Routine,
        exprs: &[&Expr],
        bound: &[BoundExpr],
    ) -> Option<Piece> {
        let before = bound.len().saturating_sub(1);
        let is_variadic = routine.args.iter().any(|arg| arg.mode == ArgMode::Variadic);
        if !is_variadic || exprs.len() <= before {
            return self.named(name, exprs, bound.get(..exprs.len())?);
        }
        let ExprKind::Array { items, .. } = &bound.last()?.kind else { return None };
        let mut text = self.list(&exprs[..before], &bound[..before])?;
        if before > 0 {
            text.push_str(", ");
        }
        let items = self.list(&exprs[before..], items)?;
        Some(Piece::simple(format!("{name}({text}VARIADIC ARRAY[{items}])")))
    }

    /// A call whose last argument is all of those that it may be given any number of.
    pub(super) fn named_variadic(
        &mut self,
        name: &str,
        exprs: &[&Expr],
        bound: &[BoundExpr],
    ) -> Option<Piece> {
        let (last, before) = exprs.split_last()?;
        let (own, known) = bound.get(..exprs.len())?.split_last()?;
        let array = self.list(&[*last], std::slice::from_ref(own))?;
        let mut text = self.list(before, known)?;
        if !before.is_empty() {
            text.push_str(", ");
        }
        Some(Piece::simple(format!("{name}({text}VARIADIC {array})")))
    }

    /// A relation's row as a value.
    pub(super) fn whole_row(&self, bound: &BoundExpr) -> Option<Piece> {
        // A query has it in its list, too, where a star stands for all columns.
        if !self.current.is_empty() {
            return None;
        }
        let ExprKind::Row(items, _) = &bound.kind else { return None };
        let (relation, _) = self.named_now(items.first()?)?;
        Some(Piece::simple(format!("{}.*", self.identifier(&relation))))
    }

    /// An expression whose syntax is its own.
    pub(super) fn syntax(&mut self, expr: &Expr, bound: &BoundExpr) -> Option<Piece> {
        match expr {
            Expr::Extract { field, expr, .. } => {
                let ExprKind::Call { args, .. } = &bound.kind else { return None };
                let piece = self.piece(expr, args.get(1)?, false)?;
                Some(Piece::simple(format!("EXTRACT({} FROM {})", field_name(field), self.alone(piece))))
            }
            Expr::Ceil { expr, .. } => {
                let name = self.identifier("ceil");
                self.named(&name, &[expr], arguments(bound)?)
            }
            Expr::Floor { expr, .. } => {
                let name = self.identifier("floor");
                self.named(&name, &[expr], arguments(bound)?)
            }
            Expr::Position { expr, r#in } => {
                let [text, sought] = arguments(bound)? else { return None };
                let (sought, text) = (self.piece(expr, sought, false)?, self.piece(r#in, text, false)?);
                let text = format!("POSITION(({}) IN ({}))", self.alone(sought), self.alone(text));
                Some(Piece::simple(text))
            }
            Expr::Substring { expr, substring_from, substring_for, special, shorthand } => {
                let mut exprs = vec![&**expr];
                exprs.extend(substring_from.as_deref());
                exprs.extend(substring_for.as_deref());
                if *shorthand || *special {
                    let name = self.identifier(if *shorthand { "substr" } else { "substring" });
                    return self.named(&name, &exprs, arguments(bound)?);
                }
                let from_first = substring_from.is_none() && substring_for.is_some();
                let mut written = exprs.iter();
                let mut texts = Vec::new();
                for (place, bound) in arguments(bound)?.iter().enumerate() {
                    if from_first && place == 1 {
                        texts.push("1".to_owned());
                        continue;
                    }
                    // The length is cast where nothing is said of the beginning.
                    let piece = self.piece(written.next()?, bound, from_first && place == 2)?;
                    texts.push(self.alone(piece));
                }
                match &texts[..] {
                    [text, from] => Some(Piece::simple(format!("SUBSTRING({text} FROM {from})"))),
                    [text, from, length] => {
                        Some(Piece::simple(format!("SUBSTRING({text} FROM {from} FOR {length})")))
                    }
                    _ => None,
                }
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let side = match trim_where {
                    None | Some(TrimWhereField::Both) => "BOTH",
                    Some(TrimWhereField::Leading) => "LEADING",
                    Some(TrimWhereField::Trailing) => "TRAILING",
                };
                let args = arguments(bound)?;
                let text = self.piece(expr, args.first()?, false)?;
                let text = self.alone(text);
                let what = match trim_what {
                    None => String::new(),
                    Some(what) => {
                        let piece = self.piece(what, args.get(1)?, false)?;
                        format!(" {}", self.alone(piece))
                    }
                };
                Some(Piece::simple(format!("TRIM({side}{what} FROM {text})")))
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let args = arguments(bound)?;
                let mut text = "OVERLAY(".to_owned();
                let exprs = [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()];
                for ((expr, word), bound) in
                    exprs.into_iter().flatten().zip(["", " PLACING ", " FROM ", " FOR "]).zip(args)
                {
                    let piece = self.piece(expr, bound, false)?;
                    text.push_str(word);
                    text.push_str(&self.alone(piece));
                }
                Some(Piece::simple(text + ")"))
            }
            Expr::Collate { expr, collation } => {
                let names = object_name_parts(collation).ok()?;
                let piece = self.piece(expr, bound, true)?;
                let text = format!(
                    "{} COLLATE {}",
                    self.within(piece, &Around::Other),
                    self.identifier(names.last()?)
                );
                Some(Piece { text, kind: Kind::Test })
            }
            Expr::Subquery(query) => self.scalar(query),
            Expr::Exists { subquery, negated } => self.exists(subquery, *negated),
            Expr::InSubquery { expr, subquery, negated } => self.in_query((expr, "IN"), subquery, *negated),
            Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain, bound),
            Expr::AtTimeZone { timestamp, time_zone } => {
                let [zone, at] = arguments(bound)? else { return None };
                let (zone, at) = (self.piece(time_zone, zone, false)?, self.piece(timestamp, at, false)?);
                let (zone, at) = (self.within(zone, &Around::Other), self.within(at, &Around::Other));
                // In parentheses, whatever stands around it.
                Some(Piece::simple(format!("({at} AT TIME ZONE {zone})")))
            }
            _ => None,
        }
    }

    /// A function that was written as a field of its argument.
    pub(super) fn function_of_row(&mut self, record: &Expr, bound: &BoundExpr) -> Option<Piece> {
        let ExprKind::Routine { routine, args } = &bound.kind else { return None };
        let name = self.routine_name(routine);
        self.of_routine(&name, routine, &[record], args)
    }

    /// Fields and elements of a value.
    fn access(&mut self, root: &Expr, chain: &[AccessExpr], bound: &BoundExpr) -> Option<Piece> {
        let prefix = |steps: usize| match steps {
            0 => root.clone(),
            _ => Expr::CompoundFieldAccess {
                root: Box::new(root.clone()),
                access_chain: chain[..steps].to_vec(),
            },
        };
        let fields = chain.iter().filter(|step| matches!(step, AccessExpr::Dot(_))).count();
        if let Some((AccessExpr::Dot(Expr::Identifier(name)), before)) = chain.split_last() {
            // An element of an array whose field is taken would be indexed by other rules.
            if fields != chain.len() {
                return None;
            }
            let record = prefix(before.len());
            if let ExprKind::Routine { .. } = &bound.kind {
                return self.function_of_row(&record, bound);
            }
            let own = self.bind(&record)?;
            // A field of a relation's row is its column.
            if is_whole_row(&own) {
                return None;
            }
            let piece = self.piece(&record, &own, false)?;
            let text = self.alone(piece);
            let is_access = !before.is_empty() || matches!(unnest(root), Expr::CompoundFieldAccess { .. });
            let text = if is_access { text } else { format!("({text})") };
            return Some(Piece::simple(format!("{text}.{}", self.identifier(&ident_name(name)))));
        }
        let ExprKind::Subscript { array, subscripts } = &bound.kind else { return None };
        if !matches!(&array.kind, ExprKind::Column { .. } | ExprKind::Field { .. }) {
            return None;
        }
        let (base, indexes) = chain.split_at(fields);
        let piece = self.piece(&prefix(base.len()), array, false)?;
        let mut text = self.alone(piece);
        for (access, index) in indexes.iter().zip(subscripts) {
            let (AccessExpr::Subscript(written), Subscript::Index(index)) = (access, index) else {
                return None;
            };
            let sqlparser::ast::Subscript::Index { index: written } = written else { return None };
            let piece = self.piece(written, index, false)?;
            text.push_str(&format!("[{}]", self.alone(piece)));
        }
        Some(Piece::simple(text))
    }

    /// A pattern as the operator takes it; with an escape, made by a function.
    pub(super) fn like(
        &mut self,
        name: &str,
        function: &str,
        (left, pattern): (&Expr, &Expr),
        escape: Option<&ValueWithSpan>,
        bound: &BoundExpr,
    ) -> Option<Piece> {
        let args = arguments(bound)?;
        if escape.is_none() && function == "like_escape" {
            return self.operation(name, (left, pattern), args);
        }
        let [own, made] = args else { return None };
        let made = arguments(made)?;
        let pattern = self.piece(pattern, made.first()?, true)?;
        let mut list = self.alone(pattern);
        if let Some(escape) = escape {
            let escape = self.literal(&escape.value, made.get(1)?, true)?;
            list = format!("{list}, {}", self.alone(escape));
        }
        let own = self.piece(left, own, true)?;
        let own = self.within(own, &Around::Operator { name, first: true });
        let kind = Kind::Operator(name.to_owned());
        let function = self.identifier(function);
        Some(Piece { text: format!("{own} {name} {function}({list})"), kind })
    }

    pub(super) fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        bound: &BoundExpr,
    ) -> Option<Piece> {
        let ExprKind::Case { arms, otherwise: last } = &bound.kind else { return None };
        // What stands within is indented further.
        let outer = self.indent;
        self.indent += 4;
        let text = self.arms((operand, conditions, otherwise), (arms, last.as_deref()), bound);
        self.indent = outer;
        let end = self.line_break();
        let start = if self.in_lines { &end } else { "" };
        Some(Piece::simple(format!("{start}CASE{}{end}END", text?)))
    }

    /// What is between the parts of a long form.
    fn line_break(&self) -> String {
        if self.in_lines { format!("\n{}", " ".repeat(self.indent)) } else { " ".to_owned() }
    }

    fn arms(
        &mut self,
        (operand, conditions, otherwise): (Option<&Expr>, &[CaseWhen], Option<&Expr>),
        (arms, last): (&[(BoundExpr, BoundExpr)], Option<&BoundExpr>),
        bound: &BoundExpr,
    ) -> Option<String> {
        let line = self.line_break();
        let mut text = String::new();
        if let Some(operand) = operand {
            let natural = self.bind(operand)?;
            let piece = self.piece(operand, &natural, false)?;
            text.push_str(&behind(&self.alone(piece)));
        }
        for (CaseWhen { condition, result }, (test, value)) in conditions.iter().zip(arms) {
            let test = match (operand, &test.kind) {
                (None, _) => self.piece(condition, test, false)?,
                (Some(_), ExprKind::Call { args, .. }) => self.piece(condition, args.get(1)?, false)?,
                _ => return None,
            };
            let value = self.piece(result, value, true)?;
            let (test, value) = (behind(&self.alone(test)), behind(&self.alone(value)));
            text.push_str(&format!("{line}WHEN{test} THEN{value}"));
        }
        let last = match (otherwise, last) {
            (Some(otherwise), Some(bound)) => {
                let piece = self.piece(otherwise, bound, true)?;
                self.alone(piece)
            }
            _ => format!("NULL::{}", self.type_name(Type::of(bound.ty.oid))),
        };
        text.push_str(&format!("{line}ELSE{}", behind(&last)));
        Some(text)
    }
}

/// A part behind a word: one that begins a line needs no blank.
fn behind(part: &str) -> String {
    if part.starts_with('\n') { part.to_owned() } else { format!(" {part}") }
}
