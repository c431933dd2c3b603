use super::*;

#[test]
fn a_script_is_cut_into_statements_with_their_bytes() {
    let text = "select 1; ; create table t (a int);";
    let statements = parse(text).unwrap();
    assert_eq!(statements.len(), 2);
    assert_eq!(&text[statements[1].range.clone()], "create table t (a int)");
}
