//! The PostgreSQL store against a real PostgreSQL: the one that `OUTLAST_TEST_POSTGRES` names, else that of this machine.

mod conformance;
mod support;
mod versions;
