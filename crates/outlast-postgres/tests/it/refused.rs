//! Databases that cannot be opened say why, and never the password.

use std::time::Duration;

use outlast_postgres::PostgresStore;
use outlast_store::StoreError;

use crate::support::{Cluster, config, connect, within};

const PASSWORD: &str = "s3cr3t";

async fn error(url: &str) -> StoreError {
    let opened = within(Duration::from_secs(15), url, PostgresStore::open(config(url, "a"))).await;
    let error = opened.expect_err("it cannot be opened");
    let said = format!("{error} {error:?} {:?}", config(url, "a"));
    assert!(!said.contains(PASSWORD), "{said}");
    error
}

/// Refused for good: somebody has to do something.
async fn unusable(url: &str, words: &[&str]) {
    let error = error(url).await;
    assert!(!error.is_transient(), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{url}: {word:?} in {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_server() {
    let cluster = Cluster::start();
    cluster.write(
        "pg_hba.conf",
        "host all known 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\n",
    );
    cluster.restart();
    let admin = connect(&cluster.url()).await;
    admin.batch_execute(&format!("CREATE ROLE known LOGIN PASSWORD '{PASSWORD}'")).await.expect("role");
    admin.batch_execute("CREATE DATABASE known OWNER known").await.expect("database");
    let at = format!("127.0.0.1:{}", cluster.port());
    let here = format!("PostgreSQL at {at}/known refuses");
    unusable(&format!("postgres://known:{PASSWORD}x@{at}/known"), &[&here, "password authentication failed"])
        .await;
    unusable(&format!("postgres://known@{at}/known"), &[&here, "password missing"]).await;
    unusable(&format!("postgres://other:{PASSWORD}@{at}/known"), &[&here, "pg_hba.conf"]).await;
    unusable(&format!("postgres://known:{PASSWORD}@{at}/none"), &["database \"none\" does not exist"]).await;
    unusable(&format!("postgres://known:{PASSWORD}@{at}/known?sslmode=require"), &["does not support TLS"])
        .await;
    PostgresStore::open(config(&format!("postgres://known:{PASSWORD}@{at}/known"), "a"))
        .await
        .expect("opened");
}

#[tokio::test(flavor = "multi_thread")]
async fn by_nobody() {
    for (host, says) in [("127.0.0.1:1", "refused"), ("no.such.host.invalid:5432", "lookup")] {
        let error = error(&format!("postgres://u:{PASSWORD}@{host}/d")).await;
        assert!(error.is_transient(), "it may come: {error}");
        let said = error.to_string();
        assert!(said.contains(&format!("PostgreSQL at {host}/d")) && said.contains(says), "{said}");
    }
    // A host that takes the connection and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let error = error(&format!("postgres://u:{PASSWORD}@{}/d", silent.local_addr().expect("address"))).await;
    assert!(error.is_transient() && error.to_string().contains("5 seconds"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn as_no_url() {
    for (url, says) in [
        (format!("postgres://u:{PASSWORD}@h:port/d"), "port"),
        (format!("postgres://u:{PASSWORD}@h/d?sslmode=maybe"), "sslmode"),
        (format!("postgres://u:{PASSWORD}@h/d?nonsense=1"), "nonsense"),
        (format!("postgres://u:p@{PASSWORD}@h/d"), "%40"),
        (format!("postgres://u:{PASSWORD}@h/d?sslmode=require&sslrootcert=/none"), "/none"),
        (String::new(), "host"),
    ] {
        unusable(&url, &[says]).await;
    }
}
