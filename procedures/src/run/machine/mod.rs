//! Loops as a register machine.
//!
//! A loop that computes with numbers spends its time neither in a table nor in a function but on
//! the way from one statement to the next. Such a loop is compiled ([`crate::compile::lower`])
//! to a list of instructions over cells. A cell is a machine number, or NULL; the variables that
//! the loop computes with are in cells while it runs and go back to their registers when it
//! ends, whether well, by an error (a handler sees them) or by RETURN.
//!
//! What is no number stays in its register. Texts are made on strips ([`text`]); an array
//! that the loop changes is out of its register meanwhile ([`array`]). A statement that the
//! machine does not know is run as the tree's ([`Instruction::Statement`]): the variables it reads
//! are written to their registers first.
//!
//! Invariant: a loop that may end the transaction, or that runs SQL, is never a machine: there
//! is no place in one to come back to.
//!
//! - [`instruction`] what it runs; [`text`] texts, and [`array`] arrays that it changes in place

mod array;
pub(crate) mod instruction;
mod text;

use archipel_planner::native::scalar::Kind;
use archipel_planner::native::{ExecContext, ExecError, ExecResult};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::{Arithmetic, IntegerWidth, float_arithmetic, text_position};

use super::append;
use super::condition::null_refused;
use super::element::{null_subscript, store_in};
use super::ending::Flow;
use super::invocation::Invocation;
use super::operation::Machine;
use super::{context, loops};
use array::{Each as Looped, Held, array_at, element_at, extent};
use instruction::{CELLS, Cell, Instruction, Variable};
use text::Strips;

/// How many rounds, or so much work, pass between two looks at whether to go on.
const FUEL: u32 = 1024;

/// The same for the first time: variables that were NULL before the loop mostly are so no more.
const FUEL_AT_FIRST: u32 = 8;

/// What a closure or a statement of the tree costs of that.
const FUEL_OF_STATEMENT: u32 = 16;

/// What it costs to move a text.
#[inline(always)]
fn fuel_of_bytes(bytes: usize) -> u32 {
    (bytes >> 6) as u32
}

/// The cells of a run: as many as numbers of cells. Mostly none of them is NULL; that is asked first.
struct Cells {
    values: [i64; CELLS],
    nulls: [bool; CELLS],
    some_null: bool,
}

impl Cells {
    fn new() -> Cells {
        Cells { values: [0; CELLS], nulls: [false; CELLS], some_null: false }
    }

    #[inline(always)]
    fn get(&self, cell: Cell) -> Option<i64> {
        let at = usize::from(cell);
        if self.some_null && self.nulls[at] { None } else { Some(self.values[at]) }
    }

    #[inline(always)]
    fn put(&mut self, cell: Cell, value: i64) {
        let at = usize::from(cell);
        self.values[at] = value;
        if self.some_null {
            self.nulls[at] = false;
        }
    }

    #[inline(always)]
    fn set(&mut self, cell: Cell, value: Option<i64>) {
        match value {
            Some(value) => self.put(cell, value),
            None => self.set_null(cell),
        }
    }

    #[inline(always)]
    fn set_null(&mut self, cell: Cell) {
        self.nulls[usize::from(cell)] = true;
        self.some_null = true;
    }

    /// Finds out whether any is NULL still.
    fn look(&mut self) {
        self.some_null = self.nulls.contains(&true);
    }
}

/// What to multiply with instead of dividing by `divisor`, which is at least 2.
pub(crate) fn reciprocal(divisor: u32) -> u64 {
    u64::MAX / u64::from(divisor) + 1
}

/// `value / divisor` for an `integer`: exact, as dividend and divisor have at most 32 bits.
#[inline(always)]
fn quotient(value: i64, reciprocal: u64) -> i64 {
    let quotient = ((u128::from(reciprocal) * u128::from(value.unsigned_abs())) >> 64) as i64;
    if value < 0 { -quotient } else { quotient }
}

#[cold]
fn other_type() -> ExecError {
    SqlError::internal("a register of a loop holds a value of another type").into()
}

/// An operation whose result is an `integer`, over integers no wider than that.
macro_rules! small {
    ($operation:ident, $left:expr, $right:expr) => {
        Arithmetic::$operation.apply(IntegerWidth::Four, $left, $right)?
    };
}

/// An operation whose result is a `bigint`.
macro_rules! large {
    ($operation:ident, $left:expr, $right:expr) => {
        Arithmetic::$operation.apply(IntegerWidth::Eight, $left, $right)?
    };
}

fn fit(value: i64, kind: Kind) -> ExecResult<i64> {
    match kind.width() {
        Some(width) => Ok(width.fit(value)?),
        None => Ok(value),
    }
}

