//! How hosts and networks are written (inet_net_pton.c, inet_net_ntop.c, inet_cidr_ntop.c): what the
//! standard library reads of an address is not what PostgreSQL does.

use std::fmt::Write;
use std::net::IpAddr;

use super::Inet;
use crate::error::{Result, SqlError, SqlState};
use crate::io::invalid_syntax;

impl Inet {
    /// Reads a value of `cidr` or of `inet`. A network may lack the bytes at its end, and its length, which is
    /// then that of its class.
    ///
    /// Errors: 22P02, also for a network with bits behind its own.
    pub fn parse(text: &str, cidr: bool) -> Result<Inet> {
        let bytes = text.as_bytes();
        let read = match (text.contains(':'), cidr) {
            (true, _) => read_v6(bytes).map(|(address, bits)| (IpAddr::from(address), bits)),
            (false, true) => read_v4_network(bytes).map(|(address, bits)| (IpAddr::from(address), bits)),
            (false, false) => read_v4(bytes).map(|(address, bits)| (IpAddr::from(address), bits)),
        };
        let type_name = if cidr { "cidr" } else { "inet" };
        let inet = read.and_then(|(address, bits)| Inet::new(address, bits));
        let inet = inet.ok_or_else(|| invalid_syntax(type_name, text))?;
        if cidr && !inet.is_network() {
            let message = format!("invalid cidr value: \"{text}\"");
            return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
                .with_detail("Value has bits set to right of mask."));
        }
        Ok(inet)
    }

    /// Writes the value; the length of an `inet` that is a host's is left out.
    pub fn write(&self, cidr: bool, out: &mut dyn Write) -> std::fmt::Result {
        self.write_host(out)?;
        if cidr || self.bits() != self.width() {
            write!(out, "/{}", self.bits())?;
        }
        Ok(())
    }

    /// Writes the address alone.
    pub fn write_host(&self, out: &mut dyn Write) -> std::fmt::Result {
        match self.address() {
            IpAddr::V4(address) => write!(out, "{address}"),
            IpAddr::V6(address) => match address.segments() {
                [0, 0, 0, 0, 0, 0, high, _] if high > 0 => {
                    let [.., a, b, c, d] = address.octets();
                    write!(out, "::{a}.{b}.{c}.{d}")
                }
                _ => write!(out, "{address}"),
            },
        }
    }

    /// A network without the bytes behind its bits, and with its length (cidr's `abbrev`).
    pub fn abbreviated(&self) -> String {
        let mut out = match self.network().address() {
            IpAddr::V4(address) => short_v4(address.octets(), self.bits()),
            IpAddr::V6(address) => short_v6(address.octets(), self.bits()),
        };
        out.push('/');
        out.push_str(&self.bits().to_string());
        out
    }
}

/// What begins with digits: the number, and what follows it. A number beyond 255 is none.
fn octet(text: &[u8]) -> Option<(u8, &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(count);
    let value = digits.iter().try_fold(0_u8, |value, digit| value.checked_mul(10)?.checked_add(digit - b'0'));
    value.filter(|_| count > 0).map(|value| (value, rest))
}

/// The length of a network behind an address of IPv4: a slash and digits, or nothing, which is `Some(None)`.
fn v4_length(rest: &[u8]) -> Option<Option<u8>> {
    match rest {
        [] => Some(None),
        [b'/', digits @ ..] => match octet(digits)? {
            (bits @ ..=32, []) => Some(Some(bits)),
            _ => None,
        },
        _ => None,
    }
}

/// Bytes of an address with those that are missing at its end.
fn filled(octets: &[u8]) -> Option<[u8; 4]> {
    let mut address = [0; 4];
    address.get_mut(..octets.len())?.copy_from_slice(octets);
    Some(address)
}

/// An address of IPv4 (inet_net_pton_ipv4). With a length, the bytes that are all the host's may be missing.
fn read_v4(text: &[u8]) -> Option<([u8; 4], u8)> {
    let (mut octets, mut rest) = (Vec::new(), text);
    while rest.first().is_some_and(u8::is_ascii_digit) {
        let (value, behind) = octet(rest)?;
        octets.push(value);
        rest = behind;
        match behind {
            [] | [b'/', ..] => break,
            [b'.', next @ ..] => rest = next,
            _ => return None,
        }
    }
    let address = filled(&octets)?;
    match v4_length(rest)? {
        Some(bits) if !octets.is_empty() && usize::from(bits / 8) <= octets.len() => Some((address, bits)),
        None if octets.len() == 4 => Some((address, 32)),
        _ => None,
    }
}

