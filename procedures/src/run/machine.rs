//! Loops as a register machine.
//!
//! A loop that computes with numbers spends its time neither in a table nor in a function but on
//! the way from one statement to the next. Such a loop is compiled ([`crate::compile::lower`])
//! to a list of instructions over cells. A cell is a machine number, or NULL; the variables that
//! the loop computes with are in cells while it runs and go back to their registers when it
//! ends, whether well, by an error (a handler sees them) or by RETURN.
//!
//! What is no number stays in its register: texts and arrays are changed there in place. A
//! statement that the machine does not know is run as the tree's ([`Instruction::Statement`]):
//! the variables it reads are written to their registers first.
//!
//! Invariant: a loop that may end the transaction, or that runs SQL, is never a machine: there
//! is no place in one to come back to.

use archipel_planner::native::scalar::Kind;
use archipel_planner::native::{ExecContext, ExecError, ExecResult};
use archipel_sql::datum::{Array, Datum};
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::float_arithmetic;

use super::element::{null_subscript, store_element};
use super::instruction::{CELLS, Cell, Instruction, Machine, Variable};
use super::{Flow, Invocation, context, loops, null_refused};

/// How many rounds, or so much work, pass between two looks at whether to go on.
const FUEL: u32 = 1024;

/// What a closure or a statement of the tree costs of that.
const FUEL_OF_STATEMENT: u32 = 16;

/// The cells of a run. Numbers of cells are below [`CELLS`]: masking them says so.
struct Cells([Option<i64>; CELLS]);

impl Cells {
    #[inline(always)]
    fn get(&self, cell: Cell) -> Option<i64> {
        self.0[usize::from(cell) % CELLS]
    }

