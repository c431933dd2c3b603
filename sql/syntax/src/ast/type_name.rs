//! Type names as written, and what they mean.

use crate::bit_string::TYPE_BITS_MAX;
use crate::error::{Result, SqlError, SqlState};
use crate::type_table::{TypeInfo, type_info, type_named};
use crate::types::{Oid, Type};

use super::QualifiedName;

/// A type as written: `pg_catalog.varchar(10)[]`, `SETOF warehouse`, `item.i_id%TYPE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// PostgreSQL's internal name where the grammar has its own words (`int4` for INTEGER),
    /// else the folded name.
    pub name: QualifiedName,
    /// `(10)`, `(12, 2)`.
    pub modifiers: Vec<i32>,
    /// Number of `[]`.
    pub dimensions: u32,
    pub setof: bool,
    /// `table.column%TYPE`: the schema and table are in `name` (catalog is the schema).
    pub percent_type: bool,
    /// Fields of INTERVAL, as PostgreSQL's typmod bits; `None` without.
    pub interval_fields: Option<i32>,
}

/// The array type over a built-in type, if it is known here as well.
fn array_over(element: &TypeInfo) -> Option<Oid> {
    type_info(element.array).map(|array| array.oid)
}

impl TypeName {
    /// A type by its internal name, without modifiers.
    pub fn bare(name: &str) -> TypeName {
        TypeName {
            name: QualifiedName::bare(name),
            modifiers: Vec::new(),
            dimensions: 0,
            setof: false,
            percent_type: false,
            interval_fields: None,
        }
    }

    /// A type the grammar has words of its own for: always the one in `pg_catalog`.
    pub fn system(name: &str) -> TypeName {
        let mut ty = TypeName::bare(name);
        ty.name.schema = Some("pg_catalog".to_string());
        ty
    }

    /// serial, bigserial, smallserial: the integer type behind.
    pub fn serial(&self) -> Option<Type> {
        if self.name.schema.is_some() || self.dimensions > 0 {
            return None;
        }
        match self.name.name.as_str() {
            "serial" | "serial4" => Some(Type::INT4),
            "bigserial" | "serial8" => Some(Type::INT8),
            "smallserial" | "serial2" => Some(Type::INT2),
            _ => None,
        }
    }

    /// The built-in type it names, with its typmod; `Ok(None)` if the name is not built in
    /// (a table's row type, or nothing at all).
    pub fn builtin(&self) -> Result<Option<Type>> {
        if self.percent_type || self.name.schema.as_deref().is_some_and(|schema| schema != "pg_catalog") {
            return Ok(None);
        }
        // An array type may be named by its internal name: _int4.
        let element = self.name.name.strip_prefix('_').and_then(type_named);
        let element = element.filter(|element| array_over(element).is_some());
        let is_array = self.dimensions > 0 || element.is_some();
        let Some(info) = element.or_else(|| type_named(&self.name.name)) else { return Ok(None) };
        let typmod = self.typmod(info.oid)?;
        if !is_array {
            return Ok(Some(Type { oid: info.oid, typmod }));
        }
        match array_over(info) {
            Some(oid) => Ok(Some(Type { oid, typmod })),
            None => Err(undefined_type(&format!("{}[]", info.name), self.name.at())),
        }
    }

    /// The type it names, or 42704.
    pub fn resolve(&self) -> Result<Type> {
        self.builtin()?.ok_or_else(|| undefined_type(&self.to_string(), self.name.at()))
    }

    fn typmod(&self, oid: Oid) -> Result<i32> {
        let at = self.name.at();
        let invalid = |message: String| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).at(at));
        if oid == Oid::INTERVAL && (self.interval_fields.is_some() || !self.modifiers.is_empty()) {
            const FULL_RANGE: i32 = 0x7FFF;
            const FULL_PRECISION: i32 = 0xFFFF;
            let precision = match self.modifiers[..] {
                [] => FULL_PRECISION,
                [precision] if precision < 0 => {
                    return invalid(format!("INTERVAL({precision}) precision must not be negative"));
                }
                [precision] => precision.min(6),
                _ => return Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid type modifier").at(at)),
            };
            return Ok((self.interval_fields.unwrap_or(FULL_RANGE) << 16) | precision);
        }
        if self.modifiers.is_empty() {
            return Ok(-1);
        }
        match (oid, &self.modifiers[..]) {
            (Oid::VARCHAR | Oid::BPCHAR, &[length]) => {
                let name = if oid == Oid::VARCHAR { "varchar" } else { "char" };
                if length < 1 {
                    return invalid(format!("length for type {name} must be at least 1"));
                }
                if length > 10_485_760 {
                    return invalid(format!("length for type {name} cannot exceed 10485760"));
                }
                Ok(length + 4)
            }
            (Oid::BIT | Oid::VARBIT, &[length]) => {
                let name = if oid == Oid::VARBIT { "varbit" } else { "bit" };
                match length {
                    ..1 => invalid(format!("length for type {name} must be at least 1")),
                    1..=TYPE_BITS_MAX => Ok(length),
                    _ => invalid(format!("length for type {name} cannot exceed {TYPE_BITS_MAX}")),
                }
            }
            (Oid::NUMERIC, &[precision]) => numeric_typmod(precision, 0, at),
            (Oid::NUMERIC, &[precision, scale]) => numeric_typmod(precision, scale, at),
            (Oid::NUMERIC, _) => invalid("invalid NUMERIC type modifier".to_string()),
            (Oid::TIMESTAMP | Oid::TIMESTAMPTZ | Oid::TIME | Oid::TIMETZ, &[precision]) => {
                if precision < 0 {
                    let name =
                        if matches!(oid, Oid::TIMESTAMP | Oid::TIMESTAMPTZ) { "TIMESTAMP" } else { "TIME" };
                    let zone =
                        if matches!(oid, Oid::TIMESTAMPTZ | Oid::TIMETZ) { " WITH TIME ZONE" } else { "" };
                    return invalid(format!("{name}({precision}){zone} precision must not be negative"));
                }
                Ok(precision.min(6))
            }
            (Oid::VARCHAR | Oid::BPCHAR | Oid::BIT | Oid::VARBIT, _)
            | (Oid::TIMESTAMP | Oid::TIMESTAMPTZ | Oid::TIME | Oid::TIMETZ, _) => {
                invalid("invalid type modifier".to_string())
            }
            _ => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("type modifier is not allowed for type \"{}\"", self.name.name),
            )
            .at(at)),
        }
    }
}

fn numeric_typmod(precision: i32, scale: i32, at: Option<u32>) -> Result<i32> {
    let invalid = |message: String| Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).at(at));
    if !(1..=1000).contains(&precision) {
        return invalid(format!("NUMERIC precision {precision} must be between 1 and 1000"));
    }
    if !(-1000..=1000).contains(&scale) {
        return invalid(format!("NUMERIC scale {scale} must be between -1000 and 1000"));
    }
    Ok(((precision << 16) | (scale & 0x7ff)) + 4)
}

/// 42704 `type "x" does not exist`.
pub fn undefined_type(name: &str, position: Option<u32>) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist")).at(position)
}

impl std::fmt::Display for TypeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)?;
        if self.percent_type {
            f.write_str("%TYPE")?;
        }
        for _ in 0..self.dimensions {
            f.write_str("[]")?;
        }
        Ok(())
    }
}
