//! What variables are on entry to their block.

use archipel_sql::error::Result;
use archipel_sql::types::Type;

use crate::compile::compiler::Compiler;
use crate::compile::error_context::{about_converted, about_value, expression_line};
use crate::compile::hoist::answers::after_calls;
use crate::compile::record::variable::Storage;
use crate::compile::trace::symbols::Symbol;
use crate::plpgsql::ast::*;
use crate::run::operation::site::Site;
use crate::run::operation::*;

impl Compiler<'_> {
    /// Values of variables on entry to their block.
    pub(super) fn initialise(&mut self, declared: &[VariableId]) -> Result<Vec<Operation>> {
        let mut operations = Vec::new();
        for id in declared {
            let variable = &self.body.variables[*id as usize];
            let site = Self::site(variable.line, "during statement block local variable initialization");
            if variable.cursor.is_some() {
                operations.push(self.name_cursor(*id, site));
                continue;
            }
            let null;
            let default = match &variable.default {
                Some(default) => default,
                None if self.refuses_null(*id) => {
                    null = Fragment { text: "NULL".to_owned(), start: 0, line: variable.line, names: 0 };
                    &null
                }
                None => {
                    operations.extend(self.clear(*id, site));
                    continue;
                }
            };
            let text = variable.name.clone();
            let target = Target { variable: *id, path: Vec::new(), text, start: default.start };
            self.flow.get_mut().begin(variable.line, None);
            let outer = self.begin_calls(variable.line, true);
            let kind = self.assign(&target, default, &expression_line(default));
            let calls = self.end_calls(outer);
            // The value is converted when it is there, by no query.
            let kind = kind.map_err(about_value).map_err(|error| about_converted(error, default));
            self.flow.get_mut().end(&[*id]);
            operations.push(after_calls(calls, self.or_fail(site, kind)));
        }
        Ok(operations)
    }

    /// Whether a variable is of a domain without NULL, which it cannot be to begin with.
    fn refuses_null(&self, id: VariableId) -> bool {
        let Storage::Scalar { declared, .. } = &self.storage[id as usize] else { return false };
        let domains = self.environment.catalog.domains_of(declared.oid);
        domains
            .iter()
            .any(|ty| ty.domain.as_ref().is_some_and(|domain| domain.not_null) && ty.oid == declared.oid)
    }

    /// Whether a register tells that a row is there, which is never known beforehand.
    fn is_present(&self, id: VariableId, register: u32) -> bool {
        matches!(self.storage[id as usize], Storage::Row { present, .. } if present == Some(register))
    }

    fn is_in_loop(&self) -> bool {
        self.labels.iter().any(|label| label.is_loop)
    }

    /// Sets a variable to NULL.
    fn clear(&mut self, id: VariableId, site: Site) -> Option<Operation> {
        let registers: Vec<u32> = match &self.storage[id as usize] {
            Storage::Scalar { register, .. } => vec![*register],
            Storage::Row { fields, present, .. } => {
                fields.iter().map(|f| f.register).chain(*present).collect()
            }
            Storage::Record { .. } => {
                let kind = self.null_record(id);
                // Only what was assigned in a round before.
                return self.is_in_loop().then_some(Operation { site, rights: None, kind });
            }
        };
        for register in &registers {
            if self.is_present(id, *register) {
                continue;
            }
            let null = Self::constant(archipel_sql::datum::Datum::Null, Type::UNKNOWN);
            self.trace.set(*register, Symbol::Known(null));
        }
        // The frame starts out as NULLs: only a block that is entered again must clear.
        if !self.is_in_loop() {
            return None;
        }
        let targets = Targets::of(registers);
        Some(Operation { site, rights: None, kind: OperationKind::AssignRow { targets, values: Vec::new() } })
    }
}
