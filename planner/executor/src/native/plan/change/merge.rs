//! MERGE, compiled.

use archipel_sql::error::Result;

use crate::bound::BoundMerge;
use crate::native::plan::compiler::Compiler;
use crate::native::run::change::merge::Merge;

impl Compiler<'_> {
    pub fn merge(&mut self, merge: &BoundMerge) -> Result<Merge> {
        let line = self.open_change("Merge", &merge.table, &merge.alias);
        let compiled = self.merge_parts(merge);
        self.close();
        self.describe_change(line, &merge.table, None, &[], None);
        compiled
    }

    fn merge_parts(&mut self, merge: &BoundMerge) -> Result<Merge> {
        let source = self.one_cte(&merge.source)?;
        // Whether a row of the source is matched is asked again, too.
        let targets = match &merge.family {
            Some(family) => family.members.iter().map(|member| member.table.oid).collect(),
            None => vec![merge.table.oid],
        };
        let before = std::mem::replace(&mut self.merged, targets);
        let actions = merge.actions.iter().map(|action| self.body(action)).collect::<Result<Vec<_>>>();
        self.merged = before;
        Ok(Merge { source, actions: actions? })
    }
}
