//! Catalog relations about the operator classes and families that users defined.

use super::builtin_class::method_oid;
use crate::catalog::SUPERUSER;
use crate::catalog::operator_class::{ClassFunction, ClassOperator};
use crate::datum::Datum;
use crate::system::SystemSource;
use crate::system::relation::index_view::schema_oid;
use crate::system::shape::{Sheet, text};
use crate::types::Oid;

pub(in crate::system) fn classes(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
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

pub(in crate::system) fn families(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let mut add = |oid: Oid, (method, name, schema): (&str, &str, &str)| {
        sheet.add(&[
            ("oid", Datum::Oid(oid)),
            ("opfmethod", method_oid(method)),
            ("opfname", text(name)),
            ("opfnamespace", schema_oid(source, schema)),
            ("opfowner", Datum::Oid(SUPERUSER)),
        ]);
    };
    for family in source.catalog().operator_families() {
        add(family.oid, (&family.method, &family.name, &family.schema));
    }
    for class in source.catalog().operator_classes().filter(|class| class.in_family.is_none()) {
        add(class.family(), (&class.method, &class.name, &class.schema));
    }
}

/// The number of a class's or a family's operator or function: in a part of the number space that no object
/// is drawn from. pg_dump asks pg_depend which of them are a class's own.
pub(in crate::system) fn member_oid(owner: Oid, place: usize) -> Oid {
    let number = (owner.0 << 5) | place as u32;
    Oid(0x2000_0000 | (number & 0x1fff_ffff))
}

pub(in crate::system) fn operators(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let mut add = |owner: Oid, family: Oid, method: &str, operators: &[ClassOperator]| {
        for (place, of) in operators.iter().enumerate() {
            sheet.add(&[
                ("oid", Datum::Oid(member_oid(owner, place))),
                ("amopfamily", Datum::Oid(family)),
                ("amoplefttype", Datum::Oid(of.left)),
                ("amoprighttype", Datum::Oid(of.right)),
                ("amopstrategy", Datum::Int2(of.strategy)),
                ("amoppurpose", text("s")),
                ("amopopr", Datum::Oid(of.operator)),
                ("amopmethod", method_oid(method)),
                ("amopsortfamily", Datum::Oid(Oid(0))),
            ]);
        }
    };
    for class in source.catalog().operator_classes() {
        add(class.oid, class.family(), &class.method, &class.operators);
    }
    for family in source.catalog().operator_families() {
        add(family.oid, family.oid, &family.method, &family.operators);
    }
}

pub(in crate::system) fn functions(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let mut add = |owner: Oid, family: Oid, functions: &[ClassFunction]| {
        for (place, of) in functions.iter().enumerate() {
            sheet.add(&[
                ("oid", Datum::Oid(member_oid(owner, place))),
                ("amprocfamily", Datum::Oid(family)),
                ("amproclefttype", Datum::Oid(of.left)),
                ("amprocrighttype", Datum::Oid(of.right)),
                ("amprocnum", Datum::Int2(of.number)),
                ("amproc", Datum::Oid(of.function)),
            ]);
        }
    };
    for class in source.catalog().operator_classes() {
        add(class.oid, class.family(), &class.functions);
    }
    for family in source.catalog().operator_families() {
        add(family.oid, family.oid, &family.functions);
    }
}
