//! Triggers: a function without arguments becomes, for one table and event, a routine whose
//! arguments are OLD, NEW and what TG_OP and its kin say.

use std::any::Any;
use std::sync::Arc;

use archipel_planner::bind::DEFINITION_PATH;
use archipel_planner::native::{
    CompiledRoutine, ExecContext, ExecResult, RoutineLinker, RowSink, TriggerPart,
};
use archipel_planner::route::Access;
use archipel_sql::catalog::{
    ArgMode, Language, Routine, RoutineArg, RoutineKind, RoutineRef, TableRef, Trigger, TriggerEvent,
};
use archipel_sql::datum::{Array, Datum, Dimension};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::{Oid, Type};

use crate::compile::{self, Condition, Environment};
use crate::plpgsql::parser::{self, Signature};
use crate::run::operation::{Place, Program};

/// A trigger and the event it fires for.
pub(crate) struct TriggerUse<'t> {
    pub table: &'t TableRef,
    pub trigger: &'t Trigger,
    pub event: TriggerEvent,
}

/// A trigger's function or condition, ready to be called with the old and the new row.
pub(crate) enum TriggerProgram {
    /// With what its variables hold beside the rows.
    Function(Arc<Program>, Vec<Datum>),
    Condition(Condition),
}

/// What the function finds in variables beside OLD and NEW.
const VARIABLES: [(&str, Type); 10] = [
    ("tg_op", Type::TEXT),
    ("tg_name", Type::NAME),
    ("tg_when", Type::TEXT),
    ("tg_level", Type::TEXT),
    ("tg_relid", Type::OID),
    ("tg_relname", Type::NAME),
    ("tg_table_name", Type::NAME),
    ("tg_table_schema", Type::NAME),
    ("tg_nargs", Type::INT4),
    ("tg_argv", Type::of(Oid::TEXT_ARRAY)),
];

impl TriggerUse<'_> {
    /// Which of OLD and NEW are rows.
    fn present(&self) -> [bool; 2] {
        let row = self.trigger.row;
        [row && self.event != TriggerEvent::Insert, row && self.event != TriggerEvent::Delete]
    }

    /// The type of OLD and NEW, also where they are NULL.
    fn row_type(&self) -> Type {
        Type::of(self.table.row_type())
    }

    fn variables(&self) -> Vec<Datum> {
        let text = |text: &str| Datum::text(text);
        let arguments = &self.trigger.arguments;
        let values: Vec<Datum> = arguments.iter().map(|argument| text(argument)).collect();
        let array = if values.is_empty() {
            Datum::Null
        } else {
            // It counts from zero.
            let dimensions = vec![Dimension { length: values.len(), lower_bound: 0 }];
            Datum::Array(Arc::new(Array { element: Oid::TEXT, dimensions, values }))
        };
        vec![
            text(self.event.as_str()),
            text(&self.trigger.name),
            text(self.trigger.timing()),
            text(self.trigger.level()),
            Datum::Oid(self.table.oid),
            text(&self.table.name),
            text(&self.table.name),
            text(&self.table.schema),
            Datum::Int4(arguments.len() as i32),
            array,
        ]
    }
}

/// The function with its variables as arguments.
/// So many arguments behind OLD and NEW are tables that the trigger names.
fn with_variables(function: &Routine, row: Type, result: Type, tables: usize) -> RoutineRef {
    let arg = |name: &str, ty| RoutineArg {
        name: Some(name.into()),
        mode: ArgMode::In,
        ty,
        default: None,
        domain: None,
    };
    let rows = [arg("old", row), arg("new", row)].into_iter();
    // Names no SQL can spell.
    let tables = (0..tables).map(|number| arg(&format!("\u{1}table{number}"), Type::of(Oid::RECORD_ARRAY)));
    let args = rows.chain(tables).chain(VARIABLES.iter().map(|(name, ty)| arg(name, *ty))).collect();
    Arc::new(Routine { args, result, strict: false, ..function.clone() })
}

/// Reads the body of a trigger function that is being created: without a table, that is all there
/// is to check.
pub(crate) fn check_grammar(function: &RoutineRef) -> Result<()> {
    let routine = with_variables(function, Type::RECORD, Type::RECORD, 0);
    parser::parse(&routine.source, &Signature::of(&routine)).map(drop)
}

