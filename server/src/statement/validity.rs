//! Until when a statement that was prepared is good (PostgreSQL's plancache.c).
//!
//! A plan depends on the search path its names were looked up in, and on what the catalog answered
//! when it was made ([`archipel_sql::catalog::lookups`]); not on the version of the catalog, which
//! any definition by anybody moves, nor on how dates are read. The version is what is compared first:
//! while it is the same, nothing else has to be asked. A plan that is still good is given the new one.
//!
//! - found by its text or shape, it must be what a **new analysis** would come to
//! - **prepared under a name**, it is analysed again only when the search path, or an object that it
//!   uses, is another: what its names meant, and how its literals were read, is settled until then
//!
//! Its role is a part of a plan where tables with row security went into it ([`Basis`]); else rights are asked
//! for anew.

use std::sync::Arc;

use archipel_sql::catalog::Lookups;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;

use super::basis::Basis;
use super::cache::Key;
use super::planning::Planning;
use super::{Body, Origin, Prepared, RowPlan};
use crate::session::Session;
use crate::session::host::Host;

impl Prepared {
    /// This for a host by which a new analysis would come to the same.
    pub(super) fn if_meant(&self, host: &Host) -> Option<Arc<Prepared>> {
        let basis = self.basis.as_ref()?;
        let good = self.search_path == host.search_path && basis.holds(&host.catalog.catalog, host.reader());
        good.then(|| self.for_host(host, basis))
    }

    /// The same for the catalog and the role of a host.
    fn for_host(&self, host: &Host, basis: &Basis) -> Arc<Prepared> {
        Arc::new(Prepared {
            catalog_version: host.catalog.version,
            session_path: host.settings.search_path.clone(),
            role: host.settings.roles.current,
            denied: host.rights().require_all(&basis.needed).err().map(Box::new),
            ..self.clone()
        })
    }
}

impl Session {
    /// A statement prepared before by its text, if it is what its text means now.
    pub(crate) fn cached(&mut self, key: &Key) -> Option<Arc<Prepared>> {
        let prepared = self.executor.statements.borrow_mut().get(key)?;
        if self.is_of_now(&prepared) {
            return Some(prepared);
        }
        let valid = self.still_meant(&prepared)?;
        self.remember(key.clone(), &valid);
        Some(valid)
    }

    /// Whether what a plan was made of is what there is now.
    pub(super) fn holds(&mut self, basis: &Basis) -> bool {
        let host = self.host();
        basis.holds(&host.catalog.catalog, host.reader())
    }

    /// Whether a statement was prepared for the catalog of now, and for whoever is here.
    pub(super) fn is_of_now(&self, prepared: &Prepared) -> bool {
        prepared.catalog_version == self.catalog_version() && self.is_reader_of(prepared)
    }

    /// Whether its policies are those for the role in force.
    fn is_reader_of(&self, prepared: &Prepared) -> bool {
        let reader = || {
            let settings = self.settings.effective();
            (settings.roles.current, settings.row_security)
        };
        prepared.basis.as_ref().is_none_or(|basis| basis.is_for(reader))
    }

    /// `prepared`, which was found by what was written, if a new analysis would come to the same.
    pub(crate) fn still_meant(&mut self, prepared: &Prepared) -> Option<Arc<Prepared>> {
        prepared.if_meant(&self.host())
    }

    pub(crate) fn remember(&self, key: Key, prepared: &Arc<Prepared>) {
        if !prepared.session_dependent {
            self.executor.statements.borrow_mut().insert(key, prepared.clone());
        }
    }

    /// Whether a statement was prepared for the catalog and the settings of now, or found to be good for
    /// them.
    pub(crate) fn is_current(&self, prepared: &Prepared) -> bool {
        let settings = self.settings.effective();
        prepared.catalog_version == self.catalog_version()
            && prepared.role == settings.roles.current
            && prepared.session_path == settings.search_path
            && self.is_reader_of(prepared)
    }

