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
//! Its role is no part of a plan, as no table has policies: rights are asked for anew.

use std::sync::Arc;

use archipel_sql::catalog::{Catalog, Lookups, Requirement};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::types::Oid;

use super::cache::Key;
use super::{Body, Origin, Prepared, RowPlan};
use crate::session::Session;
use crate::session::host::Host;

/// What a plan was made of.
#[derive(Clone)]
pub struct Basis {
    /// What binding it asked of the catalog.
    pub bound: Arc<Lookups>,
    /// And what compiling it did, with the routines it calls.
    pub compiled: Arc<Lookups>,
    /// What whoever runs it must be allowed.
    pub needed: Arc<[Requirement]>,
}

impl Basis {
    /// Whether a new analysis would come to the same.
    pub fn holds(&self, catalog: &Catalog) -> bool {
        self.bound.hold(catalog) && self.compiled.hold(catalog)
    }
}

impl Prepared {
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
        if prepared.catalog_version == self.catalog_version() {
            return Some(prepared);
        }
        let valid = self.still_meant(&prepared)?;
        self.remember(key.clone(), &valid);
        Some(valid)
    }

    /// `prepared`, which was found by what was written, if a new analysis would come to the same.
    pub(crate) fn still_meant(&mut self, prepared: &Prepared) -> Option<Arc<Prepared>> {
        let basis = prepared.basis.as_ref()?;
        let host = self.host();
        let good = prepared.search_path == host.search_path && basis.holds(&host.catalog.catalog);
        good.then(|| prepared.for_host(&host, basis))
    }

    pub(crate) fn remember(&self, key: Key, prepared: &Arc<Prepared>) {
        if !prepared.session_dependent {
            self.executor.statements.borrow_mut().insert(key, prepared.clone());
        }
    }

    /// The statement prepared under a name, analysed again if it has to be (RevalidateCachedQuery).
    pub(crate) async fn current(&mut self, name: &str) -> Result<Arc<Prepared>> {
        let prepared = self.statement(name)?;
        let Body::Rows(plan) = &prepared.body else { return Ok(prepared) };
        let settings = self.settings.effective();
        let same = prepared.catalog_version == self.catalog_version()
            && prepared.role == settings.roles.current
            && prepared.session_path == settings.search_path;
        if same {
            return Ok(prepared);
        }
        let renewed = match self.revalidated(&prepared, plan) {
            Some(valid) => valid,
            None => self.analysed_again(&prepared).await?,
        };
        self.replace_statement(name, &renewed);
        Ok(renewed)
    }

    /// `prepared` where its path and its objects are what they were.
    fn revalidated(&mut self, prepared: &Prepared, plan: &RowPlan) -> Option<Arc<Prepared>> {
        let basis = prepared.basis.as_ref()?;
        let host = self.host();
        let catalog = &host.catalog.catalog;
        if !catalog.is_same_path(&prepared.search_path, &host.search_path) || !basis.bound.used_hold(catalog)
        {
            return None;
        }
        if basis.compiled.hold(catalog) {
            return Some(prepared.for_host(&host, basis));
        }
        self.compiled_again(prepared, basis, plan).ok()
    }

    /// Compiles what a statement was bound to anew.
    fn compiled_again(
        &mut self,
        prepared: &Prepared,
        basis: &Basis,
        plan: &RowPlan,
    ) -> Result<Arc<Prepared>> {
        let host = self.host();
        let (plan, compiled) = self.compile_rows_noting(plan.bound.clone(), &host)?;
        let basis = Basis { compiled, ..basis.clone() };
        let prepared = prepared.for_host(&host, &basis);
        let body = Body::Rows(Arc::new(plan));
        Ok(Arc::new(Prepared { body, basis: Some(basis), ..Prepared::clone(&prepared) }))
    }

    /// A statement that was bound already, compiled anew after the engine found its plan outdated;
    /// `None` where it has to be bound anew, too.
    pub(crate) fn recompiled(&mut self, prepared: &Prepared) -> Option<Result<Arc<Prepared>>> {
        let (Origin::Text | Origin::Shape | Origin::Cursor(_), Some(basis), Body::Rows(plan)) =
            (&prepared.origin, &prepared.basis, &prepared.body)
        else {
            return None;
        };
        let holds = basis.bound.used_hold(&self.host().catalog.catalog);
        holds.then(|| self.compiled_again(prepared, basis, plan))
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
