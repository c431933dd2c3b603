//! The settings a session begins with, where RESET goes back to.

use super::names::{custom_value_at_startup, startup_setting};
use super::{Name, Result, SessionSettings, canonical};

impl SessionSettings {
    /// Takes a setting that the session begins with; [`started`](SessionSettings::started) comes behind the last
    /// of them. `privileged`: it is given by a superuser, or by a definition that was checked when it was made.
    pub fn set_at_startup(&mut self, name: &str, text: &str, privileged: bool) -> Result<()> {
        match startup_setting(name, privileged)? {
            Some(id) => {
                let value = canonical(id, &self.completed(id, text))?;
                self.put_session_value(&Name::Known(id), Some(value), true);
                self.reset = self.session.clone();
                self.reset_chosen.clone_from(&self.chosen);
                // Others may build on it.
                self.refresh();
            }
            // Of these there may be any number, and nobody looks at one before the last of them.
            None => {
                let value = custom_value_at_startup(name, text)?;
                self.session_custom.insert(name.to_ascii_lowercase(), value);
            }
        }
        Ok(())
    }

    /// All that the session begins with is there.
    pub fn started(&mut self) {
        self.refresh();
    }
}
