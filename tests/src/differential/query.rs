//! Queries at random.

use rand::RngExt;

use super::expression::{Expression, Part};
use super::generator::Generator;
use super::kind::Kind;
use super::statement::{Clause, Statement};
use super::table::{Column, NODE, SALE, THING};

impl Generator {
    pub(super) fn without_tables(&mut self) -> Statement {
        let items = self.items(&[], 4);
        Statement::query(vec![Clause::list("SELECT ", items)])
    }

    /// From any type to any other, which may not be possible.
    pub(super) fn cast(&mut self) -> Statement {
        let (from, to) = (self.kind(), self.kind());
        let columns = THING.columns("t");
        let inner = self.expression(from, &columns, 1);
        let cast = Expression::around(to, "CAST(", inner, format!(" AS {})", to.name()));
        Statement::query(vec![Clause::list("SELECT ", vec![cast]), Clause::text(" FROM thing t")])
    }

    pub(super) fn one_table(&mut self) -> Statement {
        let table = self.table();
        let columns = table.columns("t");
        let filter = self.condition(&columns, 3);
        let from = Clause::text(format!(" FROM {} t", table.name));
        if self.chance(0.15) {
            let items = self.items_such(Kind::is_shown_alike, &columns, 2);
            return Statement::query(vec![
                Clause::list("SELECT DISTINCT ", items),
                from,
                Clause::optional(" WHERE ", filter),
            ]);
        }
        let items = self.items(&columns, 3);
        let mut clauses = vec![Clause::list("SELECT ", items), from, Clause::optional(" WHERE ", filter)];
        if self.chance(0.4) {
            let kind = self.ordered_kind();
            let first = self.expression(kind, &columns, 1);
            let direction = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            let limit =
                self.pick(&["", " LIMIT 5", " OFFSET 2", " LIMIT 3 OFFSET 1", " FETCH FIRST 4 ROWS ONLY"]);
            clauses.push(Clause::order(first, format!("{direction}, t.{}{limit}", table.key)));
        } else if self.chance(0.1) {
            // Whoever ties with the last one comes along, in any order.
            let first = self.column(&columns);
            clauses.push(Clause::option(format!(" ORDER BY {} FETCH FIRST 3 ROWS WITH TIES", first.name)));
        }
        Statement::query(clauses)
    }

