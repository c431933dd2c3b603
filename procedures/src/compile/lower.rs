//! Loops to machines ([`crate::run::machine`]).
//!
//! A loop becomes one if every statement of it is control, an assignment, or one of those that
//! neither run SQL nor may end the transaction. The tree stays: what the machine does not know by
//! itself is run as the tree's, and a loop that finds a variable of another type than expected
//! falls back to it.
//!
//! Which variables have cells, which of them the loop assigns, and which arrays it changes, is known
//! only at its end; all that matters from its first instruction on. So a loop is lowered until nothing new turns up: twice,
//! mostly.

mod number;
mod text;

use std::sync::Arc;

use archipel_planner::native::scalar::Kind;
use archipel_sql::types::Oid;

use crate::run::ending::Flow;
use crate::run::machine::instruction::{At, Bound, CELLS, Cell, Instruction, Place, Variable};
use crate::run::operation::Machine;
use crate::run::operation::expression::Expression;
use crate::run::operation::site::Site;
use crate::run::operation::*;

/// Gives every loop a machine that can have one.
pub(crate) fn loops(operation: &mut Operation, found: u32) {
    match &mut operation.kind {
        OperationKind::Loop(looping) => {
            if suits(looping) {
                share(&mut looping.body);
                let machine = machine(looping, operation.site, found);
                looping.machine = machine.map(Box::new);
            }
            if looping.machine.is_none() {
                all(&mut looping.body, found);
            }
        }
        OperationKind::Sequence(body) => all(body, found),
        OperationKind::Block { body, handlers, .. } => {
            all(body, found);
            for handler in handlers.iter_mut().flat_map(|handlers| &mut handlers.handlers) {
                all(&mut handler.body, found);
            }
        }
        OperationKind::If { arms, otherwise } => {
            arms.iter_mut().for_each(|(_, body)| all(body, found));
            all(otherwise, found);
        }
        _ => {}
    }
}

fn all(operations: &mut [Operation], found: u32) {
    operations.iter_mut().for_each(|operation| loops(operation, found));
}

/// Whether a machine may run a loop.
fn suits(looping: &Looping) -> bool {
    let kind = match &looping.kind {
        LoopKind::Forever => true,
        LoopKind::While { condition } => condition.scalar.is_some(),
        LoopKind::Integer { lower, upper, step, ahead, .. } => {
            let counts = |bound: &Expression| bound.scalar.as_ref().is_some_and(|s| s.kind == Kind::Int4);
            ahead.is_empty() && counts(lower) && counts(upper) && step.as_deref().is_none_or(counts)
        }
        LoopKind::Array { slice, targets, .. } => *slice == 0 && targets.not_null.is_empty(),
        _ => false,
    };
    kind && looping.body.iter().all(suits_in)
}

fn suits_in(operation: &Operation) -> bool {
    let bodies = |operations: &[Operation]| operations.iter().all(suits_in);
    match &operation.kind {
        OperationKind::Shared(_) => true,
        kind if is_calm(kind) => true,
        OperationKind::If { arms, otherwise } => {
            arms.iter().all(|(condition, body)| condition.scalar.is_some() && bodies(body))
                && bodies(otherwise)
        }
        OperationKind::Sequence(body) | OperationKind::Block { body, handlers: None, .. } => bodies(body),
        OperationKind::Loop(looping) => suits(looping),
        OperationKind::Leave { when, .. } => when.as_ref().is_none_or(|when| when.scalar.is_some()),
        other => is_native(other),
    }
}

/// Assignments that the machine makes itself.
fn is_native(kind: &OperationKind) -> bool {
    match kind {
        OperationKind::Assign { value, .. } => value.scalar.is_some() || value.text.is_some(),
        OperationKind::AssignChecked { value, .. } => value.scalar.is_some(),
        OperationKind::AssignElement { element, subscripts, value, .. } => {
            let kind = |index: &Expression| index.scalar.as_ref().map(|scalar| scalar.kind);
            matches!(&subscripts[..], [index] if kind(index) == Some(Kind::Int4)) && is_of(value, *element)
        }
        OperationKind::AppendText { parts, .. } => parts.iter().all(|part| part.text.is_some()),
        OperationKind::AppendElement { element, value, .. } => is_of(value, *element),
        _ => false,
    }
}

