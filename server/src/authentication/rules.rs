//! Who may come in, and how: what `pg_hba.conf` and `pg_ident.conf` say, or the built-in rules where there is
//! no `pg_hba.conf`.
//!
//! Both files are read at the start, and again at each reload: one wrong line, and the rules in force stay.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archipel_sql::catalog::Catalog;
use archipel_sql::types::Oid;

use super::address::AddressMatch;
use super::hba::{ConnectionType, HbaLine};
use super::host_name::HostName;
use super::ident::IdentLine;
use super::tokens::{Line, Token, read_file, read_text, reason};
use crate::catalog::CatalogState;
use crate::config::{Config, HBA_FILE, absolute};

/// What holds without a `pg_hba.conf`: whoever is on this machine is trusted, others have a password.
const BUILT_IN: &str = "\
local all,replication all trust
host all,replication all 127.0.0.0/8 trust
host all,replication all ::1/128 trust
host all,replication all all scram-sha-256
";

/// Where the rules are read from, and what bears on them.
#[derive(Clone, Debug)]
pub struct Sources {
    hba: PathBuf,
    /// Somebody has named it, and so it has to be there.
    hba_required: bool,
    ident: PathBuf,
    ssl: bool,
}

/// A file's lines, each as far as it can be read.
type Read<T> = Vec<(Line, Result<T, String>)>;

impl Sources {
    /// Those of a configuration. `ssl`: the server encrypts, as of now.
    pub fn of(config: &Config, ssl: bool) -> Sources {
        let hba = PathBuf::from(config.text("hba_file"));
        Sources {
            hba_required: hba != absolute(config.data_directory.join(HBA_FILE)),
            hba,
            ident: PathBuf::from(config.text("ident_file")),
            ssl,
        }
    }

    /// The file that says who may come in, whether or not it is there.
    pub fn hba_file(&self) -> &Path {
        &self.hba
    }

    /// The lines of `pg_hba.conf`, and whether it is there; else those built in.
    pub fn hba_lines(&self) -> Result<(Read<HbaLine>, bool), String> {
        let (lines, given) = match read_file(&self.hba) {
            Ok(lines) => (lines, true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !self.hba_required => {
                (read_text(BUILT_IN), false)
            }
            Err(error) => return Err(unreadable(&self.hba, &error)),
        };
        let parse = |line: Line| {
            let parsed = HbaLine::parse(&line, self.ssl);
            (line, parsed)
        };
        Ok((lines.into_iter().map(parse).collect(), given))
    }

    /// The lines of `pg_ident.conf`; none if it is not there, as in PostgreSQL.
    pub fn ident_lines(&self) -> Result<Read<IdentLine>, String> {
        let lines = match read_file(&self.ident) {
            Ok(lines) => lines,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unreadable(&self.ident, &error)),
        };
        let parse = |line: Line| {
            let parsed = IdentLine::parse(&line);
            (line, parsed)
        };
        Ok(lines.into_iter().map(parse).collect())
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("could not open configuration file \"{}\": {}", path.display(), reason(error))
}

/// The lines if all of them are good; else what is wrong with each that is not.
fn all_good<T>(read: Read<T>, path: &Path) -> Result<Vec<T>, String> {
    let (mut lines, mut wrong) = (Vec::new(), Vec::new());
    for (line, parsed) in read {
        match parsed {
            Ok(parsed) => lines.push(parsed),
            Err(error) => wrong.push(format!(
                "line {} of configuration file \"{}\": {error}",
                line.number,
                path.display()
            )),
        }
    }
    if wrong.is_empty() { Ok(lines) } else { Err(wrong.join("; ")) }
}

/// A client, as far as the rules look at it.
pub struct Applicant {
    /// `None`: it came through a Unix socket.
    pub address: Option<IpAddr>,
    /// Known once a line asks for it.
    pub name: HostName,
    pub encrypted: bool,
    pub user: String,
    pub database: String,
    pub catalog: Arc<CatalogState>,
}

/// The rules in force.
pub struct Rules {
    hba: Vec<Arc<HbaLine>>,
    pub ident: Vec<IdentLine>,
    /// Whether there is a `pg_hba.conf`.
    given: bool,
}

impl Rules {
    /// Reads the files. What is wrong is told with file and line.
    pub fn read(sources: &Sources) -> Result<Rules, String> {
        let (lines, given) = sources.hba_lines()?;
        let hba = all_good(lines, &sources.hba)?;
        if hba.is_empty() {
            return Err(format!("configuration file \"{}\" contains no entries", sources.hba.display()));
        }
        for line in &hba {
            if let Some(warning) = line.warning {
                tracing::warn!(
                    "line {} of configuration file \"{}\": {warning}",
                    line.number,
                    sources.hba.display()
                );
            }
        }
        let ident = all_good(sources.ident_lines()?, &sources.ident)?;
        Ok(Rules { hba: hba.into_iter().map(Arc::new).collect(), ident, given })
    }

