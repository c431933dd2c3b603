//! PostgreSQL's expression grammar where sqlparser's stops short: a dialect that delegates to
//! its PostgreSQL dialect and adds productions through the parser's hooks.

use std::any::TypeId;

use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArguments, Ident, ObjectName, TypedString,
    UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::lexer::keywords::{is_reserved, needs_as};
use super::rewrite::sql_syntax;
use super::rewrite::sql_syntax::is_no_name;
use crate::interrupt;

/// What reading one operand counts as ([`interrupt::steps`]).
const STEPS_PER_OPERAND: usize = 256;

#[derive(Debug)]
pub(super) struct ArchipelDialect;

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

macro_rules! delegate {
    ($($name:ident)*) => { $( fn $name(&self) -> bool { BASE.$name() } )* };
}

impl Dialect for ArchipelDialect {
    /// The parser asks for PostgreSQL's dialect by type in places.
    fn dialect(&self) -> TypeId {
        BASE.dialect()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        BASE.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        BASE.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        BASE.is_identifier_part(character)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        is_no_name(keyword) || BASE.is_reserved_for_identifier(keyword)
    }

    fn is_custom_operator_part(&self, character: char) -> bool {
        BASE.is_custom_operator_part(character)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    delegate! {
        supports_filter_during_aggregation supports_group_by_expr
        allow_extract_custom allow_extract_single_quotes supports_create_index_with_clause
        supports_explain_with_utility_options supports_listen_notify supports_factorial_operator
        supports_bitwise_shift_operators supports_comment_on supports_load_extension
        supports_named_fn_args_with_colon_operator supports_empty_projections supports_nested_comments supports_string_escape_constant
        supports_numeric_literal_underscores supports_array_typedef_with_brackets
        supports_geometric_types supports_set_names supports_alter_column_type_using
        supports_notnull_operator supports_interval_options supports_insert_table_alias
        supports_create_table_like_parenthesized supports_select_wildcard_with_alias
        supports_comma_separated_trim supports_xml_expressions supports_comment_optimizer_hint
    }

    /// A name after a query of WITH, which carries SEARCH and CYCLE (see `search_cycle`).
    fn supports_from_first_insert(&self) -> bool {
        true
    }

    /// A table's alias without AS: a name, unless it begins the clause that follows.
    fn is_table_alias(&self, _keyword: &Keyword, parser: &mut Parser) -> bool {
        match &parser.get_current_token().token {
            // In quotes no word is a keyword.
            Token::Word(word) if word.quote_style.is_some() => true,
            Token::Word(word) => {
                let word = word.value.to_lowercase();
                !is_reserved(&word) && !matches!(word.as_str(), "set" | "values" | "overriding" | "overwrite")
            }
            _ => false,
        }
    }

    /// A result column's label without AS.
    fn is_column_alias(&self, _keyword: &Keyword, parser: &mut Parser) -> bool {
        match &parser.get_current_token().token {
            Token::Word(word) => word.quote_style.is_some() || !needs_as(&word.value.to_lowercase()),
            _ => false,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        if is_word(&parser.peek_token_ref().token, "isnull") {
            return Some(Ok(self.prec_value(Precedence::Is)));
        }
        // sqlparser takes these for comparisons; they bind as other operators do.
        match &parser.peek_token_ref().token {
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => {
                return Some(Ok(self.prec_value(Precedence::PgOther)));
            }
            Token::Word(word) if word.keyword == Keyword::OPERATOR => {
                return Some(Ok(self.prec_value(Precedence::PgOther)));
            }
            _ => {}
        }
        BASE.get_next_precedence(parser)
    }

    /// `type 'literal'` for type names sqlparser does not know, and for `name`, which it takes
    /// for a column.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        // Whoever has called the parser tells the error itself.
        if interrupt::steps(STEPS_PER_OPERAND).is_err() {
            return Some(Err(ParserError::ParserError("the statement shall end".to_owned())));
        }
        if let Some((op, precedence)) = prefix_operator(&parser.peek_token_ref().token) {
            parser.advance_token();
            let operand = parser.parse_subexpr(precedence);
            return Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }));
        }
        if let Some(query) = query_operand(parser) {
            return Some(query);
        }
        if let Some(call) = sql_syntax::call(parser, self) {
            return Some(call);
        }
        let Token::Word(word) = &parser.peek_token_ref().token else {
            return None;
        };
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("current_role") {
            let span = parser.peek_token_ref().span;
            let name = Ident { value: word.value.clone(), quote_style: None, span };
            parser.advance_token();
            return Some(Ok(call_without_parentheses(name)));
        }
        if is_word(&parser.peek_token_ref().token, "not")
            && is_word(&parser.peek_nth_token_ref(1).token, "exists")
        {
            return Some(self.not_exists(parser));
        }
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("interval") {
            return interval_of_precision(parser).map(Ok);
        }
        typed_literal(parser).map(Ok)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let token = &parser.peek_token_ref().token;
        // A short statement has no long chain, and need not copy its first operand.
        if let Some(op) = logical_operator(token)
            && parser.token_at(parser.index() + CHAIN_TOKENS_MIN).token != Token::EOF
        {
            return Some(logical_chain(parser, left, op, precedence));
        }
        if let Some(all) = quantifier(&parser.peek_nth_token_ref(1).token)
            && parser.peek_nth_token_ref(2).token == Token::LParen
            && let Some(op) = quantified_operator(token)
        {
            return Some(quantified(parser, left, op, all, precedence));
        }
        if is_word(token, "operator")
            && let Some((op, length)) = named_operator(parser)
            && let Some(all) = quantifier(&parser.peek_nth_token_ref(length).token)
            && parser.peek_nth_token_ref(length + 1).token == Token::LParen
        {
            // The last token of the operator's is taken with the word behind it.
            for _ in 1..length {
                parser.advance_token();
            }
            return Some(quantified(parser, left, op, all, precedence));
        }
        // Comparisons do not associate: `a = b = c` means nothing.
        if is_comparison(token) && matches!(left, Expr::BinaryOp { op, .. } if compares(op)) {
            return Some(parser.expected_ref("an operator that associates", parser.peek_token_ref()));
        }
        if is_word(token, "collate") {
            parser.advance_token();
            let collated = parser.parse_object_name(false);
            return Some(collated.map(|collation| Expr::Collate { expr: Box::new(left.clone()), collation }));
        }
        if is_word(token, "isnull") {
            parser.advance_token();
            return Some(Ok(Expr::IsNull(Box::new(left.clone()))));
        }
        if is_word(token, "is") {
            return self.is_distinct_from(parser, left);
        }
        let negated = is_word(token, "not");
        let at = usize::from(negated);
        if is_word(&parser.peek_nth_token_ref(at).token, "between")
            && is_word(&parser.peek_nth_token_ref(at + 1).token, "symmetric")
        {
            for _ in 0..at + 2 {
                parser.advance_token();
            }
            return Some(self.between_symmetric(parser, left, negated));
        }
        if is_word(&parser.peek_nth_token_ref(at).token, "in")
            && parser.peek_nth_token_ref(at + 1).token == Token::LParen
            && parser.peek_nth_token_ref(at + 2).token == Token::LParen
        {
            return in_list(parser, left, negated);
        }
        None
    }
}

