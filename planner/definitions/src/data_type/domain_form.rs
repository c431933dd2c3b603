//! Domains over a domain, and whose plans hold its conditions.

use archipel_sql::catalog::UserType;
use archipel_sql::types::Oid;

use super::composite;
use crate::work::{Work, change};

/// The oids of a domain, of the domains over it and of their arrays, and whether values of each hold
/// those of the domain as elements.
pub(super) fn forms(domain: &UserType, work: &Work<'_>) -> Vec<(Oid, bool)> {
    let mut forms = vec![(domain.oid, false), (domain.array_type(), true)];
    loop {
        let known = forms.len();
        for ty in work.catalog.user_types() {
            let Some(parent) = ty.domain.as_ref().and_then(|domain| domain.parent) else { continue };
            let below = forms.iter().find(|(form, _)| *form == parent).map(|(_, within)| *within);
            if let (Some(within), false) = (below, is_one(&forms, ty.oid)) {
                forms.extend([(ty.oid, within), (ty.array_type(), true)]);
            }
        }
        if forms.len() == known {
            return forms;
        }
    }
}

pub(super) fn is_one(forms: &[(Oid, bool)], oid: Oid) -> bool {
    forms.iter().any(|(form, _)| *form == oid)
}

/// Gives everything whose plans hold the domain's conditions a new version.
pub(crate) fn compile_anew(domain: &UserType, work: &mut Work<'_>) {
    let forms = forms(domain, work);
    let is_form = |oid: Option<Oid>| oid.is_some_and(|oid| is_one(&forms, oid));
    // Others that speak of it are compiled anew as after every change of the catalog.
    change::compile_users_anew(
        work,
        |catalog, column| {
            is_form(column.domain)
                || composite::holds_domain(catalog, column.ty.oid, &|oid| is_one(&forms, oid))
        },
        |_, routine| is_form(routine.result_domain) || routine.args.iter().any(|arg| is_form(arg.domain)),
    );
}
