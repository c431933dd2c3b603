//! What certificates say: whose they are, until when, and the hash that channel binding takes.

use archipel_wire::tls::ClientCertificate;
use num_bigint::BigInt;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use x509_certificate::X509Certificate;
use x509_certificate::rfc3280::{AttributeTypeAndValue, Name};

/// The object number of a common name.
const COMMON_NAME: &str = "2.5.4.3";

/// Attributes of names by their object numbers, as OpenSSL shortens them.
const ATTRIBUTES: [(&str, &str); 22] = [
    (COMMON_NAME, "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.97", "organizationIdentifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// A certificate that can be read.
pub(super) fn parse(der: &[u8]) -> Result<X509Certificate, String> {
    X509Certificate::from_der(der).map_err(|error| error.to_string())
}

/// What a client's certificate says, which has been found to be trusted.
pub(super) fn client(der: &[u8]) -> Result<ClientCertificate, String> {
    let certificate = parse(der)?;
    let tbs = certificate.tbs_certificate();
    Ok(ClientCertificate {
        subject: name(certificate.subject_name()),
        common_name: common_name(certificate.subject_name()),
        serial: BigInt::from_signed_bytes_be(tbs.serial_number.as_slice()).to_string(),
        issuer: name(certificate.issuer_name()),
    })
}

/// The first common name, as PostgreSQL takes it. One with a zero byte is nobody's: others may read no
/// further than that.
fn common_name(name: &Name) -> Option<String> {
    let mut attributes = name.iter_attributes();
    let first = attributes.find(|attribute| attribute.typ.to_string() == COMMON_NAME)?;
    first.to_string().ok().filter(|name| !name.contains('\0'))
}

/// A distinguished name as PostgreSQL shows it: `/C=DE/CN=ann`.
fn name(name: &Name) -> String {
    name.iter_attributes().map(attribute).collect()
}

fn attribute(attribute: &AttributeTypeAndValue) -> String {
    let number = attribute.typ.to_string();
    let short = ATTRIBUTES.iter().find(|(known, _)| *known == number).map(|(_, short)| *short);
    let value = attribute.to_string().unwrap_or_default();
    format!("/{}={}", short.unwrap_or(&number), escaped(&value))
}

/// As RFC 2253 has it.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => escaped.extend(['\\', character]),
            '#' if at == 0 => escaped.push_str("\\#"),
            ' ' if at == 0 || at == last => escaped.push_str("\\ "),
            control if control.is_ascii_control() => escaped.push_str(&format!("\\{:02X}", control as u32)),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Whether its time is over, in seconds since 1970.
pub(super) fn has_expired(certificate: &X509Certificate, now: i64) -> bool {
    certificate.validity_not_after().timestamp() < now
}

/// The hash of a server's certificate for `tls-server-end-point`: by the function of its signature, but
/// SHA-256 for those that are too weak. Empty where the signature has no function of its own.
pub(super) fn server_end_point(der: &[u8], certificate: &X509Certificate) -> Vec<u8> {
    match certificate.signature_algorithm_oid().to_string().as_str() {
        // MD5, SHA-1, SHA-256; RSA's, then ECDSA's.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => Sha256::digest(der).to_vec(),
        "1.2.840.113549.1.1.14" | "1.2.840.10045.4.3.1" => Sha224::digest(der).to_vec(),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Sha384::digest(der).to_vec(),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Sha512::digest(der).to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_names_are_escaped() {
        assert_eq!(escaped("ann"), "ann");
        assert_eq!(escaped("a,b+c"), "a\\,b\\+c");
        assert_eq!(escaped(" #a "), "\\ #a\\ ");
        assert_eq!(escaped("#a\u{1}"), "\\#a\\01");
        assert_eq!(escaped("é"), "é");
    }
}
