//! Where the database is, and how it is reached.

use std::time::Duration;

use outlast_store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::tls;

/// How long a connection may take to be made.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// What every connection is told, unless the URL's own `options` say otherwise. A host that is frozen in the middle of a
/// transaction must not hold a row's lock for long: the server ends what stands still, and the host's late commit fails.
///
/// Told by a statement and not as the connection begins, for poolers refuse what they do not know there.
const SETTINGS: &[(&str, &str)] = &[
    ("statement_timeout", "30s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "5s"),
    ("default_transaction_isolation", "read committed"),
];

/// A database as its URL names it.
#[derive(Clone)]
pub(crate) struct Target {
    /// For people: without user and password.
    pub(crate) name: String,
    pub(crate) config: Config,
    /// Statements with which every connection that reads or writes begins.
    pub(crate) settings: String,
    pub(crate) tls: MakeRustlsConnect,
}

impl Target {
    /// The same database, for a connection on which no statement waits for long for what others have locked.
    pub(crate) fn impatient(&self) -> Target {
        let mut target = self.clone();
        target.settings.push_str("; SET lock_timeout = '100ms'");
        target
    }

    /// Reads the URL.
    pub(crate) fn parse(url: &str) -> Result<Target, StoreError> {
        if url.matches('@').count() > 1 {
            // Part of what stands before the last one is a password.
            return Err(StoreError::Unusable {
                message:
                    "the store's URL has more than one @: write %40 for one in a user's name or a password"
                        .to_owned(),
            });
        }
        let (url, root_file) = ours(url);
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
            StoreError::Unusable {
                message: format!(
                    "the store's URL is not understood ({error}{cause}): write postgres://USER:PASSWORD@HOST:PORT/DATABASE"
                ),
            }
        })?;
        let own = config.get_options().unwrap_or_default();
        let settings: Vec<String> = SETTINGS
            .iter()
            .filter(|(name, _)| !own.contains(name))
            .map(|(name, value)| format!("SET {name} = '{value}'"))
            .collect();
        let settings = settings.join("; ");
        if config.get_application_name().is_none() {
            config.application_name("outlast");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        // A database that vanished without a word is noticed in seconds, not hours.
        config.keepalives_idle(Duration::from_secs(5));
        config.keepalives_interval(Duration::from_secs(2));
        config.keepalives_retries(3);
        config.tcp_user_timeout(Duration::from_secs(10));
        let tls = tls(config.get_ssl_mode(), root_file.as_deref())?;
        Ok(Target { name: name(&config), config, settings, tls })
    }
}

/// `PostgreSQL at HOST:PORT/DATABASE`.
fn name(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(n, host)| match host {
            Host::Tcp(host) => {
                format!("{host}:{}", ports.get(n).or_else(|| ports.first()).copied().unwrap_or(5432))
            }
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let database = config.get_dbname().or_else(|| config.get_user()).unwrap_or_default();
    format!("PostgreSQL at {}/{database}", hosts.join(","))
}

/// Takes out what libpq knows and the driver does not: `sslrootcert`, and the modes that verify.
fn ours(url: &str) -> (String, Option<String>) {
    let url =
        url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
    let Some(at) = url.find("sslrootcert=") else {
        return (url, None);
    };
    let rest = &url[at + "sslrootcert=".len()..];
    let end = rest.find(['&', ' ']).unwrap_or(rest.len());
    let file = rest[..end].replace("%2F", "/").replace("%2f", "/").replace("%20", " ");
    let before = url[..at].trim_end_matches(['&', '?', ' ']);
    let after = rest[end..].trim_start_matches(['&', ' ']);
    let between = match (url.contains("://"), after.is_empty(), before.contains('?')) {
        (_, true, _) => "",
        (true, false, false) => "?",
        (true, false, true) => "&",
        (false, false, _) => " ",
    };
    (format!("{before}{between}{after}"), Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_know() {
        for (url, expected, file) in [
            ("postgres://h/d", "postgres://h/d", None),
            ("postgres://h/d?sslmode=verify-full", "postgres://h/d?sslmode=require", None),
            ("postgres://h/d?sslrootcert=/a/b.pem", "postgres://h/d", Some("/a/b.pem")),
            (
                "postgres://h/d?sslrootcert=%2Fa&sslmode=verify-ca",
                "postgres://h/d?sslmode=require",
                Some("/a"),
            ),
            ("postgres://h/d?a=b&sslrootcert=/a&c=d", "postgres://h/d?a=b&c=d", Some("/a")),
            ("host=h sslrootcert=/a dbname=d", "host=h dbname=d", Some("/a")),
        ] {
            assert_eq!(ours(url), (expected.to_owned(), file.map(str::to_owned)), "{url}");
        }
    }

    #[test]
    fn what_the_url_sets_itself_is_left_alone() {
        let settings = |url: &str| Target::parse(url).expect("url").settings;
        let all = settings("postgres://h/d?options=-c%20search_path%3Da");
        assert_eq!(all.matches("SET ").count(), SETTINGS.len(), "{all}");
        let own = settings("postgres://h/d?options=-c%20statement_timeout%3D0%20-c%20lock_timeout%3D1s");
        assert!(!own.contains("statement_timeout") && !own.contains("lock_timeout"), "{own}");
        assert!(own.contains("idle_in_transaction_session_timeout"), "{own}");
    }

    #[test]
    fn a_url_that_is_none_is_refused_without_its_password() {
        let error = Target::parse("postgres://u:s3cret@h:port/d").err().expect("no port").to_string();
        assert!(error.contains("postgres://USER") && !error.contains("s3cret"), "{error}");
    }
}
