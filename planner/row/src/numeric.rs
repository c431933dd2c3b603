//! Numerics of any scale as bytes that sort as the numbers do.

use archipel_sql::numeric::Numeric;

/// Writes a numeric so that byte order is numeric order: a class byte (−∞, negative, zero,
/// positive, ∞, NaN), a biased decimal exponent, the significant digits in pairs plus one, an
/// end mark; everything after the class inverted for negative numbers. The display scale
/// follows last, so that equal numbers of different scale stay neighbours.
pub fn encode_numeric(number: &Numeric, out: &mut Vec<u8>) {
    let text = number.to_string();
    let (class, digits) = match text.as_str() {
        "NaN" => (5u8, None),
        "Infinity" => (4, None),
        "-Infinity" => (0, None),
        t => match t.strip_prefix('-') {
            Some(rest) => (1, Some(rest)),
            None => (3, Some(t)),
        },
    };
    let Some(digits) = digits else {
        out.extend_from_slice(&[class, 0, 0]);
        return;
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let significant: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    let Some(first) = significant.iter().position(|d| *d != 0) else {
        out.push(2);
        out.extend_from_slice(&(fraction.len() as u16).to_be_bytes());
        return;
    };
    let last = significant.iter().rposition(|d| *d != 0).unwrap_or(first);
    let exponent = whole.len() as i32 - first as i32;
    out.push(class);
    let body = out.len();
    out.extend_from_slice(&((exponent + 0x4000_0000) as u32).to_be_bytes());
    for pair in significant[first..=last].chunks(2) {
        out.push(pair[0] * 10 + pair.get(1).copied().unwrap_or(0) + 1);
    }
    out.push(0);
    if class == 1 {
        for byte in &mut out[body..] {
            *byte = !*byte;
        }
    }
    out.extend_from_slice(&(fraction.len() as u16).to_be_bytes());
}

/// Reads what [`encode_numeric`] wrote.
pub fn decode_numeric(bytes: &[u8]) -> Numeric {
    let Some((body, scale)) = bytes.split_last_chunk::<2>() else { return Numeric::NAN };
    let scale = usize::from(u16::from_be_bytes(*scale));
    let text = match body.first() {
        Some(0) => "-Infinity".to_owned(),
        Some(4) => "Infinity".to_owned(),
        Some(2) => {
            if scale == 0 {
                "0".to_owned()
            } else {
                format!("0.{}", "0".repeat(scale))
            }
        }
        Some(class @ (1 | 3)) if body.len() > 5 => {
            let flip = |b: u8| if *class == 1 { !b } else { b };
            let exponent = u32::from_be_bytes([flip(body[1]), flip(body[2]), flip(body[3]), flip(body[4])])
                as i32
                - 0x4000_0000;
            let mut digits = String::new();
            for byte in body[5..body.len() - 1].iter().map(|b| flip(*b)) {
                let pair = byte.wrapping_sub(1);
                digits.push((b'0' + pair / 10 % 10) as char);
                digits.push((b'0' + pair % 10) as char);
            }
            positional(&digits, exponent, scale, *class == 1)
        }
        _ => "NaN".to_owned(),
    };
    text.parse().unwrap_or(Numeric::NAN)
}

/// `0.DIGITS × 10^exponent`, spelled with `scale` digits after the point.
fn positional(digits: &str, exponent: i32, scale: usize, negative: bool) -> String {
    let digit = |place: i32| digits.as_bytes().get(usize::try_from(place).unwrap_or(usize::MAX)).copied();
    let mut text = String::new();
    if negative {
        text.push('-');
    }
    if exponent <= 0 {
        text.push('0');
    }
    for place in 0..exponent {
        text.push(digit(place).unwrap_or(b'0') as char);
    }
    if scale > 0 {
        text.push('.');
        for place in exponent..exponent + scale as i32 {
            text.push(digit(place).unwrap_or(b'0') as char);
        }
    }
    text
}
