//! Certificates for tests, made by the program openssl in a directory of their own.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How long certificates last, in days.
const DAYS: &str = "30";

const CURVE: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];

/// A root, and what it has signed: `NAME.crt` and `NAME.key` in its directory.
pub struct Authority {
    directory: tempfile::TempDir,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let authority =
            Authority { directory: tempfile::tempdir().expect("a temporary directory can be made") };
        let subject = format!("/CN={name}");
        let mut words = vec!["req", "-x509", "-nodes", "-keyout", "root.key", "-out", "root.crt"];
        words.extend(CURVE);
        words.extend(["-subj", &subject, "-days", DAYS]);
        words.extend(["-addext", "keyUsage=critical,keyCertSign,cRLSign"]);
        authority.openssl(&words);
        authority.write("index", "");
        authority.write("number", "01\n");
        let own = "database=index\ncrlnumber=number\ndefault_md=sha256\ncrl_extensions=list\n";
        let list = "[list]\nauthorityKeyIdentifier=keyid:always\n";
        authority.write("settings", &format!("[ca]\ndefault_ca=own\n[own]\n{own}{list}"));
        authority
    }

    /// A file of its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn root(&self) -> PathBuf {
        self.path("root.crt")
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file can be written");
    }

    /// A certificate for this subject and its key; for this machine, if it is a server's.
    pub fn issue(&self, name: &str, subject: &str, serial: u32) {
        self.issue_for(name, subject, serial, DAYS);
    }

    /// One of X.509 version 1, which has no extensions.
    pub fn issue_old(&self, name: &str, subject: &str, serial: u32) {
        self.issue(name, subject, serial);
        let (request, certificate, serial) =
            (format!("{name}.csr"), format!("{name}.crt"), serial.to_string());
        let mut words = vec!["x509", "-req", "-in", &request, "-out", &certificate, "-days", DAYS];
        words.extend(["-CA", "root.crt", "-CAkey", "root.key", "-set_serial", &serial]);
        self.openssl(&words);
    }

    /// One whose time is over.
    pub fn issue_expired(&self, name: &str, subject: &str, serial: u32) {
        self.issue_for(name, subject, serial, "-1");
    }

    fn issue_for(&self, name: &str, subject: &str, serial: u32, days: &str) {
        let (key, request) = (format!("{name}.key"), format!("{name}.csr"));
        let (certificate, serial) = (format!("{name}.crt"), serial.to_string());
        let mut words = vec!["req", "-new", "-nodes", "-keyout", &key, "-out", &request, "-subj", subject];
        words.extend(CURVE);
        self.openssl(&words);
        self.write("extensions", "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
        let mut words = vec!["x509", "-req", "-in", &request, "-out", &certificate, "-days", days];
        words.extend(["-CA", "root.crt", "-CAkey", "root.key", "-set_serial", &serial]);
        words.extend(["-extfile", "extensions"]);
        self.openssl(&words);
        self.permit(&key, 0o600);
    }

    pub fn permit(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), Permissions::from_mode(mode)).expect("the file is ours");
    }

    /// Revokes a certificate; answers the list of those that are.
    pub fn revoke(&self, name: &str) -> PathBuf {
        let certificate = format!("{name}.crt");
        let own = ["ca", "-config", "settings", "-keyfile", "root.key", "-cert", "root.crt"];
        self.openssl(&[&own[..], &["-revoke", &certificate]].concat());
        self.openssl(&[&own[..], &["-gencrl", "-crldays", DAYS, "-out", "revoked.pem"]].concat());
        self.path("revoked.pem")
    }

    /// Settings of a server with a certificate of this name.
    pub fn settings(&self, name: &str) -> Vec<String> {
        let file = |ending: &str| self.path(&format!("{name}.{ending}")).display().to_string();
        vec![
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", file("crt")),
            format!("ssl_key_file={}", file("key")),
        ]
    }

    /// Runs openssl in its directory; answers what it says.
    pub fn openssl(&self, words: &[&str]) -> String {
        let mut command = Command::new("openssl");
        let done =
            command.args(words).current_dir(self.directory.path()).output().expect("openssl is installed");
        assert!(done.status.success(), "openssl {words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

/// A setting that names a file.
pub fn names(setting: &str, path: &Path) -> String {
    format!("{setting}={}", path.display())
}