/// Whether the machine makes a value, of this type.
fn is_of(value: &Expression, element: Oid) -> bool {
    match &value.scalar {
        Some(scalar) => Kind::of(element) == Some(scalar.kind),
        None => value.text.is_some() && matches!(element, Oid::TEXT | Oid::VARCHAR),
    }
}

/// Statements of the tree that a machine may run.
fn is_calm(kind: &OperationKind) -> bool {
    matches!(
        kind,
        OperationKind::Assign { .. }
            | OperationKind::AssignChecked { .. }
            | OperationKind::AppendText { .. }
            | OperationKind::AppendElement { .. }
            | OperationKind::AppendArray { .. }
            | OperationKind::AssignElement { .. }
            | OperationKind::AssignSlice { .. }
            | OperationKind::AssignRow { .. }
            | OperationKind::AssignRecord { .. }
            | OperationKind::AssignFound(_)
            | OperationKind::Return
            | OperationKind::ReturnColumns
            | OperationKind::ReturnRow { .. }
            | OperationKind::ReturnRecord { .. }
            | OperationKind::NextColumns
            | OperationKind::NextRow { .. }
            | OperationKind::NextRecord { .. }
            | OperationKind::Raise(_)
            | OperationKind::Assert { .. }
            | OperationKind::Fail { .. }
    )
}

/// Shares the statements that stay the tree's.
fn share(operations: &mut [Operation]) {
    for operation in operations {
        match &mut operation.kind {
            OperationKind::If { arms, otherwise } => {
                arms.iter_mut().for_each(|(_, body)| share(body));
                share(otherwise);
            }
            OperationKind::Sequence(body) | OperationKind::Block { body, .. } => share(body),
            OperationKind::Loop(looping) => share(&mut looping.body),
            OperationKind::Leave { .. } | OperationKind::Shared(_) => {}
            kind if is_native(kind) => {}
            kind => {
                let kind = std::mem::replace(kind, OperationKind::Return);
                let (site, rights) = (operation.site, operation.rights.take());
                operation.kind = OperationKind::Shared(Arc::new(Operation { site, rights, kind }));
            }
        }
    }
}

fn machine(looping: &Looping, site: Site, found: u32) -> Option<Machine> {
    let (mut variables, mut arrays) = (Vec::new(), Vec::new());
    loop {
        let mut lowering = Lowering::new(variables.clone(), arrays.clone(), site, found);
        lowering.looping(looping)?;
        lowering.push(Instruction::End);
        if lowering.variables.len() == variables.len()
            && lowering.machine.arrays.len() == arrays.len()
            && lowering.variables.iter().zip(&variables).all(|(now, before)| now.assigned == before.assigned)
        {
            return Some(lowering.finish());
        }
        variables = lowering.variables;
        arrays = lowering.machine.arrays;
    }
}

/// A place in the instructions that is not known yet.
#[derive(Clone, Copy)]
struct Label(u32);

/// A loop or block around a statement.
struct Open {
    number: u32,
    again: Option<Label>,
    leave: Label,
    /// Whether its end tells FOUND.
    tells: bool,
}

/// What a statement of the tree reads and writes.
struct Effects<'o> {
    /// `None`: anything.
    reads: Option<Vec<&'o [u32]>>,
    writes: Option<Vec<u32>>,
}

struct Lowering {
    machine: Machine,
    variables: Vec<Variable>,
    /// The lowest cell that a value in between has.
    lowest: usize,
    /// How many strips are in use.
    strips: u8,
    site: Site,
    found: u32,
    labels: Vec<Option<At>>,
    opens: Vec<Open>,
}

impl Lowering {
    fn new(variables: Vec<Variable>, arrays: Vec<(u32, Oid)>, site: Site, found: u32) -> Lowering {
        let machine = Machine {
            instructions: Vec::new(),
            sites: Vec::new(),
            variables: Vec::new(),
            codes: Vec::new(),
            statements: Vec::new(),
            rights: Vec::new(),
            arrays,
            texts: Vec::new(),
            strips: 0,
            eaches: 0,
            names: Vec::new(),
        };
        Lowering {
            machine,
            variables,
            lowest: CELLS,
            strips: 0,
            site,
            found,
            labels: Vec::new(),
            opens: Vec::new(),
        }
    }

