//! The environment that agents get.

use std::collections::BTreeMap;

/// The variables of this process, as they were when it started.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

/// Variables that every agent gets, where they are set: where programs and homes are, languages, certificates,
/// proxies. Nothing that may hold a key.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];

/// Where a host's environment names no `PATH`.
const FALLBACK_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Environment {
    /// The process's own. Variables that are not UTF-8 are left out.
    pub fn of_process() -> Self {
        let text = |value: std::ffi::OsString| value.into_string().ok();
        Environment(std::env::vars_os().filter_map(|(k, v)| Some((text(k)?, text(v)?))).collect())
    }

    /// Exactly these.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Environment(variables.into_iter().collect())
    }

    /// One variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The first of these names that is not set.
    pub fn missing<'a>(&self, names: &'a [String]) -> Option<&'a str> {
        names.iter().map(String::as_str).find(|name| !self.0.contains_key(*name))
    }

    /// The agent's whole environment, from weak to strong: what every agent gets, what its kind sets, what its
    /// definition sets, what it needs by name, what names its run.
    pub(crate) fn for_agent(
        &self,
        kind: &[(String, String)],
        definition: &BTreeMap<String, String>,
        needed: &[String],
        run: &[(&str, &str)],
    ) -> Vec<(String, String)> {
        let mut all = BTreeMap::new();
        all.insert("PATH".to_owned(), FALLBACK_PATH.to_owned());
        for (name, value) in &self.0 {
            if ALLOWED.contains(&name.as_str()) || name.starts_with("LC_") {
                all.insert(name.clone(), value.clone());
            }
        }
        all.extend(kind.iter().cloned());
        all.extend(definition.iter().map(|(name, value)| (name.clone(), value.clone())));
        for name in needed {
            if let Some(value) = self.0.get(name) {
                all.insert(name.clone(), value.clone());
            }
        }
        all.extend(run.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        all.into_iter().collect()
    }
}

impl std::fmt::Debug for Environment {
    /// Names only: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn only_what_is_allowed_or_named() {
        let host = Environment::of([
            pair("PATH", "/bin"),
            pair("LC_ALL", "C"),
            pair("SECRET", "s"),
            pair("KEY", "k"),
            pair("IS_SANDBOX", "yes"),
        ]);
        let definition = BTreeMap::from([pair("MODE", "definition"), pair("PATH", "/opt/bin")]);
        let got = host.for_agent(
            &[pair("MODE", "kind"), pair("IS_SANDBOX", "1")],
            &definition,
            &["KEY".into()],
            &[("R", "r")],
        );
        let expected = [
            ("IS_SANDBOX", "1"),
            ("KEY", "k"),
            ("LC_ALL", "C"),
            ("MODE", "definition"),
            ("PATH", "/opt/bin"),
            ("R", "r"),
        ];
        assert_eq!(got, expected.map(|(n, v)| pair(n, v)));
        assert_eq!(host.missing(&["KEY".into(), "NOPE".into()]), Some("NOPE"));
        assert!(!format!("{host:?}").contains("yes"));
    }
}
