use super::*;

fn signature() -> Signature {
    Signature {
        name: "f".into(),
        args: vec![(Some("a".into()), ArgMode::In, Type::INT4), (None, ArgMode::In, Type::TEXT)],
        procedure: false,
        result: Type::INT4,
        returns_set: false,
        anonymous: false,
    }
}

fn body(source: &str) -> Body {
    parse(source, &signature()).unwrap_or_else(|e| panic!("{e} at {:?}\n{source}", e.fields().position))
}

/// The message and the text the position points at.
fn refusal(source: &str) -> (String, String) {
    let error = parse(source, &signature()).expect_err(source);
    let place = match error.fields().position {
        Some(position) => source.chars().skip(position as usize - 1).take(12).collect(),
        None => error.fields().context.clone().expect("a position or a line"),
    };
    (error.message().to_string(), place)
}

#[track_caller]
fn refuses(source: &str, message: &str, at: &str) {
    let (found, place) = refusal(source);
    assert_eq!(found, message);
    assert!(place.starts_with(at), "position at {place:?}, wanted {at:?}");
}

#[test]
fn every_statement_of_the_language_parses() {
    body(include_str!("everything.plpgsql"));
}

#[test]
fn lines_are_those_of_the_first_word() {
    let body = body("\nBEGIN\n  a := 1;\n\n  IF a > 1 THEN\n    RETURN 2;\n  END IF;\n  RETURN 1;\nEND");
    let lines: Vec<u32> = body.block.body.iter().map(|s| s.line).collect();
    assert_eq!((body.block.line, lines), (2, vec![3, 5, 8]));
}

#[test]
fn into_is_cut_out_and_offsets_stay() {
    let source =
        "DECLARE x int; y text; BEGIN SELECT a, b INTO STRICT x, y FROM t WHERE k = a; RETURN 1; END";
    let body = body(source);
    let StatementKind::Sql { text, into: Some(into) } = &body.block.body[0].kind else { panic!() };
    assert!(into.strict);
    assert_eq!(into.targets.len(), 2);
    assert_eq!(text.text.split_whitespace().collect::<Vec<_>>().join(" "), "SELECT a, b FROM t WHERE k = a");
    assert_eq!(source.find("WHERE").unwrap(), text.start + text.text.find("WHERE").unwrap());
}

#[test]
fn into_of_insert_is_sql_and_into_may_come_last() {
    let body = body("DECLARE x int; BEGIN INSERT INTO t VALUES (1) RETURNING k INTO x; RETURN x; END");
    let StatementKind::Sql { text, into: Some(_) } = &body.block.body[0].kind else { panic!() };
    assert_eq!(text.text, "INSERT INTO t VALUES (1) RETURNING k");
}

#[test]
fn names_find_the_innermost_and_the_labelled() {
    let body = body(
        "<<outer>> DECLARE x int; BEGIN DECLARE x text; BEGIN outer.x := 1; x := 'a'; f.a := 2; $2 := 'b'; END; RETURN 1; END",
    );
    let StatementKind::Block(inner) = &body.block.body[0].kind else { panic!() };
    let targets: Vec<VariableId> = inner
        .body
        .iter()
        .map(|s| match &s.kind {
            StatementKind::Assign { target, .. } => target.variable,
            _ => panic!(),
        })
        .collect();
    assert_eq!(targets, [body.block.declared[0], inner.declared[0], body.parameters[0], body.parameters[1]]);
}

#[test]
fn integer_loop_variables_are_new() {
    let body = body("BEGIN FOR a IN REVERSE 10..1 BY 2 LOOP CONTINUE WHEN a = 3; END LOOP; RETURN a; END");
    let StatementKind::ForInteger { variable, reverse: true, step: Some(_), .. } = &body.block.body[0].kind
    else {
        panic!()
    };
    assert_ne!(*variable, body.parameters[0]);
}