    fn finish(mut self) -> Machine {
        use Instruction::*;
        let labels = std::mem::take(&mut self.labels);
        for instruction in &mut self.machine.instructions {
            match instruction {
                Jump { to }
                | JumpUnless { to, .. }
                | JumpUnlessCompared { to, .. }
                | JumpUnlessComparedBy { to, .. }
                | JumpUnlessText { to, .. }
                | JumpUnlessTextIs { to, .. }
                | NextElement { to, .. }
                | NextDatum { to, .. }
                | Junction { end: to, .. }
                | Again { to }
                | Enter { to, .. }
                | Next { to, .. }
                | NextDown { to, .. } => *to = labels[*to as usize].unwrap_or(0),
                _ => {}
            }
        }
        self.machine.variables = self.variables;
        self.machine
    }

    fn push(&mut self, instruction: Instruction) {
        self.machine.instructions.push(instruction);
        self.machine.sites.push(self.site);
    }

    fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    fn place(&mut self, label: Label) {
        self.labels[label.0 as usize] = Some(self.machine.instructions.len() as At);
    }

    /// A cell for a value in between; they are given back together.
    fn cell(&mut self) -> Option<Cell> {
        if self.lowest <= self.variables.len() {
            return None;
        }
        self.lowest -= 1;
        Some(self.lowest as Cell)
    }

    fn known(&self, register: u32) -> Option<usize> {
        self.variables.iter().position(|variable| variable.register == register)
    }

    /// The cell of a variable.
    fn variable(&mut self, register: u32, kind: Kind, assigned: bool) -> Option<Cell> {
        if let Some(at) = self.known(register) {
            let variable = &mut self.variables[at];
            variable.assigned |= assigned;
            return (variable.kind == kind).then_some(variable.cell);
        }
        if self.variables.len() >= self.lowest {
            return None;
        }
        let cell = self.variables.len() as Cell;
        self.variables.push(Variable { register, cell, kind, assigned });
        Some(cell)
    }

    /// The number of an array that the loop changes.
    fn changed(&mut self, register: u32, element: Oid) -> Option<u8> {
        let arrays = &mut self.machine.arrays;
        let at = arrays.iter().position(|(known, _)| *known == register).unwrap_or_else(|| {
            arrays.push((register, element));
            arrays.len() - 1
        });
        u8::try_from(at).ok()
    }

    fn place_of(&self, register: u32) -> Place {
        let held = self.machine.arrays.iter().position(|(known, _)| *known == register);
        Place { register, held: held.and_then(|at| u8::try_from(at).ok()) }
    }

    /// Arrays that a statement of the tree's changes are in their registers then.
    fn spill_arrays(&mut self, registers: &[u32]) {
        for register in registers {
            if let Some(array) = self.place_of(*register).held {
                self.push(Instruction::GiveBack { array });
            }
        }
    }

    /// Before code of the tree's: what it reads goes to its registers.
    fn spill(&mut self, registers: &[u32]) {
        self.spill_arrays(registers);
        for register in registers {
            if let Some(at) = self.known(*register)
                && self.variables[at].assigned
            {
                self.push(Instruction::Spill { variable: at as u16 });
            }
        }
    }

    fn reload(&mut self, register: u32) {
        if let Some(at) = self.known(register) {
            self.push(Instruction::Reload { variable: at as u16 });
        }
    }

    fn tell_found(&mut self, value: bool) {
        self.push(Instruction::Found { value });
        self.reload(self.found);
    }

    fn operations(&mut self, operations: &[Operation]) -> Option<()> {
        let site = self.site;
        for operation in operations {
            self.site = operation.site;
            let (lowest, strips) = (self.lowest, self.strips);
            self.operation(operation)?;
            (self.lowest, self.strips) = (lowest, strips);
        }
        self.site = site;
        Some(())
    }

