//! Catalog relations about the operator classes that users defined.

use super::SystemSource;
use super::relations::schema_oid;
use super::shape::{Sheet, text};
use crate::catalog::SUPERUSER;
use crate::catalog::operator_class::access_method;
use crate::datum::Datum;
use crate::types::Oid;

/// The access method of a name.
pub(super) fn method_oid(method: &str) -> Datum {
    Datum::Oid(access_method(method))
}

pub(super) fn classes(source: &dyn SystemSource, sheet: &mut Sheet) {
    for class in source.catalog().operator_classes() {
        sheet.add(&[
            ("oid", Datum::Oid(class.oid)),
            ("opcmethod", method_oid(&class.method)),
            ("opcname", text(&class.name)),
            ("opcnamespace", schema_oid(source, &class.schema)),
            ("opcowner", Datum::Oid(SUPERUSER)),
            ("opcfamily", Datum::Oid(class.family())),
            ("opcintype", Datum::Oid(class.input.oid)),
            ("opcdefault", Datum::Bool(class.default)),
            ("opckeytype", Datum::Oid(Oid(0))),
        ]);
    }
}

pub(super) fn families(source: &dyn SystemSource, sheet: &mut Sheet) {
    for class in source.catalog().operator_classes() {
        sheet.add(&[
            ("oid", Datum::Oid(class.family())),
            ("opfmethod", method_oid(&class.method)),
            ("opfname", text(&class.name)),
            ("opfnamespace", schema_oid(source, &class.schema)),
            ("opfowner", Datum::Oid(SUPERUSER)),
        ]);
    }
}

/// Rows without an oid of their own: nothing refers to them.
pub(super) fn operators(source: &dyn SystemSource, sheet: &mut Sheet) {
    for class in source.catalog().operator_classes() {
        for of in &class.operators {
            sheet.add(&[
                ("oid", Datum::Oid(Oid(0))),
                ("amopfamily", Datum::Oid(class.family())),
                ("amoplefttype", Datum::Oid(of.left)),
                ("amoprighttype", Datum::Oid(of.right)),
                ("amopstrategy", Datum::Int2(of.strategy)),
                ("amoppurpose", text("s")),
                ("amopopr", Datum::Oid(of.operator)),
                ("amopmethod", method_oid(&class.method)),
                ("amopsortfamily", Datum::Oid(Oid(0))),
            ]);
        }
    }
}

/// As [`operators`].
pub(super) fn functions(source: &dyn SystemSource, sheet: &mut Sheet) {
    for class in source.catalog().operator_classes() {
        for of in &class.functions {
            sheet.add(&[
                ("oid", Datum::Oid(Oid(0))),
                ("amprocfamily", Datum::Oid(class.family())),
                ("amproclefttype", Datum::Oid(of.left)),
                ("amprocrighttype", Datum::Oid(of.right)),
                ("amprocnum", Datum::Int2(of.number)),
                ("amproc", Datum::Oid(of.function)),
            ]);
        }
    }
}
