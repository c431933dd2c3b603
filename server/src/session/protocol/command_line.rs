//! The options of a startup packet, which are those of PostgreSQL's server process as getopt reads them
//! (process_postgres_switches): libpq sends PGOPTIONS so.

use archipel_sql::error::{Result, SqlError, SqlState};

/// What options set, in their order.
type Set<'s> = &'s mut dyn FnMut(&str, &str) -> Result<()>;

/// Letters that something follows, and letters that stand alone.
const WITH_ARGUMENT: &str = "BCDdfhkNprStvWc-";
const ALONE: &str = "bEeFijlnOPsT";

/// Reads options, and sets what they say up to the first that cannot be.
pub(super) fn read(text: &str, set: Set<'_>) -> Result<()> {
    let words = words(text);
    let mut operand = None;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if word == "--" {
            operand = operand.or(words.get(at));
            break;
        }
        let Some(mut letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            operand = operand.or(Some(word));
            continue;
        };
        while let Some(letter) = letters.chars().next() {
            letters = &letters[letter.len_utf8()..];
            if ALONE.contains(letter) {
                flag(letter, set)?;
                continue;
            }
            if !WITH_ARGUMENT.contains(letter) {
                // getopt has not gone on to the next word before it is through with this one.
                let before = at.checked_sub(2).map_or("postgres", |before| words[before].as_str());
                return Err(invalid(if letters.is_empty() { word.as_str() } else { before }));
            }
            let argument = match std::mem::take(&mut letters) {
                "" => {
                    at += 1;
                    words.get(at - 1).map(String::as_str).ok_or_else(|| invalid(word))?
                }
                rest => rest,
            };
            if !option(letter, argument, set)? {
                return Err(invalid(&words[at - 1]));
            }
        }
    }
    operand.map_or(Ok(()), |word| Err(invalid(word)))
}

fn invalid(word: &str) -> SqlError {
    let message = format!("invalid command-line argument for server process: {word}");
    SqlError::new(SqlState::SYNTAX_ERROR, message).with_hint("Try \"postgres --help\" for more information.")
}

/// The words of a text, in which a backslash takes what follows as it is (pg_split_opts).
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r' => words.extend(word.take()),
            '\\' => {
                let word = word.get_or_insert_default();
                word.extend(characters.next());
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// An option that stands alone. What is missing does nothing but in a process of its own.
fn flag(letter: char, set: Set<'_>) -> Result<()> {
    match letter {
        'e' => set("DateStyle", "euro"),
        'F' => set("fsync", "false"),
        'i' => set("listen_addresses", "*"),
        'l' => set("ssl", "true"),
        'O' => set("allow_system_table_mods", "true"),
        'P' => set("ignore_system_indexes", "true"),
        's' => set("log_statement_stats", "true"),
        _ => Ok(()),
    }
}

/// An option with its argument; `false`: that is none of its.
fn option(letter: char, argument: &str, set: Set<'_>) -> Result<bool> {
    let name = match letter {
        'c' | '-' => {
            let Some((name, value)) = argument.split_once('=') else {
                let option = if letter == 'c' { "-c " } else { "--" };
                let message = format!("{option}{argument} requires a value");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            };
            return set(&name.replace('-', "_"), value).map(|()| true);
        }
        'd' => return debug(argument, set).map(|()| true),
        'f' => match plan(argument) {
            Some(name) => return set(name, "false").map(|()| true),
            None => return Ok(false),
        },
        't' => match statistics(argument) {
            Some(name) => return set(name, "true").map(|()| true),
            None => return Ok(false),
        },
        'B' => "shared_buffers",
        'h' => "listen_addresses",
        'k' => "unix_socket_directories",
        'N' => "max_connections",
        'p' => "port",
        'S' => "work_mem",
        'W' => "post_auth_delay",
        _ => return Ok(true),
    };
    set(name, argument).map(|()| true)
}

/// How much is logged (set_debug_options). The number is read as atoi reads it.
fn debug(argument: &str, set: Set<'_>) -> Result<()> {
    let text = argument.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    let level = match digits[..end].parse::<u32>() {
        Ok(level) if !text.starts_with('-') => level,
        _ => 0,
    };
    if level > 0 {
        set("log_min_messages", &format!("debug{level}"))?;
    } else {
        set("log_min_messages", "notice")?;
    }
    for (from, name, value) in [
        (2, "log_statement", "all"),
        (3, "debug_print_parse", "true"),
        (4, "debug_print_plan", "true"),
        (5, "debug_print_rewritten", "true"),
    ] {
        if level >= from {
            set(name, value)?;
        }
    }
    Ok(())
}

/// The way of planning that a letter takes away (set_plan_disabling_options).
fn plan(argument: &str) -> Option<&'static str> {
    Some(match argument.chars().next()? {
        's' => "enable_seqscan",
        'i' => "enable_indexscan",
        'o' => "enable_indexonlyscan",
        'b' => "enable_bitmapscan",
        't' => "enable_tidscan",
        'n' => "enable_nestloop",
        'm' => "enable_mergejoin",
        'h' => "enable_hashjoin",
        _ => return None,
    })
}

