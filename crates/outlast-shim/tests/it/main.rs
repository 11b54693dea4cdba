//! The shim as a program: what it does to a runs directory and to processes, in every fence that the machine grants.

mod bench;
mod disk;
mod ends;
mod kill;
mod launch;
mod output;
