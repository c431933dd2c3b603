//! Queries and data changes at random.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::expression::{Column, Expression, KINDS, Kind, generate};

/// A statement in parts.
#[derive(Clone, Debug)]
pub struct Statement {
    pub clauses: Vec<Clause>,
}

/// A clause: its text before, its expressions, what stands between and after them.
#[derive(Clone, Debug)]
pub struct Clause {
    pub before: String,
    pub items: Vec<Expression>,
    pub between: &'static str,
    pub after: String,
    /// Whether the statement makes sense without it, and without all but one of its items.
    pub optional: bool,
    pub fewer: bool,
}

impl Clause {
    fn text(text: impl Into<String>) -> Clause {
        Clause {
            before: text.into(),
            items: Vec::new(),
            between: "",
            after: String::new(),
            optional: false,
            fewer: false,
        }
    }

    fn optional(text: &str, item: Expression) -> Clause {
        Clause { items: vec![item], optional: true, ..Clause::text(text) }
    }

    fn list(text: &str, items: Vec<Expression>) -> Clause {
        Clause { items, between: ", ", fewer: true, ..Clause::text(text) }
    }

    fn sql(&self) -> String {
        let items: Vec<String> = self.items.iter().map(Expression::sql).collect();
        format!("{}{}{}", self.before, items.join(self.between), self.after)
    }
}

/// Whatever is ordered ends its list with the key of its table.
const ORDER_BY: &str = " ORDER BY ";

impl Statement {
    /// Whether the order of its rows is part of its answer.
    pub fn is_ordered(&self) -> bool {
        self.clauses.iter().any(|clause| clause.before == ORDER_BY)
    }

    pub fn sql(&self) -> String {
        self.clauses.iter().map(Clause::sql).collect::<Vec<_>>().concat()
    }
}

/// Makes statements, one after the other, from a seed.
pub struct Generator {
    random: StdRng,
}

