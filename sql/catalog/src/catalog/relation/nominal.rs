//! What a table's definition says without any effect here, kept whole for those who ask and for dumps:
//! what tells replicas which row has changed, and indexes by methods that serve no query.

use serde::{Deserialize, Serialize};

use crate::catalog::Index;
use crate::types::Oid;

/// See the module's head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nominal {
    #[serde(default)]
    pub replica_identity: ReplicaIdentity,
    #[serde(default)]
    pub indexes: Vec<NominalIndex>,
}

/// ALTER TABLE … REPLICA IDENTITY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaIdentity {
    #[default]
    Default,
    Nothing,
    Full,
    Index(Oid),
}

impl ReplicaIdentity {
    /// pg_class.relreplident.
    pub fn letter(self) -> &'static str {
        match self {
            ReplicaIdentity::Default => "d",
            ReplicaIdentity::Nothing => "n",
            ReplicaIdentity::Full => "f",
            ReplicaIdentity::Index(_) => "i",
        }
    }
}

/// An index USING gin, gist, spgist or brin. It has no entries, and no tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NominalIndex {
    pub index: Index,
    pub method: String,
    /// The operator classes of its parts, where they are not the types' own.
    pub classes: Vec<Option<String>>,
    /// Storage parameters, as written.
    pub options: Vec<(String, String)>,
}

/// PostgreSQL's operator classes of such a method over the types there are: name, input type, and whether
/// it is that type's own.
pub fn operator_classes(method: &str) -> impl Iterator<Item = (&'static str, Oid, bool)> {
    let lines = include_str!("../../../../data/nominal_opclass.tsv").lines();
    lines.filter_map(move |line: &'static str| {
        let mut fields = line.split('\t');
        let (of, name, input, default) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        (of == method).then(|| (name, Oid(input.parse().unwrap_or(0)), default == "t"))
    })
}