    /// The statement prepared under a name, analysed again if it has to be (RevalidateCachedQuery).
    pub(crate) async fn current(&mut self, name: &str) -> Result<Arc<Prepared>> {
        let prepared = self.statement(name)?;
        let Body::Rows(plan) = &prepared.body else { return Ok(prepared) };
        if self.is_current(&prepared) {
            return Ok(prepared);
        }
        let renewed = match self.revalidated(&prepared, plan).await {
            Some(valid) => valid,
            None => self.analysed_again(&prepared).await?,
        };
        self.replace_statement(name, &renewed);
        Ok(renewed)
    }

    /// `prepared` where its path and its objects are what they were.
    async fn revalidated(&mut self, prepared: &Prepared, plan: &Arc<RowPlan>) -> Option<Arc<Prepared>> {
        let basis = prepared.basis.as_ref()?;
        let host = self.host();
        let catalog = &host.catalog.catalog;
        if !catalog.is_same_path(&prepared.search_path, &host.search_path)
            || !basis.is_for(|| host.reader())
            || !basis.bound.used_hold(catalog)
        {
            return None;
        }
        if basis.compiled.hold(catalog) {
            return Some(prepared.for_host(&host, basis));
        }
        self.compiled_again(prepared, basis, plan).await.ok().flatten()
    }

    /// Compiles what a statement was bound to anew; `None` if its objects have changed on the way.
    async fn compiled_again(
        &mut self,
        prepared: &Prepared,
        basis: &Basis,
        plan: &Arc<RowPlan>,
    ) -> Result<Option<Arc<Prepared>>> {
        let before = plan.clone();
        let work = move |planning: &Planning| -> Result<(RowPlan, Arc<Lookups>)> {
            planning.compile_noting(before.bound.clone())
        };
        let good = |(plan, compiled): (RowPlan, Arc<Lookups>), host: &Host| {
            compiled.hold(&host.catalog.catalog).then_some((plan, compiled))
        };
        let ((plan, compiled), host) = self.plan(&prepared.text, work, good).await?;
        if !basis.bound.used_hold(&host.catalog.catalog) {
            return Ok(None);
        }
        let basis = basis.compiled_anew(compiled, host.reader());
        let prepared = prepared.for_host(&host, &basis);
        let body = Body::Rows(Arc::new(plan));
        Ok(Some(Arc::new(Prepared { body, basis: Some(basis), ..Prepared::clone(&prepared) })))
    }

    /// A statement that was bound already, compiled anew after the engine found its plan outdated;
    /// `None` where it has to be bound anew, too.
    pub(crate) async fn recompiled(&mut self, prepared: &Prepared) -> Option<Result<Arc<Prepared>>> {
        let (Origin::Text | Origin::Shape | Origin::Cursor(_), Some(basis), Body::Rows(plan)) =
            (&prepared.origin, &prepared.basis, &prepared.body)
        else {
            return None;
        };
        let host = self.host();
        if !basis.is_for(|| host.reader()) || !basis.bound.used_hold(&host.catalog.catalog) {
            return None;
        }
        self.compiled_again(prepared, basis, plan).await.transpose()
    }

    /// Binds and compiles a statement anew whose parameters have types already. Its result columns may
    /// not have changed: clients have been told them.
    async fn analysed_again(&mut self, prepared: &Prepared) -> Result<Arc<Prepared>> {
        let told: Vec<Oid> = prepared.params.iter().map(|ty| ty.oid).collect();
        let renewed = self.prepare_text(&prepared.text, &told).await?;
        let same_params = renewed.params.iter().map(|ty| ty.oid).eq(told);
        if !prepared.answers_as(&renewed) || !same_params {
            return Err(SqlError::changed_result_type());
        }
        Ok(renewed)
    }

    /// All statements prepared under names are analysed again before they run (DISCARD PLANS).
    pub(crate) fn outdate_statements(&mut self) {
        for prepared in self.named_statements() {
            if prepared.basis.is_some() {
                let outdated = Prepared { catalog_version: 0, basis: None, ..Prepared::clone(prepared) };
                *prepared = Arc::new(outdated);
            }
        }
    }
}