impl ArchipelDialect {
    /// `NOT EXISTS (…)`: sqlparser takes the two words for one, but what follows may bind more tightly
    /// than NOT does.
    fn not_exists(&self, parser: &mut Parser) -> Result<Expr, ParserError> {
        parser.advance_token();
        Ok(match parser.parse_subexpr(self.prec_value(Precedence::UnaryNot))? {
            Expr::Exists { subquery, negated: false } => Expr::Exists { subquery, negated: true },
            other => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(other) },
        })
    }

    /// `x IS [NOT] DISTINCT FROM y`: sqlparser takes everything that follows for `y`, but what
    /// AND and OR join, and comparisons, are beyond it.
    fn is_distinct_from(&self, parser: &mut Parser, left: &Expr) -> Option<Result<Expr, ParserError>> {
        let negated = is_word(&parser.peek_nth_token_ref(1).token, "not");
        let at = 1 + usize::from(negated);
        if !is_word(&parser.peek_nth_token_ref(at).token, "distinct")
            || !is_word(&parser.peek_nth_token_ref(at + 1).token, "from")
        {
            return None;
        }
        for _ in 0..at + 2 {
            parser.advance_token();
        }
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        let (left, make) =
            (Box::new(left.clone()), if negated { Expr::IsNotDistinctFrom } else { Expr::IsDistinctFrom });
        Some(right.map(|right| make(left, Box::new(right))))
    }

    /// `x BETWEEN SYMMETRIC a AND b`, as PostgreSQL's analyser expands it.
    fn between_symmetric(
        &self,
        parser: &mut Parser,
        left: &Expr,
        negated: bool,
    ) -> Result<Expr, ParserError> {
        let floor = self.prec_value(Precedence::Between);
        let low = parser.parse_subexpr(floor)?;
        parser.expect_keyword_is(Keyword::AND)?;
        let high = parser.parse_subexpr(floor)?;
        let between = |low: &Expr, high: &Expr| {
            Box::new(Expr::Between {
                expr: Box::new(left.clone()),
                negated,
                low: Box::new(low.clone()),
                high: Box::new(high.clone()),
            })
        };
        let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
        Ok(Expr::Nested(Box::new(Expr::BinaryOp {
            left: between(&low, &high),
            op,
            right: between(&high, &low),
        })))
    }
}

