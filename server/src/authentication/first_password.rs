//! The superuser's first password, and when other machines may connect.
//!
//! A new data directory's superuser has no password: nobody but this machine's users gets in. Containers are
//! reached from elsewhere alone, and so `ARCHIPEL_PASSWORD`, or the file that `ARCHIPEL_PASSWORD_FILE` names, gives
//! it one at the first start.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use archipel_sql::catalog::Catalog;

use super::rules::Rules;
use crate::config::PASSWORD_VARIABLES;

const VARIABLE: &str = PASSWORD_VARIABLES[0];
const FILE_VARIABLE: &str = PASSWORD_VARIABLES[1];

/// Bytes of the file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The password that the environment gives; says what is wrong with it.
pub fn given() -> Result<Option<String>, String> {
    let text = |name: &str| match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("environment variable {name} is not UTF-8")),
    };
    from(text(VARIABLE)?, std::env::var_os(FILE_VARIABLE).map(PathBuf::from))
}

fn from(text: Option<String>, file: Option<PathBuf>) -> Result<Option<String>, String> {
    let (password, origin) = match (text, file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(format!("environment variables {VARIABLE} and {FILE_VARIABLE} exclude each other"));
        }
        (Some(text), None) => (text, format!("environment variable {VARIABLE}")),
        (None, Some(path)) => (read(&path)?, format!("file \"{}\"", path.display())),
    };
    if password.is_empty() || password.contains('\0') {
        return Err(format!("{origin}: it holds no password"));
    }
    Ok(Some(password))
}

/// A file's text without the line's end.
fn read(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let mut text = String::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| format!("could not read file \"{}\": {error}", path.display()))?;
    // A part of a password is another password.
    if read as u64 > FILE_BYTES_MAX {
        return Err(format!("file \"{}\" is longer than {FILE_BYTES_MAX} bytes", path.display()));
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Whether a server may listen here: on addresses of other machines only where somebody has said how those come
/// in. Says what to do.
pub fn check_listen(
    addresses: &[SocketAddr],
    rules: &Rules,
    catalog: &Catalog,
    hba: &Path,
) -> Result<(), String> {
    let known = |role: &archipel_sql::catalog::Role| role.superuser && role.login && role.password.is_some();
    let beyond = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback());
    let Some(listen) = beyond else { return Ok(()) };
    if rules.speak_of_other_machines() || catalog.roles().any(|role| known(role)) {
        return Ok(());
    }
    Err(format!(
        "refusing to listen on {listen}: no superuser has a password; set {VARIABLE} or {FILE_VARIABLE}, or one \
         with ALTER ROLE over a loopback address or a Unix socket, or say in \"{}\" how clients of other \
         machines come in",
        hba.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_comes_from_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::write(&path, "se cret\n").unwrap();
        assert_eq!(from(None, None), Ok(None));
        assert_eq!(from(Some("x".into()), None), Ok(Some("x".into())));
        assert_eq!(from(None, Some(path.clone())), Ok(Some("se cret".into())));
        assert!(from(Some("x".into()), Some(path.clone())).unwrap_err().contains("exclude each other"));
        std::fs::write(&path, "x".repeat(FILE_BYTES_MAX as usize + 1)).unwrap();
        assert!(from(None, Some(path.clone())).unwrap_err().contains("is longer than 65536 bytes"));
        std::fs::write(&path, "\n").unwrap();
        assert!(from(None, Some(path)).unwrap_err().contains("holds no password"));
        assert!(from(Some(String::new()), None).is_err());
        assert!(from(None, Some("/nonexistent".into())).unwrap_err().contains("could not read file"));
    }
}