#[test]
fn postgres_words_the_errors() {
    refuses("BEGIN x := 1; END", "\"x\" is not a known variable", "x");
    refuses("BEGIN IF a > 1 RETURN 1; END IF; END", "missing \"THEN\" at end of SQL expression", ";");
    refuses("BEGIN RETURN 1 END", "syntax error at end of input", "");
    refuses("BEGIN RETURN; END", "missing expression at or near \";\"", ";");
    refuses("BEGIN RETURN (1; END", "mismatched parentheses at or near \";\"", ";");
    refuses("BEGIN EXIT; END", "EXIT cannot be used outside a loop, unless it has a label", "EXIT");
    refuses(
        "BEGIN LOOP EXIT b; END LOOP; END",
        "there is no label \"b\" attached to any block or loop enclosing this statement",
        "b",
    );
    refuses("BEGIN RETURN NEXT 1; END", "cannot use RETURN NEXT in a non-SETOF function", "RETURN NEX");
    refuses("BEGIN RAISE '% %', 1; END", "too few parameters specified for RAISE", "");
    refuses("BEGIN RAISE '%', 1, 2; END", "too many parameters specified for RAISE", "");
    refuses("BEGIN RAISE nonsense; END", "unrecognized exception condition \"nonsense\"", "");
    refuses("DECLARE x int; x int; BEGIN END", "duplicate declaration at or near \"x\"", "x int; ");
    refuses(
        "DECLARE x CONSTANT int := 1; BEGIN x := 2; END",
        "variable \"x\" is declared CONSTANT",
        "x := 2",
    );
    refuses(
        "DECLARE x int NOT NULL; BEGIN END",
        "variable \"x\" must have a default value, since it's declared NOT NULL",
        "NOT",
    );
    refuses(
        "BEGIN SELECT 1 INTO a INTO a; END",
        "INTO specified more than once at or near \"INTO\"",
        "INTO a",
    );
    refuses(
        "BEGIN FOR r IN SELECT 1 LOOP NULL; END LOOP; END",
        "loop variable of loop over rows must be a record variable or list of scalar variables",
        "r IN",
    );
    refuses("<<b>> BEGIN NULL; END c", "end label \"c\" differs from block's label \"b\"", "c");
    refuses("BEGIN NULL; ", "syntax error at end of input", "");
    refuses("BEGIN END IF; END", "syntax error at or near \"IF\"", "IF");
    refuses(
        "BEGIN GET DIAGNOSTICS a = returned_sqlstate; END",
        "diagnostics item RETURNED_SQLSTATE is not allowed in GET CURRENT DIAGNOSTICS",
        "GET DIAG",
    );
}

#[test]
fn sql_inside_is_checked_where_it_stands() {
    refuses("BEGIN a := 1 +; RETURN 1; END", "syntax error at end of input", "");
    refuses("BEGIN IF a > > 1 THEN NULL; END IF; END", "syntax error at or near \">\"", "> 1");
    refuses("BEGIN PERFORM f(1, ; RETURN 1; END", "mismatched parentheses at or near \";\"", ";");
    refuses("BEGIN UPDATE t SET a = 1 WHERE; RETURN 1; END", "syntax error at end of input", "");
    refuses("BEGIN FOR i IN 1 LOOP NULL; END LOOP; END", "syntax error at or near \"1\"", "1");
    refuses("BEGIN SELECT 1 INTO nowhere; END", "\"nowhere\" is not a known variable", "nowhere");
    refuses("BEGIN nonsense; END", "syntax error at or near \"nonsense\"", "nonsense");
    refuses("BEGIN x y z; END", "syntax error at or near \"x\"", "x y z");
    refuses("BEGIN SELECT 1; FOO BAR; END", "syntax error at or near \"FOO\"", "FOO");
    refuses("DECLARE x; BEGIN END", "missing data type declaration at or near \";\"", ";");
    refuses("BEGIN EXCEPTION WHEN nope THEN NULL; END", "unrecognized exception condition \"nope\"", "");
    refuses("BEGIN WHILE a LOOP END; END", "syntax error at or near \";\"", ";");
    refuses("BEGIN IF a THEN NULL; END; END", "syntax error at or near \";\"", ";");
    refuses(
        "BEGIN RAISE EXCEPTION USING nope = 1; END",
        "unrecognized RAISE statement option at or near \"nope\"",
        "nope",
    );
    refuses(
        "BEGIN GET DIAGNOSTICS a = nope; END",
        "unrecognized GET DIAGNOSTICS item at or near \"nope\"",
        "nope",
    );
    refuses("BEGIN CONTINUE; END", "CONTINUE cannot be used outside a loop", "CONTINUE");
    refuses("BEGIN EXIT f; END; BEGIN END", "syntax error at or near \"BEGIN\"", "BEGIN");
    refuses("BEGIN CASE a WHEN 1 THEN NULL; END; END", "syntax error at or near \";\"", ";");
    refuses(
        "BEGIN RETURN QUERY SELECT 1; END",
        "cannot use RETURN QUERY in a non-SETOF function",
        "RETURN QUE",
    );
}

#[test]
fn nesting_is_bounded() {
    let source = |depth: usize| {
        format!("BEGIN {} NULL; {} RETURN 1; END", "IF true THEN ".repeat(depth), "END IF; ".repeat(depth))
    };
    body(&source(100));
    refuses(&source(100_000), "stack depth limit exceeded", "IF true");
}
