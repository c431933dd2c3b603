//! The lines of `pg_hba.conf`: which clients they are about, and how those say who they are (hba.c).

use std::net::IpAddr;

use super::address::{AddressMatch, numeric, prefix_mask};
use super::tokens::{Line, Token};

/// How a client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionType {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
    /// Like [`ConnectionType::Host`]: nobody is encrypted by GSSAPI here.
    HostNoGssEnc,
}

impl ConnectionType {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            ConnectionType::Local => "local",
            ConnectionType::Host => "host",
            ConnectionType::HostSsl => "hostssl",
            ConnectionType::HostNoSsl => "hostnossl",
            ConnectionType::HostNoGssEnc => "hostnogssenc",
        }
    }
}

/// How a client says who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Trust,
    Reject,
    ScramSha256,
    Md5,
    Password,
    Cert,
    Peer,
}

const METHODS: [(Method, &str); 7] = [
    (Method::Trust, "trust"),
    (Method::Reject, "reject"),
    (Method::ScramSha256, "scram-sha-256"),
    (Method::Md5, "md5"),
    (Method::Password, "password"),
    (Method::Cert, "cert"),
    (Method::Peer, "peer"),
];

/// Methods of PostgreSQL's that there are not here.
const UNSUPPORTED_METHODS: [&str; 7] = ["ident", "gss", "sspi", "pam", "bsd", "ldap", "radius"];

impl Method {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        METHODS.iter().find(|(method, _)| *method == self).map_or("", |(_, name)| name)
    }
}

/// What is asked of a client's certificate, whatever the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificateCheck {
    Off,
    /// That it has one which is trusted.
    VerifyCa,
    /// And that the name in it may come in as the role.
    VerifyFull,
}

/// Which name in a client's certificate is the one that may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientName {
    /// The common name.
    Common,
    /// The whole subject, as RFC 2253 has it.
    Distinguished,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HbaLine {
    pub number: u32,
    /// As written.
    pub text: String,
    pub connection: ConnectionType,
    pub databases: Vec<Token>,
    pub roles: Vec<Token>,
    /// `None`: local.
    pub address: Option<AddressMatch>,
    pub method: Method,
    pub map: Option<String>,
    pub client_certificate: ClientCertificateCheck,
    /// The name that [`ClientCertificateCheck::VerifyFull`] looks at.
    pub client_name: ClientName,
    /// Why it is about nobody, where that can be told beforehand: no error, as in PostgreSQL.
    pub warning: Option<&'static str>,
}

/// Takes one field after the other.
struct Fields<'l>(std::slice::Iter<'l, Vec<Token>>);

impl<'l> Fields<'l> {
    fn next(&mut self, before: &str) -> Result<&'l [Token], String> {
        let field = self.0.next().ok_or_else(|| format!("end-of-line before {before}"))?;
        Ok(field)
    }

    fn single(&mut self, before: &str, what: &str) -> Result<&'l Token, String> {
        match self.next(before)? {
            [token] => Ok(token),
            _ => Err(format!("multiple values specified for {what}")),
        }
    }
}

impl HbaLine {
    /// Reads a line; says what is wrong with it (parse_hba_line). `ssl`: the server encrypts.
    pub fn parse(line: &Line, ssl: bool) -> Result<HbaLine, String> {
        if let Some(error) = &line.error {
            return Err(error.clone());
        }
        let mut fields = Fields(line.fields.iter());
        let connection = connection_type(fields.single("connection type", "connection type")?)?;
        let databases = fields.next("database specification")?.to_vec();
        let roles = fields.next("role specification")?.to_vec();
        let address = match connection {
            ConnectionType::Local => None,
            _ => Some(address(&mut fields)?),
        };
        let method = method(fields.single("authentication method", "authentication type")?, connection)?;
        let unmatched = connection == ConnectionType::HostSsl && !ssl;
        let mut parsed = HbaLine {
            number: line.number,
            text: line.text.clone(),
            connection,
            databases,
            roles,
            address,
            method,
            map: None,
            client_certificate: ClientCertificateCheck::Off,
            client_name: ClientName::Common,
            warning: unmatched.then_some("hostssl record cannot match because SSL is disabled"),
        };
        for token in fields.0.flatten() {
            let (name, value) = token
                .text
                .split_once('=')
                .ok_or_else(|| format!("authentication option not in name=value format: {}", token.text))?;
            parsed.set(name, value)?;
        }
        if method == Method::Cert {
            parsed.client_certificate = ClientCertificateCheck::VerifyFull;
        }
        Ok(parsed)
    }