/// The statistics that letters ask for (get_stats_option_name).
fn statistics(argument: &str) -> Option<&'static str> {
    if argument.starts_with("pa") {
        Some("log_parser_stats")
    } else if argument.starts_with("pl") {
        Some("log_planner_stats")
    } else if argument.starts_with('e') {
        Some("log_executor_stats")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is set, one behind the other, and the error.
    fn told(text: &str) -> String {
        let mut seen = Vec::new();
        let done = read(text, &mut |name, value| {
            seen.push(format!("{name}={value}"));
            Ok(())
        });
        if let Err(error) = done {
            seen.push(error.message().to_owned());
        }
        seen.join("; ")
    }

    /// As PostgreSQL 15 answers PGOPTIONS.
    #[test]
    fn options_are_those_of_the_server_process() {
        const INVALID: &str = "invalid command-line argument for server process: ";
        for (text, expected) in [
            ("", ""),
            ("  -c a.b=1\t-c  work-mem=1MB ", "a.b=1; work_mem=1MB"),
            ("-cwork_mem=1MB --work-mem=2MB", "work_mem=1MB; work_mem=2MB"),
            ("-c a.b=x\\ y\\\\z", "a.b=x y\\z"),
            ("-c a.b=", "a.b="),
            ("-c =1", "=1"),
            ("-c work_mem", "-c work_mem requires a value"),
            ("--work_mem", "--work_mem requires a value"),
            ("-e -D /tmp -C x -r x -v 3 -b -E -j -n -T", "DateStyle=euro"),
            (
                "-fs -f h -tpa -t pl -te",
                "enable_seqscan=false; enable_hashjoin=false; log_parser_stats=true; log_planner_stats=true; log_executor_stats=true",
            ),
            (
                "-lFi -O -Ps",
                "ssl=true; fsync=false; listen_addresses=*; allow_system_table_mods=true; ignore_system_indexes=true; log_statement_stats=true",
            ),
            (
                "-B 1 -h x -k y -N 5 -p 3 -S 7 -W 0",
                "shared_buffers=1; listen_addresses=x; unix_socket_directories=y; max_connections=5; port=3; work_mem=7; post_auth_delay=0",
            ),
            ("-d 0", "log_min_messages=notice"),
            ("-d3", "log_min_messages=debug3; log_statement=all; debug_print_parse=true"),
            ("-c", &format!("{INVALID}-c")),
            ("-fx", &format!("{INVALID}-fx")),
            ("-f x", &format!("{INVALID}x")),
            ("-z", &format!("{INVALID}-z")),
            ("-?", &format!("{INVALID}-?")),
            ("-ez", &format!("DateStyle=euro; {INVALID}-ez")),
            ("-e -ze", &format!("DateStyle=euro; {INVALID}-e")),
            ("-b x", &format!("{INVALID}x")),
            ("foo -c a.b=1", &format!("a.b=1; {INVALID}foo")),
            ("-c a.b=1 -- -c", &format!("a.b=1; {INVALID}-c")),
            ("-", &format!("{INVALID}-")),
            ("--", ""),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }
}
