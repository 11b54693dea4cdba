//! Streams: a run's log as bytes of a response.

mod batch;
mod body;
mod feed;
mod follow;
mod form;
mod state;

pub(crate) use body::stream_response;
pub(crate) use feed::Feeds;
pub(crate) use follow::{Follow, Viewing};
pub(crate) use form::{Form, named as named_event};
pub(crate) use state::RunState;