    /// Takes an option (parse_hba_auth_opt).
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let encrypted = self.connection == ConnectionType::HostSsl;
        match (name, value) {
            ("map", map) => {
                if !matches!(self.method, Method::Peer | Method::Cert) {
                    return Err("authentication option \"map\" is only valid for authentication methods \
                                ident, peer, gssapi, sspi, and cert"
                        .to_owned());
                }
                self.map = Some(map.to_owned());
            }
            ("clientcert" | "clientname", _) if !encrypted => {
                return Err(format!("{name} can only be configured for \"hostssl\" rows"));
            }
            ("clientcert", "verify-full") => self.client_certificate = ClientCertificateCheck::VerifyFull,
            ("clientcert", "verify-ca") if self.method == Method::Cert => {
                return Err(
                    "clientcert can only be set to \"verify-full\" when using \"cert\" authentication"
                        .to_owned(),
                );
            }
            ("clientcert", "verify-ca") => self.client_certificate = ClientCertificateCheck::VerifyCa,
            ("clientname", "CN") => self.client_name = ClientName::Common,
            ("clientname", "DN") => self.client_name = ClientName::Distinguished,
            ("clientcert" | "clientname", value) => {
                return Err(format!("invalid value for {name}: \"{value}\""));
            }
            _ => return Err(format!("unrecognized authentication option name: \"{name}\"")),
        }
        Ok(())
    }

    /// The options as `pg_hba_file_rules` shows them.
    pub fn options(&self) -> Vec<String> {
        let map = self.map.iter().map(|map| format!("map={map}"));
        let certificate = match self.client_certificate {
            ClientCertificateCheck::Off => None,
            ClientCertificateCheck::VerifyCa => Some("clientcert=verify-ca".to_owned()),
            ClientCertificateCheck::VerifyFull => Some("clientcert=verify-full".to_owned()),
        };
        map.chain(certificate).collect()
    }
}

fn connection_type(token: &Token) -> Result<ConnectionType, String> {
    match token.text.as_str() {
        "local" => Ok(ConnectionType::Local),
        "host" => Ok(ConnectionType::Host),
        "hostssl" => Ok(ConnectionType::HostSsl),
        "hostnossl" => Ok(ConnectionType::HostNoSsl),
        "hostnogssenc" => Ok(ConnectionType::HostNoGssEnc),
        "hostgssenc" => {
            Err("hostgssenc record cannot match because GSSAPI is not supported by this build".to_owned())
        }
        other => Err(format!("invalid connection type \"{other}\"")),
    }
}

fn address(fields: &mut Fields<'_>) -> Result<AddressMatch, String> {
    let token = fields.single("IP address specification", "host address")?;
    for (keyword, found) in
        [("all", AddressMatch::All), ("samehost", AddressMatch::SameHost), ("samenet", AddressMatch::SameNet)]
    {
        if token.is(keyword) {
            return Ok(found);
        }
    }
    let (text, prefix) = match token.text.split_once('/') {
        Some((text, prefix)) => (text, Some(prefix)),
        None => (token.text.as_str(), None),
    };
    let address: IpAddr = match (numeric(text), prefix) {
        (Some(address), _) => address,
        (None, None) => return Ok(AddressMatch::Host(text.to_owned())),
        (None, Some(_)) => {
            return Err(format!("specifying both host name and CIDR mask is invalid: \"{}\"", token.text));
        }
    };
    let mask = match prefix {
        Some(prefix) => prefix_mask(address, prefix)
            .ok_or_else(|| format!("invalid CIDR mask in address \"{}\"", token.text))?,
        None => {
            let token = fields.single("netmask specification", "netmask")?;
            let text = &token.text;
            numeric(text).ok_or_else(|| format!("invalid IP mask \"{text}\": Name or service not known"))?
        }
    };
    if address.is_ipv4() != mask.is_ipv4() {
        return Err("IP address and mask do not match".to_owned());
    }
    Ok(AddressMatch::Network { address, mask })
}

