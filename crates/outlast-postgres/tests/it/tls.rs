//! TLS, as `sslmode` asks for it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use outlast_postgres::PostgresStore;
use outlast_store::StoreError;
use tempfile::TempDir;

use crate::support::{Cluster, config, connect};

/// Runs `openssl` there.
fn openssl(dir: &TempDir, args: &[&str]) {
    let ran = Command::new("openssl").args(args).current_dir(dir.path()).stderr(Stdio::null()).status();
    assert!(ran.expect("this test needs openssl").success(), "openssl {args:?}");
}

/// A certificate that is its own authority, as PostgreSQL's documents make one, for this name.
fn self_signed(dir: &TempDir, name: &str) {
    let subject = format!("/CN={name}");
    let names = format!("subjectAltName=DNS:{name}");
    let key = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-keyout", "server.key"];
    openssl(dir, &[&key[..], &["-out", "server.crt", "-subj", &subject, "-addext", &names]].concat());
}

/// A certificate for `localhost`, and the authority that signed it.
fn signed(dir: &TempDir) {
    let authority = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-keyout", "ca.key"];
    openssl(dir, &[&authority[..], &["-out", "ca.crt", "-subj", "/CN=authority"]].concat());
    let request = ["req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr"];
    openssl(dir, &[&request[..], &["-subj", "/CN=localhost"]].concat());
    fs::write(dir.path().join("names"), "subjectAltName=DNS:localhost\n").expect("written");
    let sign = ["x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-days", "3650"];
    openssl(dir, &[&sign[..], &["-out", "server.crt", "-extfile", "names"]].concat());
}

fn serve(dir: &TempDir) -> Cluster {
    let cluster = Cluster::start();
    for name in ["server.crt", "server.key"] {
        cluster.write(name, &fs::read_to_string(dir.path().join(name)).expect("made"));
    }
    cluster.set("ssl = on");
    cluster.restart();
    cluster
}

fn url(cluster: &Cluster, host: &str, options: &str) -> String {
    format!("postgres://postgres@{host}:{}/postgres?{options}", cluster.port())
}

async fn open(cluster: &Cluster, host: &str, options: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(config(&url(cluster, host, options), "a")).await
}

/// Opens, and asserts whether its connections are encrypted.
async fn opens(cluster: &Cluster, host: &str, options: &str, encrypted: bool) {
    let store = open(cluster, host, &format!("{options}&application_name=asked")).await;
    let store = store.unwrap_or_else(|error| panic!("{options}: {error}"));
    let rows = connect(&cluster.url())
        .await
        .query(
            "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a ON a.pid = s.pid \
             WHERE a.application_name = 'asked'",
            &[],
        )
        .await
        .expect("answered");
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!(row.get::<_, bool>(0), encrypted, "{options}");
    }
    drop(store);
}

/// Refused for good, with all of these words.
async fn refused(cluster: &Cluster, host: &str, options: &str, words: &[&str]) {
    match open(cluster, host, options).await {
        Err(StoreError::Unusable { message }) => {
            for word in words {
                assert!(message.contains(word), "{options}: {word:?} in {message}");
            }
        }
        other => panic!("{options}: {other:?}"),
    }
}

fn path(dir: &TempDir, name: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    path.to_str().expect("utf-8").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_signs_itself() {
    let dir = TempDir::new().expect("directory");
    self_signed(&dir, "localhost");
    let cluster = serve(&dir);
    let named = format!("sslrootcert={}", path(&dir, "server.crt"));
    refused(&cluster, "localhost", "sslmode=require", &["certificate", "sslrootcert", "sslmode=prefer"])
        .await;
    for mode in ["require", "verify-ca", "verify-full"] {
        opens(&cluster, "localhost", &format!("sslmode={mode}&{named}"), true).await;
    }
    // Its own, but of another host.
    refused(&cluster, "127.0.0.1", &format!("sslmode=require&{named}"), &["not valid for name"]).await;
    opens(&cluster, "127.0.0.1", "sslmode=prefer", true).await;
    opens(&cluster, "127.0.0.1", "sslmode=disable", false).await;
    opens(&cluster, "127.0.0.1", "connect_timeout=5", true).await;

    // Another one that signs itself is not it.
    let other = TempDir::new().expect("directory");
    self_signed(&other, "localhost");
    let named = format!("sslmode=require&sslrootcert={}", path(&other, "server.crt"));
    refused(&cluster, "localhost", &named, &["certificate", "sslrootcert"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_an_authority_signed() {
    let dir = TempDir::new().expect("directory");
    signed(&dir);
    let cluster = serve(&dir);
    refused(&cluster, "localhost", "sslmode=require", &["certificate", "sslrootcert"]).await;
    let named = format!("sslrootcert={}", path(&dir, "ca.crt"));
    opens(&cluster, "localhost", &format!("sslmode=require&{named}"), true).await;
    refused(&cluster, "127.0.0.1", &format!("{named}&sslmode=verify-full"), &["not valid for name"]).await;
}
