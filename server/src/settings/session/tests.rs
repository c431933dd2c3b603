use super::*;
use crate::settings::identifiers::split_identifiers;

fn settings() -> SessionSettings {
    SessionSettings::new(Arc::new(defaults()))
}

fn show(settings: &SessionSettings, name: &str) -> String {
    settings.effective().show(name).unwrap()
}

#[test]
fn rollback_restores_and_commit_keeps_all_but_local() {
    let mut settings = settings();
    settings.set("search_path", Some("a"), false).unwrap();
    settings.commit();
    settings.set("search_path", Some("b"), false).unwrap();
    settings.set("search_path", Some("c"), true).unwrap();
    assert_eq!(show(&settings, "search_path"), "c");
    settings.commit();
    assert_eq!(show(&settings, "search_path"), "b");
    settings.set("search_path", Some("d"), false).unwrap();
    settings.rollback();
    assert_eq!(show(&settings, "search_path"), "b");
    settings.set("search_path", None, false).unwrap();
    assert_eq!(show(&settings, "search_path"), "\"$user\", public");
}

#[test]
fn what_the_client_has_chosen_stays_even_where_it_was_the_servers() {
    let server = |work_mem: i64| {
        let mut values = defaults();
        values[find("work_mem").unwrap().0] = Value::Integer(work_mem);
        Arc::new(values)
    };
    let before = show(&settings(), "work_mem");
    let mut chosen = settings();
    chosen.set("work_mem", Some(&before), false).unwrap();
    chosen.commit();
    chosen.take_up(server(9 << 20), 1);
    assert_eq!(show(&chosen, "work_mem"), before);
    chosen.set("work_mem", None, false).unwrap();
    chosen.commit();
    let newest = show(&chosen, "work_mem");
    assert_ne!(newest, before, "it was given back");
    chosen.set("work_mem", Some(&before), false).unwrap();
    chosen.rollback();
    chosen.take_up(server(10 << 20), 2);
    assert_ne!(show(&chosen, "work_mem"), newest, "the choice was rolled back");

    let mut at_startup = settings();
    at_startup.set_at_startup("work_mem", &before).unwrap();
    at_startup.take_up(server(9 << 20), 1);
    at_startup.reset_all();
    assert_eq!(show(&at_startup, "work_mem"), before);
}

#[test]
fn unknown_and_fixed_settings_are_refused_by_state() {
    let mut settings = settings();
    assert_eq!(settings.set("nonsense", Some("1"), false).unwrap_err().state(), SqlState::UNDEFINED_OBJECT);
    let fixed = settings.set("max_connections", Some("5"), false).unwrap_err();
    assert_eq!(fixed.state(), SqlState::CANT_CHANGE_RUNTIME_PARAM);
    settings.set("myapp.user", Some("x"), false).unwrap();
    assert_eq!(show(&settings, "MyApp.user"), "x");
}

#[test]
fn search_paths_are_split_and_the_user_is_filled_in() {
    assert_eq!(split_identifiers("A, \"B\"\"c\" ,d").unwrap(), ["a", "B\"c", "d"]);
    assert!(split_identifiers("a,").is_none() && split_identifiers("\"a").is_none());
    assert_eq!(&settings().effective().search_path[..], ["public".to_owned()]);
}
