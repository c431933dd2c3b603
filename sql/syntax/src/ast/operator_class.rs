//! CREATE, ALTER and DROP OPERATOR CLASS and OPERATOR FAMILY.

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

/// CREATE OPERATOR FAMILY.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOperatorFamily {
    pub name: QualifiedName,
    pub method: String,
}

/// ALTER OPERATOR FAMILY.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterOperatorFamily {
    pub name: QualifiedName,
    pub method: String,
    pub action: FamilyAction,
}

/// What ALTER OPERATOR FAMILY does.
#[derive(Clone, Debug, PartialEq)]
pub enum FamilyAction {
    Add(Vec<ClassItem>),
    Drop(Vec<FamilyMember>),
    Change(RenameAction),
}

/// What DROP takes out of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyMember {
    /// FUNCTION; OPERATOR otherwise.
    pub function: bool,
    pub number: i64,
    pub types: Vec<TypeName>,
}

/// DROP OPERATOR CLASS, DROP OPERATOR FAMILY.
#[derive(Clone, Debug, PartialEq)]
pub struct DropOperatorClass {
    pub name: QualifiedName,
    pub method: String,
    pub if_exists: bool,
    pub cascade: bool,
}
