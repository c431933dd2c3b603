//! Functions and operators of network addresses (network.c, mac.c, mac8.c).

use super::Eval;
use super::args::*;
use crate::datum::Datum;
use crate::error::Result;
use crate::network::{Inet, MacAddress, MacAddress8};

fn made(inet: Inet) -> Result<Datum> {
    Ok(Datum::Inet(inet))
}

fn told(answer: bool) -> Result<Datum> {
    Ok(Datum::Bool(answer))
}

fn made_mac(bytes: [u8; 6]) -> Result<Datum> {
    Ok(Datum::MacAddress(MacAddress(bytes)))
}

fn made_mac8(bytes: [u8; 8]) -> Result<Datum> {
    Ok(Datum::MacAddress8(MacAddress8(bytes)))
}

/// The address alone.
fn host(inet: &Inet) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = inet.write_host(&mut text);
    text
}

/// What `inet_out` writes.
fn written(inet: &Inet) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = inet.write(false, &mut text);
    text
}

/// Bytes of two addresses, one by one.
fn combined<const N: usize>(one: [u8; N], other: [u8; N], combine: fn(u8, u8) -> u8) -> [u8; N] {
    std::array::from_fn(|at| combine(one[at], other[at]))
}

pub(super) const FUNCTIONS: &[(&str, Eval)] = &[
    ("inet_abbrev", |_, v| Ok(made_text(written(&inet(v, 0)?)))),
    ("cidr_abbrev", |_, v| Ok(made_text(inet(v, 0)?.abbreviated()))),
    ("inet_set_masklen", |_, v| made(inet(v, 0)?.with_mask_length(int4(v, 1)?)?)),
    ("cidr_set_masklen", |_, v| made(inet(v, 0)?.with_mask_length(int4(v, 1)?)?.network())),
    ("inet_to_cidr", |_, v| made(inet(v, 0)?.network())),
    ("network_network", |_, v| made(inet(v, 0)?.network())),
    ("network_netmask", |_, v| made(inet(v, 0)?.netmask())),
    ("network_hostmask", |_, v| made(inet(v, 0)?.hostmask())),
    ("network_broadcast", |_, v| made(inet(v, 0)?.broadcast())),
    ("network_masklen", |_, v| Ok(Datum::Int4(i32::from(inet(v, 0)?.bits())))),
    ("network_family", |_, v| Ok(Datum::Int4(if inet(v, 0)?.width() == 32 { 4 } else { 6 }))),
    ("network_host", |_, v| Ok(made_text(host(&inet(v, 0)?)))),
    ("network_show", |_, v| {
        let inet = inet(v, 0)?;
        Ok(made_text(format!("{}/{}", host(&inet), inet.bits())))
    }),
    ("network_sub", |_, v| told(inet(v, 1)?.contains(&inet(v, 0)?))),
    ("network_subeq", |_, v| told(inet(v, 1)?.contains_or_equals(&inet(v, 0)?))),
    ("network_sup", |_, v| told(inet(v, 0)?.contains(&inet(v, 1)?))),
    ("network_supeq", |_, v| told(inet(v, 0)?.contains_or_equals(&inet(v, 1)?))),
    ("network_overlap", |_, v| told(inet(v, 0)?.overlaps(&inet(v, 1)?))),
    ("inet_same_family", |_, v| told(inet(v, 0)?.is_same_family(&inet(v, 1)?))),
    ("inet_merge", |_, v| made(inet(v, 0)?.merged(&inet(v, 1)?)?)),
    ("inetnot", |_, v| made(inet(v, 0)?.inverted())),
    ("inetand", |_, v| made(inet(v, 0)?.and(&inet(v, 1)?)?)),
    ("inetor", |_, v| made(inet(v, 0)?.or(&inet(v, 1)?)?)),
    ("inetpl", |_, v| made(inet(v, 0)?.plus(int8(v, 1)?)?)),
    ("sql_2631", |_, v| made(inet(v, 1)?.plus(int8(v, 0)?)?)),
    // The least bigint is its own negative, as there.
    ("inetmi_int8", |_, v| made(inet(v, 0)?.plus(int8(v, 1)?.wrapping_neg())?)),
    ("inetmi", |_, v| Ok(Datum::Int8(inet(v, 0)?.distance(&inet(v, 1)?)?))),
    ("macaddr_not", |_, v| made_mac(mac_address(v, 0)?.0.map(|byte| !byte))),
    ("macaddr_and", |_, v| {
        made_mac(combined(mac_address(v, 0)?.0, mac_address(v, 1)?.0, |one, other| one & other))
    }),
    ("macaddr_or", |_, v| {
        made_mac(combined(mac_address(v, 0)?.0, mac_address(v, 1)?.0, |one, other| one | other))
    }),
    ("macaddr_trunc", |_, v| Ok(Datum::MacAddress(mac_address(v, 0)?.truncated()))),
    ("macaddrtomacaddr8", |_, v| Ok(Datum::MacAddress8(mac_address(v, 0)?.widened()))),
    ("macaddr8_not", |_, v| made_mac8(mac_address8(v, 0)?.0.map(|byte| !byte))),
    ("macaddr8_and", |_, v| {
        made_mac8(combined(mac_address8(v, 0)?.0, mac_address8(v, 1)?.0, |one, other| one & other))
    }),
    ("macaddr8_or", |_, v| {
        made_mac8(combined(mac_address8(v, 0)?.0, mac_address8(v, 1)?.0, |one, other| one | other))
    }),
    ("macaddr8_trunc", |_, v| Ok(Datum::MacAddress8(mac_address8(v, 0)?.truncated()))),
    ("macaddr8_set7bit", |_, v| Ok(Datum::MacAddress8(mac_address8(v, 0)?.with_seventh_bit()))),
    ("macaddr8tomacaddr", |_, v| Ok(Datum::MacAddress(mac_address8(v, 0)?.narrowed()?))),
];
