//! What expressions are made of at the least: names, types and constants as text.

use archipel_sql::style::Quoting;

use super::*;

impl Deparser<'_, '_> {
    pub(super) fn type_name(&self, ty: Type) -> String {
        archipel_sql::system::type_along(self.catalog, self.search_path, self.quoting(), ty)
    }

    pub(super) fn quoting(&self) -> Quoting {
        self.binder.env.context.style().quoting
    }

    pub(super) fn identifier(&self, name: &str) -> String {
        self.quoting().name(name)
    }

    /// A constant (get_const_expr), with its type where it does not show it.
    pub(super) fn constant(&self, value: &Datum, ty: Type) -> String {
        let name = || self.type_name(Type::of(ty.oid));
        let text = match value {
            Datum::Null => return format!("NULL::{}", name()),
            Datum::Bool(value) => return value.to_string(),
            other => io::to_text(other, Type::of(ty.oid), self.binder.env.context),
        };
        let digits = text.starts_with(|first: char| first.is_ascii_digit());
        match ty.oid {
            Oid::INT4 if digits => text,
            Oid::NUMERIC if digits && text.contains(['.', 'e', 'E']) => text,
            Oid::UNKNOWN => quoted(&text),
            _ => format!("{}::{}", quoted(&text), name()),
        }
    }

    /// A constant with all of its type, be it `interval year` or `interval(3)`.
    pub(super) fn cut_constant(&self, value: &Datum, ty: Type) -> String {
        if ty.typmod < 0 {
            return self.constant(value, ty);
        }
        let text = io::to_text(value, Type::of(ty.oid), self.binder.env.context);
        format!("{}::{}", quoted(&text), self.type_name(ty))
    }
}
