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
        distinguished_name: distinguished_name(certificate.subject_name()),
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

/// A distinguished name as RFC 2253 has it and OpenSSL writes it (XN_FLAG_RFC2253): what it names can be written in
/// no other way, nor can anything else be written so. `clientname=DN` goes by it.
fn distinguished_name(name: &Name) -> String {
    let part = |attribute: &AttributeTypeAndValue| {
        let number = attribute.typ.to_string();
        let der = attribute.value.as_slice();
        let known = ATTRIBUTES.iter().find(|(known, _)| *known == number).map(|(_, short)| *short);
        match known.and_then(|short| Some((short, text(der)?))) {
            Some((short, text)) => format!("{short}={}", escaped_in_ascii(&text)),
            // What has no name, or is no text, is shown as it is encoded.
            None => format!("{}=#{}", known.unwrap_or(&number), hexadecimal(der)),
        }
    };
    let parts = name.iter_rdn().map(|of_one| of_one.iter().rev().map(part).collect::<Vec<_>>().join("+"));
    parts.collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(",")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// As [`escaped`], with everything beyond ASCII by its bytes.
fn escaped_in_ascii(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for character in escaped(text).chars() {
        match character {
            ascii_one if ascii_one.is_ascii() => ascii.push(ascii_one),
            other => {
                let mut room = [0; 4];
                let bytes = other.encode_utf8(&mut room).as_bytes();
                bytes.iter().for_each(|byte| ascii.push_str(&format!("\\{byte:02X}")));
            }
        }
    }
    ascii
}

/// The text of a string of ASN.1, whole and of a kind that is known (ASN1_STRING_to_UTF8).
fn text(der: &[u8]) -> Option<String> {
    let (kind, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, content) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        0x81 => rest.split_first().map(|(length, content)| (usize::from(*length), content))?,
        0x82 => {
            let (length, content) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), content)
        }
        _ => return None,
    };
    if content.len() != length {
        return None;
    }
    match kind {
        // UTF8String; NumericString, PrintableString and IA5String, which are ASCII.
        0x0c => String::from_utf8(content.to_vec()).ok(),
        0x12 | 0x13 | 0x16 => content.is_ascii().then(|| content.iter().copied().map(char::from).collect()),
        // TeletexString, which OpenSSL takes for Latin-1.
        0x14 => Some(content.iter().copied().map(char::from).collect()),
        // UniversalString and BMPString.
        0x1c => {
            content.chunks(4).map(|one| char::from_u32(u32::from_be_bytes(one.try_into().ok()?))).collect()
        }
        0x1e => content
            .chunks(2)
            .map(|one| char::from_u32(u32::from(u16::from_be_bytes(one.try_into().ok()?))))
            .collect(),
        _ => None,
    }
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
    fn texts_are_read_by_their_kinds() {
        assert_eq!(text(b"\x0c\x03ann").as_deref(), Some("ann"));
        assert_eq!(text(b"\x13\x00").as_deref(), Some(""));
        assert_eq!(text(b"\x14\x01\xe9").as_deref(), Some("é"));
        assert_eq!(text(b"\x1e\x02\x00\xe9").as_deref(), Some("é"));
        assert_eq!(text(b"\x1c\x04\x00\x01\xf6\x00").as_deref(), Some("\u{1f600}"));
        assert_eq!(text(&[b"\x0c\x81\x80", &[b'a'; 128][..]].concat()), Some("a".repeat(128)));
        for wrong in [
            &b""[..],
            b"\x0c",
            b"\x0c\x02a",
            b"\x0c\x01ab",
            b"\x0c\x01\xff",
            b"\x13\x01\xe9",
            b"\x0c\x80a",
            b"\x1e\x01a",
            b"\x1e\x02\xd8\x00",
            b"\x03\x01\x00",
        ] {
            assert_eq!(text(wrong), None, "{wrong:?}");
        }
        assert_eq!(escaped_in_ascii("a,é"), "a\\,\\C3\\A9");
    }

    #[test]
    fn values_of_names_are_escaped() {
        assert_eq!(escaped("ann"), "ann");
        assert_eq!(escaped("a,b+c"), "a\\,b\\+c");
        assert_eq!(escaped(" #a "), "\\ #a\\ ");
        assert_eq!(escaped("#a\u{1}"), "\\#a\\01");
        assert_eq!(escaped("é"), "é");
    }
}
