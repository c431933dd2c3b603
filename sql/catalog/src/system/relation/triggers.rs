//! Triggers as PostgreSQL's catalog and the information schema show them.

use crate::catalog::{Table, TableRef, Trigger, TriggerEvent};
use crate::datum::Datum;
use crate::function::quote_literal;
use crate::system::information_schema::visibility::Sight;
use crate::system::reg_types::function_name;
use crate::system::shape::{Sheet, text, vector};
use crate::system::{KeptExpression, Subject, SystemSource};
use crate::types::Oid;

/// Fills pg_trigger.
pub(in crate::system) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    if name != "pg_trigger" {
        return false;
    }
    for table in sheet.tables(source) {
        for trigger in &table.triggers {
            let columns = trigger.columns.iter().filter_map(|name| table.column_index(name));
            let columns = columns.map(|column| Datum::Int2(column as i16 + 1)).collect();
            let arguments: Vec<u8> =
                trigger.arguments.iter().flat_map(|argument| argument.bytes().chain([0])).collect();
            sheet.add(&[
                ("oid", Datum::Oid(trigger.oid)),
                ("tgrelid", Datum::Oid(table.oid)),
                ("tgname", text(&trigger.name)),
                ("tgparentid", Datum::Oid(trigger.parent.unwrap_or(Oid(0)))),
                ("tgfoid", Datum::Oid(trigger.function)),
                ("tgtype", Datum::Int2(trigger.type_bits())),
                ("tgenabled", text(trigger.firing())),
                ("tgnargs", Datum::Int2(trigger.arguments.len() as i16)),
                ("tgattr", vector(Oid::INT2, columns)),
                ("tgargs", Datum::Bytea(arguments.into())),
                ("tgconstraint", Datum::Oid(trigger.constraint.map_or(Oid(0), |_| trigger.oid))),
                ("tgdeferrable", Datum::Bool(trigger.constraint.is_some_and(|timing| timing.deferrable))),
                (
                    "tginitdeferred",
                    Datum::Bool(trigger.constraint.is_some_and(|timing| timing.initially_deferred)),
                ),
                ("tgoldtable", trigger.old_table.as_ref().map_or(Datum::Null, text)),
                ("tgnewtable", trigger.new_table.as_ref().map_or(Datum::Null, text)),
                ("tgqual", trigger.condition.as_ref().map_or(Datum::Null, text)),
            ]);
        }
    }
    true
}

/// What is written behind WHEN, with the parentheses of its own.
fn condition(source: &dyn SystemSource, table: &Table, trigger: &Trigger, pretty: bool) -> Option<String> {
    let text = trigger.condition.as_deref()?;
    let subject = Subject::Change(table.oid);
    let shown = source.shown(&KeptExpression { text, subject, target: None, pretty, is_shown: false });
    Some(shown.unwrap_or_else(|| if pretty { text.to_owned() } else { format!("({text})") }))
}

/// `CREATE TRIGGER …`; `pretty` as psql asks for it.
pub(in crate::system) fn trigger_definition(
    source: &dyn SystemSource,
    oid: Oid,
    pretty: bool,
) -> Option<String> {
    let (table, place) = source.catalog().trigger_by_oid(oid)?;
    let trigger = &table.triggers[place];
    let order = [TriggerEvent::Insert, TriggerEvent::Delete, TriggerEvent::Update, TriggerEvent::Truncate];
    let events: Vec<String> = order
        .into_iter()
        .filter(|event| trigger.events.contains(event))
        .map(|event| {
            let columns: Vec<String> =
                trigger.columns.iter().map(|name| source.quoting().name(name)).collect();
            if event == TriggerEvent::Update && !columns.is_empty() {
                format!("UPDATE OF {}", columns.join(", "))
            } else {
                event.as_str().to_owned()
            }
        })
        .collect();
    let condition = condition(source, &table, trigger, pretty);
    let condition = condition.map_or_else(String::new, |condition| format!("WHEN ({condition}) "));
    let timing = match trigger.constraint {
        None => String::new(),
        Some(timing) => {
            let deferrable = if timing.deferrable { "" } else { "NOT " };
            let initially = if timing.initially_deferred { "DEFERRED" } else { "IMMEDIATE" };
            format!("{deferrable}DEFERRABLE INITIALLY {initially} ")
        }
    };
    let named = |which: &str, name: &Option<String>| {
        name.as_ref()
            .map_or(String::new(), |name| format!("{which} TABLE AS {} ", source.quoting().name(name)))
    };
    let mut tables = named("OLD", &trigger.old_table) + &named("NEW", &trigger.new_table);
    if !tables.is_empty() {
        tables = format!("REFERENCING {tables}");
    }
    Some(format!(
        "CREATE {}TRIGGER {} {} {} ON {} {timing}{tables}FOR EACH {} {condition}{}",
        if trigger.constraint.is_some() { "CONSTRAINT " } else { "" },
        source.quoting().name(&trigger.name),
        trigger.timing(),
        events.join(" OR "),
        table_name(source, &table, pretty),
        trigger.level(),
        execute(source, trigger)?
    ))
}

/// The table's name, without its schema where that is not needed and not wanted.
fn table_name(source: &dyn SystemSource, table: &TableRef, short: bool) -> String {
    let found = source.catalog().table(None, &table.name, source.search_path());
    if short && found.is_some_and(|found| found.oid == table.oid) {
        source.quoting().name(&table.name)
    } else {
        source.quoting().qualified(&table.schema, &table.name)
    }
}

/// `EXECUTE FUNCTION f('a', 'b')`.
fn execute(source: &dyn SystemSource, trigger: &Trigger) -> Option<String> {
    let arguments: Vec<String> = trigger.arguments.iter().map(|argument| quote_literal(argument)).collect();
    let function = function_name(source, trigger.function)?;
    Some(format!("EXECUTE FUNCTION {function}({})", arguments.join(", ")))
}

/// Fills information_schema.triggers: a row for each event.
pub(in crate::system) fn information(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in sheet.tables(source).filter(|table| sight.beyond_reading(table)) {
        let owns = sight.owns(table.oid);
        for trigger in &table.triggers {
            // The standard has no TRUNCATE.
            for event in trigger.events.iter().filter(|event| **event != TriggerEvent::Truncate) {
                sheet.add(&[
                    ("trigger_catalog", text(source.database())),
                    ("trigger_schema", text(&table.schema)),
                    ("trigger_name", text(&trigger.name)),
                    ("event_manipulation", text(event.as_str())),
                    ("event_object_catalog", text(source.database())),
                    ("event_object_schema", text(&table.schema)),
                    ("event_object_table", text(&table.name)),
                    ("action_order", Datum::Int4(order(table, trigger, *event))),
                    (
                        "action_condition",
                        condition(source, table, trigger, false).filter(|_| owns).map_or(Datum::Null, text),
                    ),
                    ("action_statement", execute(source, trigger).map_or(Datum::Null, text)),
                    ("action_orientation", text(trigger.level())),
                    ("action_timing", text(trigger.timing())),
                ]);
            }
        }
    }
}

/// The trigger's turn among those that fire at the same moment.
fn order(table: &Table, trigger: &Trigger, event: TriggerEvent) -> i32 {
    let earlier = table.triggers.iter().filter(|other| {
        other.name <= trigger.name
            && other.row == trigger.row
            && other.before == trigger.before
            && other.instead == trigger.instead
            && other.events.contains(&event)
    });
    earlier.count() as i32
}