    /// The first line that is about a client (check_hba). Name servers may be asked.
    pub fn find(&self, applicant: &Applicant) -> Option<&Arc<HbaLine>> {
        // The address last: name servers are asked for nothing else.
        self.lines_for(applicant).find(|line| is_connected_so(line, applicant))
    }

    /// The same, if no name server has to be asked for it.
    pub fn find_offhand(&self, applicant: &Applicant) -> Offhand<'_> {
        for line in self.lines_for(applicant) {
            let names_hosts = matches!(line.address, Some(AddressMatch::Host(_)));
            if names_hosts && applicant.address.is_some() && is_encrypted_so(line, applicant) {
                return Offhand::AsksNameServers;
            }
            if is_connected_so(line, applicant) {
                return Offhand::Known(Some(line));
            }
        }
        Offhand::Known(None)
    }

    /// The lines about a client's role and database.
    fn lines_for(&self, applicant: &Applicant) -> impl Iterator<Item = &Arc<HbaLine>> {
        let role = applicant.catalog.catalog.role(&applicant.user).map(|role| role.oid);
        self.hba.iter().filter(move |line| {
            line.databases.iter().any(|token| is_database(token, applicant, role))
                && line.roles.iter().any(|token| is_role(token, applicant, role))
        })
    }

    /// Whether somebody has written down how clients of other machines come in.
    pub fn speak_of_other_machines(&self) -> bool {
        let addresses = self.hba.iter().filter_map(|line| line.address.as_ref());
        self.given && addresses.into_iter().any(|address| address.reaches_beyond_loopback())
    }
}

/// What is known of a client's line without a name server.
pub enum Offhand<'r> {
    /// This line is about it, or none.
    Known(Option<&'r Arc<HbaLine>>),
    /// A line names hosts, and nobody knows yet whether the client is one.
    AsksNameServers,
}

fn is_connected_so(line: &HbaLine, applicant: &Applicant) -> bool {
    let (Some(wanted), Some(address)) = (&line.address, applicant.address) else {
        return line.address.is_none() && applicant.address.is_none();
    };
    is_encrypted_so(line, applicant) && wanted.matches(address, &applicant.name)
}

fn is_encrypted_so(line: &HbaLine, applicant: &Applicant) -> bool {
    match line.connection {
        ConnectionType::HostSsl => applicant.encrypted,
        ConnectionType::HostNoSsl => !applicant.encrypted,
        _ => true,
    }
}

/// Whether a role belongs to another, by grants alone: superusers belong to no role for being superusers.
fn is_member(role: Option<Oid>, of: &str, catalog: &Catalog) -> bool {
    let (Some(role), Some(of)) = (role, catalog.role(of)) else { return false };
    catalog.roles_of(role, false).contains(&of.oid)
}

fn is_database(token: &Token, applicant: &Applicant, role: Option<Oid>) -> bool {
    if token.is("all") {
        true
    } else if token.is("sameuser") {
        applicant.database == applicant.user
    } else if token.is("samerole") || token.is("samegroup") {
        is_member(role, &applicant.database, &applicant.catalog.catalog)
    } else {
        // Nobody connects to replicate.
        !token.is("replication") && token.text == applicant.database
    }
}

fn is_role(token: &Token, applicant: &Applicant, role: Option<Oid>) -> bool {
    match token.text.strip_prefix('+') {
        Some(of) if !token.quoted => is_member(role, of, &applicant.catalog.catalog),
        _ => token.is("all") || token.text == applicant.user,
    }
}

#[cfg(test)]
mod tests {
    use archipel_sql::catalog::{CatalogChange, Membership, Object, Role};

    use super::super::hba::Method;
    use super::*;
    use crate::config::IDENT_FILE;

    fn rules(text: &str) -> Rules {
        let lines = read_text(text);
        let hba = lines.iter().map(|line| Arc::new(HbaLine::parse(line, false).unwrap())).collect();
        Rules { hba, ident: Vec::new(), given: true }
    }

    fn catalog() -> Catalog {
        let mut ann = Role::new(Oid(20_001), "ann");
        let staff = Role::new(Oid(20_002), "staff");
        ann.member_of = vec![Membership { role: staff.oid, grantor: Oid(10), admin: false }];
        let bob = Role::new(Oid(20_003), "bob");
        let roles = [ann, staff, bob].map(|role| CatalogChange::Put(Object::Role(role)));
        Catalog::new(Vec::new()).apply(&roles)
    }

