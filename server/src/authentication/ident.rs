//! `pg_ident.conf`: which names of the operating system, or of certificates, may come in as which roles.

use std::sync::Arc;

use archipel_sql::error::Result;
use archipel_sql::function::{Pattern, regular_expression};

use super::tokens::{Line, Token};

/// One line of a map.
pub struct IdentLine {
    pub number: u32,
    pub map: String,
    /// A name, or `/` and a regular expression.
    pub system_user: String,
    expression: Option<Arc<Pattern>>,
    /// A role; `\1` in it is what the expression's first group has matched.
    pub role: String,
}

fn single(field: Option<&Vec<Token>>) -> std::result::Result<String, String> {
    match field.map(Vec::as_slice) {
        Some([token]) => Ok(token.text.clone()),
        Some(_) => Err("multiple values in ident field".to_owned()),
        None => Err("missing entry at end of line".to_owned()),
    }
}

impl IdentLine {
    /// Reads a line; says what is wrong with it (parse_ident_line).
    pub fn parse(line: &Line) -> std::result::Result<IdentLine, String> {
        if let Some(error) = &line.error {
            return Err(error.clone());
        }
        let (map, system_user) = (single(line.fields.first())?, single(line.fields.get(1))?);
        let role = single(line.fields.get(2))?;
        let expression = system_user.strip_prefix('/').map(|text| {
            regular_expression(text, "").map_err(|error| {
                let reason = error.message();
                let reason = reason.strip_prefix("invalid regular expression: ").unwrap_or(reason);
                format!("invalid regular expression \"{text}\": {reason}")
            })
        });
        Ok(IdentLine { number: line.number, map, system_user, expression: expression.transpose()?, role })
    }

    /// Whether this line lets somebody in as a role.
    fn allows(&self, system_user: &str, role: &str) -> Result<std::result::Result<bool, String>> {
        let Some(expression) = &self.expression else {
            return Ok(Ok(self.system_user == system_user && self.role == role));
        };
        let Some(group) = expression.first_group(system_user)? else { return Ok(Ok(false)) };
        if !self.role.contains("\\1") {
            return Ok(Ok(self.role == role));
        }
        let Some(group) = group else {
            return Ok(Err(format!(
                "regular expression \"{}\" has no subexpressions as requested by backreference in \"{}\"",
                &self.system_user[1..],
                self.role
            )));
        };
        Ok(Ok(self.role.replacen("\\1", group, 1) == role))
    }
}

/// Whether a map lets somebody in as a role: `None` lets everybody in as the role of the same name. Says why
/// not (check_usermap).
pub fn check(
    lines: &[IdentLine],
    map: Option<&str>,
    system_user: &str,
    role: &str,
) -> std::result::Result<(), String> {
    let Some(map) = map.filter(|map| !map.is_empty()) else {
        if system_user == role {
            return Ok(());
        }
        return Err(format!(
            "provided user name ({role}) and authenticated user name ({system_user}) do not match"
        ));
    };
    for line in lines.iter().filter(|line| line.map == map) {
        let allowed = line.allows(system_user, role).map_err(|error| {
            format!("regular expression match for \"{}\" failed: {}", &line.system_user[1..], error.message())
        })?;
        if allowed? {
            return Ok(());
        }
    }
    Err(format!("no match in usermap \"{map}\" for user \"{role}\" authenticated as \"{system_user}\""))
}

#[cfg(test)]
mod tests {
    use super::super::tokens::read_text;
    use super::*;

    fn parsed(text: &str) -> Vec<std::result::Result<IdentLine, String>> {
        read_text(text).iter().map(IdentLine::parse).collect()
    }

    fn told(text: &str) -> String {
        parsed(text).remove(0).err().unwrap_or_default()
    }

    #[test]
    fn names_and_expressions_lead_to_roles() {
        let text = "m root admin\nm /^(.*)@example\\.org$ \\1\nm /^ops- operator\nother root other\n\
                    m \"two words\" admin\nn /^x$ a\\1";
        let lines: Vec<IdentLine> = parsed(text).into_iter().map(|line| line.ok().unwrap()).collect();
        let allows = |map, system, role| check(&lines, map, system, role).is_ok();
        assert!(allows(None, "ann", "ann") && !allows(None, "ann", "bob") && allows(Some(""), "ann", "ann"));
        assert!(allows(Some("m"), "root", "admin") && !allows(Some("m"), "root", "other"));
        assert!(allows(Some("m"), "ann@example.org", "ann"));
        assert!(!allows(Some("m"), "ann@example.org", "bob") && !allows(Some("m"), "ann@exampleXorg", "ann"));
        assert!(allows(Some("m"), "ops-7", "operator") && !allows(Some("m"), "xops-7", "operator"));
        assert!(allows(Some("m"), "two words", "admin") && !allows(Some("m"), "ann", "ann"));
        assert_eq!(
            check(&lines, Some("none"), "ann", "bob").unwrap_err(),
            "no match in usermap \"none\" for user \"bob\" authenticated as \"ann\""
        );
        let told = check(&lines, Some("n"), "x", "ax").unwrap_err();
        assert!(told.contains("has no subexpressions as requested by backreference"), "{told}");
    }

    #[test]
    fn wrong_lines_are_told() {
        assert_eq!(told("m root"), "missing entry at end of line");
        assert_eq!(told("m"), "missing entry at end of line");
        assert_eq!(told("m a,b c"), "multiple values in ident field");
        assert!(told("m /( c").starts_with("invalid regular expression \"(\": "), "{}", told("m /( c"));
    }
}
