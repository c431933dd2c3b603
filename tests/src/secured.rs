//! What servers need that take nobody without TLS and a password, and who connects to them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The password of `archipel`, who is a superuser.
pub const PASSWORD: &str = "secret";

/// Who comes in over TCP has to encrypt, and to know the password.
pub const HBA: &str = "hostssl all all 127.0.0.1/32 scram-sha-256\nlocal all all trust\n";

/// The certificate of a server on this machine, its key and its root, in a directory of their own.
pub struct Certificates {
    directory: tempfile::TempDir,
}

impl Certificates {
    /// Made anew, with the rules beside them.
    pub fn make() -> Certificates {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let script = crate::file("drivers/certificates");
        let status = Command::new(&script)
            .arg(directory.path())
            .stdin(Stdio::null())
            .status()
            .expect("the script can be run");
        assert!(status.success(), "{}: {status}", script.display());
        let certificates = Certificates { directory };
        std::fs::write(certificates.path("pg_hba.conf"), HBA).expect("a file can be written");
        certificates
    }

    /// One of its files: `server.crt`, `server.key`, `root.crt` and `pg_hba.conf`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The settings of a server that has its files in `directory`.
    pub fn settings(directory: &std::path::Path) -> [String; 4] {
        let file = |setting: &str, name: &str| format!("{setting}={}", directory.join(name).display());
        [
            "ssl=on".to_owned(),
            file("ssl_cert_file", "server.crt"),
            file("ssl_key_file", "server.key"),
            file("hba_file", "pg_hba.conf"),
        ]
    }

    /// How `archipel` connects to such a server on this port.
    pub fn url(&self, port: u16) -> String {
        let root = self.path("root.crt");
        format!(
            "postgresql://archipel:{PASSWORD}@localhost:{port}/archipel?sslmode=verify-full&sslrootcert={}",
            root.display()
        )
    }

    /// The directory of its files.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }
}
