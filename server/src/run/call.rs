//! CALL: a routine's program with the arguments of one statement.
//!
//! Arguments are nearly always parameters and constants; those are known before anything is
//! claimed, and the routine's routing expressions are evaluated on them.

use std::sync::Arc;

use archipel_engine::{ClaimSet, Engine};
use archipel_planner::bound::{BoundCall, BoundExpr, ExprKind};
use archipel_planner::native::{
    CompileEnv, CompiledExpr, CompiledRoutine, ExecContext, ExecResult, NoRows, RowSink, SystemRows,
    compile_expr,
};
use archipel_planner::route::{RouteInputs, evaluate, is_row_free};
use archipel_procedures::Program as RoutineProgram;
use archipel_procedures::run::pause::Paused;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::FunctionContext;
use archipel_sql::types::Type;

/// See the module's head.
pub struct CallPlan {
    pub program: Arc<RoutineProgram>,
    bound: Vec<BoundExpr>,
    compiled: Vec<CompiledExpr>,
    /// Whether all arguments can be computed before the run.
    known_before: bool,
}

impl CallPlan {
    pub fn new(
        call: &BoundCall,
        program: Arc<RoutineProgram>,
        environment: &CompileEnv<'_>,
    ) -> Result<CallPlan> {
        let compiled = call
            .args
            .iter()
            .map(|argument| compile_expr(argument, environment))
            .collect::<Result<Vec<_>>>()?;
        let known_before = call.args.iter().all(is_row_free);
        Ok(CallPlan { program, bound: call.args.clone(), compiled, known_before })
    }

    /// Adds what the call will touch with these statement parameters.
    pub fn predict(
        &self,
        system: &dyn SystemRows,
        engine: &Engine,
        params: &[Datum],
        functions: &FunctionContext<'_>,
        claims: &mut ClaimSet,
    ) {
        if !self.known_before {
            return;
        }
        let inputs = RouteInputs { params, variables: &[], functions };
        let mut args = Vec::with_capacity(self.bound.len());
        for argument in &self.bound {
            match evaluate(argument, &inputs) {
                Some(value) => args.push(value),
                None => return,
            }
        }
        self.program.predict(&args, functions, system, engine, claims);
    }

    /// Evaluates the arguments and runs the routine, or goes on with it where it ended its last
    /// transaction; answers where it ends this one, unless it is over.
    pub fn run(
        &self,
        context: &mut ExecContext<'_, '_>,
        sink: &mut dyn RowSink,
        paused: Option<Paused>,
    ) -> ExecResult<Option<Paused>> {
        let mut args = Vec::with_capacity(self.compiled.len());
        if paused.is_none() {
            for argument in &self.compiled {
                args.push(argument(context)?);
            }
        }
        self.program.invoke_until_pause(context, &args, sink, paused)
    }
}

impl CallPlan {
    /// A query in pieces: its parameters are its arguments.
    pub fn of_query(
        program: Arc<RoutineProgram>,
        params: &[Type],
        environment: &CompileEnv<'_>,
    ) -> Result<CallPlan> {
        let param = |(number, ty): (usize, &Type)| BoundExpr::new(ExprKind::Param(number as u16), *ty);
        let bound: Vec<BoundExpr> = params.iter().enumerate().map(param).collect();
        let compiled =
            bound.iter().map(|param| compile_expr(param, environment)).collect::<Result<Vec<_>>>()?;
        Ok(CallPlan { program, bound, compiled, known_before: true })
    }

    /// A DO block: no arguments.
    pub fn of_block(program: Arc<RoutineProgram>) -> CallPlan {
        CallPlan { program, bound: Vec::new(), compiled: Vec::new(), known_before: true }
    }
}

/// A trigger's function and the rows it is called with, outside of the statement that set it off.
pub struct TriggerCall {
    pub function: Arc<dyn CompiledRoutine>,
    /// WHEN, where it is still to be asked.
    pub condition: Option<Arc<dyn CompiledRoutine>>,
    /// Old and new; NULL for none.
    pub rows: [Datum; 2],
}

impl TriggerCall {
    pub fn run(&self, context: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        if let Some(condition) = &self.condition {
            let mut answer: Vec<Vec<Datum>> = Vec::new();
            condition.call(context, &self.rows, &mut answer)?;
            if !matches!(answer.first().map(Vec::as_slice), Some([Datum::Bool(true)])) {
                return Ok(());
            }
        }
        context.trigger_depth += 1;
        let called = self.function.call(context, &self.rows, &mut NoRows);
        context.trigger_depth -= 1;
        called
    }
}