/// The error of calling a trigger function oneself.
pub(crate) fn direct_call(function: &Routine) -> SqlError {
    let mut error =
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "trigger functions can only be called as triggers");
    error.fields_mut().context =
        Some(format!("compilation of PL/pgSQL function \"{}\" near line 1", function.name));
    error
}

/// Compiles a trigger for its event.
pub(crate) fn compile(
    used: &TriggerUse<'_>,
    part: TriggerPart,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<TriggerProgram> {
    let trigger = used.trigger;
    Ok(match (part, &trigger.condition) {
        (TriggerPart::Condition, Some(text)) => {
            // What it calls runs as the session says; its own names are the table's.
            let path = DEFINITION_PATH.into();
            let environment = Environment { search_path: path, is_settled: true, ..environment.clone() };
            TriggerProgram::Condition(compile_condition(used, text, &environment, linker)?)
        }
        _ => {
            let function = environment.catalog.trigger_function(trigger).ok_or_else(|| {
                SqlError::internal(format!("the function of trigger {} is gone", trigger.name))
            })?;
            let named: Vec<&str> =
                [&trigger.old_table, &trigger.new_table].into_iter().flatten().map(String::as_str).collect();
            let function = environment.read(&function)?;
            let routine = with_variables(&function, used.row_type(), used.row_type(), named.len());
            let before = trigger.before && trigger.row && used.event != TriggerEvent::Delete;
            let rows =
                compile::TriggerRows { present: used.present(), before, named: &named, table: used.table };
            let program = compile::compile_trigger(&routine, &rows, environment, linker)?;
            TriggerProgram::Function(Arc::new(program), used.variables())
        }
    })
}

fn compile_condition(
    used: &TriggerUse<'_>,
    text: &str,
    environment: &Environment,
    linker: &Arc<dyn RoutineLinker + Send + Sync>,
) -> Result<Condition> {
    let arg = |name: &str| RoutineArg {
        name: Some(name.into()),
        mode: ArgMode::In,
        ty: used.row_type(),
        default: None,
        domain: None,
    };
    let routine = Arc::new(Routine {
        oid: Oid(0),
        schema: String::new(),
        name: used.trigger.name.clone(),
        kind: RoutineKind::Function,
        language: Language::PlPgSql,
        args: vec![arg("old"), arg("new")],
        result: Type::BOOL,
        result_domain: None,
        returns_set: false,
        strict: false,
        volatility: 'v',
        source: String::new(),
        distribution_arg: None,
        traits: Default::default(),
        aggregate: None,
        version: 0,
    });
    compile::compile_condition(&routine, text, environment, linker)
}

impl CompiledRoutine for TriggerProgram {
    fn call(&self, ctx: &mut ExecContext<'_, '_>, args: &[Datum], sink: &mut dyn RowSink) -> ExecResult<()> {
        match self {
            TriggerProgram::Function(program, variables) => {
                let args: Vec<Datum> = args.iter().chain(variables).cloned().collect();
                program.invoke(ctx, &args, sink)
            }
            TriggerProgram::Condition(condition) => condition.call(ctx, args, sink),
        }
    }

    fn accesses(&self) -> &[Access] {
        match self {
            TriggerProgram::Function(program, _) => &program.accesses,
            TriggerProgram::Condition(condition) => &condition.accesses,
        }
    }

    fn asks_callers(&self) -> bool {
        match self {
            TriggerProgram::Function(program, _) => program.asks_callers(),
            TriggerProgram::Condition(_) => false,
        }
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Condition {
    fn call(&self, ctx: &mut ExecContext<'_, '_>, args: &[Datum], sink: &mut dyn RowSink) -> ExecResult<()> {
        if let Some(rights) = &self.rights {
            rights.check(ctx.functions.session)?;
        }
        let mut registers = vec![Datum::Null; self.registers as usize];
        for (place, value) in self.arguments.iter().zip(args) {
            if let (Place::Record { base, width, present }, Datum::Record(fields)) = (place, value) {
                if let Some(present) = present {
                    registers[*present as usize] = Datum::Bool(true);
                }
                for (index, field) in fields.iter().take(*width as usize).enumerate() {
                    registers[*base as usize + index] = field.clone();
                }
            }
        }
        let outer = std::mem::replace(&mut ctx.variables, registers);
        let value = (self.value)(ctx);
        ctx.variables = outer;
        let _ = sink.row(&[value?])?;
        Ok(())
    }
}
