//! A host whose connections are in the hands of a test.

use outlast_store::conformance::Host;

use super::hosts::{Tried, host, settled};
use super::proxy::Proxy;
use super::schema::Schema;

pub struct Stage {
    pub schema: Schema,
    pub proxy: Proxy,
    /// A process whose connections go through the proxy.
    pub a: Host,
}

impl Stage {
    pub async fn new() -> Stage {
        let schema = Schema::new().await;
        let config: tokio_postgres::Config = schema.url.parse().expect("url");
        let tokio_postgres::config::Host::Tcp(name) = &config.get_hosts()[0] else {
            panic!("a server with a port is needed")
        };
        let server = format!("{name}:{}", config.get_ports().first().copied().unwrap_or(5432));
        let proxy = Proxy::to(&server).await;
        // What is encrypted cannot be looked into.
        let url = schema.url.replace(&server, &format!("127.0.0.1:{}", proxy.port()));
        let a = host(&format!("{url}&sslmode=disable"), "a").await;
        Stage { schema, proxy, a }
    }

    /// Does the same twice: the first time its answer is lost, the second time it is settled.
    pub async fn twice<T, E: Into<Tried>>(
        &self,
        commit: &str,
        mut work: impl AsyncFnMut(&Host) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.proxy.lost();
        self.proxy.lose_answer_to(commit);
        assert!(settled(work(&self.a).await).is_none(), "{commit}: the answer did not come");
        assert_eq!(self.proxy.lost(), before + 1, "{commit}: it was lost");
        work(&self.a).await
    }
}