/// A chain of AND or OR with more tokens than this ahead of its first operator may be a long one.
const CHAIN_TOKENS_MIN: usize = 256;

fn logical_operator(token: &Token) -> Option<BinaryOperator> {
    match token {
        Token::Word(word) => match word.keyword {
            Keyword::AND => Some(BinaryOperator::And),
            Keyword::OR => Some(BinaryOperator::Or),
            _ => None,
        },
        _ => None,
    }
}

/// A chain of AND or of OR whose first operand is read already. sqlparser makes a tree of it that is as
/// deep as the chain is long, and whatever walks or drops that recurses as deep. The order of the operands
/// is all that counts: the tree is as shallow as it can be.
fn logical_chain(
    parser: &mut Parser,
    first: &Expr,
    op: BinaryOperator,
    precedence: u8,
) -> Result<Expr, ParserError> {
    let mut operands = vec![first.clone()];
    while logical_operator(&parser.peek_token_ref().token).as_ref() == Some(&op) {
        parser.advance_token();
        operands.push(parser.parse_subexpr(precedence)?);
    }
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => {
                    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
                }
                None => left,
            });
        }
        operands = pairs;
    }
    Ok(operands.pop().expect("the first operand is there"))
}

/// Whether a word is ALL, rather than ANY or SOME.
fn quantifier(token: &Token) -> Option<bool> {
    let all = is_word(token, "all");
    (all || is_word(token, "any") || is_word(token, "some")).then_some(all)
}

/// An operator that sqlparser does not take ANY behind: those it has no token for, and those of its own
/// that compute, which answer no boolean.
fn quantified_operator(token: &Token) -> Option<BinaryOperator> {
    Some(match token {
        Token::CustomBinaryOperator(name) => BinaryOperator::Custom(name.clone()),
        Token::Plus => BinaryOperator::Plus,
        Token::Minus => BinaryOperator::Minus,
        Token::Mul => BinaryOperator::Multiply,
        Token::Div => BinaryOperator::Divide,
        Token::Mod => BinaryOperator::Modulo,
        Token::StringConcat => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// `OPERATOR(schema.op)` where the parser stands, and how many tokens that is.
fn named_operator(parser: &Parser) -> Option<(BinaryOperator, usize)> {
    if parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    let mut parts = Vec::new();
    let mut at = 2;
    loop {
        match &parser.peek_nth_token_ref(at).token {
            Token::EOF | Token::LParen | Token::RParen | Token::Period => return None,
            Token::Word(word) => parts.push(word.value.clone()),
            operator => parts.push(operator.to_string()),
        }
        match &parser.peek_nth_token_ref(at + 1).token {
            Token::Period => at += 2,
            Token::RParen => return Some((BinaryOperator::PGCustomBinaryOperator(parts), at + 2)),
            _ => return None,
        }
    }
}

/// `x op ANY (…)` by such an operator.
fn quantified(
    parser: &mut Parser,
    left: &Expr,
    compare_op: BinaryOperator,
    all: bool,
    precedence: u8,
) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.advance_token();
    let begins = &parser.peek_nth_token_ref(1).token;
    let right = if is_word(begins, "select") || is_word(begins, "with") {
        parser.parse_subexpr(precedence)?
    } else {
        parser.expect_token(&Token::LParen)?;
        let right = parser.parse_expr()?;
        parser.expect_token(&Token::RParen)?;
        right
    };
    let (left, right) = (Box::new(left.clone()), Box::new(right));
    Ok(match all {
        true => Expr::AllOp { left, compare_op, right },
        false => Expr::AnyOp { left, compare_op, right, is_some: false },
    })
}

/// `x IN ((…), …)`, `x IN ((…) + 1)`: sqlparser takes a list whose first item begins with a query in
/// parentheses for that query. It is one if nothing follows it, or what continues a query.
fn in_list(parser: &mut Parser, left: &Expr, negated: bool) -> Option<Result<Expr, ParserError>> {
    const CONTINUES: [&str; 8] = ["union", "intersect", "except", "order", "limit", "offset", "fetch", "for"];
    let mut open = 0;
    // Behind the parenthesis that closes the one the first item begins with.
    let mut at = parser.index() + 2 + usize::from(negated);
    loop {
        match &parser.token_at(at).token {
            Token::LParen => open += 1,
            Token::RParen if open == 1 => break,
            Token::RParen => open -= 1,
            Token::EOF => return None,
            _ => {}
        }
        at += 1;
    }
    let next = &parser.token_at(at + 1).token;
    if *next == Token::RParen || CONTINUES.iter().any(|word| is_word(next, word)) {
        return None;
    }
    for _ in 0..2 + usize::from(negated) {
        parser.advance_token();
    }
    let list = parser.parse_comma_separated(Parser::parse_expr);
    Some(list.and_then(|list| {
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::InList { expr: Box::new(left.clone()), list, negated })
    }))
}

/// `(VALUES (…), …)` as a value: sqlparser sees queries that begin with SELECT and WITH.
fn rows_in_parentheses(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Subquery(query))
}