fn method(token: &Token, connection: ConnectionType) -> Result<Method, String> {
    let local = connection == ConnectionType::Local;
    let name = match token.text.as_str() {
        // As PostgreSQL still takes it.
        "ident" if local => "peer",
        name => name,
    };
    if UNSUPPORTED_METHODS.contains(&name) {
        return Err(format!("invalid authentication method \"{name}\": not supported by this build"));
    }
    let known = METHODS.iter().find(|(_, known)| *known == name);
    let (method, _) = known.ok_or_else(|| format!("invalid authentication method \"{name}\""))?;
    match method {
        Method::Peer if !local => Err("peer authentication is only supported on local sockets".to_owned()),
        Method::Cert if connection != ConnectionType::HostSsl => {
            Err("cert authentication is only supported on hostssl connections".to_owned())
        }
        method => Ok(*method),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::read_text;
    use super::*;

    /// As `pg_hba_file_rules` shows it, without the line's number.
    fn shown(text: &str) -> String {
        let tokens =
            |tokens: &[Token]| tokens.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(",");
        let lines = read_text(text);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let parsed = match HbaLine::parse(line, false) {
            Ok(parsed) => parsed,
            Err(error) => return error,
        };
        let (address, mask) = match &parsed.address {
            None => (String::new(), String::new()),
            Some(AddressMatch::Network { address, mask }) => (address.to_string(), mask.to_string()),
            Some(AddressMatch::Host(name)) => (name.clone(), String::new()),
            Some(other) => (format!("{other:?}").to_lowercase(), String::new()),
        };
        [
            parsed.connection.as_str(),
            &tokens(&parsed.databases),
            &tokens(&parsed.roles),
            &address,
            &mask,
            parsed.method.as_str(),
            &parsed.options().join(","),
            parsed.warning.unwrap_or_default(),
        ]
        .join("|")
    }

    /// The second column is PostgreSQL 15's answer.
    #[test]
    fn lines_are_read_as_postgresql_reads_them() {
        const UNMATCHED: &str = "hostssl record cannot match because SSL is disabled";
        for (line, expected) in [
            ("local all all trust", "local|all|all|||trust||"),
            ("local \"all\",all\t\"sameuser\" , x trust", "invalid authentication method \"x\""),
            (
                "host all,\"a b\" +staff,\"+quoted\" 10.0.0.0/8 scram-sha-256",
                "host|all,a b|+staff,+quoted|10.0.0.0|255.0.0.0|scram-sha-256||",
            ),
            ("host\tall all 10.1.2.3 255.255.0.0 md5", "host|all|all|10.1.2.3|255.255.0.0|md5||"),
            (
                "host all all ::1/128 password # comment",
                "host|all|all|::1|ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff|password||",
            ),
            ("host all all 2001:db8::/32 reject", "host|all|all|2001:db8::|ffff:ffff::|reject||"),
            ("hostnossl all all samehost trust", "hostnossl|all|all|samehost||trust||"),
            ("hostnogssenc all all samenet trust", "hostnogssenc|all|all|samenet||trust||"),
            ("host all all all reject", "host|all|all|all||reject||"),
            ("host all all .Example.com trust", "host|all|all|.Example.com||trust||"),
            ("host all all \"all\" trust", "host|all|all|all||trust||"),
            ("host all all 127.0.0.1/8 trust", "host|all|all|127.0.0.1|255.0.0.0|trust||"),
            ("host all all 1.2.3.4/0 trust", "host|all|all|1.2.3.4|0.0.0.0|trust||"),
            ("host all all ::1 ffff:ffff:: trust", "host|all|all|::1|ffff:ffff::|trust||"),
            ("\"local\" all all tru\"st\"", "local|all|all|||trust||"),
            ("local \"\" \"\" trust", "local|||||trust||"),
            ("local a\"b c\"d,\"x\"\"y\" all trust", "local|ab cd,x\"y|all|||trust||"),
            ("local all \\\n  all \\\n  reject", "local|all|all|||reject||"),
            ("local all all ident", "local|all|all|||peer||"),
            ("local all all peer map=\"m n\"", "local|all|all|||peer|map=m n|"),
            (
                "hostssl all all all cert map=m clientcert=verify-full",
                &format!("hostssl|all|all|all||cert|map=m,clientcert=verify-full|{UNMATCHED}"),
            ),
            (
                "hostssl all all all cert clientname=DN",
                &format!("hostssl|all|all|all||cert|clientcert=verify-full|{UNMATCHED}"),
            ),
            (
                "hostssl all all all scram-sha-256 clientcert=verify-ca clientname=CN",
                &format!("hostssl|all|all|all||scram-sha-256|clientcert=verify-ca|{UNMATCHED}"),
            ),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    /// The second column is PostgreSQL 15's answer.
    #[test]
    fn wrong_lines_are_told_as_postgresql_tells_them() {
        for (line, expected) in [
            ("host all all 10.0.0.0/33 trust", "invalid CIDR mask in address \"10.0.0.0/33\""),
            ("host all all 10.0.0.0/ trust", "invalid CIDR mask in address \"10.0.0.0/\""),
            (
                "host all all example.com/8 trust",
                "specifying both host name and CIDR mask is invalid: \"example.com/8\"",
            ),
            ("host all all 10.0.0.0 trust", "invalid IP mask \"trust\": Name or service not known"),
            ("host all all 10.0.0.0", "end-of-line before netmask specification"),
            ("host all all 10.0.0.0 ::ffff trust", "IP address and mask do not match"),
            ("host all all 10.0.0.0,10.0.0.1 trust", "multiple values specified for host address"),
            ("host all all", "end-of-line before IP address specification"),
            ("host all", "end-of-line before role specification"),
            ("host", "end-of-line before database specification"),
            ("LOCAL all all trust", "invalid connection type \"LOCAL\""),
            ("local,host all all trust", "multiple values specified for connection type"),
            ("local all all trusted", "invalid authentication method \"trusted\""),
            ("local all all trust,md5", "multiple values specified for authentication type"),
            ("local all all", "end-of-line before authentication method"),
            (
                "local all all trust map=m",
                "authentication option \"map\" is only valid for authentication methods ident, peer, gssapi, \
                 sspi, and cert",
            ),
            (
                "local all all trust clientcert=verify-ca",
                "clientcert can only be configured for \"hostssl\" rows",
            ),
            (
                "host all all all trust clientname=CN",
                "clientname can only be configured for \"hostssl\" rows",
            ),
            (
                "hostssl all all all cert clientcert=verify-ca",
                "clientcert can only be set to \"verify-full\" when using \"cert\" authentication",
            ),
            ("host all all all cert", "cert authentication is only supported on hostssl connections"),
            ("host all all all peer", "peer authentication is only supported on local sockets"),
            ("hostssl all all all cert clientname=dn", "invalid value for clientname: \"dn\""),
            ("host all all all trust nonsense", "authentication option not in name=value format: nonsense"),
            ("host all all all trust non=sense", "unrecognized authentication option name: \"non\""),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn what_there_is_not_is_refused_by_name() {
        for (line, told) in [
            (
                "host all all all ident",
                "invalid authentication method \"ident\": not supported by this build",
            ),
            ("host all all all ldap", "invalid authentication method \"ldap\": not supported by this build"),
            (
                "hostgssenc all all all trust",
                "hostgssenc record cannot match because GSSAPI is not supported by this build",
            ),
        ] {
            assert_eq!(shown(line), told, "{line}");
        }
    }
}