    fn operation(&mut self, operation: &Operation) -> Option<()> {
        if let Some(rights) = &operation.rights {
            self.machine.rights.push(rights.clone());
            let rights = u16::try_from(self.machine.rights.len() - 1).ok()?;
            self.push(Instruction::Rights { rights });
        }
        match &operation.kind {
            OperationKind::Assign { register, value: Expression { text: Some(text), .. } } => {
                self.set_text(*register, text)?;
            }
            OperationKind::AppendText { register, parts } => self.append_text(*register, parts)?,
            OperationKind::Assign { register, value } => {
                let scalar = value.scalar.as_ref()?;
                let cell = self.variable(*register, scalar.kind, true)?;
                self.number_to(scalar, cell)?;
            }
            OperationKind::AssignChecked { register, value, name } => {
                let scalar = value.scalar.as_ref()?;
                let cell = self.variable(*register, scalar.kind, true)?;
                let from = self.number(scalar)?;
                let names = &mut self.machine.names;
                names.push(name.clone());
                let name = u16::try_from(names.len() - 1).ok()?;
                self.push(Instruction::NotNull { cell: from, name });
                self.push(Instruction::Move { to: cell, from });
            }
            OperationKind::AssignElement { register, element, subscripts, value } => {
                let array = self.changed(*register, *element)?;
                self.set_element(array, subscripts.first()?.scalar.as_ref()?, value)?;
            }
            OperationKind::AppendElement { register, element, value } => {
                let array = self.changed(*register, *element)?;
                self.push_element(array, value)?;
            }
            OperationKind::If { arms, otherwise } => self.branches(arms, otherwise)?,
            OperationKind::Sequence(body) => self.operations(body)?,
            OperationKind::Block { number, body, .. } => {
                let leave = self.label();
                self.opens.push(Open { number: *number, again: None, leave, tells: false });
                self.operations(body)?;
                self.opens.pop();
                self.place(leave);
            }
            OperationKind::Loop(looping) => self.looping(looping)?,
            OperationKind::Leave { exit, target, when } => {
                let past = self.label();
                if let Some(when) = when {
                    self.unless(when.scalar.as_ref()?, past)?;
                }
                self.leave(*exit, *target)?;
                self.place(past);
            }
            OperationKind::Shared(shared) => self.statement(shared)?,
            _ => return None,
        }
        Some(())
    }

    fn branches(&mut self, arms: &[(Expression, Vec<Operation>)], otherwise: &[Operation]) -> Option<()> {
        let end = self.label();
        for (arm, (condition, body)) in arms.iter().enumerate() {
            let next = self.label();
            let lowest = self.lowest;
            self.unless(condition.scalar.as_ref()?, next)?;
            self.lowest = lowest;
            self.operations(body)?;
            if arm + 1 < arms.len() || !otherwise.is_empty() {
                self.push(Instruction::Jump { to: end.0 });
            }
            self.place(next);
        }
        self.operations(otherwise)?;
        self.place(end);
        Some(())
    }

    /// EXIT and CONTINUE: loops that are left on the way tell FOUND.
    fn leave(&mut self, exit: bool, target: u32) -> Option<()> {
        let inside = self.opens.iter().rposition(|open| open.number == target);
        let crossed = inside.map_or(0, |at| at + 1);
        let told = self.opens[crossed..].iter().filter(|open| open.tells).count();
        (0..told).for_each(|_| self.tell_found(true));
        match inside {
            Some(at) => {
                let open = &self.opens[at];
                let to = if exit { open.leave } else { open.again? };
                self.push(Instruction::Jump { to: to.0 });
            }
            None => {
                let flow = if exit { Flow::Exit(target) } else { Flow::Continue(target) };
                self.push(Instruction::Leave { flow });
            }
        }
        Some(())
    }