/// A prefix operator and how tightly it binds: signs more than all but subscripts and casts, the others
/// as infix operators that have no precedence of their own, less than `+`.
fn prefix_operator(token: &Token) -> Option<(UnaryOperator, u8)> {
    /// Between COLLATE and subscripts in sqlparser's PostgreSQL dialect.
    const SIGN: u8 = 125;
    let other = BASE.prec_value(Precedence::PgOther);
    Some(match token {
        Token::Minus => (UnaryOperator::Minus, SIGN),
        Token::Plus => (UnaryOperator::Plus, SIGN),
        Token::Tilde => (UnaryOperator::BitwiseNot, other),
        Token::AtSign => (UnaryOperator::PGAbs, other),
        Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, other),
        Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, other),
        Token::DoubleExclamationMark => (UnaryOperator::PGPrefixFactorial, other),
        _ => return None,
    })
}

fn is_comparison(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
}

fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(op, Eq | NotEq | Lt | Gt | LtEq | GtEq)
}

/// Whether a query in parentheses follows that begins with one in parentheses: `((SELECT …) UNION …)`.
/// sqlparser takes the inner parentheses for those of an expression.
fn begins_query(parser: &Parser) -> bool {
    const QUERIES: [&str; 4] = ["select", "with", "values", "table"];
    const GOES_ON: [&str; 7] = ["union", "intersect", "except", "order", "limit", "offset", "fetch"];
    let [first, second] = [0, 1].map(|place| parser.peek_nth_token_ref(place));
    if first.token != Token::LParen || second.token != Token::LParen {
        return false;
    }
    // Looked at by index: to count from where the parser stands is to go all the way for each.
    let start = parser.index();
    let mut depth = 0;
    let mut selects = false;
    for place in start + 1.. {
        let token = &parser.token_at(place).token;
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::EOF => return false,
            _ if !selects => {
                selects = QUERIES.iter().any(|word| is_word(token, word));
                if !selects {
                    return false;
                }
            }
            _ => {}
        }
        if depth == 0 {
            let next = &parser.token_at(place + 1).token;
            return selects && GOES_ON.iter().any(|word| is_word(next, word));
        }
    }
    false
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// A query that is an operand: in parentheses, which may be taken already, or VALUES.
fn query_operand(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    if parser.peek_token_ref().token == Token::LParen
        && is_word(&parser.peek_nth_token_ref(1).token, "values")
        && parser.peek_nth_token_ref(2).token == Token::LParen
    {
        return Some(rows_in_parentheses(parser));
    }
    if begins_query(parser) {
        parser.advance_token();
        let query = parser.parse_query();
        return Some(query.and_then(|query| {
            parser.expect_token(&Token::RParen)?;
            Ok(Expr::Subquery(query))
        }));
    }
    // sqlparser takes ORDER for a name here.
    if is_word(&parser.peek_token_ref().token, "order") && is_word(&parser.peek_nth_token_ref(1).token, "by")
    {
        return Some(parser.expected_ref("an expression", parser.peek_token_ref()));
    }
    if is_word(&parser.peek_token_ref().token, "values")
        && parser.peek_nth_token_ref(1).token == Token::LParen
    {
        // Only behind a parenthesis, which is taken already (ANY, IN, ARRAY), is it a query.
        if parser.get_current_token().token != Token::LParen {
            return Some(parser.expected_ref("an expression", parser.peek_nth_token_ref(1)));
        }
        return Some(parser.parse_query().map(Expr::Subquery));
    }
    None
}

