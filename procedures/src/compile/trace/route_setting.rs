//! The setting of a routine that says where its calls go ([`super::hint`]), apart from those that it runs with.

use archipel_sql::catalog::Routine;

/// The setting of a routine that is a hint, and nothing to run with.
pub(super) const ROUTE: &str = "archipel.route";

/// SET clauses but for the hint.
pub(in crate::compile) fn settings_to_run_with(routine: &Routine) -> Vec<(String, String)> {
    routine.traits.settings.iter().filter(|(name, _)| name != ROUTE).cloned().collect()
}