    #[inline(always)]
    fn set(&mut self, cell: Cell, value: Option<i64>) {
        self.0[usize::from(cell) % CELLS] = value;
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
fn out_of_range(kind: Kind) -> ExecError {
    let name = match kind {
        Kind::Int2 => "smallint",
        Kind::Int4 => "integer",
        _ => "bigint",
    };
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range")).into()
}

#[cold]
fn division_by_zero() -> ExecError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero").into()
}

#[cold]
fn other_type() -> ExecError {
    SqlError::internal("a register of a loop holds a value of another type").into()
}

#[inline(always)]
fn small(value: i64) -> ExecResult<i64> {
    if i64::from(value as i32) == value { Ok(value) } else { Err(out_of_range(Kind::Int4)) }
}

#[inline(always)]
fn large(value: Option<i64>) -> ExecResult<i64> {
    value.ok_or_else(|| out_of_range(Kind::Int8))
}

fn fit(value: i64, kind: Kind) -> ExecResult<i64> {
    let fits = match kind {
        Kind::Int2 => i16::try_from(value).is_ok(),
        Kind::Int4 => i32::try_from(value).is_ok(),
        _ => true,
    };
    if fits { Ok(value) } else { Err(out_of_range(kind)) }
}

/// An element of a one-dimensional array; NULL beyond its bounds.
#[inline]
fn element(array: &Array, index: i64) -> &Datum {
    archipel_planner::native::element(array, &[index])
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
        let mut cells = Cells([None; CELLS]);
        if !machine.load(ctx, &mut cells) {
            return Ok(None);
        }
        let mut at = 0;
        let result = self.instructions(ctx, machine, &mut cells, &mut at);
        machine.store(ctx, &cells);
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
        cells: &mut Cells,
        at: &mut usize,
    ) -> ExecResult<Flow> {
        use Instruction::*;
        let mut fuel = FUEL;
        let mut next = 0usize;
        /// A number of two others; NULL if one of them is.
        macro_rules! two {
            ($to:expr, $left:expr, $right:expr, |$x:ident, $y:ident| $result:expr) => {{
                let value = match (cells.get($left), cells.get($right)) {
                    (Some($x), Some($y)) => Some($result),
                    _ => None,
                };
                cells.set($to, value);
            }};
        }
        macro_rules! one {
            ($to:expr, $from:expr, |$x:ident| $result:expr) => {{
                let value = match cells.get($from) {
                    Some($x) => Some($result),
                    None => None,
                };
                cells.set($to, value);
            }};
        }
        macro_rules! burn {
            ($work:expr) => {
                match fuel.checked_sub($work) {
                    Some(left) => fuel = left,
                    None => {
                        fuel = FUEL;
                        loops::look_around(ctx)?;
                    }
                }
            };
        }
        loop {
            *at = next;
            next += 1;
            match machine.instructions[*at] {
                Const { to, value } => cells.set(to, Some(value)),
                Null { to } => cells.set(to, None),
                Move { to, from } => cells.set(to, cells.get(from)),
                AddSmall { to, left, right } => two!(to, left, right, |x, y| small(x + y)?),
                AddSmallBy { to, left, right } => one!(to, left, |x| small(x + i64::from(right))?),
                Add { to, left, right } => two!(to, left, right, |x, y| large(x.checked_add(y))?),
                AddBy { to, left, right } => one!(to, left, |x| large(x.checked_add(i64::from(right)))?),
                SubtractSmall { to, left, right } => two!(to, left, right, |x, y| small(x - y)?),
                Subtract { to, left, right } => two!(to, left, right, |x, y| large(x.checked_sub(y))?),
                MultiplySmall { to, left, right } => two!(to, left, right, |x, y| small(x * y)?),
                MultiplySmallBy { to, left, right } => one!(to, left, |x| small(x * i64::from(right))?),
                Multiply { to, left, right } => two!(to, left, right, |x, y| large(x.checked_mul(y))?),
                DivideSmall { to, left, right } => two!(to, left, right, |x, y| {
                    if y == 0 {
                        return Err(division_by_zero());
                    }
                    small(x / y)?
                }),
                Divide { to, left, right } => two!(to, left, right, |x, y| {
                    if y == 0 {
                        return Err(division_by_zero());
                    }
                    large(x.checked_div(y))?
                }),
                DivideSmallBy { to, left, reciprocal } => one!(to, left, |x| quotient(x, reciprocal)),
                Remainder { to, left, right } => two!(to, left, right, |x, y| {
                    if y == 0 {
                        return Err(division_by_zero());
                    }
                    // The smallest value over -1 leaves 0.
                    x.wrapping_rem(y)
                }),
                RemainderSmallBy { to, left, right, reciprocal } => {
                    one!(to, left, |x| x - quotient(x, reciprocal) * i64::from(right));
                }
                Negate { to, from } => one!(to, from, |x| large(x.checked_neg())?),
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
                    cells.set(to, Some(i64::from(cells.get(from).is_none() == wanted)));
                }
                Junction { to, from, decides, end } => match cells.get(from) {
                    Some(value) if (value != 0) == decides => {
                        cells.set(to, Some(value));
                        next = end as usize;
                    }
                    Some(_) => {}
                    None => cells.set(to, None),
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
                Bound { cell, name } => {
                    if cells.get(cell).is_none() {
                        return Err(SqlError::new(
                            SqlState::NULL_VALUE_NOT_ALLOWED,
                            format!("{name} of FOR loop cannot be null"),
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
                        cells.set(counter, Some(now + step));
                        cells.set(variable, Some(now + step));
                        next = to as usize;
                    }
                }
                NextDown { counter, last, step, variable, to } => {
                    burn!(1);
                    if let (Some(now), Some(last), Some(step)) =
                        (cells.get(counter), cells.get(last), cells.get(step))
                        && now - step >= last
                    {
                        cells.set(counter, Some(now - step));
                        cells.set(variable, Some(now - step));
                        next = to as usize;
                    }
                }
                Found { value } => self.loop_found(ctx, u64::from(value)),
                Code { to, code, kind } => {
                    burn!(FUEL_OF_STATEMENT);
                    let value = machine.codes[usize::from(code)](ctx)?;
                    cells.set(to, kind.read(&value).ok_or_else(other_type)?);
                    self.settled(ctx, machine.sites[*at]);
                }
                Element { to, index, kind, array } => {
                    let value = match (&ctx.variables[array as usize], cells.get(index)) {
                        (Datum::Array(array), Some(index)) => {
                            kind.read(element(array, index)).ok_or_else(other_type)?
                        }
                        _ => None,
                    };
                    cells.set(to, value);
                }
                SetElement { index, value, kind, array } => {
                    let Some(index) = cells.get(index) else { return Err(null_subscript().into()) };
                    let (register, of) = machine.arrays[usize::from(array)];
                    let value = kind.datum(cells.get(value));
                    store_element(&mut ctx.variables[register as usize], of, &[index as i32], value)?;
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
                SpillAll => machine.store(ctx, cells),
                ReloadAll => {
                    for variable in &machine.variables {
                        machine.reload(ctx, cells, variable)?;
                    }
                }
                Statement { statement } => {
                    burn!(FUEL_OF_STATEMENT);
                    let operation = &machine.statements[usize::from(statement)];
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
