//! Lists of settings that sessions begin with: of roles, of databases, of all (guc.c's arrays).

use archipel_sql::ast::SettingChange;
use archipel_sql::error::{Result, SqlError, SqlState};

use crate::function::routine;
use crate::work::Work;

/// Changes a list of settings that sessions begin with. RESET ALL takes what the role in force may set.
pub(crate) fn change_list(
    settings: &mut Vec<(String, String)>,
    change: &SettingChange,
    work: &Work<'_>,
) -> Result<()> {
    let session = work.env.context.session;
    let (name, value) = match change {
        SettingChange::Set(set) => (&set.name, routine::setting_text(set, session)?),
        // Of a list that there is, only what can be in it is taken (validate_option_array_item).
        SettingChange::Reset(name) if !settings.is_empty() && !session.may_give_setting(name) => {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        SettingChange::Reset(name) => (name, None),
        SettingChange::ResetAll => {
            let superuser = work.env.system || work.authority().is_superuser();
            settings.retain(|(name, _)| !superuser && !session.may_give_setting(name));
            return Ok(());
        }
    };
    routine::put_setting(settings, name, value, session);
    Ok(())
}
