//! `VALUES (r.*)` and `ROW(r.*)` over a record variable: the fields one by one, in the text, since
//! SQL's grammar here has no row expansion in that place.

use super::lexer::{self, Token, TokenKind};

/// The text with each such `r.*` replaced by `fields(r)`; `None` if there is none. A name that
/// `fields` does not know is left alone.
pub(crate) fn expand(text: &str, fields: &dyn Fn(&str) -> Option<Vec<String>>) -> Option<String> {
    if !text.contains('*') {
        return None;
    }
    let tokens = lexer::scan(text).ok()?;
    let is = |token: &Token, symbols: &[char]| symbols.iter().any(|symbol| token.is_symbol(*symbol));
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    // For each open parenthesis, whether a row stands in it; and at which depth VALUES was said.
    let mut rows: Vec<bool> = Vec::new();
    let mut values_at: Option<usize> = None;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        if token.is_word("values") {
            values_at = Some(rows.len());
        } else if token.is_symbol('(') {
            let row = values_at == Some(rows.len()) || before.is_some_and(|t| t.is_word("row"));
            rows.push(row);
        } else if token.is_symbol(')') {
            rows.pop();
            if values_at.is_some_and(|depth| depth > rows.len()) {
                values_at = None;
            }
        } else if matches!(token.kind, TokenKind::Word { .. }) && rows.last().is_none_or(|row| !row) {
            values_at = values_at.filter(|depth| *depth != rows.len());
        }
        let [name, dot, star, after] = &tokens[at..tokens.len().min(at + 4)] else { continue };
        let starred = dot.is_symbol('.') && star.kind == TokenKind::Operator("*".into());
        let alone = before.is_some_and(|t| is(t, &['(', ','])) && is(after, &[')', ',']);
        if starred
            && alone
            && rows.last() == Some(&true)
            && let Some(word) = name.word()
            && let Some(fields) = fields(word)
        {
            changes.push((name.start, star.end, fields.join(", ")));
        }
    }
    if changes.is_empty() {
        return None;
    }
    let mut expanded = text.to_string();
    for (start, end, fields) in changes.into_iter().rev() {
        expanded.replace_range(start..end, &fields);
    }
    Some(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_expanded_where_values_stand() {
        let fields = |name: &str| (name == "r").then(|| vec!["r.a".to_string(), "r.b".to_string()]);
        let expanded = |text: &str| expand(text, &fields);
        assert_eq!(
            expanded("insert into t values (r.*), (1, r.*) on conflict do nothing").unwrap(),
            "insert into t values (r.a, r.b), (1, r.a, r.b) on conflict do nothing"
        );
        assert_eq!(expanded("select row(r.*)").unwrap(), "select row(r.a, r.b)");
        assert_eq!(expanded("select count(r.*), r.* from r"), None);
        assert_eq!(expanded("insert into t values (q.*)"), None);
    }
}
