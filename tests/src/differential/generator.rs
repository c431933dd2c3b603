//! From a seed to statements.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::expression::{Expression, Part, generate};
use super::kind::Kind;
use super::statement::{Statement, Way};
use super::table::{self, Column, Table};

/// Makes statements, one after the other, from a seed.
pub struct Generator {
    pub(super) random: StdRng,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator { random: StdRng::seed_from_u64(seed) }
    }

    /// The next statement.
    pub fn statement(&mut self) -> Statement {
        let statement = match self.random.random_range(0..20) {
            0 => self.without_tables(),
            1 => self.cast(),
            2..=4 => self.one_table(),
            5 | 6 => self.join(),
            7 => self.lateral(),
            8 | 9 => self.grouped(),
            10 => self.grouping_sets(),
            11 => self.set_operation(),
            12 | 13 => self.windowed(),
            14 => self.derived(),
            15 => self.common_table(),
            16 => self.first_of_each(),
            _ => self.change(),
        };
        let way = match self.random.random_range(0..6) {
            0 => Way::Prepared,
            1 => Way::Binary,
            _ => Way::Text,
        };
        Statement { way, ..statement }
    }

    /// One of several.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())]
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    pub(super) fn kind(&mut self) -> Kind {
        Kind::any(&mut self.random)
    }

    /// A kind whose values can be compared.
    pub(super) fn ordered_kind(&mut self) -> Kind {
        Kind::such(Kind::is_ordered, &mut self.random)
    }

    /// A kind to make groups of.
    pub(super) fn grouping_kind(&mut self) -> Kind {
        Kind::such(Kind::is_shown_alike, &mut self.random)
    }

    pub(super) fn table(&mut self) -> &'static Table {
        table::any(&mut self.random)
    }

    pub(super) fn expression(&mut self, kind: Kind, columns: &[Column], depth: u32) -> Expression {
        generate(kind, columns, depth, &mut self.random)
    }

    pub(super) fn condition(&mut self, columns: &[Column], depth: u32) -> Expression {
        self.expression(Kind::Bool, columns, depth)
    }

    /// Some expressions; rather of kinds that are in sight.
    pub(super) fn items(&mut self, columns: &[Column], depth: u32) -> Vec<Expression> {
        self.items_such(|_| true, columns, depth)
    }

    pub(super) fn items_such(
        &mut self,
        condition: impl Fn(Kind) -> bool,
        columns: &[Column],
        depth: u32,
    ) -> Vec<Expression> {
        let count = self.random.random_range(1..4);
        let mut items = Vec::new();
        while items.len() < count {
            let kind = match columns.is_empty() || self.chance(0.4) {
                true => self.kind(),
                false => columns[self.random.random_range(0..columns.len())].kind,
            };
            if condition(kind) {
                items.push(self.expression(kind, columns, depth));
            }
        }
        items
    }

    /// A column whose values can be compared.
    pub(super) fn column(&mut self, columns: &[Column]) -> Column {
        self.column_such(Kind::is_ordered, columns)
    }

    /// A column of a kind that fulfils a condition; the key of a table does.
    pub(super) fn column_such(&mut self, condition: impl Fn(Kind) -> bool, columns: &[Column]) -> Column {
        loop {
            let column = &columns[self.random.random_range(0..columns.len())];
            if condition(column.kind) {
                return column.clone();
            }
        }
    }

    /// An aggregate over columns; `key` orders where the order of rows is part of the result.
    pub(super) fn aggregate(&mut self, columns: &[Column], key: &str) -> Expression {
        let in_order = format!(" ORDER BY {key})");
        let joined = format!(", '/' ORDER BY {key})");
        let forms: [(&str, Kind, Kind, &str); 31] = [
            ("count(", Kind::Int, Kind::Big, ")"),
            ("sum(", Kind::Int, Kind::Big, ")"),
            ("sum(", Kind::Big, Kind::Numeric, ")"),
            ("sum(", Kind::Small, Kind::Big, ")"),
            ("sum(", Kind::Numeric, Kind::Numeric, ")"),
            ("sum(", Kind::Interval, Kind::Interval, ")"),
            ("sum(DISTINCT ", Kind::Int, Kind::Big, ")"),
            // Without an order the last digit of a sum of floats is open.
            ("sum(", Kind::Float, Kind::Float, &in_order),
            ("avg(", Kind::Int, Kind::Numeric, ")"),
            ("avg(", Kind::Numeric, Kind::Numeric, ")"),
            ("avg(", Kind::Interval, Kind::Interval, ")"),
            ("avg(", Kind::Float, Kind::Float, &in_order),
            ("stddev(", Kind::Int, Kind::Numeric, ")"),
            ("var_pop(", Kind::Numeric, Kind::Numeric, ")"),
            ("bool_and(", Kind::Bool, Kind::Bool, ")"),
            ("bool_or(", Kind::Bool, Kind::Bool, ")"),
            ("every(", Kind::Bool, Kind::Bool, ")"),
            ("bit_and(", Kind::Int, Kind::Int, ")"),
            ("bit_or(", Kind::Big, Kind::Big, ")"),
            ("bit_xor(", Kind::Int, Kind::Int, ")"),
            ("string_agg(", Kind::Text, Kind::Text, &joined),
            ("array_agg(", Kind::Int, Kind::Ints, &in_order),
            ("array_agg(", Kind::Text, Kind::Texts, &in_order),
            ("percentile_disc(0.5) WITHIN GROUP (ORDER BY ", Kind::Int, Kind::Int, ")"),
            ("percentile_cont(0.25) WITHIN GROUP (ORDER BY ", Kind::Float, Kind::Float, ")"),
            ("percentile_cont(0.7) WITHIN GROUP (ORDER BY ", Kind::Interval, Kind::Interval, " DESC)"),
            ("percentile_disc(ARRAY[0, 0.5, NULL]) WITHIN GROUP (ORDER BY ", Kind::Int, Kind::Ints, ")"),
            ("rank(3) WITHIN GROUP (ORDER BY ", Kind::Int, Kind::Big, ")"),
            ("dense_rank('b') WITHIN GROUP (ORDER BY ", Kind::Text, Kind::Big, " DESC)"),
            ("percent_rank(NULL) WITHIN GROUP (ORDER BY ", Kind::Numeric, Kind::Float, " NULLS FIRST)"),
            ("cume_dist('2024-02-29') WITHIN GROUP (ORDER BY ", Kind::Date, Kind::Float, " DESC NULLS LAST)"),
        ];
        match self.random.random_range(0..10) {
            0..=4 => {
                let (before, argument, result, after) = self.pick(&forms);
                let inner = self.expression(argument, columns, 2);
                self.filtered(Expression::around(result, before, inner, after), columns)
            }
            5 | 6 => {
                let kind = Kind::such(Kind::has_extremes, &mut self.random);
                // The greatest of a domain's values has its base type.
                let result = if kind == Kind::Amount { Kind::Int } else { kind };
                let call = self.pick(&["min(", "max("]);
                let inner = self.expression(kind, columns, 2);
                self.filtered(Expression::around(result, call, inner, ")"), columns)
            }
            7 => {
                let kind = self.ordered_kind();
                let inner = self.expression(kind, columns, 2);
                Expression::around(Kind::Big, "count(DISTINCT ", inner, ")")
            }
            8 => {
                let kind = self.kind();
                let (call, result) = self.pick(&[("json_agg(", Kind::Json), ("jsonb_agg(", Kind::Jsonb)]);
                let inner = self.expression(kind, columns, 2);
                self.filtered(Expression::around(result, call, inner, in_order), columns)
            }
            _ => {
                let count = Expression::leaf(Kind::Big, "count(*)");
                self.filtered(count, columns)
            }
        }
    }

    fn filtered(&mut self, aggregate: Expression, columns: &[Column]) -> Expression {
        if !self.chance(0.2) {
            return aggregate;
        }
        let kind = aggregate.kind;
        let filter = self.condition(columns, 1);
        let parts = vec![
            Part::Child(aggregate),
            Part::Text(" FILTER (WHERE ".to_owned()),
            Part::Child(filter),
            Part::Text(")".to_owned()),
        ];
        Expression { kind, parts }
    }
}
