//! Certificates, keys and revocation lists in PEM files. Errors name the file, and the line where there
//! is one, in PostgreSQL's words.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use super::error::TlsError;
use crate::regular_file;

/// Bytes of one file: lists of what an authority has revoked are the longest.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Rights that the file of a key of our own may not give, and one of root's.
const NOT_FOR_OWN: u32 = 0o077;
const NOT_FOR_ROOTS: u32 = 0o037;

/// The certificates of a file, the first one first.
pub(super) fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path, what)?;
    sections(path, what, &text, "CERTIFICATE", CertificateDer::pem_slice_iter(&text))
}

/// The lists of a file of revocation lists.
pub(super) fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let what = "SSL certificate revocation list file";
    let text = read(path, what)?;
    sections(path, what, &text, "X509 CRL", CertificateRevocationListDer::pem_slice_iter(&text))
}

/// The private key of a file that nobody else may read.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let shown = path.display();
    let facts = std::fs::metadata(path)
        .map_err(|error| TlsError(format!("could not access private key file \"{shown}\": {error}")))?;
    check_access(path, &facts)?;
    let what = "private key file";
    let text = read(path, what)?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(key) => Ok(key),
        Err(_) if is_encrypted(&text) => Err(TlsError(format!(
            "private key file \"{shown}\" cannot be loaded because it requires a passphrase"
        ))),
        Err(error) => Err(TlsError(format!("could not load {what} \"{shown}\": {}", reason(&error)))),
    }
}

/// Whether a key needs a passphrase, in one form or the other.
fn is_encrypted(text: &[u8]) -> bool {
    String::from_utf8_lossy(text)
        .lines()
        .any(|line| line.starts_with("-----BEGIN ENCRYPTED") || line.starts_with("Proc-Type: 4,ENCRYPTED"))
}

/// As PostgreSQL checks a key's file.
fn check_access(path: &Path, facts: &Metadata) -> Result<(), TlsError> {
    let shown = path.display();
    // SAFETY: geteuid has no preconditions and touches no memory.
    let own = unsafe { libc::geteuid() };
    if !facts.is_file() {
        return Err(TlsError(format!("private key file \"{shown}\" is not a regular file")));
    }
    if facts.uid() != own && facts.uid() != 0 {
        let message = format!("private key file \"{shown}\" must be owned by the database user or root");
        return Err(TlsError(message));
    }
    let not_for = if facts.uid() == own { NOT_FOR_OWN } else { NOT_FOR_ROOTS };
    if facts.mode() & not_for != 0 {
        return Err(TlsError(format!(
            "private key file \"{shown}\" has group or world access: File must have permissions u=rw (0600) or \
             less if owned by the database user, or permissions u=rw,g=r (0640) or less if owned by root."
        )));
    }
    Ok(())
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, TlsError> {
    regular_file::read(path, FILE_BYTES_MAX)
        .map_err(|error| TlsError(format!("could not load {what} \"{}\": {error}", path.display())))
}

/// The sections of a kind: there must be one, and each must be readable.
fn sections<T>(
    path: &Path,
    what: &str,
    text: &[u8],
    kind: &str,
    found: impl Iterator<Item = Result<T, pem::Error>>,
) -> Result<Vec<T>, TlsError> {
    let mut sections = Vec::new();
    for section in found {
        let section = section.map_err(|error| {
            let line = line_of(text, kind, sections.len());
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            TlsError(format!("could not load {what} \"{}\": {place}{}", path.display(), reason(&error)))
        })?;
        sections.push(section);
    }
    if sections.is_empty() {
        let message = format!("could not load {what} \"{}\": no start line", path.display());
        return Err(TlsError(message));
    }
    Ok(sections)
}

/// The line on which a file's section of this kind and number begins.
fn line_of(text: &[u8], kind: &str, number: usize) -> Option<usize> {
    let begin = format!("-----BEGIN {kind}-----");
    let text = String::from_utf8_lossy(text);
    let mut begins = text.lines().enumerate().filter(|(_, line)| line.trim_end() == begin);
    begins.nth(number).map(|(line, _)| line + 1)
}

fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => "no start line".to_owned(),
        pem::Error::MissingSectionEnd { .. } => "bad end line".to_owned(),
        pem::Error::Base64Decode(error) => format!("bad base64 decode: {error}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.crt");
        let refused = |text: &str| {
            std::fs::write(&path, text).unwrap();
            certificates(&path, "server certificate file").unwrap_err().to_string()
        };
        let told = refused("# mine\n-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n");
        assert!(told.contains("some.crt\": line 2: bad base64 decode"), "{told}");
        assert!(refused("nothing\n").ends_with("no start line"));
        assert!(refused("-----BEGIN CERTIFICATE-----\nAAAA\n").ends_with("line 1: bad end line"));
        let missing = certificates(&folder.path().join("none"), "root certificate file").unwrap_err();
        assert!(missing.to_string().starts_with("could not load root certificate file"), "{missing}");
    }

    #[test]
    fn keys_are_their_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.key");
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
        let with = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            private_key(&path).map_err(|error| error.to_string())
        };
        assert!(with(0o600).is_ok());
        for mode in [0o644, 0o660] {
            assert!(with(mode).unwrap_err().contains("has group or world access"), "{mode:o}");
        }
        std::fs::write(&path, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n").unwrap();
        assert!(with(0o600).unwrap_err().contains("requires a passphrase"));
        assert!(private_key(folder.path()).unwrap_err().to_string().contains("not a regular file"));
        let missing = private_key(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.starts_with("could not access private key file"), "{missing}");
    }
}
