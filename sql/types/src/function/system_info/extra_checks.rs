//! `plpgsql.extra_warnings` and `plpgsql.extra_errors`: checks of PL/pgSQL that somebody asks for.

use crate::error::{Result, SqlError, SqlState};

/// One of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraCheck {
    /// A variable declared with the name of one that is there already.
    ShadowedVariables = 1,
    /// A query with INTO that has more than one row.
    TooManyRows = 2,
    /// Rows with more or fewer columns than there are variables for them.
    StrictMultiAssignment = 4,
}

const NAMED: [(&str, ExtraCheck); 3] = [
    ("shadowed_variables", ExtraCheck::ShadowedVariables),
    ("too_many_rows", ExtraCheck::TooManyRows),
    ("strict_multi_assignment", ExtraCheck::StrictMultiAssignment),
];

impl ExtraCheck {
    pub fn name(self) -> &'static str {
        NAMED.iter().find(|(_, check)| *check == self).map_or("", |(name, _)| name)
    }
}

/// What comes of a check that finds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckLevel {
    Warning,
    Error,
}

impl CheckLevel {
    /// The setting that asks for it.
    pub fn setting(self) -> &'static str {
        match self {
            CheckLevel::Warning => "extra_warnings",
            CheckLevel::Error => "extra_errors",
        }
    }
}

/// The checks that a session asks for: a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraChecks {
    warnings: u8,
    errors: u8,
}

impl ExtraChecks {
    /// The checks that the values of the two settings name.
    pub fn of(warnings: &str, errors: &str) -> ExtraChecks {
        let bits = |text: &str| Self::parse(text).unwrap_or_default();
        ExtraChecks { warnings: bits(warnings), errors: bits(errors) }
    }

    /// 22023 unless a text is a value of these settings, `name` being the one it is for.
    pub fn require_valid(name: &str, text: &str) -> Result<()> {
        Self::parse(text).map(drop).map_err(|detail| {
            let message = format!("invalid value for parameter \"{name}\": \"{text}\"");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_detail(detail)
        })
    }

    fn parse(text: &str) -> std::result::Result<u8, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "all" => return Ok(NAMED.iter().fold(0, |bits, (_, check)| bits | *check as u8)),
            "none" | "" => return Ok(0),
            _ => {}
        }
        let mut bits = 0;
        for word in text.split(',').map(|word| word.trim().trim_matches('"').to_ascii_lowercase()) {
            match NAMED.iter().find(|(name, _)| *name == word) {
                Some((_, check)) => bits |= *check as u8,
                None if word == "all" || word == "none" => {
                    return Err(format!("Key word \"{word}\" cannot be combined with other key words."));
                }
                None => return Err(format!("Unrecognized key word: \"{word}\".")),
            }
        }
        Ok(bits)
    }

    /// What comes of a check, if it is asked for.
    #[inline]
    pub fn level(self, check: ExtraCheck) -> Option<CheckLevel> {
        let bit = check as u8;
        if self.errors & bit != 0 {
            Some(CheckLevel::Error)
        } else {
            (self.warnings & bit != 0).then_some(CheckLevel::Warning)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_go_before_warnings() {
        let checks = ExtraChecks::of("all", "too_many_rows, shadowed_variables");
        assert_eq!(checks.level(ExtraCheck::TooManyRows), Some(CheckLevel::Error));
        assert_eq!(checks.level(ExtraCheck::StrictMultiAssignment), Some(CheckLevel::Warning));
        assert_eq!(ExtraChecks::of("none", "").level(ExtraCheck::TooManyRows), None);
        assert!(ExtraChecks::require_valid("plpgsql.extra_errors", "nosuch").is_err());
    }
}
