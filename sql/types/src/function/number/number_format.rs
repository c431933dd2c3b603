//! `to_char` and `to_number` for numbers (the manual's table 9.28).

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::Eval;
use crate::function::args::*;
use crate::numeric::Numeric;
use crate::types::{Oid, Type};

/// Of a type of numbers with a precision.
const NUMERIC_PRECISION_MAX: usize = 1000;

/// What a number template says, read once.
#[derive(Default)]
struct Template {
    /// One entry a position before the point: digit kinds and literals in order.
    items: Vec<Item>,
    integer_digits: usize,
    fraction_digits: usize,
    /// Whether a `0` stands before the point, and how many positions follow it.
    zero_from: Option<usize>,
    zero_in_fraction: bool,
    fill: bool,
    sign: Sign,
    roman: bool,
    small_roman: bool,
    exponent: bool,
    shift: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Item {
    Digit { zero: bool },
    Group,
    Point,
    Literal(char),
    Currency,
    Ordinal { upper: bool },
    Sign(SignMark),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SignMark {
    Minus,
    Plus,
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Sign {
    /// A minus (or a blank) before the first digit.
    #[default]
    Leading,
    /// S: anchored before or after the number.
    Anchored { after: bool },
    /// PR: angle brackets.
    Brackets,
    /// MI, PL or SG stand in the template.
    Explicit,
}

/// The error of a template that goes against itself.
fn refused(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message.to_owned())
}

/// Whether a template goes on with a pattern; `upper` is what comes next, in capitals.
fn is_pattern(upper: &str) -> bool {
    let words = ["EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH"];
    words.iter().any(|word| upper.starts_with(word)) || upper.starts_with(|c: char| ",.09BCDGLSV".contains(c))
}

fn read(template: &str) -> Result<Template> {
    let mut t = Template { fill: true, ..Template::default() };
    let mut rest = template;
    let mut after_point = false;
    let mut shifting = false;
    let mut blank = false;
    while let Some(c) = rest.chars().next() {
        crate::interrupt::steps(64)?;
        let upper: String = rest.chars().take(4).collect::<String>().to_ascii_uppercase();
        let mut length = c.len_utf8();
        if t.exponent && is_pattern(&upper) {
            return Err(match upper.starts_with("EEEE") {
                true => refused("cannot use \"EEEE\" twice"),
                false => refused("\"EEEE\" must be the last pattern used"),
            });
        }
        let anchored = matches!(t.sign, Sign::Anchored { .. });
        if anchored && let Some(other) = ["MI", "PL", "SG"].iter().find(|mark| upper.starts_with(**mark)) {
            return Err(refused(&format!("cannot use \"S\" and \"{other}\" together")));
        }
        if upper.starts_with("EEEE") {
            let alone = t.fill && !blank && !t.roman && !shifting && t.sign == Sign::Leading;
            if !alone {
                return Err(refused("\"EEEE\" is incompatible with other formats").with_detail(
                    "\"EEEE\" may only be used together with digit and decimal point patterns.",
                ));
            }
            t.exponent = true;
            length = 4;
        } else if upper.starts_with("FM") {
            t.fill = false;
            length = 2;
        } else if upper.starts_with("MI") {
            t.items.push(Item::Sign(SignMark::Minus));
            t.sign = Sign::Explicit;
            length = 2;
        } else if upper.starts_with("PL") {
            t.items.push(Item::Sign(SignMark::Plus));
            t.sign = Sign::Explicit;
            length = 2;
        } else if upper.starts_with("SG") {
            t.items.push(Item::Sign(SignMark::Any));
            t.sign = Sign::Explicit;
            length = 2;
        } else if upper.starts_with("PR") {
            if t.sign != Sign::Leading && t.sign != Sign::Brackets {
                return Err(refused("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            t.sign = Sign::Brackets;
            length = 2;
        } else if upper.starts_with("RN") {
            t.roman = true;
            t.small_roman = rest.starts_with("rn");
            length = 2;
        } else if upper.starts_with("TH") {
            t.items.push(Item::Ordinal { upper: rest.starts_with("TH") });
            length = 2;
        } else if upper.starts_with("SP") {
            length = 2;
        } else {
            match c {
                '9' | '0' => {
                    if t.sign == Sign::Brackets {
                        return Err(refused(&format!("\"{c}\" must be ahead of \"PR\"")));
                    }
                    if after_point {
                        t.fraction_digits += 1;
                        t.zero_in_fraction |= c == '0';
                    } else {
                        t.integer_digits += 1;
                        if c == '0' && t.zero_from.is_none() {
                            t.zero_from = Some(t.integer_digits - 1);
                        }
                    }
                    if shifting {
                        t.shift += 1;
                    }
                    t.items.push(Item::Digit { zero: c == '0' });
                }
                '.' | 'D' | 'd' => {
                    if after_point {
                        return Err(refused("multiple decimal points"));
                    }
                    if shifting {
                        return Err(refused("cannot use \"V\" and decimal point together"));
                    }
                    after_point = true;
                    t.items.push(Item::Point);
                }
                ',' | 'G' | 'g' => t.items.push(Item::Group),
                'S' | 's' if anchored => return Err(refused("cannot use \"S\" twice")),
                'S' | 's' if t.sign != Sign::Leading => {
                    return Err(refused("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
                }
                'S' | 's' => t.sign = Sign::Anchored { after: t.integer_digits > 0 },
                'L' | 'l' => t.items.push(Item::Currency),
                'V' | 'v' if after_point => {
                    return Err(refused("cannot use \"V\" and decimal point together"));
                }
                'V' | 'v' => shifting = true,
                'B' | 'b' => blank |= t.integer_digits + t.fraction_digits == 0,
                'C' | 'c' => {}
                '"' => {
                    // A backslash inside quotes takes the next character as it is.
                    let mut chars = rest[1..].chars();
                    while let Some(inner) = chars.next() {
                        match inner {
                            '"' => break,
                            '\\' => t.items.extend(chars.next().map(Item::Literal)),
                            other => t.items.push(Item::Literal(other)),
                        }
                    }
                    length = rest.len() - chars.as_str().len();
                }
                '\\' if rest[1..].starts_with('"') => {
                    t.items.push(Item::Literal('"'));
                    length = 2;
                }
                other => t.items.push(Item::Literal(other)),
            }
        }
        rest = &rest[length..];
    }
    Ok(t)
}

fn roman(value: &Numeric, fill: bool) -> String {
    let n = value.to_i32().unwrap_or(0);
    let text = if (1..4000).contains(&n) {
        let mut n = n;
        let mut text = String::new();
        for (size, symbol) in [
            (1000, "M"),
            (900, "CM"),
            (500, "D"),
            (400, "CD"),
            (100, "C"),
            (90, "XC"),
            (50, "L"),
            (40, "XL"),
            (10, "X"),
            (9, "IX"),
            (5, "V"),
            (4, "IV"),
            (1, "I"),
        ] {
            while n >= size {
                text.push_str(symbol);
                n -= size;
            }
        }
        text
    } else {
        "#".repeat(15)
    };
    if fill { format!("{text:>15}") } else { text }
}

/// EEEE: one digit, the template's decimals, an exponent.
fn scientific(value: &Numeric, decimals: usize) -> Result<String> {
    if !value.is_finite() {
        return Ok(format!(" #.{}", "#".repeat(decimals + 4)));
    }
    let mut exponent = value.leading_exponent().unwrap_or(0);
    let mantissa_at = |exponent: i64| -> Result<Numeric> {
        // Rounds at the digit shown last, then moves the point.
        let rounded = value.round(decimals as i32 - exponent as i32)?;
        rounded.shift_point(-exponent).round(decimals as i32)
    };
    let mut mantissa = mantissa_at(exponent)?;
    if mantissa.leading_exponent() == Some(1) {
        exponent += 1;
        mantissa = mantissa_at(exponent)?;
    }
    let mark = if exponent < 0 { '-' } else { '+' };
    let blank = if mantissa.signum() >= 0 { " " } else { "" };
    Ok(format!("{blank}{mantissa}e{mark}{:02}", exponent.abs()))
}

/// Lays a number out by a template.
fn format(value: &Numeric, template: &str) -> Result<String> {
    lay_out(value, read(template)?)
}

impl Template {
    /// Ends the template behind as many digits of the fraction: where a number has no more characters,
    /// PostgreSQL's text ends.
    fn cut(&mut self, fraction_digits: usize, keeps_point: bool) {
        let mut digits = 0;
        let mut point = false;
        let end = self.items.iter().position(|item| match item {
            Item::Point => {
                point = true;
                fraction_digits == 0 && !keeps_point
            }
            Item::Digit { .. } if point => {
                digits += 1;
                digits > fraction_digits
            }
            _ => false,
        });
        self.items.truncate(end.unwrap_or(self.items.len()));
        self.fraction_digits = self.fraction_digits.min(fraction_digits);
    }
}

fn lay_out(value: &Numeric, mut t: Template) -> Result<String> {
    if t.roman {
        let text = roman(&value.round(0)?, t.fill);
        return Ok(if t.small_roman { text.to_ascii_lowercase() } else { text });
    }
    if t.exponent {
        return scientific(value, t.fraction_digits);
    }
    let value = if t.shift > 0 {
        value.mul(&Numeric::from(10i64.pow(t.shift.min(18) as u32)))?
    } else {
        value.clone()
    };
    let negative = value.signum() < 0;
    let rounded = value.abs().round(t.fraction_digits as i32)?;
    let negative = negative && !rounded.is_zero();
    let text = rounded.to_string();
    let is_word = !value.is_finite() && text.len() <= t.integer_digits;
    if is_word {
        t.cut(0, false);
        t.zero_from = None;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let hide_zero = t.integer_digits > 0
        && t.fraction_digits > 0
        && t.zero_from.is_none()
        && (t.fill || t.zero_in_fraction || !rounded.is_zero());
    let whole = if whole == "0" && hide_zero { "" } else { whole };
    let overflow = whole.len() > t.integer_digits || !value.is_finite() && !is_word;
    // Digits aligned to the template's positions; blanks where the number is shorter.
    let mut digits: Vec<char> =
        std::iter::repeat_n(' ', t.integer_digits.saturating_sub(whole.len())).chain(whole.chars()).collect();
    if let Some(from) = t.zero_from {
        for digit in digits.iter_mut().skip(from) {
            if *digit == ' ' {
                *digit = '0';
            }
        }
    }
    // A zero that would leave nothing before the point of an integer template is shown.
    if whole.is_empty() && t.fraction_digits == 0 && t.integer_digits > 0 {
        let last = digits.len() - 1;
        digits[last] = '0';
    }
    let first = digits.iter().position(|d| *d != ' ').unwrap_or(digits.len());
    let sign_text = |wanted: Option<bool>| match wanted {
        Some(true) => "-",
        Some(false) => "+",
        None => "",
    };
    let mut out = String::new();
    let mut position = 0;
    let mut after_point = false;
    let mut fraction_digits = fraction.chars();
    let mut shown_sign = false;
    // With FM, zeros of 9-positions at the end of the fraction are dropped.
    let last_zero = t
        .items
        .iter()
        .scan(false, |point, item| {
            *point |= *item == Item::Point;
            Some(*point && *item == Item::Digit { zero: true })
        })
        .collect::<Vec<_>>();
    let keep_fraction = if t.fill {
        fraction.len()
    } else {
        let forced = t
            .items
            .iter()
            .zip(&last_zero)
            .filter(|(i, _)| matches!(i, Item::Digit { .. }))
            .skip(t.integer_digits)
            .enumerate()
            .filter(|(_, (_, zero))| **zero)
            .map(|(i, _)| i + 1)
            .max()
            .unwrap_or(0);
        fraction.trim_end_matches('0').len().max(forced)
    };
    let lead = |out: &mut String| match t.sign {
        Sign::Leading if negative => out.push('-'),
        Sign::Leading if t.fill => out.push(' '),
        Sign::Anchored { after: false } => out.push(if negative { '-' } else { '+' }),
        Sign::Brackets if negative => out.push('<'),
        Sign::Brackets if t.fill => out.push(' '),
        _ => {}
    };
    for item in &t.items {
        match item {
            Item::Digit { .. } if !after_point => {
                if overflow {
                    if !shown_sign {
                        lead(&mut out);
                        shown_sign = true;
                    }
                    out.push('#');
                } else {
                    if position == first && !shown_sign {
                        lead(&mut out);
                        shown_sign = true;
                    }
                    match digits[position] {
                        ' ' if t.fill => out.push(' '),
                        ' ' => {}
                        digit => out.push(digit),
                    }
                }
                position += 1;
            }
            Item::Digit { .. } => {
                let index = fraction.len() - fraction_digits.as_str().len();
                if overflow {
                    out.push('#');
                } else if let Some(digit) = fraction_digits.next()
                    && index < keep_fraction
                {
                    out.push(digit);
                }
            }
            Item::Group => {
                if position > first || overflow || after_point {
                    out.push(',');
                } else if t.fill {
                    out.push(' ');
                }
            }
            Item::Point => {
                if !shown_sign {
                    lead(&mut out);
                    shown_sign = true;
                }
                after_point = true;
                // FM drops a point that nothing follows in the template.
                if t.fill || t.fraction_digits > 0 || overflow {
                    out.push('.');
                }
            }
            Item::Literal(c) => out.push(*c),
            Item::Currency => out.push(' '),
            Item::Ordinal { upper } => {
                if negative || t.items.contains(&Item::Point) {
                    continue;
                }
                if t.integer_digits == 0 {
                    return Err(SqlError::new(
                        SqlState::INVALID_TEXT_REPRESENTATION,
                        "\".\" is not a number",
                    ));
                }
                if !overflow {
                    let suffix = ordinal(whole);
                    out.push_str(&if *upper { suffix.to_ascii_uppercase() } else { suffix.to_owned() });
                }
            }
            Item::Sign(mark) => out.push_str(match mark {
                SignMark::Minus => {
                    if negative {
                        sign_text(Some(true))
                    } else if t.fill {
                        " "
                    } else {
                        ""
                    }
                }
                SignMark::Plus => {
                    if !negative {
                        sign_text(Some(false))
                    } else if t.fill {
                        " "
                    } else {
                        ""
                    }
                }
                SignMark::Any => sign_text(Some(negative)),
            }),
        }
    }
    if !shown_sign && t.integer_digits > 0 {
        lead(&mut out);
    }
    // The text has ended where the word's characters have.
    if is_word {
        return Ok(out);
    }
    match t.sign {
        Sign::Anchored { after: true } => out.push(if negative { '-' } else { '+' }),
        Sign::Brackets if negative => out.push('>'),
        Sign::Brackets if t.fill => out.push(' '),
        _ => {}
    }
    Ok(out)
}

/// A float in as many decimals as the template shows and a float of so many digits can have, rounded
/// as printf rounds it.
fn format_float(x: f64, template: &str, float_digits: usize) -> Result<String> {
    let mut t = read(template)?;
    if t.exponent || t.roman || t.shift > 0 {
        return lay_out(&Numeric::from_f64(x), t);
    }
    let word = |x: f64| if x.is_nan() { "NaN" } else { "Infinity" };
    let whole = if x.is_finite() { format!("{:.0}", x.abs()).len() } else { word(x).len() };
    let decimals = t.fraction_digits.min(float_digits.saturating_sub(whole));
    if !x.is_finite() {
        if decimals < t.fraction_digits {
            t.cut(decimals, true);
        }
        return lay_out(&Numeric::from_f64(x), t);
    }
    let shown = format!("{x:.decimals$}");
    if decimals < t.fraction_digits {
        let whole = shown.trim_start_matches('-').split('.').next().map_or(0, str::len);
        t.cut(decimals, whole > t.integer_digits);
    }
    lay_out(&shown.parse()?, t)
}

fn ordinal(digits: &str) -> &'static str {
    let n: u64 = digits.get(digits.len().saturating_sub(2)..).and_then(|d| d.parse().ok()).unwrap_or(0);
    match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// What has been read of a number by a template.
struct Reading<'t> {
    template: &'t Template,
    has_point: bool,
    input: Vec<char>,
    /// The character of the input that comes next.
    at: usize,
    sign: Option<char>,
    digits: String,
    point_read: bool,
    fraction: usize,
}

impl Reading<'_> {
    fn next(&self) -> Option<char> {
        self.input.get(self.at).copied()
    }

    /// Passes so many characters at most that cannot be part of a number.
    fn skip_noise(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                Some(c) if !"0123456789.,+-".contains(c) => self.at += 1,
                _ => break,
            }
        }
    }

    /// Takes the sign that comes next, if it is one of these.
    fn mark(&mut self, mark: SignMark) {
        match self.next() {
            Some(c @ '-') if mark != SignMark::Plus => self.sign = Some(c),
            Some(c @ '+') if mark != SignMark::Minus => self.sign = Some(c),
            _ => return self.skip_noise(1),
        }
        self.at += 1;
    }

    /// At a digit or the point of the template (NUM_numpart_from_char). Whoever calls passes the character
    /// at which it ends.
    fn part(&mut self, is_point: bool) {
        if self.next() == Some(' ') {
            self.at += 1;
        }
        if self.sign.is_none() && !is_point && !self.any_digits() {
            match self.next() {
                Some(c @ ('-' | '+')) => {
                    self.sign = Some(c);
                    self.at += 1;
                }
                Some('<') if self.template.sign == Sign::Brackets => {
                    self.sign = Some('-');
                    self.at += 1;
                }
                _ => {}
            }
        }
        let Some(c) = self.next() else { return };
        let mut is_read = true;
        if c.is_ascii_digit() {
            if self.point_read && self.fraction == self.template.fraction_digits {
                return;
            }
            self.digits.push(c);
            self.fraction += usize::from(self.point_read);
        } else if c == '.' && self.has_point && !self.point_read {
            self.digits.push(c);
            self.point_read = true;
        } else {
            is_read = false;
        }
        if self.sign.is_some() || !self.any_digits() {
            return;
        }
        // A sign behind the last digit.
        let after = self.input.get(self.at + 1).copied();
        match self.template.sign {
            Sign::Anchored { .. } if is_read => {
                if let Some(sign @ ('-' | '+')) = after {
                    self.sign = Some(sign);
                    self.at += 1;
                }
            }
            // That of MI, PL or SG may come before the template is there.
            Sign::Explicit if !is_read && matches!(c, '-' | '+') => self.sign = Some(c),
            _ => {}
        }
    }

    fn any_digits(&self) -> bool {
        self.digits.contains(|c: char| c.is_ascii_digit())
    }
}

/// Reads a number by a template, as NUM_processor does: every item of the template takes what it can of the
/// input, and passes what is none of it.
fn parse(text: &str, template: &str) -> Result<Datum> {
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    let t = read(template)?;
    let unsupported = |what: &str| {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("\"{what}\" not supported for input"))
    };
    if t.exponent {
        return Err(unsupported("EEEE"));
    }
    if t.roman {
        return Err(unsupported("RN"));
    }
    let mut reading = Reading {
        template: &t,
        has_point: t.items.contains(&Item::Point),
        input: text.chars().collect(),
        at: 0,
        sign: None,
        digits: String::new(),
        point_read: false,
        fraction: 0,
    };
    for item in &t.items {
        crate::interrupt::steps(16)?;
        let Some(next) = reading.next() else { break };
        match item {
            Item::Digit { .. } | Item::Point => {
                reading.part(*item == Item::Point);
                reading.at += 1;
            }
            Item::Group if t.fill && next == ',' => reading.at += 1,
            Item::Group => {}
            Item::Currency => reading.skip_noise(1),
            Item::Ordinal { .. } if reading.has_point => {}
            Item::Ordinal { .. } => reading.skip_noise(2),
            Item::Sign(mark) => reading.mark(*mark),
            Item::Literal(_) => reading.at += 1,
        }
    }
    let digits = reading.digits.strip_suffix('.').unwrap_or(&reading.digits);
    let sign = reading.sign.unwrap_or(' ');
    if !digits.contains(|c: char| c.is_ascii_digit()) {
        return Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type numeric: \"{sign}{digits}\""),
        ));
    }
    let value: Numeric = digits.parse()?;
    let value = if sign == '-' { value.neg() } else { value };
    let precision = t.integer_digits + reading.fraction;
    let modifier = (((precision as i32) << 16) | reading.fraction as i32) + 4;
    let ty = Type { oid: Oid::NUMERIC, typmod: modifier };
    let value = match precision <= NUMERIC_PRECISION_MAX {
        true => crate::typmod::coerce_typmod(Datum::Numeric(value), ty, false)?,
        false => Datum::Numeric(value),
    };
    match value {
        Datum::Numeric(value) if t.shift > 0 => {
            Ok(Datum::Numeric(value.div(&Numeric::from(10i64.pow(t.shift.min(18) as u32)))?))
        }
        value => Ok(value),
    }
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("numeric_to_char", |_, v| Ok(text_datum(format(numeric(v, 0)?, text(v, 1)?)?))),
    ("int4_to_char", |_, v| Ok(text_datum(format(&Numeric::from(int4(v, 0)?), text(v, 1)?)?))),
    ("int8_to_char", |_, v| Ok(text_datum(format(&Numeric::from(int8(v, 0)?), text(v, 1)?)?))),
    ("float4_to_char", |_, v| Ok(text_datum(format_float(f64::from(float4(v, 0)?), text(v, 1)?, 6)?))),
    ("float8_to_char", |_, v| Ok(text_datum(format_float(float8(v, 0)?, text(v, 1)?, 15)?))),
    ("numeric_to_number", |_, v| parse(text(v, 0)?, text(v, 1)?)),
];
