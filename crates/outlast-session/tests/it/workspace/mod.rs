//! Snapshots of workspaces.

mod collected;
mod excluded;
mod incremental;
mod properties;
mod refused;
mod restored;
mod roundtrip;
mod support;
mod trouble;
mod troubled;
