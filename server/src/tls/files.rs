//! Certificates, keys and revocation lists in PEM files. Errors name the file, and the line where there
//! is one, in PostgreSQL's words.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::error::TlsError;
use crate::regular_file;

/// Bytes of one file: lists of what an authority has revoked are the longest.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Lists of one directory.
const LISTS_MAX: usize = 1_000;

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

/// The lists of a directory, where they are named as `openssl rehash` names them: `HASH.r0`.
pub(super) fn revocations_in(
    directory: &Path,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let what = "SSL certificate revocation list directory";
    let failed =
        |reason: String| TlsError(format!("could not load {what} \"{}\": {reason}", directory.display()));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(|error| failed(error.to_string()))? {
        let entry = entry.map_err(|error| failed(error.to_string()))?;
        if entry.file_name().to_str().is_some_and(is_list_name) {
            paths.push(entry.path());
        }
    }
    // PostgreSQL refuses every certificate then; here nobody need find out.
    if paths.is_empty() {
        return Err(failed("it has no lists (HASH.r0, as openssl rehash names them)".to_owned()));
    }
    if paths.len() > LISTS_MAX {
        return Err(failed(format!("it has more than {LISTS_MAX} lists")));
    }
    paths.sort();
    let lists: Result<Vec<_>, _> = paths.iter().map(|path| revocations(path)).collect();
    Ok(lists?.into_iter().flatten().collect())
}

/// Whether a file is named as lists are: eight digits of a hash, and a number.
fn is_list_name(name: &str) -> bool {
    let Some((hash, number)) = name.split_once(".r") else { return false };
    let is_hash = hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The private key of a file that nobody else may read. `passphrase` is asked if it needs one.
pub(super) fn private_key(
    path: &Path,
    passphrase: impl FnOnce() -> Result<Vec<u8>, TlsError>,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let shown = path.display();
    let facts = std::fs::metadata(path)
        .map_err(|error| TlsError(format!("could not access private key file \"{shown}\": {error}")))?;
    check_access(path, &facts)?;
    let what = "private key file";
    let text = read(path, what)?;
    let failed = |reason: String| TlsError(format!("could not load {what} \"{shown}\": {reason}"));
    if let Some(encrypted) = encrypted_section(&text) {
        let encrypted = encrypted.map_err(failed)?;
        return decrypted(&encrypted, &passphrase()?).map_err(failed);
    }
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(key) => Ok(key),
        Err(_) if String::from_utf8_lossy(&text).contains("Proc-Type: 4,ENCRYPTED") => Err(failed(
            "its encryption is of old: \"openssl pkcs8 -topk8\" makes one that can be read".to_owned(),
        )),
        Err(error) => Err(failed(reason(&error))),
    }
}

/// The first key that needs a passphrase (RFC 5958, section 3), unless there is another one before it.
fn encrypted_section(text: &[u8]) -> Option<Result<Vec<u8>, String>> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim_end);
    let first = lines.find(|line| line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----"))?;
    if first != "-----BEGIN ENCRYPTED PRIVATE KEY-----" {
        return None;
    }
    let body: String = lines.take_while(|line| !line.starts_with("-----END ")).collect();
    Some(STANDARD.decode(body).map_err(|error| format!("bad base64 decode: {error}")))
}

/// A key without its encryption, which is that of PBES2 (RFC 8018).
fn decrypted(encrypted: &[u8], passphrase: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let info = EncryptedPrivateKeyInfoRef::try_from(encrypted)
        .map_err(|error| format!("it cannot be read, or its encryption is not supported: {error}"))?;
    let key = info.decrypt(passphrase);
    let key = key.map_err(|error| format!("bad decrypt: {error}: the passphrase may be wrong"))?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec())))
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
            private_key(&path, unasked).map_err(|error| error.to_string())
        };
        assert!(with(0o600).is_ok());
        for mode in [0o644, 0o660] {
            assert!(with(mode).unwrap_err().contains("has group or world access"), "{mode:o}");
        }
        std::fs::write(&path, "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n").unwrap();
        assert!(with(0o600).unwrap_err().contains("openssl pkcs8 -topk8"));
        let told = |path: &Path| private_key(path, unasked).unwrap_err().to_string();
        assert!(told(folder.path()).contains("not a regular file"));
        let missing = told(&folder.path().join("none"));
        assert!(missing.starts_with("could not access private key file"), "{missing}");
    }

    fn unasked() -> Result<Vec<u8>, TlsError> {
        Err(TlsError("somebody asks for a passphrase".to_owned()))
    }

    #[test]
    fn a_passphrase_is_asked_for_where_a_key_needs_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.key");
        let write = |text: &str| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
        assert_eq!(private_key(&path, unasked).unwrap_err().to_string(), "somebody asks for a passphrase");
        let given = || Ok(b"secret".to_vec());
        let told = private_key(&path, given).unwrap_err().to_string();
        assert!(told.contains("its encryption is not supported") && !told.contains("secret"), "{told}");
        write("-----BEGIN ENCRYPTED PRIVATE KEY-----\n!\n-----END ENCRYPTED PRIVATE KEY-----\n");
        assert!(private_key(&path, unasked).unwrap_err().to_string().contains("bad base64 decode"));
    }

    #[test]
    fn lists_are_known_by_their_names() {
        for name in ["0a1b2c3d.r0", "FFFFFFFF.r12"] {
            assert!(is_list_name(name), "{name}");
        }
        for name in
            ["0a1b2c3d.0", "0a1b2c3d.r", "0a1b2c3d.rx", "0a1b2c3.r0", "0a1b2c3g.r0", "revoked.pem", ""]
        {
            assert!(!is_list_name(name), "{name}");
        }
        let folder = tempfile::tempdir().unwrap();
        let told = revocations_in(folder.path()).unwrap_err().to_string();
        assert!(told.starts_with("could not load SSL certificate revocation list directory"), "{told}");
        assert!(revocations_in(&folder.path().join("none")).is_err());
    }
}
