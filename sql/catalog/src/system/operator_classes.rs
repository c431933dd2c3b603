//! Catalog relations about the operator classes that users defined.

use super::SystemSource;
use super::index_view::schema_oid;
use super::opclass::method_oid;
use super::shape::{Sheet, text};
use crate::catalog::SUPERUSER;
use crate::catalog::operator_class::OperatorClass;
use crate::datum::Datum;
use crate::types::Oid;

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

/// The number of a class's operator or function: in a part of the number space that no object is drawn from.
/// pg_dump asks pg_depend which of them are a class's own.
pub(super) fn member_oid(class: &OperatorClass, place: usize) -> Oid {
    let number = (class.oid.0 << 5) | place as u32;
    Oid(0x2000_0000 | (number & 0x1fff_ffff))
}

pub(super) fn operators(source: &dyn SystemSource, sheet: &mut Sheet) {
    for class in source.catalog().operator_classes() {
        for (place, of) in class.operators.iter().enumerate() {
            sheet.add(&[
                ("oid", Datum::Oid(member_oid(class, place))),
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

pub(super) fn functions(source: &dyn SystemSource, sheet: &mut Sheet) {
    for class in source.catalog().operator_classes() {
        for (place, of) in class.functions.iter().enumerate() {
            sheet.add(&[
                ("oid", Datum::Oid(member_oid(class, place))),
                ("amprocfamily", Datum::Oid(class.family())),
                ("amproclefttype", Datum::Oid(of.left)),
                ("amprocrighttype", Datum::Oid(of.right)),
                ("amprocnum", Datum::Int2(of.number)),
                ("amproc", Datum::Oid(of.function)),
            ]);
        }
    }
}
