//! `/api/chat`: what the clients of the browser's side call.

mod active;
mod cancel;
mod get;
mod hydrate;
mod input;
mod join;
mod merge;
mod post;
mod ui;

pub(crate) use active::{__path_active, active};
pub(crate) use cancel::{__path_cancel, cancel};
pub(crate) use get::{__path_get, get};
pub(crate) use join::place;
pub(crate) use post::{__path_post, post};
