//! Connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::app::App;
use crate::until::until;

/// The most that is held for a connection whose client does not read, in bytes, besides the piece of a stream that is
/// being written. Also how much a request's head may take.
const BUFFER: usize = 64 * 1024;
/// How long to wait where the system has no more descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until the server is told to end. The connections go on until their set is dropped, which cuts them:
/// a stream that is cut is come back to, one that ends cleanly would look like the end of its run.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    app: Arc<App>,
    mut ending: watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = until(&mut ending, |ending| *ending) => return connections,
            Some(_) = connections.join_next() => {}
            taken = listener.accept() => match taken {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, router.clone(), app.config.times.request));
                }
                Err(error) => {
                    if !is_the_clients(&error) {
                        tracing::warn!(%error, "no connection can be taken at the moment");
                        app.host.ports().clock.sleep(PAUSE).await;
                    }
                }
            }
        }
    }
}

/// Whether the connection failed before it was taken, which says nothing about the next.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::ConnectionAborted | K::ConnectionRefused | K::ConnectionReset)
}

async fn serve(stream: TcpStream, router: Router, patience: Duration) {
    // Every event is written as soon as it is there; waiting for more to send would only delay it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "small packets may wait");
    }
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended");
    }
}