    pub(super) fn join(&mut self) -> Statement {
        let (left, right) = (self.table(), self.table());
        let mut columns = left.columns("a");
        columns.extend(right.columns("b"));
        let kind = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ","]);
        let links = format!("a.{} = b.{}", left.link, right.link);
        let on = self.condition(&columns, 1);
        let mut joins = Vec::new();
        match kind {
            "," => joins.push(Clause::text(format!(" FROM {} a, {} b", left.name, right.name))),
            kind => {
                joins.push(Clause::text(format!(" FROM {} a {kind} {} b ON {links}", left.name, right.name)));
                // PostgreSQL joins FULL on equalities only.
                if kind != "FULL JOIN" {
                    joins.push(Clause::optional(" AND ", on));
                }
                if self.chance(0.25) {
                    let third = self.table();
                    columns.extend(third.columns("c"));
                    let kind = self.pick(&["JOIN", "LEFT JOIN"]);
                    let text = format!(" {kind} {} c ON c.{} = b.{}", third.name, third.link, right.link);
                    joins.push(Clause::text(text));
                }
            }
        }
        let items = self.items(&columns, 2);
        let filter = self.condition(&columns, 2);
        let mut clauses = vec![Clause::list("SELECT ", items)];
        clauses.append(&mut joins);
        match kind {
            "," => {
                clauses.push(Clause::text(format!(" WHERE {links}")));
                clauses.push(Clause::optional(" AND ", filter));
            }
            _ => clauses.push(Clause::optional(" WHERE ", filter)),
        }
        Statement::query(clauses)
    }

    /// What sees the table before it: a query, or a function of rows.
    pub(super) fn lateral(&mut self) -> Statement {
        if self.chance(0.5) {
            let (outer, inner) = (self.table(), self.table());
            let mut columns = outer.columns("p");
            let mut scope = inner.columns("x");
            scope.extend(columns.clone());
            let test = self.condition(&scope, 2);
            let (join, on) = self.pick(&[(", ", ""), (" LEFT JOIN ", " ON true"), (" CROSS JOIN ", "")]);
            columns.extend(inner.columns("l"));
            let items = self.items(&columns, 2);
            let filter = self.condition(&columns, 2);
            let before = format!(
                " FROM {} p{join}LATERAL (SELECT x.* FROM {} x WHERE x.{} = p.{}",
                outer.name, inner.name, inner.link, outer.link
            );
            return Statement::query(vec![
                Clause::list("SELECT ", items),
                Clause::text(before),
                Clause::optional(" AND ", test),
                Clause::text(format!(" ORDER BY x.{} LIMIT 2) l{on}", inner.key)),
                Clause::optional(" WHERE ", filter),
            ]);
        }
        let table = if self.chance(0.5) { THING } else { SALE };
        let mut columns = table.columns("t");
        let forms = [
            ("unnest(", Kind::Ints, ")", Kind::Int),
            ("unnest(", Kind::Texts, ")", Kind::Text),
            ("generate_series(-1, least(", Kind::Int, ", 3))", Kind::Int),
            ("generate_series(least(", Kind::Numeric, ", 3), 4, 1.5)", Kind::Numeric),
            ("regexp_split_to_table(", Kind::Text, ", 'b')", Kind::Text),
            ("string_to_table(", Kind::Text, ", 'b')", Kind::Text),
            ("jsonb_path_query(", Kind::Jsonb, ", '$.*')", Kind::Jsonb),
            ("jsonb_object_keys(jsonb_build_object('k', ", Kind::Jsonb, "))", Kind::Text),
        ];
        // A table's column rather than a literal, or a series might begin far below.
        let (before, kind, after, result) = self.pick(&forms);
        let argument = match kind {
            Kind::Numeric => Expression::leaf(Kind::Numeric, "abs(t.id::numeric)"),
            kind => self.expression(kind, &columns, 1),
        };
        columns.push(Column { name: "l.e".to_owned(), kind: result });
        let ordinality = self.chance(0.4);
        if ordinality {
            columns.push(Column { name: "l.o".to_owned(), kind: Kind::Big });
        }
        let items = self.items(&columns, 2);
        let filter = self.condition(&columns, 2);
        let names = if ordinality { " WITH ORDINALITY AS l(e, o)" } else { " AS l(e)" };
        let from = format!(" FROM {} t CROSS JOIN LATERAL {before}", table.name);
        Statement::query(vec![
            Clause::list("SELECT ", items),
            Clause::single(from, argument).then(format!("{after}{names}")),
            Clause::optional(" WHERE ", filter),
        ])
    }

    pub(super) fn grouped(&mut self) -> Statement {
        let table = self.table();
        let (columns, key) = (table.columns("t"), format!("t.{}", table.key));
        let mut items: Vec<Expression> =
            (0..self.random.random_range(1..3)).map(|_| self.aggregate(&columns, &key)).collect();
        let grouped = self.chance(0.6);
        if grouped {
            let kind = self.grouping_kind();
            items.push(self.expression(kind, &columns, 1));
        }
        let place = items.len();
        let filter = self.condition(&columns, 2);
        let mut clauses = vec![
            Clause { fewer: !grouped, ..Clause::list("SELECT ", items) },
            Clause::text(format!(" FROM {} t", table.name)),
            Clause::optional(" WHERE ", filter),
        ];
        if grouped {
            clauses.push(Clause::text(format!(" GROUP BY {place}")));
        }
        if self.chance(0.3) {
            let having = self.aggregate(&columns, &key);
            clauses.push(Clause::optional(" HAVING ", having).then(" IS NOT NULL"));
        }
        Statement::query(clauses)
    }

    pub(super) fn grouping_sets(&mut self) -> Statement {
        let table = self.table();
        let (columns, key) = (table.columns("t"), format!("t.{}", table.key));
        let alike = Kind::is_shown_alike;
        let (one, other) = (self.column_such(alike, &columns), self.column_such(alike, &columns));
        let (a, b) = (one.name.clone(), other.name.clone());
        let mut items = vec![
            Expression::leaf(one.kind, a.clone()),
            Expression::leaf(Kind::Int, format!("grouping({a}, {b})")),
        ];
        items.push(self.aggregate(&columns, &key));
        let sets = [
            format!("ROLLUP ({a}, {b})"),
            format!("CUBE ({a}, {b})"),
            format!("GROUPING SETS (({a}, {b}), ({b}), ())"),
            format!("{a}, GROUPING SETS (({b}), ())"),
            format!("GROUPING SETS (({a}), ROLLUP ({b}))"),
        ];
        let sets = &sets[self.random.random_range(0..sets.len())];
        let filter = self.condition(&columns, 2);
        let mut clauses = vec![
            Clause::list("SELECT ", items),
            Clause::text(format!(" FROM {} t", table.name)),
            Clause::optional(" WHERE ", filter),
            Clause::text(format!(" GROUP BY {sets}")),
        ];
        if self.chance(0.3) {
            clauses.push(Clause::option(format!(" HAVING count(*) > 1 OR grouping({a}) = 1")));
        }
        Statement::query(clauses)
    }

    pub(super) fn set_operation(&mut self) -> Statement {
        let kinds = [self.grouping_kind(), self.grouping_kind()];
        let kinds = if self.chance(0.3) { &kinds[..] } else { &kinds[..1] };
        let operators = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"];
        let arms = self.random.random_range(2..4);
        let mut clauses = Vec::new();
        for (arm, alias) in ["a", "b", "c"].into_iter().enumerate().take(arms) {
            let table = self.table();
            let columns = table.columns(alias);
            let items = kinds.iter().map(|kind| self.expression(*kind, &columns, 2)).collect();
            if arm > 0 {
                clauses.push(Clause::text(format!(" {} ", self.pick(&operators))));
            }
            clauses.push(Clause::fixed("SELECT ", items));
            clauses.push(Clause::text(format!(" FROM {} {alias}", table.name)));
            let filter = self.condition(&columns, 2);
            clauses.push(Clause::optional(" WHERE ", filter));
        }
        Statement::query(clauses)
    }

    pub(super) fn windowed(&mut self) -> Statement {
        let table = self.table();
        let (columns, key) = (table.columns("t"), format!("t.{}", table.key));
        let items = (0..self.random.random_range(1..3)).map(|_| self.window(&columns, &key)).collect();
        let filter = self.condition(&columns, 2);
        Statement::query(vec![
            Clause::list("SELECT ", items),
            Clause::text(format!(" FROM {} t", table.name)),
            Clause::optional(" WHERE ", filter),
        ])
    }

    /// A window function over a window of its own, whose order is total but for functions that do
    /// not tell equal rows apart.
    fn window(&mut self, columns: &[Column], key: &str) -> Expression {
        let frames = [
            "",
            " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
            " RANGE UNBOUNDED PRECEDING",
            " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
            " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ];
        let partition = self.column(columns);
        let order = self.column(columns);
        let partition = match self.chance(0.5) {
            true => format!("PARTITION BY {} ", partition.name),
            false => String::new(),
        };
        let direction = self.pick(&["", " DESC", " NULLS FIRST"]);
        let total = match self.chance(0.5) {
            true => {
                format!(" OVER ({partition}ORDER BY {}{direction}, {key}{})", order.name, self.pick(&frames))
            }
            false if self.chance(0.3) => {
                let range = self.pick(&[" RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING", " RANGE CURRENT ROW"]);
                format!(" OVER ({partition}ORDER BY {key}{range})")
            }
            false => format!(" OVER ({partition}ORDER BY {key}{})", self.pick(&frames)),
        };
        match self.random.random_range(0..6) {
            0 => {
                let (call, kind) = self.pick(&[
                    ("rank()", Kind::Big),
                    ("dense_rank()", Kind::Big),
                    ("percent_rank()", Kind::Float),
                    ("cume_dist()", Kind::Float),
                ]);
                Expression::leaf(kind, format!("{call} OVER ({partition}ORDER BY {}{direction})", order.name))
            }
            1 => {
                let call = self.pick(&["row_number()", "ntile(3)"]);
                let kind = if call == "ntile(3)" { Kind::Int } else { Kind::Big };
                Expression::leaf(kind, format!("{call}{total}"))
            }
            2 | 3 => {
                let kind = self.kind();
                let call =
                    self.pick(&["lag(", "lead(", "first_value(", "last_value(", "nth_value(", "lag(3"]);
                let inner = self.expression(kind, columns, 2);
                match call {
                    "nth_value(" => Expression::around(kind, call, inner, format!(", 2){total}")),
                    "lag(3" => {
                        let otherwise = self.expression(kind, columns, 1);
                        let parts = vec![
                            Part::Text("lag(".to_owned()),
                            Part::Child(inner),
                            Part::Text(", 3, ".to_owned()),
                            Part::Child(otherwise),
                            Part::Text(format!("){total}")),
                        ];
                        Expression { kind, parts }
                    }
                    call => Expression::around(kind, call, inner, format!("){total}")),
                }
            }
            _ => {
                let forms = [
                    ("sum(", Kind::Int, Kind::Big),
                    ("sum(", Kind::Numeric, Kind::Numeric),
                    ("sum(", Kind::Float, Kind::Float),
                    ("avg(", Kind::Int, Kind::Numeric),
                    ("count(", Kind::Text, Kind::Big),
                    // Of equal numbers with unlike scales any may be the greatest.
                    ("max(", Kind::Big, Kind::Big),
                    ("min(", Kind::Text, Kind::Text),
                    ("max(", Kind::TimestampTz, Kind::TimestampTz),
                    ("bool_or(", Kind::Bool, Kind::Bool),
                    ("array_agg(", Kind::Int, Kind::Ints),
                    ("sum(", Kind::Interval, Kind::Interval),
                ];
                let (before, argument, result) = self.pick(&forms);
                let inner = self.expression(argument, columns, 2);
                Expression::around(result, before, inner, format!("){total}"))
            }
        }
    }

    /// Some expressions under names, and the columns they are to those outside.
    fn named_items(&mut self, columns: &[Column], key: &str, alias: &str) -> (Vec<Expression>, Vec<Column>) {
        let mut outside = vec![Column { name: format!("{alias}.k"), kind: Kind::Int }];
        let mut items = vec![Expression::leaf(Kind::Int, format!("{key} AS k"))];
        for (place, item) in self.items(columns, 2).into_iter().enumerate() {
            outside.push(Column { name: format!("{alias}.c{place}"), kind: item.kind });
            // Without a type of its own a literal would be of another one outside.
            let kind = item.kind.name();
            items.push(Expression::around(item.kind, "CAST(", item, format!(" AS {kind}) AS c{place}")));
        }
        (items, outside)
    }

    /// A query over a query, or over rows as they are.
    pub(super) fn derived(&mut self) -> Statement {
        if self.chance(0.3) {
            let kinds: Vec<Kind> = (0..self.random.random_range(1..4)).map(|_| self.kind()).collect();
            let rows = self.random.random_range(1..5);
            let mut values = Vec::new();
            for _ in 0..rows {
                let mut parts = vec![Part::Text("(".to_owned())];
                for (place, kind) in kinds.iter().enumerate() {
                    parts.push(Part::Text(if place > 0 { ", " } else { "" }.to_owned()));
                    parts.push(Part::Child(self.expression(*kind, &[], 1)));
                }
                parts.push(Part::Text(")".to_owned()));
                values.push(Expression { kind: Kind::Bool, parts });
            }
            let names: Vec<String> = (0..kinds.len()).map(|place| format!("c{place}")).collect();
            let named = names.iter().zip(&kinds);
            let columns: Vec<Column> =
                named.map(|(name, kind)| Column { name: format!("v.{name}"), kind: *kind }).collect();
            let items = self.items(&columns, 2);
            let filter = self.condition(&columns, 2);
            return Statement::query(vec![
                Clause::list("SELECT ", items),
                Clause::list(" FROM (VALUES ", values).then(format!(") v({})", names.join(", "))),
                Clause::optional(" WHERE ", filter),
            ]);
        }
        let table = self.table();
        let (columns, key) = (table.columns("t"), format!("t.{}", table.key));
        let (inner, outside) = self.named_items(&columns, &key, "d");
        let test = self.condition(&columns, 2);
        let limit = match self.chance(0.3) {
            true => format!(" ORDER BY {key} LIMIT 6"),
            false => String::new(),
        };
        let filter = self.condition(&outside, 2);
        let items = match self.chance(0.4) {
            true => vec![self.aggregate(&outside, "d.k"), self.aggregate(&outside, "d.k")],
            false => self.items(&outside, 2),
        };
        Statement::query(vec![
            Clause::list("SELECT ", items),
            Clause::fixed(" FROM (SELECT ", inner).then(format!(" FROM {} t", table.name)),
            Clause::optional(" WHERE ", test),
            Clause::text(format!("{limit}) d")),
            Clause::optional(" WHERE ", filter),
        ])
    }

    /// WITH, also recursive.
    pub(super) fn common_table(&mut self) -> Statement {
        if self.chance(0.4) {
            return self.recursive();
        }
        let table = self.table();
        let (columns, key) = (table.columns("t"), format!("t.{}", table.key));
        let (inner, mut outside) = self.named_items(&columns, &key, "w");
        let others: Vec<Column> = outside
            .iter()
            .map(|column| Column { name: column.name.replacen("w.", "v.", 1), kind: column.kind })
            .collect();
        outside.extend(others);
        let test = self.condition(&columns, 2);
        let items = self.items(&outside, 2);
        let filter = self.condition(&outside, 2);
        let materialized = self.pick(&["", "MATERIALIZED ", "NOT MATERIALIZED "]);
        let join = self.pick(&["JOIN", "LEFT JOIN"]);
        Statement::query(vec![
            Clause::fixed(format!("WITH made AS {materialized}(SELECT "), inner)
                .then(format!(" FROM {} t", table.name)),
            Clause::optional(" WHERE ", test),
            Clause::list(") SELECT ", items),
            Clause::text(format!(" FROM made w {join} made v ON w.k = v.k + 1")),
            Clause::optional(" WHERE ", filter),
        ])
    }

    /// Down the tree of nodes, or along numbers.
    fn recursive(&mut self) -> Statement {
        let union = self.pick(&["UNION ALL", "UNION"]);
        let mut scope = NODE.columns("n");
        let first = self.condition(&scope, 1);
        let walked: Vec<Column> = [("id", Kind::Int), ("label", Kind::Text), ("depth", Kind::Int)]
            .into_iter()
            .map(|(name, kind)| Column { name: format!("r.{name}"), kind })
            .collect();
        scope.extend(walked.clone());
        let next = self.condition(&scope, 1);
        let items = self.items(&walked, 2);
        let filter = self.condition(&walked, 2);
        Statement::query(vec![
            Clause::text("WITH RECURSIVE r(id, label, depth) AS (SELECT n.id, n.label, 1 FROM node n"),
            Clause::optional(" WHERE ", first),
            Clause::text(format!(" {union} SELECT n.id, r.label || n.label, r.depth + 1")),
            Clause::text(" FROM node n JOIN r ON n.above = r.id WHERE r.depth < 5"),
            Clause::optional(" AND ", next),
            Clause::list(") SELECT ", items),
            Clause::text(" FROM r"),
            Clause::optional(" WHERE ", filter),
        ])
    }

    /// DISTINCT ON, by a column.
    pub(super) fn first_of_each(&mut self) -> Statement {
        let table = self.table();
        let columns = table.columns("t");
        let each = self.column(&columns);
        let second = self.column(&columns);
        let items = self.items(&columns, 2);
        let filter = self.condition(&columns, 2);
        let direction = self.pick(&["", " DESC", " NULLS FIRST"]);
        let order = Expression::leaf(each.kind, each.name.clone());
        let after = format!("{direction}, {}, t.{}", second.name, table.key);
        let order = Clause { optional: false, ..Clause::order(order, after) };
        Statement::query(vec![
            Clause::list(format!("SELECT DISTINCT ON ({}) ", each.name), items),
            Clause::text(format!(" FROM {} t", table.name)),
            Clause::optional(" WHERE ", filter),
            order,
        ])
    }
}
