//! Changes of data at random.
//!
//! Where rows could meet in any order and the order would show, they are given one, or the meeting
//! is avoided: a joined row matches one source row at most, unique columns are not updated row by
//! row, and MERGE does not both delete and insert what has to be unique.

use rand::RngExt;

use super::expression::Expression;
use super::generator::Generator;
use super::kind::Kind;
use super::statement::{Clause, Statement};
use super::table::{Column, DEAR, LEDGER, NODE, PART, SALE, STOCK, TALLY, THING, Table};

/// What changes; each has a copy with `kept_` before its name.
const CHANGED: &[&Table] = &[SALE, SALE, TALLY, TALLY, STOCK, LEDGER, THING];
/// Where each `id` is there once.
const SOURCES: &[&Table] = &[PART, THING, TALLY, STOCK, DEAR, NODE];

impl Generator {
    pub(super) fn change(&mut self) -> Statement {
        match self.random.random_range(0..8) {
            0 => self.update(),
            1 => self.update_from(),
            2 => self.delete(),
            3 => self.insert(),
            4 => self.insert_values(),
            5 => self.upsert(),
            6 => self.merge(),
            _ => self.with_changes(),
        }
    }

    fn changed(&mut self) -> &'static Table {
        self.pick(CHANGED)
    }

    fn source(&mut self, other_than: &Table) -> &'static Table {
        loop {
            let source = self.pick(SOURCES);
            if source.name != other_than.name {
                return source;
            }
        }
    }

    /// `before` and `column = expression` for one or two columns that are not unique.
    fn settings(&mut self, before: String, table: &'static Table, columns: &[Column]) -> Vec<Clause> {
        let free: Vec<(&str, Kind)> =
            table.columns.iter().copied().filter(|(name, _)| *name != table.key && *name != "k").collect();
        let first = self.random.random_range(0..free.len());
        let (name, kind) = free[first];
        let value = self.expression(kind, columns, 2);
        let mut settings = vec![Clause::single(format!("{before}{name} = "), value)];
        if let Some((name, kind)) = free.get(first + 1)
            && self.chance(0.5)
        {
            let value = self.expression(*kind, columns, 2);
            settings.push(Clause::optional(format!(", {name} = "), value));
        }
        settings
    }

    fn returning(&mut self, columns: &[Column]) -> Clause {
        let items = self.items(columns, 2);
        Clause { optional: true, ..Clause::list(" RETURNING ", items) }
    }

    fn update(&mut self) -> Statement {
        let table = self.changed();
        let columns = table.columns(table.name);
        let mut clauses = self.settings(format!("UPDATE {} SET ", table.name), table, &columns);
        let filter = self.condition(&columns, 2);
        clauses.push(Clause::optional(" WHERE ", filter));
        clauses.push(self.returning(&columns));
        Statement::change(table.name, clauses)
    }

    fn update_from(&mut self) -> Statement {
        let table = self.changed();
        let source = self.source(table);
        let mut columns = table.columns("t");
        columns.extend(source.columns("s"));
        let filter = self.condition(&columns, 2);
        let deletes = self.chance(0.4);
        let mut clauses = match deletes {
            true => vec![Clause::text(format!("DELETE FROM {} t USING {} s", table.name, source.name))],
            false => {
                let mut settings = self.settings(format!("UPDATE {} t SET ", table.name), table, &columns);
                settings.push(Clause::text(format!(" FROM {} s", source.name)));
                settings
            }
        };
        clauses.push(Clause::text(format!(" WHERE s.id = t.{}", table.link)));
        clauses.push(Clause::optional(" AND ", filter));
        clauses.push(self.returning(&columns));
        Statement::change(table.name, clauses)
    }

    fn delete(&mut self) -> Statement {
        let table = self.changed();
        let columns = table.columns("t");
        let filter = self.condition(&columns, 3);
        let returning = self.returning(&columns);
        Statement::change(
            table.name,
            vec![
                Clause::text(format!("DELETE FROM {} t", table.name)),
                Clause::optional(" WHERE ", filter),
                returning,
            ],
        )
    }

    /// The columns of an INSERT: the key, what must not be NULL, and one more.
    fn inserted(&mut self, table: &'static Table) -> Vec<(&'static str, Kind)> {
        let needed = ["n", "day", "kind"];
        let mut chosen: Vec<(&str, Kind)> = Vec::new();
        let more = self.random.random_range(0..table.columns.len());
        for (place, (name, kind)) in table.columns.iter().enumerate() {
            if *name != table.key && (needed.contains(name) || place == more) {
                chosen.push((name, *kind));
            }
        }
        chosen
    }

    /// INSERT … SELECT from a table with one row for each `id`, in the order of that.
    fn insertion(&mut self, table: &'static Table) -> Vec<Clause> {
        let source = self.source(table);
        let columns = source.columns("s");
        let inserted = self.inserted(table);
        let names: Vec<&str> = inserted.iter().map(|(name, _)| *name).collect();
        let beyond = self.pick(&[0, 100, 100, 5]);
        let values: Vec<Expression> =
            inserted.iter().map(|(_, kind)| self.expression(*kind, &columns, 2)).collect();
        let filter = self.condition(&columns, 2);
        let named: String = names.iter().map(|name| format!(", {name}")).collect();
        let before = format!("INSERT INTO {} AS t ({}{named}) SELECT s.id + {beyond}", table.name, table.key);
        let mut clauses = vec![Clause::text(before)];
        clauses.extend(values.into_iter().map(|value| Clause::single(", ", value)));
        clauses.push(Clause::text(format!(" FROM {} s", source.name)));
        clauses.push(Clause::optional(" WHERE ", filter));
        clauses.push(Clause::text(" ORDER BY s.id"));
        clauses
    }

    fn insert(&mut self) -> Statement {
        let table = self.changed();
        let mut clauses = self.insertion(table);
        clauses.push(self.returning(&table.columns("t")));
        Statement::change(table.name, clauses)
    }

    fn insert_values(&mut self) -> Statement {
        let table = self.changed();
        let inserted = self.inserted(table);
        let names: String = inserted.iter().map(|(name, _)| format!(", {name}")).collect();
        let rows = self.random.random_range(1..4);
        let mut clauses =
            vec![Clause::text(format!("INSERT INTO {} AS t ({}{names}) VALUES ", table.name, table.key))];
        for row in 0..rows {
            let begin = if row > 0 { ", (" } else { "(" };
            clauses.push(Clause::text(format!("{begin}{}", 200 + row)));
            for (_, kind) in &inserted {
                let value = match self.chance(0.1) {
                    true => Expression::leaf(*kind, "DEFAULT"),
                    false => self.expression(*kind, &[], 2),
                };
                clauses.push(Clause::single(", ", value));
            }
            clauses.push(Clause::text(")"));
        }
        clauses.push(self.returning(&table.columns("t")));
        Statement::change(table.name, clauses)
    }

    fn upsert(&mut self) -> Statement {
        let table = self.pick(&[TALLY, TALLY, STOCK, SALE]);
        let mut clauses = self.insertion(table);
        let target = match table.name {
            "tally" => self.pick(&[" (id)", " (k)", " ON CONSTRAINT tally_pkey"]),
            "stock" => " (kind, id)",
            _ => " (id)",
        };
        if self.chance(0.3) {
            let target = if self.chance(0.5) { target } else { "" };
            clauses.push(Clause::text(format!(" ON CONFLICT{target} DO NOTHING")));
        } else {
            let mut columns = table.columns("t");
            columns.extend(table.columns("excluded"));
            // The row of a conflict may not move.
            let free: Vec<(&str, Kind)> = table
                .columns
                .iter()
                .copied()
                .filter(|(name, _)| ["n", "at", "note"].contains(name))
                .collect();
            let (name, kind) = self.pick(&free);
            let value = self.expression(kind, &columns, 2);
            let filter = self.condition(&columns, 2);
            clauses.push(Clause::single(format!(" ON CONFLICT{target} DO UPDATE SET {name} = "), value));
            clauses.push(Clause::optional(" WHERE ", filter));
        }
        clauses.push(self.returning(&table.columns("t")));
        Statement::change(table.name, clauses)
    }

    fn merge(&mut self) -> Statement {
        let table = self.pick(&[TALLY, SALE, STOCK, LEDGER]);
        let source = self.source(table);
        let (target, other) = (table.columns("t"), source.columns("s"));
        let mut columns = target;
        columns.extend(other.clone());
        let test = self.condition(&columns, 1);
        let mut clauses = vec![Clause::text(format!(
            "MERGE INTO {} t USING {} s ON t.{} = s.id",
            table.name, source.name, table.key
        ))];
        clauses.push(Clause::text(" WHEN MATCHED"));
        clauses.push(Clause::optional(" AND ", test));
        match self.random.random_range(0..4) {
            0 => clauses.push(Clause::text(" THEN DELETE")),
            1 => clauses.push(Clause::text(" THEN DO NOTHING")),
            _ => clauses.extend(self.settings(" THEN UPDATE SET ".to_owned(), table, &columns)),
        }
        if self.chance(0.4) {
            clauses.extend(self.settings(" WHEN MATCHED THEN UPDATE SET ".to_owned(), table, &columns));
        }
        if self.chance(0.6) {
            let mut inserted = self.inserted(table);
            inserted.retain(|(name, _)| *name != "k");
            let names: String = inserted.iter().map(|(name, _)| format!(", {name}")).collect();
            let test = self.condition(&other, 1);
            clauses.push(Clause::text(" WHEN NOT MATCHED"));
            clauses.push(Clause::optional(" AND ", test));
            clauses.push(Clause::text(format!(" THEN INSERT ({}{names}) VALUES (s.id", table.key)));
            for (_, kind) in inserted {
                let value = self.expression(kind, &other, 1);
                clauses.push(Clause::single(", ", value));
            }
            clauses.push(Clause::text(")"));
        }
        Statement::change(table.name, clauses)
    }

    /// A change in WITH: a query looks at what it returns and, as it was, at the table; or another
    /// change takes it up.
    fn with_changes(&mut self) -> Statement {
        let table = self.pick(&[SALE, STOCK, LEDGER]);
        let columns = table.columns("t");
        let filter = self.condition(&columns, 2);
        let gone = table.columns("w");
        let mut clauses = match self.chance(0.5) {
            true => vec![Clause::text(format!("WITH gone AS (DELETE FROM {} t", table.name))],
            false => self.settings(format!("WITH gone AS (UPDATE {} t SET ", table.name), table, &columns),
        };
        clauses.push(Clause::optional(" WHERE ", filter));
        if self.chance(0.5) {
            let mut scope = gone;
            scope.extend(table.columns("o"));
            let items = self.items(&scope, 2);
            let filter = self.condition(&scope, 1);
            let key = table.key;
            clauses.push(Clause::list(" RETURNING t.*) SELECT ", items));
            clauses
                .push(Clause::text(format!(" FROM gone w LEFT JOIN {} o ON o.{key} = w.{key}", table.name)));
            clauses.push(Clause::optional(" WHERE ", filter));
            return Statement::change(table.name, clauses);
        }
        let n = self.expression(Kind::Int, &gone, 2);
        let filter = self.condition(&gone, 1);
        let before = " RETURNING t.*) INSERT INTO tally AS t (id, n) SELECT w.id + 300, ";
        clauses.push(Clause::single(before, n));
        clauses.push(Clause::text(" FROM gone w"));
        clauses.push(Clause::optional(" WHERE ", filter));
        clauses.push(self.returning(&TALLY.columns("t")));
        let mut statement = Statement::change(table.name, clauses);
        statement.changed.push(TALLY.name);
        statement
    }
}
