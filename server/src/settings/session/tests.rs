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
    at_startup.set_at_startup("work_mem", &before, false).unwrap();
    at_startup.started();
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

/// As PostgreSQL 15 answers them.
#[test]
fn a_session_begins_only_with_what_its_client_may_set() {
    let told = |name: &str, text: &str, privileged: bool| {
        let mut settings = settings();
        match settings.set_at_startup(name, text, privileged) {
            Ok(()) => {
                settings.started();
                show(&settings, name)
            }
            Err(error) => format!("{} {}", error.state().as_str(), error.message()),
        }
    };
    for privileged in [false, true] {
        for (name, text, expected) in [
            ("is_superuser", "off", "55P02 parameter \"is_superuser\" cannot be changed"),
            ("is_superuser", "on", "55P02 parameter \"is_superuser\" cannot be changed"),
            (
                "max_connections",
                "100",
                "55P02 parameter \"max_connections\" cannot be changed without restarting the server",
            ),
            (
                "shared_buffers",
                "128MB",
                "55P02 parameter \"shared_buffers\" cannot be changed without restarting the server",
            ),
            (
                "authentication_timeout",
                "60",
                "55P02 parameter \"authentication_timeout\" cannot be changed now",
            ),
            ("nonsense", "1", "42704 unrecognized configuration parameter \"nonsense\""),
            ("", "1", "42704 unrecognized configuration parameter \"\""),
            ("post_auth_delay", "0", "0"),
            ("work_mem", "1MB", "1MB"),
            ("myapp.user", "ann", "ann"),
        ] {
            assert_eq!(told(name, text, privileged), expected, "{name}");
        }
    }
    for name in ["log_connections", "log_disconnections", "jit_debugging_support", "zero_damaged_pages"] {
        assert_eq!(told(name, "on", true), "on", "{name}");
        let denied = format!("42501 permission denied to set parameter \"{name}\"");
        assert_eq!(told(name, "off", false), denied);
    }
    let mut begun = settings();
    let late = begun.set("log_disconnections", Some("on"), false).unwrap_err();
    assert_eq!(late.message(), "parameter \"log_disconnections\" cannot be set after connection start");
}

#[test]
fn a_reload_leaves_what_sessions_begin_with() {
    let mut of_before = settings();
    let mut values = defaults();
    values[find("log_disconnections").unwrap().0] = Value::Bool(true);
    of_before.take_up(Arc::new(values.clone()), 1);
    assert_eq!(show(&of_before, "log_disconnections"), "off");
    assert_eq!(show(&SessionSettings::new(Arc::new(values)), "log_disconnections"), "on");
}

#[test]
fn search_paths_are_split_and_the_user_is_filled_in() {
    assert_eq!(split_identifiers("A, \"B\"\"c\" ,d").unwrap(), ["a", "B\"c", "d"]);
    assert!(split_identifiers("a,").is_none() && split_identifiers("\"a").is_none());
    assert_eq!(&settings().effective().search_path[..], ["public".to_owned()]);
}
