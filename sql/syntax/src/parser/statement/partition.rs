//! Partitioned tables and their partitions: PARTITION BY, PARTITION OF, ATTACH and DETACH PARTITION.

use sqlparser::tokenizer::Token;

use crate::ast::{
    AlterTableAction, BoundSpec, BoundSpecKind, ColumnOptions, Expression, PartitionBy, PartitionOf,
    TableConstraint,
};
use crate::error::{Result, SqlError, SqlState};

use crate::parser::cursor::Cursor;

impl Cursor<'_> {
    /// At PARTITION BY.
    pub(super) fn partition_by(&mut self) -> Result<PartitionBy> {
        self.skip(1);
        self.expect("by")?;
        let strategy = self.label()?;
        let parts = self.parenthesized(|cursor| {
            let part = cursor.index_element()?;
            let ordered = part.descending || part.nulls_first.is_some();
            if ordered { Err(cursor.unexpected()) } else { Ok(part) }
        })?;
        Ok(PartitionBy { strategy, parts })
    }

    /// `PARTITION OF parent [(…)] bound`, if that comes after a new table's name. Constraints of
    /// the table go to the others.
    pub(super) fn partition_of(
        &mut self,
        constraints: &mut Vec<TableConstraint>,
    ) -> Result<Option<PartitionOf>> {
        if !self.take_words(&["partition", "of"]) {
            return Ok(None);
        }
        let parent = self.name()?;
        let mut columns = Vec::new();
        if self.take_token(&Token::LParen) {
            loop {
                match self.table_constraint()? {
                    Some(constraint) => constraints.push(constraint),
                    None => columns.push(self.column_options()?),
                }
                if !self.take_token(&Token::Comma) {
                    break;
                }
            }
            self.expect_token(&Token::RParen)?;
        }
        Ok(Some(PartitionOf { parent, columns, bound: self.bound_spec()? }))
    }

    fn column_options(&mut self) -> Result<ColumnOptions> {
        let position = self.position();
        let name = self.identifier()?;
        self.take_words(&["with", "options"]);
        let mut constraints = Vec::new();
        while let Some(constraint) = self.column_constraint()? {
            constraints.push(constraint);
        }
        Ok(ColumnOptions { name, position, constraints })
    }

    fn bound_spec(&mut self) -> Result<BoundSpec> {
        if self.at("default") {
            let position = self.position();
            self.skip(1);
            return Ok(BoundSpec { position, kind: BoundSpecKind::Default });
        }
        self.expect("for")?;
        self.expect("values")?;
        let position = self.position();
        let kind = if self.take("in") {
            BoundSpecKind::List(self.parenthesized(Self::expression)?)
        } else if self.take("from") {
            let from = self.parenthesized(Self::expression)?;
            self.expect("to")?;
            BoundSpecKind::Range { from, to: self.parenthesized(Self::expression)? }
        } else if self.take("with") {
            self.hash_bound()?
        } else {
            return Err(self.unexpected());
        };
        Ok(BoundSpec { position, kind })
    }

    /// `(MODULUS n, REMAINDER n)`, in any order.
    fn hash_bound(&mut self) -> Result<BoundSpecKind> {
        let wrong = |message: String, position: u32| {
            SqlError::new(SqlState::SYNTAX_ERROR, message).at((position > 0).then_some(position))
        };
        let (mut modulus, mut remainder) = (None, None);
        self.parenthesized(|cursor| {
            let position = cursor.position();
            let word = cursor.label()?;
            let place = match word.as_str() {
                "modulus" => &mut modulus,
                "remainder" => &mut remainder,
                _ => {
                    let message = format!("unrecognized hash partition bound specification \"{word}\"");
                    return Err(wrong(message, position));
                }
            };
            if place.is_some() {
                let message = format!("{word} for hash partition provided more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message).at(Some(position)));
            }
            let Token::Number(..) = cursor.peek() else { return Err(cursor.unexpected()) };
            *place = Some(cursor.integer()?);
            Ok(())
        })?;
        let missing = |what: &str| wrong(format!("{what} for hash partition must be specified"), 0);
        let modulus = modulus.ok_or_else(|| missing("modulus"))?;
        let remainder = remainder.ok_or_else(|| missing("remainder"))?;
        Ok(BoundSpecKind::Hash { modulus, remainder })
    }

    /// After ATTACH PARTITION.
    pub(super) fn attach_partition(&mut self) -> Result<AlterTableAction> {
        let partition = self.name()?;
        let bound = if self.at("for") || self.at("default") { Some(self.bound_spec()?) } else { None };
        Ok(AlterTableAction::AttachPartition { partition, bound })
    }

    /// After DETACH PARTITION.
    pub(super) fn detach_partition(&mut self) -> Result<AlterTableAction> {
        let partition = self.name()?;
        let concurrently = self.take("concurrently");
        let finalize = !concurrently && self.take("finalize");
        Ok(AlterTableAction::DetachPartition { partition, concurrently, finalize })
    }
}

/// MINVALUE or MAXVALUE, as an end of a range: true for the latter.
pub fn unbounded(expression: &Expression) -> Option<bool> {
    let sqlparser::ast::Expr::Identifier(name) = &expression.expr else { return None };
    match (name.quote_style, name.value.to_lowercase().as_str()) {
        (None, "minvalue") => Some(false),
        (None, "maxvalue") => Some(true),
        _ => None,
    }
}
