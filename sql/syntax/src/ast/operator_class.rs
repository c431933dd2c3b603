//! CREATE, ALTER and DROP OPERATOR CLASS.

use super::{QualifiedName, RenameAction, RoutineSignature, TypeName};

/// CREATE OPERATOR CLASS.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOperatorClass {
    pub name: QualifiedName,
    pub default: bool,
    pub ty: TypeName,
    pub method: String,
    pub family: Option<QualifiedName>,
    pub items: Vec<ClassItem>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ClassItem {
    Operator {
        number: i64,
        name: QualifiedName,
        types: Vec<TypeName>,
    },
    /// `types` are those it is for, if not those of its arguments.
    Function {
        number: i64,
        types: Vec<TypeName>,
        function: RoutineSignature,
    },
    Storage(TypeName),
}

/// ALTER OPERATOR CLASS.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterOperatorClass {
    pub name: QualifiedName,
    pub method: String,
    pub action: RenameAction,
}

/// DROP OPERATOR CLASS.
#[derive(Clone, Debug, PartialEq)]
pub struct DropOperatorClass {
    pub name: QualifiedName,
    pub method: String,
    pub if_exists: bool,
    pub cascade: bool,
}