/// What a machine changes while it runs, beside the registers.
struct State<'m> {
    cells: Cells,
    held: Vec<Held>,
    strips: Strips<'m>,
    eaches: Vec<Looped>,
}

impl<'m> State<'m> {
    fn of(machine: &'m Machine) -> State<'m> {
        let mut eaches = Vec::new();
        eaches.resize_with(machine.eaches, Looped::default);
        State {
            cells: Cells::new(),
            held: Held::all(&machine.arrays),
            strips: Strips::new(machine.strips, &machine.texts),
            eaches,
        }
    }
}

impl Machine {
    /// Fills the cells; false if a register holds what the loop was not compiled for.
    fn load(&self, ctx: &ExecContext<'_, '_>, cells: &mut Cells) -> bool {
        self.variables.iter().all(|variable| {
            match variable.kind.read(&ctx.variables[variable.register as usize]) {
                Some(number) => {
                    cells.set(variable.cell, number);
                    true
                }
                None => false,
            }
        })
    }

    fn store(&self, ctx: &mut ExecContext<'_, '_>, cells: &Cells) {
        for variable in self.variables.iter().filter(|variable| variable.assigned) {
            self.spill(ctx, cells, variable);
        }
    }

    #[inline]
    fn spill(&self, ctx: &mut ExecContext<'_, '_>, cells: &Cells, variable: &Variable) {
        ctx.variables[variable.register as usize].set(variable.kind.datum(cells.get(variable.cell)));
    }

    fn reload(&self, ctx: &ExecContext<'_, '_>, cells: &mut Cells, variable: &Variable) -> ExecResult<()> {
        let number = variable.kind.read(&ctx.variables[variable.register as usize]);
        cells.set(variable.cell, number.ok_or_else(other_type)?);
        Ok(())
    }
}

impl Invocation<'_, '_> {
    /// Runs a loop; `None` if its variables hold what it was not compiled for.
    ///
    /// Not inlined: its cells would lie on the stack of every loop, and of every routine that one
    /// calls.
    #[inline(never)]
    pub(super) fn machine(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        machine: &Machine,
    ) -> ExecResult<Option<Flow>> {
        let mut state = State::of(machine);
        if !machine.load(ctx, &mut state.cells) {
            return Ok(None);
        }
        let mut at = 0;
        let result = self.instructions(ctx, machine, &mut state, &mut at);
        machine.store(ctx, &state.cells);
        state.held.iter_mut().for_each(|held| held.give_back(&mut ctx.variables));
        match result {
            Ok(flow) => Ok(Some(flow)),
            // A statement has added its line itself.
            Err(error) if matches!(machine.instructions[at], Instruction::Statement { .. }) => Err(error),
            Err(error) => Err(self.at(error, machine.sites[at])),
        }
    }

