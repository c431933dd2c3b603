//! Where a clause or an operand ends.

use super::*;

#[test]
fn a_locking_clause_belongs_to_its_statement_to_the_last_word() {
    for first in [
        "select * from t for key share",
        "select * from t for no key update of t",
        "select * from t for update nowait",
        "select * from t for share skip locked limit 1",
        "select * from t for update limit 2",
    ] {
        let text = format!("{first}; select 1");
        let statements = parse(&text).unwrap();
        assert_eq!(&text[statements[0].range.clone()], first);
    }
}

#[test]
fn distinct_from_ends_before_and_and_or() {
    for (text, grouped) in [
        ("a is distinct from b and c", "(a is distinct from b) and c"),
        ("a is not distinct from b + 1 or c", "(a is not distinct from (b + 1)) or c"),
    ] {
        let bare = |expression: sp::Expr| expression.to_string().replace(['(', ')'], "").to_lowercase();
        let expression = parse_expression(text).unwrap();
        assert_eq!(bare(expression.clone()), text);
        let outer = |expression: &sp::Expr| match expression {
            sp::Expr::BinaryOp { op, .. } => op.to_string(),
            other => other.to_string(),
        };
        assert_eq!(outer(&expression), outer(&parse_expression(grouped).unwrap()), "{text}");
    }
}