/// A network of IPv4 (inet_cidr_pton_ipv4): bytes in decimal between dots, or digits behind `0x`.
fn read_v4_network(text: &[u8]) -> Option<([u8; 4], u8)> {
    let (octets, rest) = match text {
        [b'0', b'x' | b'X', digits @ ..] if digits.first().is_some_and(u8::is_ascii_hexdigit) => {
            let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let (digits, rest) = digits.split_at(count);
            (digits.chunks(2).map(hexadecimal).collect(), rest)
        }
        _ => decimal_octets(text)?,
    };
    let address = filled(&octets)?;
    let bits = v4_length(rest)?.unwrap_or_else(|| length_by_class(&octets));
    Some((address, bits))
}

fn decimal_octets(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (first, mut rest) = octet(text)?;
    let mut octets = vec![first];
    while let [b'.', next @ ..] = rest {
        let (value, behind) = octet(next)?;
        octets.push(value);
        rest = behind;
    }
    Some((octets, rest))
}

/// A byte of two digits, or of one and a zero behind it.
fn hexadecimal(digits: &[u8]) -> u8 {
    let digit = |at: usize| digits.get(at).and_then(|digit| (*digit as char).to_digit(16)).unwrap_or(0);
    (digit(0) << 4 | digit(1)) as u8
}

/// How long a network is that does not say so, by its class and the bytes that are given.
fn length_by_class(octets: &[u8]) -> u8 {
    let first = octets.first().copied().unwrap_or(0);
    let bits = match first {
        240.. => 32,
        192..224 => 24,
        128..192 => 16,
        _ => 8,
    };
    // filled has refused more than four.
    match bits.max(octets.len() as u8 * 8) {
        8 if first == 224 => 4,
        bits => bits,
    }
}

/// The length behind an address of IPv6 (getbits).
fn v6_length(digits: &[u8]) -> Option<u8> {
    match digits {
        [b'0', _, ..] => None,
        _ => octet(digits).filter(|(bits, rest)| *bits <= 128 && rest.is_empty()).map(|(bits, _)| bits),
    }
}

/// An address of IPv4 at the end of one of IPv6, with a length perhaps (getv4).
fn embedded_v4(text: &[u8]) -> Option<([u8; 4], Option<u8>)> {
    let slash = text.iter().position(|byte| *byte == b'/');
    let (digits, bits) = match slash {
        Some(slash) => (&text[..slash], Some(v6_length(&text[slash + 1..])?)),
        None => (text, None),
    };
    let parts: Vec<&[u8]> = digits.split(|byte| *byte == b'.').collect();
    if bits.is_none() && parts.last().is_some_and(|last| last.is_empty()) {
        return None;
    }
    let value = |part: &&[u8]| match part {
        // A number that is missing is zero.
        [] => Some(0),
        [b'0', _, ..] => None,
        part => octet(part).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value),
    };
    let octets = parts.iter().map(value).collect::<Option<Vec<u8>>>()?;
    Some((filled(&octets)?, bits))
}

/// An address of IPv6 and its length (inet_cidr_pton_ipv6).
fn read_v6(text: &[u8]) -> Option<([u8; 16], u8)> {
    let mut rest = match text {
        [b':', b':', ..] => &text[1..],
        [b':', ..] => return None,
        _ => text,
    };
    let (mut bytes, mut gap, mut length) = (Vec::new(), None, None);
    loop {
        let count = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, behind) = rest.split_at(count);
        match behind {
            [b'.', ..] => {
                let (octets, bits) = embedded_v4(rest)?;
                bytes.extend_from_slice(&octets);
                length = bits;
                break;
            }
            _ if count > 4 => return None,
            _ if count > 0 => {
                let word = digits.iter().fold(0_u16, |word, digit| word << 4 | digit_of(*digit));
                bytes.extend_from_slice(&word.to_be_bytes());
            }
            [b':', ..] if gap.is_some() => return None,
            [b':', ..] => gap = Some(bytes.len()),
            _ => {}
        }
        match behind {
            [] => break,
            [b'/', digits @ ..] => {
                length = Some(v6_length(digits)?);
                break;
            }
            [b':'] if count > 0 => return None,
            [b':', next @ ..] => rest = next,
            _ => return None,
        }
    }
    Some((without_gap(&bytes, gap)?, length.unwrap_or(128)))
}

fn digit_of(digit: u8) -> u16 {
    (digit as char).to_digit(16).unwrap_or(0) as u16
}

/// Sixteen bytes, with zeros where `::` stands.
fn without_gap(bytes: &[u8], gap: Option<usize>) -> Option<[u8; 16]> {
    match gap {
        None => bytes.try_into().ok(),
        Some(gap) if bytes.len() < 16 => {
            let mut address = [0; 16];
            address[..gap].copy_from_slice(&bytes[..gap]);
            address[16 - (bytes.len() - gap)..].copy_from_slice(&bytes[gap..]);
            Some(address)
        }
        Some(_) => None,
    }
}

/// The bytes that hold bits of the network.
fn short_v4(octets: [u8; 4], bits: u8) -> String {
    let count = usize::from(bits.div_ceil(8)).max(1);
    octets[..count].iter().map(u8::to_string).collect::<Vec<_>>().join(".")
}