    /// The loop itself. Where it fails, `at` tells the instruction.
    fn instructions(
        &mut self,
        ctx: &mut ExecContext<'_, '_>,
        machine: &Machine,
        state: &mut State<'_>,
        at: &mut usize,
    ) -> ExecResult<Flow> {
        use Instruction::*;
        let State { cells, held, strips: texts, eaches } = state;
        let mut fuel = FUEL_AT_FIRST;
        let mut next = 0usize;
        /// A number of two others; NULL if one of them is.
        macro_rules! two {
            ($to:expr, $left:expr, $right:expr, |$x:ident, $y:ident| $result:expr) => {{
                match (cells.get($left), cells.get($right)) {
                    (Some($x), Some($y)) => {
                        let value = $result;
                        cells.put($to, value);
                    }
                    _ => cells.set_null($to),
                }
            }};
        }
        macro_rules! one {
            ($to:expr, $from:expr, |$x:ident| $result:expr) => {{
                match cells.get($from) {
                    Some($x) => {
                        let value = $result;
                        cells.put($to, value);
                    }
                    None => cells.set_null($to),
                }
            }};
        }
        macro_rules! burn {
            ($work:expr) => {
                match fuel.checked_sub($work) {
                    Some(left) => fuel = left,
                    None => {
                        fuel = FUEL;
                        cells.look();
                        loops::look_around(ctx)?;
                        ctx.require_memory()?;
                    }
                }
            };
        }
        loop {
            *at = next;
            next += 1;
            match machine.instructions[*at] {
                Const { to, value } => cells.put(to, value),
                Null { to } => cells.set_null(to),
                Move { to, from } => cells.set(to, cells.get(from)),
                AddSmall { to, left, right } => two!(to, left, right, |x, y| small!(Add, x, y)),
                AddSmallBy { to, left, right } => one!(to, left, |x| small!(Add, x, i64::from(right))),
                Add { to, left, right } => two!(to, left, right, |x, y| large!(Add, x, y)),
                AddBy { to, left, right } => one!(to, left, |x| large!(Add, x, i64::from(right))),
                SubtractSmall { to, left, right } => two!(to, left, right, |x, y| small!(Subtract, x, y)),
                Subtract { to, left, right } => two!(to, left, right, |x, y| large!(Subtract, x, y)),
                MultiplySmall { to, left, right } => two!(to, left, right, |x, y| small!(Multiply, x, y)),
                MultiplySmallBy { to, left, right } => {
                    one!(to, left, |x| small!(Multiply, x, i64::from(right)))
                }
                Multiply { to, left, right } => two!(to, left, right, |x, y| large!(Multiply, x, y)),
                DivideSmall { to, left, right } => two!(to, left, right, |x, y| small!(Divide, x, y)),
                Divide { to, left, right } => two!(to, left, right, |x, y| large!(Divide, x, y)),
                DivideSmallBy { to, left, reciprocal } => one!(to, left, |x| quotient(x, reciprocal)),
                Remainder { to, left, right } => two!(to, left, right, |x, y| large!(Remainder, x, y)),
                RemainderSmallBy { to, left, right, reciprocal } => {
                    one!(to, left, |x| x - quotient(x, reciprocal) * i64::from(right));
                }
                Negate { to, from } => one!(to, from, |x| IntegerWidth::Eight.negate(x)?),
                Fit { to, from, kind } => one!(to, from, |x| fit(x, kind)?),
                ToFloat { to, from } => one!(to, from, |x| (x as f64).to_bits() as i64),
                Float { to, left, right, operation } => two!(to, left, right, |x, y| {
                    let (x, y) = (f64::from_bits(x as u64), f64::from_bits(y as u64));
                    float_arithmetic(operation, x, y)?.to_bits() as i64
                }),
                NegateFloat { to, from } => one!(to, from, |x| (-f64::from_bits(x as u64)).to_bits() as i64),
                Compare { to, left, right, orders } => {
                    two!(to, left, right, |x, y| i64::from(orders.hold(x, y)));
                }
                CompareFloat { to, left, right, orders } => two!(to, left, right, |x, y| {
                    let (x, y) = (f64::from_bits(x as u64), f64::from_bits(y as u64));
                    i64::from(orders.hold_float(x, y))
                }),
                Not { to, from } => one!(to, from, |x| x ^ 1),
                IsNull { to, from, wanted } => {
                    cells.put(to, i64::from(cells.get(from).is_none() == wanted));
                }
                Junction { to, from, decides, end } => match cells.get(from) {
                    Some(value) if (value != 0) == decides => {
                        cells.put(to, value);
                        next = end as usize;
                    }
                    Some(_) => {}
                    None => cells.set_null(to),
                },
                Jump { to } => next = to as usize,
                JumpUnless { condition, to } => {
                    if !matches!(cells.get(condition), Some(1)) {
                        next = to as usize;
                    }
                }
                JumpUnlessCompared { left, right, orders, to } => match (cells.get(left), cells.get(right)) {
                    (Some(x), Some(y)) if orders.hold(x, y) => {}
                    _ => next = to as usize,
                },
                JumpUnlessComparedBy { left, orders, right, to } => match cells.get(left) {
                    Some(x) if orders.hold(x, i64::from(right)) => {}
                    _ => next = to as usize,
                },
                Again { to } => {
                    burn!(1);
                    next = to as usize;
                }
                Bound { cell, bound } => {
                    if cells.get(cell).is_none() {
                        return Err(SqlError::new(
                            SqlState::NULL_VALUE_NOT_ALLOWED,
                            format!("{} of FOR loop cannot be null", bound.name()),
                        )
                        .into());
                    }
                }
                Step { cell } => {
                    if cells.get(cell).is_none_or(|step| step <= 0) {
                        return Err(SqlError::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            "BY value of FOR loop must be greater than zero",
                        )
                        .into());
                    }
                }
                Enter { counter, last, reverse, to } => {
                    let (first, last) = (cells.get(counter), cells.get(last));
                    if if reverse { first < last } else { first > last } {
                        next = to as usize;
                    }
                }
                // Counters are integers, and their sums bigints: none overflows.
                Next { counter, last, step, variable, to } => {
                    burn!(1);
                    if let (Some(now), Some(last), Some(step)) =
                        (cells.get(counter), cells.get(last), cells.get(step))
                        && now + step <= last
                    {
                        cells.put(counter, now + step);
                        cells.put(variable, now + step);
                        next = to as usize;
                    }
                }
                NextDown { counter, last, step, variable, to } => {
                    burn!(1);
                    if let (Some(now), Some(last), Some(step)) =
                        (cells.get(counter), cells.get(last), cells.get(step))
                        && now - step >= last
                    {
                        cells.put(counter, now - step);
                        cells.put(variable, now - step);
                        next = to as usize;
                    }
                }
                Found { value } => self.loop_found(ctx, u64::from(value)),
                Code { to, code, kind } => {
                    burn!(FUEL_OF_STATEMENT);
                    ctx.require_memory()?;
                    let value = machine.codes[usize::from(code)](ctx)?;
                    cells.set(to, kind.read(&value).ok_or_else(other_type)?);
                    self.settled(ctx, machine.sites[*at]);
                }
                Element { to, index, offset, kind, array } => {
                    let index = match cells.get(index) {
                        Some(index) => Some(small!(Add, index, i64::from(offset))),
                        None => None,
                    };
                    let value = element_at(&ctx.variables, held, array, index);
                    cells.set(to, kind.read(value).ok_or_else(other_type)?);
                }
                SetElement { index, offset, value, kind, array } => {
                    let Some(index) = cells.get(index) else { return Err(null_subscript().into()) };
                    let index = small!(Add, index, i64::from(offset));
                    let value = kind.datum(cells.get(value));
                    store_in(held[usize::from(array)].array(&mut ctx.variables), &[index as i32], value)?;
                }
                SetTextElement { index, value, array } => {
                    let Some(index) = cells.get(index) else { return Err(null_subscript().into()) };
                    let value = texts.datum(&ctx.variables, value);
                    store_in(held[usize::from(array)].array(&mut ctx.variables), &[index as i32], value)?;
                }
                Push { value, kind, array } => {
                    let value = kind.datum(cells.get(value));
                    append::push(held[usize::from(array)].array(&mut ctx.variables), value)?;
                }
                PushText { value, array } => {
                    let value = texts.datum(&ctx.variables, value);
                    append::push(held[usize::from(array)].array(&mut ctx.variables), value)?;
                }
                Extent { to, dimension, extent: what, array } => {
                    let array = array_at(&ctx.variables, held, array);
                    let value = array.zip(cells.get(dimension));
                    cells.set(to, value.and_then(|(array, dimension)| extent(array, what, dimension)));
                }
                GiveBack { array } => held[usize::from(array)].give_back(&mut ctx.variables),
                GiveBackAll => held.iter_mut().for_each(|held| held.give_back(&mut ctx.variables)),
                Each { each, code } => {
                    burn!(FUEL_OF_STATEMENT);
                    ctx.require_memory()?;
                    let value = machine.codes[usize::from(code)](ctx)?;
                    self.settled(ctx, machine.sites[*at]);
                    let Datum::Array(array) = value else { return Err(loops::null_array()) };
                    eaches[usize::from(each)] = Looped::over(array);
                }
                NextElement { each, variable, kind, to } => {
                    burn!(1);
                    match eaches[usize::from(each)].next() {
                        Some(value) => cells.set(variable, kind.read(value).ok_or_else(other_type)?),
                        None => next = to as usize,
                    }
                }
                NextDatum { each, register, to } => {
                    burn!(1);
                    match eaches[usize::from(each)].next() {
                        Some(value) => ctx.variables[register as usize].set(value.clone()),
                        None => next = to as usize,
                    }
                }
                EachFound { each } => {
                    let found = eaches[usize::from(each)].end();
                    self.loop_found(ctx, u64::from(found));
                }
                Text { to, text } => texts.lay_constant(to, text),
                TextVariable { to, register } => {
                    if !texts.lay_variable(&ctx.variables, to, register) {
                        return Err(other_type());
                    }
                }
                TextElement { to, index, array } => {
                    let value = element_at(&ctx.variables, held, array, cells.get(index));
                    if !texts.lay_copy(to, value) {
                        return Err(other_type());
                    }
                }
                TextCode { to, code } => {
                    burn!(FUEL_OF_STATEMENT);
                    ctx.require_memory()?;
                    let value = machine.codes[usize::from(code)](ctx)?;
                    if !texts.lay_value(to, value) {
                        return Err(other_type());
                    }
                    self.settled(ctx, machine.sites[*at]);
                }
                Character { to, code } => texts.lay_character(to, cells.get(code))?,
                Concatenate { to, other } => {
                    let moved = texts.concatenate(&ctx.variables, to, other)?;
                    burn!(fuel_of_bytes(moved));
                }
                AddCharacter { to, code } => {
                    let moved = texts.add_character(&ctx.variables, to, cells.get(code))?;
                    burn!(fuel_of_bytes(moved));
                }
                Part { of, part, first, second } => {
                    let numbers = (cells.get(first), second.map(|second| cells.get(second)));
                    texts.part(&ctx.variables, of, part, numbers)?;
                }
                PartBy { of, part, first, second } => {
                    let second = second.map(|second| Some(i64::from(second)));
                    texts.part(&ctx.variables, of, part, (Some(i64::from(first)), second))?;
                }
                PartTo { of, part, first, second } => {
                    let numbers = (cells.get(first), Some(Some(i64::from(second))));
                    texts.part(&ctx.variables, of, part, numbers)?;
                }
                Case { of, case } => texts.case(&ctx.variables, of, case),
                Measure { to, of, measure } => cells.set(to, texts.measure(&ctx.variables, of, measure)),
                MeasureVariable { to, register, measure } => match &ctx.variables[register as usize] {
                    Datum::Text(text) => cells.put(to, text::measure(text, measure)),
                    Datum::Null => cells.set_null(to),
                    _ => return Err(other_type()),
                },
                Position { to, within, of } => {
                    let both = texts.text(&ctx.variables, within).zip(texts.text(&ctx.variables, of));
                    let searched = both.map_or(0, |(text, _)| text.len());
                    cells.set(to, both.map(|(text, part)| i64::from(text_position(text, part))));
                    burn!(fuel_of_bytes(searched));
                }
                CompareText { to, left, right, orders } => {
                    let holds = texts.compare(&ctx.variables, left, right, orders);
                    cells.set(to, holds.map(i64::from));
                }
                JumpUnlessText { left, right, orders, to } => {
                    if texts.compare(&ctx.variables, left, right, orders) != Some(true) {
                        next = to as usize;
                    }
                }
                JumpUnlessTextIs { left, orders, right, to } => {
                    let left = texts.text(&ctx.variables, left);
                    let holds = left.zip(machine.texts[usize::from(right)].as_deref());
                    if !holds.is_some_and(|(left, right)| text::in_order(left, right, orders)) {
                        next = to as usize;
                    }
                }
                TextIsNull { to, from, wanted } => {
                    let null = texts.text(&ctx.variables, from).is_none();
                    cells.put(to, i64::from(null == wanted));
                }
                SetText { register, from } => {
                    let moved = texts.assign(&mut ctx.variables, register, from);
                    burn!(fuel_of_bytes(moved));
                }
                AppendText { register, from } => {
                    let moved = texts.append(&mut ctx.variables, register, from)?;
                    burn!(fuel_of_bytes(moved));
                }
                NotNull { cell, name } => {
                    if cells.get(cell).is_none() {
                        return Err(null_refused(&machine.names[usize::from(name)]).into());
                    }
                }
                Spill { variable } => machine.spill(ctx, cells, &machine.variables[usize::from(variable)]),
                Reload { variable } => {
                    machine.reload(ctx, cells, &machine.variables[usize::from(variable)])?;
                }
                Rights { rights } => machine.rights[usize::from(rights)].check(ctx.functions.session)?,
                SpillAll => machine.store(ctx, cells),
                ReloadAll => {
                    for variable in &machine.variables {
                        machine.reload(ctx, cells, variable)?;
                    }
                }
                Statement { statement } => {
                    let operation = &machine.statements[usize::from(statement)];
                    ctx.require_memory().map_err(|error| self.at(error, operation.site))?;
                    burn!(FUEL_OF_STATEMENT);
                    let flow = self.operation(ctx, operation);
                    if context::notices_wait(ctx) {
                        self.settle(ctx, operation.site);
                    }
                    let flow = flow?;
                    if flow != Flow::Next {
                        return Ok(flow);
                    }
                }
                Leave { flow } => return Ok(flow),
                End => return Ok(Flow::Next),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_know_which_of_them_is_null() {
        let mut cells = Cells::new();
        cells.put(4, 7);
        cells.set_null(3);
        assert_eq!((cells.get(3), cells.get(4)), (None, Some(7)));
        cells.look();
        assert_eq!((cells.get(3), cells.some_null), (None, true));
        cells.put(3, 1);
        assert_eq!(cells.get(3), Some(1));
        cells.look();
        assert!(!cells.some_null);
        cells.put(255, 2);
        cells.set(0, None);
        assert_eq!((cells.get(3), cells.get(255), cells.get(0)), (Some(1), Some(2), None));
    }
}
