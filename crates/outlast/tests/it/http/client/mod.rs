//! As much of HTTP/1.1 as a client of these tests needs, over a socket, so that nothing is hidden: how a body ends, what
//! came when, what stands between events.

mod answer;
mod ask;
mod body;
mod stream;

pub use answer::{Answer, Connection};
pub use ask::{Ask, percent};
pub use body::End;
pub use stream::{Event, Item, Stream, lines};
