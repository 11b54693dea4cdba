//! Which names and origins a server without a token answers to.

/// The host of an authority (`host`, `host:port`, `[v6]:port`), in lower case.
pub(super) fn host_of(authority: &str) -> String {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Whether the name always means this machine, whatever a name server says.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a server without a token may be addressed by this `Host`. A page of the web whose own name resolves to
/// loopback sends that name.
pub(super) fn may_be_addressed_as(authority: Option<&str>, hosts: &[String]) -> bool {
    let Some(authority) = authority else {
        return false;
    };
    let host = host_of(authority);
    is_loopback(&host) || hosts.iter().any(|name| host_of(name) == host)
}

/// Whether a request that changes something may come from a page of this origin. Browsers send it with every request
/// across origins; programs send none.
pub(super) fn may_come_from(
    origin: Option<&str>,
    authority: Option<&str>,
    hosts: &[String],
    origins: &[String],
) -> bool {
    let Some(origin) = origin else {
        return true;
    };
    if origins.iter().any(|allowed| allowed == origin || allowed == "*") {
        return true;
    }
    let Some((_, of)) = origin.split_once("://") else {
        // `null`: a sandboxed frame or a file.
        return false;
    };
    authority == Some(of) || may_be_addressed_as(Some(of), hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let hosts = ["agents.internal".to_owned()];
        for (authority, may) in [
            (Some("127.0.0.1:7411"), true),
            (Some("127.9.9.9"), true),
            (Some("localhost:7411"), true),
            (Some("LOCALHOST."), true),
            (Some("app.localhost:80"), true),
            (Some("[::1]:7411"), true),
            (Some("agents.internal:7411"), true),
            (Some("evil.example"), false),
            (Some("evil.example:7411"), false),
            (Some("127.0.0.1.evil.example"), false),
            (Some("localhost.evil.example"), false),
            (Some("10.0.0.1"), false),
            (Some("[fe80::1]"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(may_be_addressed_as(authority, &hosts), may, "{authority:?}");
        }
    }

    #[test]
    fn origins() {
        let allowed = ["https://app.example".to_owned()];
        for (origin, may) in [
            (None, true),
            (Some("http://localhost:5173"), true),
            (Some("http://127.0.0.1:7411"), true),
            (Some("https://app.example"), true),
            (Some("https://evil.example"), false),
            (Some("null"), false),
        ] {
            assert_eq!(may_come_from(origin, Some("127.0.0.1:7411"), &[], &allowed), may, "{origin:?}");
        }
    }
}