    fn applicant(address: Option<&str>, user: &str, database: &str) -> Applicant {
        let state = CatalogState { catalog: catalog(), version: 1, added_labels: Vec::new() };
        Applicant {
            address: address.map(|address| address.parse().unwrap()),
            name: HostName::default(),
            encrypted: false,
            user: user.to_owned(),
            database: database.to_owned(),
            catalog: Arc::new(state),
        }
    }

    fn found(rules: &Rules, address: Option<&str>, user: &str, database: &str) -> Option<u32> {
        rules.find(&applicant(address, user, database)).map(|line| line.number)
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        let rules = rules(
            "local sameuser all trust\n\
             hostssl all all all trust\n\
             host db,\"all\" bob 10.0.0.0/8 reject\n\
             host samerole all 10.0.0.0 255.0.0.0 trust\n\
             host all +staff all trust\n\
             host replication all all trust\n\
             host none all .example.com trust\n",
        );
        assert_eq!(found(&rules, None, "ann", "ann"), Some(1));
        assert_eq!(found(&rules, None, "ann", "db"), None);
        assert_eq!(found(&rules, Some("10.1.1.1"), "bob", "db"), Some(3));
        assert_eq!(found(&rules, Some("10.1.1.1"), "bob", "all"), Some(3));
        assert_eq!(found(&rules, Some("10.1.1.1"), "bob", "other"), None);
        assert_eq!(found(&rules, Some("10.1.1.1"), "ann", "staff"), Some(4));
        assert_eq!(found(&rules, Some("192.0.2.1"), "ann", "x"), Some(5));
        assert_eq!(found(&rules, Some("192.0.2.1"), "staff", "x"), Some(5), "a role belongs to itself");
        assert_eq!(found(&rules, Some("192.0.2.1"), "bob", "replication"), None);
        assert_eq!(found(&rules, Some("192.0.2.1"), "nobody", "x"), None);
    }

    #[test]
    fn name_servers_are_asked_only_where_no_earlier_line_decides() {
        let rules = rules(
            "host db all 127.0.0.0/8 trust\n\
             hostssl db all db.example.com trust\n\
             host db ann .example.com trust\n\
             host all bob all reject\n",
        );
        let offhand = |address: Option<&str>, user: &str, database: &str| match rules
            .find_offhand(&applicant(address, user, database))
        {
            Offhand::Known(line) => Some(line.map(|line| line.number)),
            Offhand::AsksNameServers => None,
        };
        assert_eq!(offhand(Some("127.0.0.1"), "ann", "db"), Some(Some(1)));
        assert_eq!(offhand(Some("192.0.2.1"), "bob", "db"), Some(Some(4)), "not encrypted, and not ann");
        assert_eq!(offhand(Some("192.0.2.1"), "ann", "other"), Some(None));
        assert_eq!(offhand(Some("192.0.2.1"), "ann", "db"), None);
        assert_eq!(offhand(None, "ann", "db"), Some(None), "a Unix socket has no name");
    }

    #[test]
    fn without_a_file_only_this_machine_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources {
            hba: folder.path().join(HBA_FILE),
            hba_required: false,
            ident: folder.path().join(IDENT_FILE),
            ssl: false,
        };
        let built_in = Rules::read(&sources).unwrap();
        assert!(!built_in.speak_of_other_machines());
        let method = |address: Option<&str>| built_in.find(&applicant(address, "x", "y")).unwrap().method;
        assert_eq!(method(None), Method::Trust);
        for loopback in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(method(Some(loopback)), Method::Trust, "{loopback}");
        }
        for other in ["10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"] {
            assert_eq!(method(Some(other)), Method::ScramSha256, "{other}");
        }
        assert!(Rules::read(&Sources { hba_required: true, ..sources.clone() }).is_err());
        std::fs::write(&sources.hba, "local all all trust\nhost all all ::1/128 trust\n").unwrap();
        assert!(!Rules::read(&sources).unwrap().speak_of_other_machines());
        std::fs::write(&sources.hba, "host all all samenet md5\n").unwrap();
        assert!(Rules::read(&sources).unwrap().speak_of_other_machines());
        std::fs::write(&sources.hba, "# nobody\n").unwrap();
        assert!(Rules::read(&sources).err().unwrap().contains("contains no entries"));
    }

    #[test]
    fn what_is_wrong_is_told_with_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let hba = folder.path().join(HBA_FILE);
        std::fs::write(&hba, "local all all trust\n\nlocal all all trusted\nlocl all all trust\n").unwrap();
        let ident = folder.path().join(IDENT_FILE);
        let told = Rules::read(&Sources { hba, hba_required: false, ident, ssl: false }).err().unwrap();
        assert!(told.contains("line 3 of configuration file \"") && told.contains("pg_hba.conf"), "{told}");
        assert!(told.contains("invalid authentication method \"trusted\""), "{told}");
        assert!(told.contains("line 4 ") && told.contains("invalid connection type \"locl\""), "{told}");
    }
}
