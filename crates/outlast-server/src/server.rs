//! A server from its start to its end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use outlast_runtime::Host;
use tokio::net::TcpListener;

use crate::app::App;
use crate::catalog::Catalog;
use crate::config::ServerConfig;
use crate::jobs::{run_for_ever, withdraw};
use crate::listen::accept;
use crate::router::router;

/// Serves a host over HTTP.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
}

impl Server {
    /// A server of this host.
    pub fn new(host: Host, catalog: Arc<dyn Catalog>, config: ServerConfig) -> Server {
        Server { app: App::new(host, catalog, config) }
    }

    /// Serves until `end` is complete, and then hands over: takes no more requests, answers those that are waiting, gives
    /// back every claim, so that another process drives on at once, and cuts the streams, whose clients come back. Agents
    /// and their sandboxes are left alone.
    pub async fn serve(self, listener: TcpListener, end: impl Future<Output = ()>) {
        let app = self.app;
        let jobs = tokio::spawn(run_for_ever(Arc::clone(&app)));
        let taking = accept(listener, router(Arc::clone(&app)), Arc::clone(&app), app.ending.subscribe());
        let told = async {
            end.await;
            app.ending.send_replace(true);
        };
        let (connections, ()) = tokio::join!(taking, told);
        jobs.abort();
        let clock = Arc::clone(&app.host.ports().clock);
        tokio::join!(app.keepers.hand_over(), async {
            tokio::select! {
                biased;
                _ = async { tokio::join!(app.answered(), withdraw(&app.host)) } => {}
                () = clock.sleep(app.config.times.drain) => {}
            }
        });
        drop(connections);
    }

    /// Whether an address is reached by this machine only.
    pub fn is_private(address: &SocketAddr) -> bool {
        address.ip().is_loopback()
    }
}
