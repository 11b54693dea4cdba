//! Ledgers, off-loaded bodies and what becomes of them.

mod activity;
mod bodies;
mod collected;
mod deleted;
mod kept_up;
mod looked_up;
mod storage;
mod told;
mod transferred;
mod trouble;
mod world;