/// The words that hold bits of the network, two at least.
fn short_v6(octets: [u8; 16], bits: u8) -> String {
    if bits == 0 {
        return "::".to_owned();
    }
    let words: Vec<u16> = octets.chunks(2).map(|pair| u16::from(pair[0]) << 8 | u16::from(pair[1])).collect();
    let words = &words[..usize::from(bits.div_ceil(16)).max(2)];
    let (zeros, count) = longest_zeros(words);
    let is_v4 = count != words.len()
        && zeros == 0
        && (count == 6
            || count == 5 && words.get(5) == Some(&0xffff)
            || count == 7 && octets[14] != 0 && octets[15] != 1);
    let mut out = String::new();
    for (place, word) in words.iter().enumerate() {
        let [high, low] = word.to_be_bytes();
        if (zeros..zeros + count).contains(&place) {
            if place == zeros {
                out.push(':');
            }
            if place == words.len() - 1 {
                out.push(':');
            }
        } else if is_v4 && place > 5 {
            out.push(if place == 6 { ':' } else { '.' });
            out.push_str(&high.to_string());
            // The last byte may be behind the bits.
            if place != 7 || bits > 120 {
                out.push('.');
                out.push_str(&low.to_string());
            }
        } else {
            if !out.is_empty() {
                out.push(':');
            }
            out.push_str(&format!("{word:x}"));
        }
    }
    out
}

/// Where the most zeros follow one another, and how many. A run that is no longer than one before it goes on
/// counting in the next, as in PostgreSQL's.
fn longest_zeros(words: &[u16]) -> (usize, usize) {
    let (mut longest, mut run) = ((0, 0), (0, 0));
    for (place, word) in words.iter().enumerate() {
        if *word == 0 {
            if run.1 == 0 {
                run.0 = place;
            }
            run.1 += 1;
        } else if run.1 > longest.1 {
            longest = run;
            run.1 = 0;
        }
    }
    if run.1 > longest.1 { run } else { longest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, cidr: bool) -> String {
        let mut out = String::new();
        Inet::parse(text, cidr).unwrap().write(cidr, &mut out).unwrap();
        out
    }

    fn is_refused(text: &str, cidr: bool) -> bool {
        Inet::parse(text, cidr).is_err()
    }

    #[test]
    fn hosts_are_read_and_written() {
        for text in ["1.2.3.4", "10.0.0.1/8", "::", "::1", "1::/16", "::1.2.3.4", "::ffff:1.2.3.4/100"] {
            assert_eq!(shown(text, false), text);
        }
        assert_eq!(shown("10/8", false), "10.0.0.0/8");
        assert_eq!(shown("10.0.0.1/32", false), "10.0.0.1");
        assert_eq!(shown("10./8", false), "10.0.0.0/8");
        assert_eq!(shown("1:0:0:2:0:0:0:3", false), "1:0:0:2::3");
        assert_eq!(shown("::1.2", false), "::1.2.0.0");
        for text in
            ["", "10", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.4/33", "10/24", "1.2.3.4/", " 1.2.3.4"]
        {
            assert!(is_refused(text, false), "{text}");
        }
        for text in
            [":1", "1:", "1:::2", "::1::", "12345::", "1:2:3:4:5:6:7:8:9", "::/129", "::/01", "::1.02.3.4"]
        {
            assert!(is_refused(text, false), "{text}");
        }
    }

    #[test]
    fn networks_have_the_length_of_their_class() {
        assert_eq!(shown("10", true), "10.0.0.0/8");
        assert_eq!(shown("10.1", true), "10.1.0.0/16");
        assert_eq!(shown("192.168.1", true), "192.168.1.0/24");
        assert_eq!(shown("128", true), "128.0.0.0/16");
        assert_eq!(shown("224", true), "224.0.0.0/4");
        assert_eq!(shown("240", true), "240.0.0.0/32");
        assert_eq!(shown("0xa1f", true), "161.240.0.0/16");
        assert_eq!(shown("1.2.3.4", true), "1.2.3.4/32");
        let error = Inet::parse("10.0.0.1/8", true).unwrap_err();
        assert_eq!(error.message(), "invalid cidr value: \"10.0.0.1/8\"");
        assert!(is_refused("10.", true) && is_refused("0x", true) && is_refused("10.1.2.3.4", true));
    }

    #[test]
    fn abbreviations_leave_out_what_is_behind_the_bits() {
        let short = |text: &str| Inet::parse(text, true).unwrap().abbreviated();
        assert_eq!(short("10.1.0.0/16"), "10.1/16");
        assert_eq!(short("10.16.0.0/12"), "10.16/12");
        assert_eq!(short("0.0.0.0/0"), "0/0");
        assert_eq!(short("::/0"), "::/0");
        assert_eq!(short("2001:4f8::/32"), "2001:4f8/32");
        assert_eq!(short("::ffff:1.2.3.0/120"), "::ffff:1.2.3/120");
    }
}
