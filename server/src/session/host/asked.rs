//! What functions of a statement ask for beside it, to be done once it has succeeded.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use archipel_engine::Repartition;
use archipel_planner::ddl::DistributionCall;
use archipel_sql::catalog::SessionRoles;
use archipel_sql::error::SqlError;
use parking_lot::Mutex;

/// A statement warns so often: a query may ask for ever more sessions that are not there.
const WARNINGS_MAX: usize = 10_000;

/// A change of a setting asked for by a function.
#[derive(Clone, Debug)]
pub struct PendingSetting {
    pub name: String,
    pub value: String,
    pub local: bool,
}

/// The roles in force behind one of the changes.
struct RolesSet {
    change: usize,
    roles: SessionRoles,
}

/// All that was asked for.
#[derive(Default)]
pub struct Requests {
    pub settings: Vec<PendingSetting>,
    /// Of those that are about roles; the last one counts for what comes later in the statement.
    roles: Vec<RolesSet>,
    /// Distribution functions that were called, to be run as definitions.
    pub definitions: Vec<DistributionCall>,
    pub repartitions: Vec<Repartition>,
    /// The configuration is to be read again.
    pub reload: bool,
    /// To be told.
    pub warnings: Vec<SqlError>,
}

impl Requests {
    /// Asks for a setting that makes these the roles in force.
    pub fn set_roles(&mut self, setting: PendingSetting, roles: SessionRoles) {
        self.roles.push(RolesSet { change: self.settings.len(), roles });
        self.settings.push(setting);
    }

    /// The roles in force, if functions have set them.
    pub fn roles(&self) -> Option<SessionRoles> {
        self.roles.last().map(|set| set.roles)
    }

    /// Warns, if that was not done too often already.
    pub fn warn(&mut self, warning: SqlError) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        }
    }
}

fn last_of_each(settings: Vec<PendingSetting>) -> Vec<PendingSetting> {
    if settings.len() < 2 {
        return settings;
    }
    let mut met = BTreeSet::new();
    let last = settings.into_iter().rev().filter(|set| met.insert((set.name.to_lowercase(), set.local)));
    let mut last: Vec<PendingSetting> = last.collect();
    last.reverse();
    last
}

/// See the module. Hardly any statement asks for something, and every statement looks, several times: without a
/// lock as long as nobody has asked.
#[derive(Default)]
pub struct Asked {
    any: AtomicBool,
    requests: Mutex<Requests>,
}

impl Asked {
    /// Notes what is asked for. From any thread that works for the statement.
    pub fn note(&self, note: impl FnOnce(&mut Requests)) {
        note(&mut self.requests.lock());
        self.any.store(true, Ordering::Release);
    }

    /// Whether nothing has been asked for.
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// What is known of all that was asked for; the default where that is nothing.
    pub fn look<T: Default>(&self, look: impl FnOnce(&Requests) -> T) -> T {
        if self.is_empty() { T::default() } else { look(&self.requests.lock()) }
    }

    /// Takes all of it. The statement has ended by then, or not begun: nobody asks for more.
    pub fn take(&self) -> Requests {
        if self.is_empty() {
            return Requests::default();
        }
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.requests.lock())
    }

    /// Takes the settings, which take hold before the rest is done: of each its last value, as a statement may
    /// have set it for every row.
    pub fn take_settings(&self) -> Vec<PendingSetting> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut requests = self.requests.lock();
        requests.roles.clear();
        last_of_each(std::mem::take(&mut requests.settings))
    }

    /// Takes back all settings but the first `kept`.
    pub fn undo_settings(&self, kept: usize) {
        if !self.is_empty() {
            let mut requests = self.requests.lock();
            requests.settings.truncate(kept);
            requests.roles.retain(|set| set.change < kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::types::Oid;

    use super::*;

    #[test]
    fn the_last_role_counts_until_its_change_is_taken_back_or_taken_over() {
        let asked = Asked::default();
        let setting = |name: &str| PendingSetting { name: name.into(), value: "x".into(), local: false };
        let roles = |current: u32| SessionRoles { current: Oid(current), session: Oid(1) };
        let now = |asked: &Asked| asked.look(Requests::roles).map(|roles| roles.current.0);
        asked.note(|asked| asked.settings.push(setting("work_mem")));
        assert_eq!(now(&asked), None);
        asked.note(|asked| asked.set_roles(setting("role"), roles(7)));
        asked.note(|asked| asked.set_roles(setting("role"), roles(8)));
        assert_eq!(now(&asked), Some(8));
        asked.undo_settings(2);
        assert_eq!(now(&asked), Some(7));
        asked.undo_settings(1);
        assert_eq!(now(&asked), None);
        asked.note(|asked| asked.set_roles(setting("role"), roles(9)));
        assert_eq!(asked.take_settings().len(), 2);
        assert_eq!(now(&asked), None);
    }

    #[test]
    fn of_a_setting_that_was_set_for_each_row_the_last_value_is_taken() {
        let asked = Asked::default();
        for (name, value, local) in [
            ("a.b", "1", false),
            ("role", "x", false),
            ("A.b", "2", false),
            ("a.b", "3", true),
            ("a.b", "4", false),
        ] {
            let (name, value) = (name.to_owned(), value.to_owned());
            asked.note(|asked| asked.settings.push(PendingSetting { name, value, local }));
        }
        let taken: Vec<String> = asked.take_settings().into_iter().map(|set| set.value).collect();
        assert_eq!(taken, ["x", "3", "4"]);
    }
}
