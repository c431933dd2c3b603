//! Row types of data directories of before composite types had a range of oids of their own: the row
//! type of a table was numbered one after it, and the array of that two after it. Routines and the
//! columns of views may still say so.

use std::sync::Arc;

use crate::types::{Oid, Type};

use crate::catalog::{Catalog, CatalogChange, FIRST_OID, Object, Routine, Table};

impl Catalog {
    /// This catalog with the row types that its objects name as they are numbered now.
    #[must_use]
    pub fn with_row_types_renumbered(&self) -> Catalog {
        let mut changes = Vec::new();
        for routine in self.routines_all() {
            let mut changed: Routine = (**routine).clone();
            let types = changed.args.iter_mut().map(|arg| &mut arg.ty).chain([&mut changed.result]);
            if types.filter_map(|ty| self.renumber(ty).then_some(())).count() > 0 {
                changes.push(CatalogChange::Put(Object::Routine(Arc::new(changed))));
            }
        }
        for table in self.tables() {
            let mut changed: Table = (**table).clone();
            let types = changed.columns.iter_mut().map(|column| &mut column.ty);
            if types.filter_map(|ty| self.renumber(ty).then_some(())).count() > 0 {
                changes.push(CatalogChange::Put(Object::Table(Arc::new(changed))));
            }
        }
        if changes.is_empty() { self.clone() } else { self.apply(&changes) }
    }

    /// Whether the type was one of before; it is one of now afterwards.
    fn renumber(&self, ty: &mut Type) -> bool {
        if ty.oid.0 <= FIRST_OID || ty.oid.innermost_kind().is_some() {
            return false;
        }
        let before = |steps: u32| self.table_by_oid(Oid(ty.oid.0 - steps));
        let now = match (before(1), before(2)) {
            (Some(table), _) => table.row_type(),
            (None, Some(table)) => table.row_array_type(),
            (None, None) => return false,
        };
        ty.oid = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{ArgMode, Language, RoutineArg, RoutineKind, TableKind};

    #[test]
    fn row_types_of_before_become_those_of_now() {
        let table = Table::new(Oid(FIRST_OID + 100), "public", "t", TableKind::Table);
        let ty = |steps: u32| Type::of(Oid(table.oid.0 + steps));
        let arg = |ty: Type| RoutineArg { name: None, mode: ArgMode::In, ty, default: None, domain: None };
        let routine = Routine {
            oid: Oid(FIRST_OID + 200),
            schema: "public".to_owned(),
            name: "f".to_owned(),
            kind: RoutineKind::Function,
            language: Language::Sql,
            args: vec![arg(ty(1)), arg(Type::INT4), arg(Type::of(table.row_type()))],
            result: ty(2),
            result_domain: None,
            returns_set: false,
            strict: false,
            volatility: 'v',
            source: String::new(),
            distribution_arg: None,
            traits: Default::default(),
            aggregate: None,
            version: 1,
        };
        let oid = routine.oid;
        let catalog = Catalog::initial(Vec::new()).apply(&[
            CatalogChange::Put(Object::Routine(Arc::new(routine))),
            CatalogChange::Put(Object::Table(Arc::new(table.clone()))),
        ]);
        let renumbered = catalog.with_row_types_renumbered();
        let routine = renumbered.routine_by_oid(oid).expect("the routine is still there");
        let types: Vec<Oid> = routine.args.iter().map(|arg| arg.ty.oid).collect();
        assert_eq!(types, [table.row_type(), Oid::INT4, table.row_type()]);
        assert_eq!(routine.result.oid, table.row_array_type());
        assert!(renumbered.with_row_types_renumbered().same_as(&renumbered));
    }
}
