//! Lists of identifiers, as `search_path` is one.

/// Splits a search_path (or DateStyle) list into its names, quotes removed, unquoted names
/// folded to lower case.
pub fn split_identifiers(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (_, '"') if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                        chars.next();
                        name.push('"');
                    }
                    (at, '"') => break at + 1,
                    (_, other) => name.push(other),
                }
            };
            names.push(name);
            rest = quoted[end..].trim_start();
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let name = rest[..end].trim();
            if name.is_empty() {
                return None;
            }
            names.push(name.to_lowercase());
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() => return Some(names),
            None => return None,
        }
    }
}
