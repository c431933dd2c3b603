//! Productions of statements, by what they are about.
//!
//! - [`table`]       CREATE and ALTER TABLE; [`table_as`] tables made from queries, views; [`partition`]
//!   PARTITION BY, PARTITION OF, ATTACH and DETACH PARTITION; [`alter_column`] ALTER COLUMN,
//!   [`constraint_timing`] ALTER CONSTRAINT
//! - [`index`]       CREATE INDEX, sequences; [`trigger`] triggers
//! - [`user_type`]   CREATE and ALTER TYPE; [`domain`] domains
//! - [`routine`]     functions and procedures, CALL, DO; [`aggregate`] CREATE AGGREGATE; [`operator_class`]
//!   operator classes and families; [`extension`] extensions
//! - [`definition`]  CREATE and ALTER by what follows, schemas, DROP, TRUNCATE, COMMENT
//! - [`role`]        roles, GRANT and REVOKE; [`policy`] policies; [`database`] databases
//! - [`large_object`] GRANT, ALTER and COMMENT on large objects
//! - [`session`]     SET, SHOW, PREPARE, cursors, EXPLAIN, maintenance; [`transaction`] BEGIN … ROLLBACK
//! - [`copy`]        COPY

mod aggregate;
mod alter_column;
mod constraint_timing;
mod copy;
mod database;
mod definition;
mod domain;
mod extension;
mod index;
mod large_object;
mod operator_class;
pub(super) mod partition;
mod policy;
mod role;
mod routine;
mod session;
mod table;
mod table_as;
mod transaction;
mod trigger;
mod user_type;