/// A call as sqlparser reads CURRENT_USER.
fn call_without_parentheses(name: Ident) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::None,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// `type 'literal'` and `schema.type 'literal'`, of types that sqlparser does not read itself.
fn typed_literal(parser: &mut Parser) -> Option<Expr> {
    let Token::Word(word) = &parser.peek_token_ref().token else {
        return None;
    };
    let is_literal = |place: usize| {
        matches!(
            parser.peek_nth_token_ref(place).token,
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_)
        )
    };
    // `schema.type 'literal'`.
    if parser.peek_nth_token_ref(1).token == Token::Period
        && let Token::Word(named) = &parser.peek_nth_token_ref(2).token
        && is_literal(3)
    {
        let parts = [(word, 0), (named, 2)].map(|(part, place)| Ident {
            value: part.value.clone(),
            quote_style: part.quote_style,
            span: parser.peek_nth_token_ref(place).span,
        });
        (0..3).for_each(|_| parser.advance_token());
        let data_type = DataType::Custom(ObjectName::from(parts.to_vec()), Vec::new());
        return typed_string(parser, data_type);
    }
    if !is_literal(1) {
        return None;
    }
    let known = word.quote_style.is_none() && is_sqlparsers_own(&word.value.to_lowercase());
    if known {
        return None;
    }
    let name = ObjectName::from(vec![Ident {
        value: word.value.clone(),
        quote_style: word.quote_style,
        span: parser.peek_token_ref().span,
    }]);
    parser.advance_token();
    typed_string(parser, DataType::Custom(name, Vec::new()))
}

/// The string at hand, as a literal of a type.
fn typed_string(parser: &mut Parser, data_type: DataType) -> Option<Expr> {
    let token = parser.next_token();
    let value = match token.token {
        Token::SingleQuotedString(text) => Value::SingleQuotedString(text),
        Token::EscapedStringLiteral(text) => Value::EscapedStringLiteral(text),
        Token::DollarQuotedString(text) => Value::DollarQuotedString(text),
        _ => return None,
    };
    let value = ValueWithSpan { value, span: token.span };
    Some(Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false }))
}

/// `interval(2) '…'`, whose precision sqlparser reads and drops.
fn interval_of_precision(parser: &mut Parser) -> Option<Expr> {
    let is_string = |token: &Token| {
        matches!(
            token,
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_)
        )
    };
    let at = |place: usize| &parser.peek_nth_token_ref(place).token;
    let Token::Number(precision, _) = at(2) else { return None };
    if *at(1) != Token::LParen || *at(3) != Token::RParen || !is_string(at(4)) {
        return None;
    }
    let precision = precision.parse().ok()?;
    for _ in 0..4 {
        parser.advance_token();
    }
    typed_string(parser, DataType::Interval { fields: None, precision: Some(precision) })
}

/// Words before a string literal that sqlparser reads itself: types it knows by syntax, and words
/// that are no types.
fn is_sqlparsers_own(word: &str) -> bool {
    is_reserved(word)
        || matches!(
            word,
            "interval"
                | "date"
                | "time"
                | "timestamp"
                | "timestamptz"
                | "timetz"
                | "datetime"
                | "bool"
                | "boolean"
                | "int"
                | "integer"
                | "int2"
                | "int4"
                | "int8"
                | "smallint"
                | "bigint"
                | "real"
                | "float"
                | "float4"
                | "float8"
                | "double"
                | "numeric"
                | "decimal"
                | "dec"
                | "char"
                | "character"
                | "varchar"
                | "text"
                | "bytea"
                | "uuid"
                | "json"
                | "jsonb"
                | "bit"
                | "leading"
                | "trailing"
                | "both"
                | "uescape"
                | "escape"
                | "row"
                | "xml"
                | "point"
                | "line"
                | "lseg"
                | "box"
                | "path"
                | "polygon"
                | "circle"
                | "values"
        )
}