    fn looping(&mut self, looping: &Looping) -> Option<()> {
        let (again, leave) = (self.label(), self.label());
        let tells = matches!(looping.kind, LoopKind::Integer { .. } | LoopKind::Array { .. });
        let open = Open { number: looping.number, again: Some(again), leave, tells };
        match &looping.kind {
            // CONTINUE comes to the end of the body, too: nothing goes round without a look.
            LoopKind::Forever => {
                let head = self.label();
                self.place(head);
                self.inside(open, &looping.body)?;
                self.place(again);
                self.push(Instruction::Again { to: head.0 });
                self.place(leave);
            }
            LoopKind::While { condition } => {
                let head = self.label();
                self.place(head);
                let lowest = self.lowest;
                self.unless(condition.scalar.as_ref()?, leave)?;
                self.lowest = lowest;
                self.inside(open, &looping.body)?;
                self.place(again);
                self.push(Instruction::Again { to: head.0 });
                self.place(leave);
            }
            LoopKind::Integer { register, lower, upper, step, reverse, .. } => {
                let counter = self.bound(lower, Bound::Lower)?;
                let last = self.bound(upper, Bound::Upper)?;
                let step = match step {
                    Some(step) => {
                        let cell = self.bound(step, Bound::Step)?;
                        self.push(Instruction::Step { cell });
                        cell
                    }
                    None => {
                        let cell = self.cell()?;
                        self.push(Instruction::Const { to: cell, value: 1 });
                        cell
                    }
                };
                let variable = self.variable(*register, Kind::Int4, true)?;
                let (body, never, end) = (self.label(), self.label(), self.label());
                self.push(Instruction::Enter { counter, last, reverse: *reverse, to: never.0 });
                self.push(Instruction::Move { to: variable, from: counter });
                self.place(body);
                self.inside(open, &looping.body)?;
                self.place(again);
                self.push(match reverse {
                    true => Instruction::NextDown { counter, last, step, variable, to: body.0 },
                    false => Instruction::Next { counter, last, step, variable, to: body.0 },
                });
                self.place(leave);
                self.tell_found(true);
                self.push(Instruction::Jump { to: end.0 });
                self.place(never);
                self.tell_found(false);
                self.place(end);
            }
            LoopKind::Array { array, reads, targets, element, .. } => {
                self.over_array(looping, (array, reads), targets, Kind::of(*element), open)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn inside(&mut self, open: Open, body: &[Operation]) -> Option<()> {
        self.opens.push(open);
        self.operations(body)?;
        self.opens.pop();
        Some(())
    }

    /// A bound of a FOR loop, in a cell of its own.
    fn bound(&mut self, value: &Expression, bound: Bound) -> Option<Cell> {
        let cell = self.cell()?;
        let lowest = self.lowest;
        self.number_to(value.scalar.as_ref()?, cell)?;
        self.lowest = lowest;
        self.push(Instruction::Bound { cell, bound });
        Some(cell)
    }

    fn statement(&mut self, shared: &Arc<Operation>) -> Option<()> {
        let effects = effects(&shared.kind);
        let has_reads = effects.reads.is_some();
        match effects.reads {
            Some(reads) => reads.into_iter().for_each(|registers| self.spill(registers)),
            None => self.push(Instruction::SpillAll),
        }
        match (&effects.writes, self.machine.arrays.is_empty()) {
            (_, true) => {}
            (Some(writes), _) if has_reads => self.spill_arrays(writes),
            _ => self.push(Instruction::GiveBackAll),
        }
        let statements = &mut self.machine.statements;
        statements.push(shared.clone());
        let statement = u16::try_from(statements.len() - 1).ok()?;
        self.push(Instruction::Statement { statement });
        match effects.writes {
            Some(writes) => writes.into_iter().for_each(|register| self.reload(register)),
            None => self.push(Instruction::ReloadAll),
        }
        Some(())
    }
}

fn effects(kind: &OperationKind) -> Effects<'_> {
    match kind {
        OperationKind::Assign { register, value }
        | OperationKind::AssignChecked { register, value, .. }
        | OperationKind::AppendElement { register, value, .. }
        | OperationKind::AppendArray { register, value, .. } => {
            Effects { reads: Some(vec![&value.reads]), writes: Some(vec![*register]) }
        }
        OperationKind::AppendText { register, parts } => Effects {
            reads: Some(parts.iter().map(|part| &*part.reads).collect()),
            writes: Some(vec![*register]),
        },
        OperationKind::AssignElement { register, subscripts, value, .. } => Effects {
            reads: Some(subscripts.iter().chain([value]).map(|part| &*part.reads).collect()),
            writes: Some(vec![*register]),
        },
        // A block inside of the loop that makes its variables NULL.
        OperationKind::AssignRow { targets, values } if values.is_empty() => {
            let writes = targets.registers.iter().copied().chain(targets.present).collect();
            Effects { reads: Some(Vec::new()), writes: Some(writes) }
        }
        OperationKind::AssignRow { .. }
        | OperationKind::AssignRecord { .. }
        | OperationKind::AssignFound(_) => Effects { reads: None, writes: None },
        OperationKind::AssignSlice { register, .. } => Effects { reads: None, writes: Some(vec![*register]) },
        _ => Effects { reads: None, writes: Some(Vec::new()) },
    }
}
