//! Long texts, which are read and planned beside the executors: [`crate::statement::planning`]. So are short
//! ones that turn out to take long (views over views, a constant that takes seconds to compute): planned
//! where their session is for as long as a one-shot may run, and then begun anew.
//!
//! A definition or a GRANT may be committed while a session waits for that. What was planned is looked at
//! again then: it runs if it is what the new catalog says, too, and is planned anew if it is not.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use archipel_planner::native::is_outdated;
use archipel_sql::ast::StatementText;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::interrupt;
use archipel_sql::parser::{Keeps, standard_strings};

use super::analytic::GivenUpOnDrop;
use crate::session::Session;
use crate::session::host::Host;
use crate::statement::planning::{Planning, is_long};
use crate::wire::output::Severity;

/// How often something is planned apart. If each time a definition has come in between it is planned by
/// its session, which nothing comes between.
const ROUNDS_MAX: usize = 3;

impl Session {
    /// What planning needs of this session, as of now.
    pub(crate) fn planning(&mut self) -> Planning {
        self.see_definitions();
        Planning::new(self.host(), self.began_at())
    }

    /// Plans something of this text: here, or if it is long or takes long on a thread for that. There a
    /// request to stop, a timeout or a client that has gone ends the wait at once. Answers what came of
    /// it, and the host that this is good for.
    ///
    /// `good` is asked where the catalog is another when the wait is over: for what came of it, or what it
    /// is by that host, if it is good for that one, too.
    pub(crate) async fn plan<T: Send + 'static>(
        &mut self,
        text: &str,
        work: impl Fn(&Planning) -> Result<T> + Clone + Send + 'static,
        good: impl Fn(T, &Host) -> Option<T>,
    ) -> Result<(T, Arc<Host>)> {
        if !is_long(text) {
            let planning = self.planning();
            if let Some(planned) = interrupt::within(self.server.engine.one_shot_budget(), || work(&planning))
            {
                return Ok((planned?, planning.host));
            }
        }
        for _ in 0..ROUNDS_MAX {
            let planning = self.planning();
            let planned = self.plan_apart(&planning, work.clone()).await;
            let host = self.host();
            if host.catalog.version == planning.host.catalog.version {
                return Ok((planned?, host));
            }
            match planned {
                Ok(planned) => {
                    if let Some(planned) = good(planned, &host) {
                        return Ok((planned, host));
                    }
                }
                // It has met tables of the new catalog.
                Err(error) if is_outdated(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let planning = self.planning();
        Ok((work(&planning)?, planning.host))
    }

    /// Runs `work` on a thread for it, in the name of a planning's session.
    pub(in crate::session) async fn plan_apart<T: Send + 'static>(
        &self,
        planning: &Planning,
        work: impl FnOnce(&Planning) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let given_up = Arc::new(AtomicBool::new(false));
        let planning = planning.beside(given_up.clone());
        let _given_up = GivenUpOnDrop(given_up);
        let entry = self.entry().clone();
        tokio::select! {
            biased;
            planned = planning.run(&self.server.planning, work) => planned?,
            () = entry.cancel_asked() => Err(entry.cancel_error()),
            () = self.client_lost() => Err(entry.cancel_error()),
        }
    }

    /// The statements of a text.
    pub(crate) async fn read(&mut self, text: &Arc<str>) -> Result<Vec<StatementText>> {
        if !is_long(text) {
            return archipel_sql::parser::parse(text);
        }
        let (planning, long) = (self.planning(), text.clone());
        self.plan_apart(&planning, move |_| archipel_sql::parser::parse(&long)).await
    }

    /// A text as it is read where standard_conforming_strings is on, whatever the session has said. The
    /// warnings of its constants are told.
    pub(in crate::session) async fn standard_text(&mut self, text: &Arc<str>) -> Result<Arc<str>> {
        let syntax = self.settings.effective().strings;
        if syntax.is_usual() {
            return Ok(text.clone());
        }
        let long = text.clone();
        let read = move |_: &Planning| {
            let read = standard_strings(&long, syntax, Keeps::Characters);
            Ok((read.text.map(Arc::<str>::from), read.warnings))
        };
        let planning = self.planning();
        let (standard, warnings) = match is_long(text) {
            true => self.plan_apart(&planning, read).await?,
            false => read(&planning)?,
        };
        for warning in &warnings {
            self.notice(Severity::Warning, warning);
        }
        standard
    }

    /// Which identifiers of a text are cut.
    pub(in crate::session) async fn truncations(&mut self, text: &Arc<str>) -> Result<Vec<SqlError>> {
        if !is_long(text) {
            return Ok(archipel_sql::parser::truncation_notices(text));
        }
        let (planning, long) = (self.planning(), text.clone());
        self.plan_apart(&planning, move |_| Ok(archipel_sql::parser::truncation_notices(&long))).await
    }
}
