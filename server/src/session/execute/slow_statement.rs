//! Statements that take long, told in the server's log: `log_min_duration_statement`, and with their
//! plans `auto_explain.log_min_duration`.

use std::time::Duration;

use archipel_planner::explain;

use crate::session::Session;
use crate::statement::{Body, Code, Prepared};

impl Session {
    /// Tells of a statement that took so long, if it is to be told of.
    #[inline]
    pub(in crate::session) fn tell_if_slow(&self, prepared: &Prepared, took: Duration) {
        let settings = self.settings.effective();
        let least = settings.log_statement_ms.min(settings.log_plan_ms);
        if took.as_millis() >= u128::from(least) {
            self.tell_slow(prepared, took);
        }
    }

    #[cold]
    fn tell_slow(&self, prepared: &Prepared, took: Duration) {
        let settings = self.settings.effective();
        // As the client has written it: what is prepared may have parameters for its literals.
        let (pid, text) = (self.entry().process_id, self.told.trim());
        let took_ms = took.as_secs_f64() * 1e3;
        if took.as_millis() >= u128::from(settings.log_statement_ms) {
            tracing::info!(pid, "duration: {took_ms:.3} ms  statement: {text}");
        }
        if took.as_millis() < u128::from(settings.log_plan_ms) {
            return;
        }
        let Body::Rows(plan) = &prepared.body else { return };
        let lines = match &plan.code {
            Code::Native(compiled) => explain::statement(compiled),
            Code::Call(call) => archipel_procedures::explain(&call.program),
            Code::Trigger(_) => return,
        };
        let plan = lines.join("\n");
        tracing::info!(pid, "duration: {took_ms:.3} ms  plan:\nQuery Text: {text}\n{plan}");
    }
}
