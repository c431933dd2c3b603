//! Users' types by their names and by what they are made of, in a catalog.

use super::{OF_DOMAIN, UserTypeRef};
use crate::ast::QualifiedName;
use crate::catalog::Catalog;
use crate::catalog::names::temporary_schema;
use crate::catalog::stored_name::{literal_id, type_id};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{Oid, Type};

impl Catalog {
    /// Whether a relation has this name: a table, a view, a sequence, an index or a composite type.
    pub fn is_relation(&self, schema: &str, name: &str) -> bool {
        let is_composite = || self.user_type_in(schema, name).is_some_and(|ty| ty.attributes.is_some());
        self.relation_in(schema, name).is_some() || is_composite()
    }

    /// A type, along the path unless a schema is given.
    pub fn user_type(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<UserTypeRef> {
        match schema {
            Some("pg_temp") => self.user_type_in(temporary_schema(search_path)?, name),
            Some(schema) => self.user_type_in(schema, name),
            None => match type_id(name) {
                Some(oid) => self.user_type_by_oid(oid),
                None => {
                    let mut path = self.relation_path(search_path);
                    path.find_map(|schema| self.user_type_in(schema, name))
                }
            },
        }
    }

    /// As [`Catalog::user_type`], or 42704.
    pub fn require_user_type(&self, name: &QualifiedName, search_path: &[String]) -> Result<UserTypeRef> {
        self.user_type(name.schema.as_deref(), &name.name, search_path).ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"))
        })
    }

    /// The type an oid stands for, its own or its array's.
    pub fn user_type_of(&self, oid: Oid) -> Option<UserTypeRef> {
        let element = || self.user_type_by_oid(Oid(oid.0.wrapping_sub(1)));
        self.user_type_by_oid(oid).or_else(|| element().filter(|ty| ty.array_type() == oid))
    }

    /// The domains whose conditions a value of this domain meets, the innermost first. Below one over an
    /// array of a domain stands none: that one's conditions are about the elements.
    pub fn domains_of(&self, domain: Oid) -> Vec<UserTypeRef> {
        let mut found = Vec::new();
        let mut next = Some(domain);
        while let Some(ty) = next.and_then(|oid| self.user_type_of(oid)) {
            let parent = ty.domain.as_ref().and_then(|domain| domain.parent);
            next = parent.filter(|parent| self.user_type_by_oid(*parent).is_some());
            found.push(ty);
        }
        found.reverse();
        found
    }

    /// The array of a domain that a declared type is, or that a domain is over in the end.
    pub fn array_of_domain(&self, declared: Oid) -> Option<Oid> {
        let mut next = declared;
        loop {
            let ty = self.user_type_of(next)?;
            if ty.oid != next {
                return Some(next);
            }
            next = ty.domain.as_ref()?.parent?;
        }
    }

    /// The plain type of a declared one, and the domain (or the array of one) that it may be.
    pub fn plain_type(&self, declared: Type) -> (Type, Option<Oid>) {
        let Some(ty) = self.user_type_of(declared.oid) else { return (declared, None) };
        let Some(domain) = &ty.domain else { return (declared, None) };
        if declared.oid == ty.oid {
            return (domain.base, Some(ty.oid));
        }
        let array = crate::type_table::array_of(domain.base.oid).unwrap_or(domain.base.oid);
        (Type { oid: array, typmod: domain.base.typmod }, Some(declared.oid))
    }

    /// The domain of what is just a column: its table and one-based number; or of what is one itself
    /// ([`OF_DOMAIN`]).
    pub fn domain_of(&self, source: Option<(Oid, u16)>) -> Option<Oid> {
        let (table, number) = source?;
        if number == OF_DOMAIN {
            return Some(table);
        }
        self.table_by_oid(table)?.columns.get(usize::from(number).checked_sub(1)?)?.domain
    }

    /// The domain whose default the columns of a domain have: itself, as one takes the default of what it is
    /// over when it is made. Arrays of a domain have none.
    pub fn domain_with_default(&self, domain: Oid) -> Option<UserTypeRef> {
        self.user_type_by_oid(domain)?;
        let ends = |ty: &UserTypeRef| {
            ty.domain.as_ref().is_some_and(|domain| domain.default.is_some() || domain.owns_default)
        };
        let found = self.domains_of(domain).into_iter().rev().find(ends)?;
        found.domain.as_ref()?.default.is_some().then_some(found)
    }

    /// The collation that a domain gives its columns, where it is not their type's own.
    pub fn domain_collation(&self, domain: Oid) -> Option<Oid> {
        self.user_type_by_oid(domain)?.domain.as_ref()?.collation
    }

    /// The default that a domain gives its columns.
    pub fn domain_default(&self, domain: Oid) -> Option<String> {
        self.domain_with_default(domain)?.domain.as_ref()?.default.clone()
    }

    /// Reads a label.
    pub fn enum_value(&self, ty: Oid, text: &str) -> Result<Oid> {
        let known = self
            .user_type_by_oid(ty)
            .ok_or_else(|| SqlError::internal(format!("enum {ty} is not in the catalog")))?;
        // In what the catalog keeps, labels have their numbers.
        let numbered = || known.labels.iter().find(|label| Some(label.oid) == literal_id(text));
        known.label(text).or_else(numbered).map(|label| label.oid).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input value for enum {}: \"{text}\"", known.name),
            )
        })
    }
}
