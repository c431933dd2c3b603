//! Patterns that one text alone matches: psql and JDBC ask for the table of a name by such.

/// The text that a LIKE pattern with the usual escape matches, if it is one.
pub fn of_like(pattern: &str) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' | '_' => return None,
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
    Some(text)
}

/// The text that a regular expression of the form `^text$` or `^(text)$` matches, if it is one: characters
/// that stand for themselves, by a backslash perhaps.
pub fn of_regex(pattern: &str) -> Option<String> {
    let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let inner = match inner.strip_prefix('(') {
        Some(group) => group.strip_suffix(')')?,
        None => inner,
    };
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '.' | '[' | ']' | '(' | ')' | '{' | '}' | '*' | '+' | '?' | '|' | '^' | '$' => return None,
            // Behind it, letters and digits mean something else.
            '\\' => text.push(characters.next().filter(|escaped| !escaped.is_alphanumeric())?),
            other => text.push(other),
        }
    }
    // Nothing in parentheses, or a `$` that the last backslash has taken.
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_without_a_choice_are_texts() {
        assert_eq!(of_like("orders"), Some("orders".to_owned()));
        assert_eq!(of_like("a\\_b\\%"), Some("a_b%".to_owned()));
        assert_eq!((of_like("a_b"), of_like("a%"), of_like("a\\")), (None, None, None));
        assert_eq!(of_regex("^(a_b)$"), Some("a_b".to_owned()));
        assert_eq!(of_regex("^a\\.b$"), Some("a.b".to_owned()));
        for pattern in ["a", "^a", "^(a|b)$", "^(a.*)$", "^(a)(b)$", "^\\d$", "^()$", "^$", "^(a$", "^a\\$"] {
            assert_eq!(of_regex(pattern), None, "{pattern}");
        }
    }
}