fn columns_of(table: &str, alias: &str) -> Vec<Column> {
    let named: &[(&str, Kind)] = match table {
        "part" => &[
            ("id", Kind::Int),
            ("name", Kind::Text),
            ("size", Kind::Int),
            ("price", Kind::Numeric),
            ("made", Kind::Date),
            ("ok", Kind::Bool),
        ],
        _ => &[
            ("id", Kind::Int),
            ("part", Kind::Int),
            ("n", Kind::Big),
            ("at", Kind::Timestamp),
            ("rate", Kind::Float),
            ("note", Kind::Text),
        ],
    };
    named
        .iter()
        .map(|(name, kind)| {
            // smallint and varchar stand for int and text.
            let shown = match *name {
                "size" => format!("{alias}.size::int"),
                "note" => format!("{alias}.note::text"),
                name => format!("{alias}.{name}"),
            };
            Column { name: shown, kind: *kind }
        })
        .collect()
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator { random: StdRng::seed_from_u64(seed) }
    }

    fn kind(&mut self) -> Kind {
        KINDS[self.random.random_range(0..KINDS.len())]
    }

    fn expression(&mut self, kind: Kind, columns: &[Column], depth: u32) -> Expression {
        generate(kind, columns, depth, &mut self.random)
    }

    fn items(&mut self, columns: &[Column], depth: u32) -> Vec<Expression> {
        (0..self.random.random_range(1..4))
            .map(|_| {
                let kind = self.kind();
                self.expression(kind, columns, depth)
            })
            .collect()
    }

    /// The next statement.
    pub fn statement(&mut self) -> Statement {
        match self.random.random_range(0..10) {
            0 => self.without_tables(),
            1 | 2 => self.one_table(),
            3 | 4 => self.join(),
            5 | 6 => self.grouped(),
            7 => self.set_operation(),
            8 => self.windowed(),
            _ => self.change(),
        }
    }

    fn without_tables(&mut self) -> Statement {
        let items = self.items(&[], 4);
        Statement { clauses: vec![Clause::list("SELECT ", items)] }
    }

    fn one_table(&mut self) -> Statement {
        let table = if self.random.random_bool(0.5) { "part" } else { "sale" };
        let columns = columns_of(table, "t");
        let items = self.items(&columns, 3);
        let filter = self.expression(Kind::Bool, &columns, 3);
        let mut clauses = vec![
            Clause::list("SELECT ", items),
            Clause::text(format!(" FROM {table} t")),
            Clause::optional(" WHERE ", filter),
        ];
        if self.random.random_bool(0.3) {
            let first = self.expression(Kind::Int, &columns, 1);
            clauses.push(Clause::optional(ORDER_BY, first));
            let order = if self.random.random_bool(0.5) {
                " DESC, t.id LIMIT 5"
            } else {
                " NULLS FIRST, t.id OFFSET 2"
            };
            if let Some(last) = clauses.last_mut() {
                last.after = order.to_owned();
            }
        }
        Statement { clauses }
    }

    fn join(&mut self) -> Statement {
        let mut columns = columns_of("part", "p");
        columns.extend(columns_of("sale", "s"));
        let kind = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][self.random.random_range(0..4)];
        let on = self.expression(Kind::Bool, &columns, 1);
        let items = self.items(&columns, 2);
        let filter = self.expression(Kind::Bool, &columns, 2);
        let full = kind == "FULL JOIN";
        let mut clauses = vec![
            Clause::list("SELECT ", items),
            Clause::text(format!(" FROM part p {kind} sale s ON p.id = s.part")),
        ];
        // PostgreSQL joins FULL on equalities only.
        if !full {
            clauses.push(Clause::optional(" AND ", on));
        }
        clauses.push(Clause::optional(" WHERE ", filter));
        if self.random.random_bool(0.3) {
            let negated = if self.random.random_bool(0.5) { "NOT " } else { "" };
            let inner = columns_of("sale", "x");
            let test = self.expression(Kind::Bool, &inner, 2);
            let mut clause = Clause::optional(" AND ", test);
            clause.before = format!(" AND {negated}EXISTS (SELECT 1 FROM sale x WHERE x.part = p.id AND ");
            clause.after = ")".to_owned();
            clauses.push(clause);
        }
        Statement { clauses }
    }

    fn aggregate(&mut self, columns: &[Column]) -> Expression {
        use super::expression::Part;
        let forms: &[(&str, Kind, Kind, &str)] = &[
            ("count(", Kind::Int, Kind::Big, ")"),
            ("sum(", Kind::Int, Kind::Big, ")"),
            ("sum(", Kind::Numeric, Kind::Numeric, ")"),
            ("avg(", Kind::Int, Kind::Numeric, ")"),
            ("min(", Kind::Text, Kind::Text, ")"),
            ("max(", Kind::Date, Kind::Date, ")"),
            ("max(", Kind::Timestamp, Kind::Timestamp, ")"),
            ("bool_and(", Kind::Bool, Kind::Bool, ")"),
            ("count(DISTINCT ", Kind::Text, Kind::Big, ")"),
            ("sum(", Kind::Interval, Kind::Interval, ")"),
        ];
        let (before, argument, result, after) = forms[self.random.random_range(0..forms.len())];
        let inner = self.expression(argument, columns, 2);
        Expression {
            kind: result,
            parts: vec![Part::Text(before.to_owned()), Part::Child(inner), Part::Text(after.to_owned())],
        }
    }

    fn grouped(&mut self) -> Statement {
        let table = if self.random.random_bool(0.5) { "part" } else { "sale" };
        let columns = columns_of(table, "t");
        let key = self.kind();
        let key = self.expression(key, &columns, 1);
        let mut items: Vec<Expression> =
            (0..self.random.random_range(1..3)).map(|_| self.aggregate(&columns)).collect();
        let filter = self.expression(Kind::Bool, &columns, 2);
        let grouped = self.random.random_bool(0.6);
        let mut clauses = Vec::new();
        if grouped {
            items.push(key);
        }
        let having = self.aggregate(&columns);
        let place = items.len();
        let mut list = Clause::list("SELECT ", items);
        list.fewer = !grouped;
        clauses.push(list);
        clauses.push(Clause::text(format!(" FROM {table} t")));
        clauses.push(Clause::optional(" WHERE ", filter));
        if grouped {
            clauses.push(Clause::text(format!(" GROUP BY {place}")));
            if self.random.random_bool(0.3) {
                let mut clause = Clause::optional(" HAVING ", having);
                clause.after = " IS NOT NULL".to_owned();
                clauses.push(clause);
            }
        }
        Statement { clauses }
    }

    fn set_operation(&mut self) -> Statement {
        let kind = self.kind();
        let (left, right) = (columns_of("part", "a"), columns_of("sale", "b"));
        let (one, other) = (self.expression(kind, &left, 2), self.expression(kind, &right, 2));
        let filter = self.expression(Kind::Bool, &right, 2);
        let operators = ["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"];
        let operator = operators[self.random.random_range(0..operators.len())];
        let single = |text: &str, item: Expression| Clause { items: vec![item], ..Clause::text(text) };
        let clauses = vec![
            single("SELECT ", one),
            Clause::text(format!(" FROM part a {operator} ")),
            single("SELECT ", other),
            Clause::text(" FROM sale b"),
            Clause::optional(" WHERE ", filter),
        ];
        Statement { clauses }
    }

    fn windowed(&mut self) -> Statement {
        use super::expression::Part;
        let columns = columns_of("sale", "t");
        let forms: &[(&str, Kind, Kind)] = &[
            ("sum(", Kind::Int, Kind::Big),
            ("count(", Kind::Text, Kind::Big),
            ("max(", Kind::Numeric, Kind::Numeric),
            ("lag(", Kind::Int, Kind::Int),
            ("first_value(", Kind::Text, Kind::Text),
            ("last_value(", Kind::Date, Kind::Date),
        ];
        let frames = ["", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " RANGE UNBOUNDED PRECEDING"];
        let items = (0..self.random.random_range(1..3))
            .map(|_| {
                let (before, argument, result) = forms[self.random.random_range(0..forms.len())];
                let inner = self.expression(argument, &columns, 2);
                let partition = if self.random.random_bool(0.5) { "PARTITION BY t.part " } else { "" };
                let frame = frames[self.random.random_range(0..frames.len())];
                let over = format!(") OVER ({partition}ORDER BY t.id{frame})");
                let parts = vec![Part::Text(before.to_owned()), Part::Child(inner), Part::Text(over)];
                Expression { kind: result, parts }
            })
            .collect();
        let filter = self.expression(Kind::Bool, &columns, 2);
        let clauses = vec![
            Clause::list("SELECT ", items),
            Clause::text(" FROM sale t"),
            Clause::optional(" WHERE ", filter),
        ];
        Statement { clauses }
    }

    fn change(&mut self) -> Statement {
        let columns = columns_of("sale", "sale");
        let filter = self.expression(Kind::Bool, &columns, 2);
        let single = |text: &str, item: Expression| Clause { items: vec![item], ..Clause::text(text) };
        let returning = self.items(&columns, 2);
        let mut clauses = match self.random.random_range(0..3) {
            0 => {
                let n = self.expression(Kind::Big, &columns, 2);
                let note = self.expression(Kind::Text, &columns, 2);
                vec![
                    single("UPDATE sale SET n = ", n),
                    Clause::optional(", note = ", note),
                    Clause::optional(" WHERE ", filter),
                ]
            }
            1 => vec![Clause::text("DELETE FROM sale"), Clause::optional(" WHERE ", filter)],
            _ => {
                let source = columns_of("part", "p");
                let n = self.expression(Kind::Big, &source, 2);
                let rate = self.expression(Kind::Float, &source, 2);
                let filter = self.expression(Kind::Bool, &source, 2);
                vec![
                    single("INSERT INTO sale (id, part, n, rate) SELECT p.id + 100, p.id, ", n),
                    single(", ", rate),
                    Clause::text(" FROM part p"),
                    Clause::optional(" WHERE ", filter),
                ]
            }
        };
        clauses.push(Clause::list(" RETURNING ", returning));
        Statement { clauses }
    }
}
