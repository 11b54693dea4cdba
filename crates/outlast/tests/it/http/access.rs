//! Who may ask.

use std::fs;

use serde_json::json;

use super::client::{Ask, Stream};
use super::site::{Server, Site, configure, input, serve_with};
use crate::support::{Bench, Finished, Proc};

const TOKEN: &str = "0123456789abcdef-tell-nobody";

#[track_caller]
fn refused_to_start(bench: &Bench, args: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = bench.command(["serve", "--json"].iter().chain(args));
    let refused: Finished = Proc::new(command.envs(env.iter().copied()).spawn().expect("spawn")).finish();
    assert_eq!((refused.code(), refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
    refused.failure().1
}

fn bench() -> Bench {
    let bench = Bench::new();
    configure(&bench, "1500ms", "", "");
    bench
}

fn bearing(ask: Ask, token: &str) -> Ask {
    ask.header("Authorization", format!("Bearer {token}"))
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let bench = bench();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let message = refused_to_start(&bench, &["--listen", address], &[]);
        for way in ["--token-file", "OUTLAST_TOKEN", "openssl rand"] {
            assert!(message.contains(way) && message.contains(address), "what to do: {message}");
        }
    }
    let file = bench.path().join("token");
    let file = file.to_str().expect("utf-8");
    let with = ["--listen", "127.0.0.1:0", "--token-file", file];
    for (text, says) in [
        ("", "16 characters"),
        ("short", "16 characters"),
        ("0123456789 abcdef", "visible ASCII"),
        ("0123456789abcdeé", "visible ASCII"),
    ] {
        fs::write(file, text).expect("token");
        let message = refused_to_start(&bench, &with, &[]);
        assert!(message.contains(says) && message.contains(file), "{message}");
        if !text.is_empty() {
            let message = refused_to_start(&bench, &["--listen", "127.0.0.1:0"], &[("OUTLAST_TOKEN", text)]);
            assert!(message.contains(says) && message.contains("OUTLAST_TOKEN"), "{message}");
            assert!(!message.contains(text), "a token is not repeated: {message}");
        }
    }
    fs::remove_file(file).expect("remove");
    let message = refused_to_start(&bench, &with, &[]);
    assert!(message.contains(file) && message.contains("No such file"), "{message}");
}

/// Everything that is asked must bear the token; health checks need not.
#[track_caller]
fn check_asks_for(server: &Server, token: &str) {
    let asks = || {
        [
            Ask::post("/api/chat", &input("r", "t", "echo no")),
            Ask::get("/api/chat?runId=r&offset=-1"),
            Ask::get("/api/chat?threadId=t"),
            Ask::get("/api/chat/active?threadId=t"),
            Ask::post("/api/chat/cancel", &json!({"threadId": "t"})),
            Ask::get("/v1/runs"),
            Ask::get("/v1/runs/r"),
            Ask::get("/v1/runs/r/events"),
            Ask::new("POST", "/v1/runs/r/cancel"),
            Ask::get("/v1/threads/t/events"),
            Ask::get("/v1/openapi.json"),
            Ask::get("/nothing"),
            Ask::new("DELETE", "/v1/runs"),
            Ask::get("//health"),
            Ask::get("/health/"),
        ]
    };
    let longer = format!("{token}x");
    let wrong = [
        None,
        Some(String::new()),
        Some(token.to_owned()),
        Some(format!("Basic {token}")),
        Some("Bearer ".to_owned()),
        Some(format!("Bearer {}", &token[..token.len() - 1])),
        Some(format!("Bearer {longer}")),
        Some(format!("Bearer {}", token.to_uppercase())),
    ];
    for wrong in wrong {
        for mut ask in asks() {
            if let Some(wrong) = &wrong {
                ask = ask.header("Authorization", wrong);
            }
            let answer = server.ask(&ask);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{ask:?}");
            let (code, message) = answer.refused(401);
            assert_eq!(code, "unauthorized", "{ask:?}");
            assert!(!message.contains(token), "{message}");
        }
    }
    for open in ["/health", "/ready"] {
        assert_eq!(server.get(open).status, 200, "{open}");
    }
    let runs = bearing(Ask::get("/v1/runs"), token);
    assert_eq!(server.ask(&runs).ok()["runs"], json!([]), "nothing was started");
    let by_name = runs.header("Host", "agents.example");
    assert_eq!(server.ask(&by_name).status, 200, "who bears the token may use any name");
}

#[test]
fn a_token_of_a_file_of_the_environment_or_of_the_configuration() {
    let bench = bench();
    let file = bench.path().join("token");
    fs::write(&file, format!("  {TOKEN}\n\n")).expect("token");
    let file = file.to_str().expect("utf-8");
    check_asks_for(&serve_with(&bench, &["--token-file", file], &[]), TOKEN);
    let other = "another-token-of-the-environment";
    check_asks_for(&serve_with(&bench, &[], &[("OUTLAST_TOKEN", other)]), other);
    check_asks_for(&serve_with(&bench, &["--token-file", file], &[("OUTLAST_TOKEN", other)]), TOKEN);
    configure(&bench, "1500ms", &format!("token_file = {file:?}"), "");
    check_asks_for(&serve_with(&bench, &[], &[]), TOKEN);
    check_asks_for(&serve_with(&bench, &[], &[("OUTLAST_TOKEN", other)]), other);
}

#[test]
fn a_token_is_told_to_nobody() {
    let bench = bench();
    let file = bench.path().join("token");
    fs::write(&file, TOKEN).expect("token");
    let file = file.to_str().expect("utf-8");
    for (args, env) in [
        (["--token-file", file].as_slice(), vec![("OUTLAST_LOG", "trace")]),
        (&[], vec![("OUTLAST_LOG", "trace"), ("OUTLAST_TOKEN", TOKEN)]),
    ] {
        let server = serve_with(&bench, args, &env);
        let run = format!("r{}", args.len());
        let ask = |ask: Ask| server.ask(&bearing(ask, TOKEN));
        let script = "env; cat \"/proc/$PPID/cmdline\"; exit 1";
        let mut stream = Stream::of(ask(Ask::post("/api/chat", &input(&run, &run, script))));
        stream.rest();
        assert!(stream.events().len() > 5, "the agent's environment: {:?}", stream.events());
        let mut said: Vec<String> = stream.events().into_iter().map(|event| event.json).collect();
        for target in [format!("/v1/runs/{run}"), "/v1/openapi.json".to_owned(), "/nothing".to_owned()] {
            said.push(ask(Ask::get(&target)).text());
        }
        said.push(server.get("/v1/runs").text());
        let mut proc = server.proc;
        proc.signal(rustix::process::Signal::TERM);
        crate::support::eventually("it has ended", || proc.has_ended().then_some(()));
        let ended = proc.finish();
        assert!(ended.stderr.contains("launched"), "its log: {}", ended.stderr);
        said.extend([ended.stdout, ended.stderr, bench.outlast(["show", "--json", &run]).stdout]);
        assert!(said.iter().all(|text| !text.contains(TOKEN)));
    }
    let stored = fs::read(bench.data_dir().join("outlast.db")).expect("database");
    assert!(!String::from_utf8_lossy(&stored).contains(TOKEN));
}

#[test]
fn without_a_token_only_names_of_loopback_are_answered_to() {
    let site = Site::with("hosts = [\"agents.internal\"]", "");
    let port = site.address.port();
    let ask = |host: &str| site.ask(&Ask::get("/v1/runs").header("Host", host));
    for host in [
        &format!("127.0.0.1:{port}"),
        &format!("localhost:{port}"),
        "localhost",
        "LocalHost.",
        "[::1]:80",
        "app.localhost",
        "agents.internal:8080",
    ] {
        assert_eq!(ask(host).status, 200, "{host}");
    }
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "x.agents.internal",
        "10.0.0.1",
        "",
    ] {
        let (code, message) = ask(host).refused(403);
        assert_eq!(code, "forbidden", "{host}");
        assert!(message.contains("[serve] hosts"), "what to do: {message}");
        let post = Ask::post("/api/chat", &input("r", "t", "echo no")).header("Host", host);
        assert_eq!(site.ask(&post).refused(403).0, "forbidden", "{host}");
    }
    // The name that the target itself holds is the one that counts.
    let absolute = Ask::get("http://evil.example/v1/runs").header("Host", "localhost");
    assert_eq!(site.ask(&absolute).refused(403).0, "forbidden");
    assert_eq!(
        site.ask(&Ask::get("/health").header("Host", "evil.example")).status,
        200,
        "health checks may"
    );
    assert_eq!(site.get("/v1/runs").ok()["runs"], json!([]), "nothing was started");
}

#[test]
fn pages_of_other_origins_start_and_stop_nothing() {
    let site = Site::new();
    let own = format!("http://{}", site.address);
    let stop = |origin: &str| {
        site.ask(&Ask::post("/api/chat/cancel", &json!({"threadId": "t"})).header("Origin", origin)).status
    };
    for origin in [own.as_str(), "http://localhost:5173", "http://127.0.0.1:3000"] {
        assert_eq!(stop(origin), 204, "{origin}");
    }
    for origin in
        ["https://evil.example", "null", "http://localhost.evil.example", "https://evil.example:7411"]
    {
        for ask in [
            Ask::post("/api/chat", &input("r", "t", "echo no")),
            // What a browser sends without asking for permission first.
            Ask::new("POST", "/api/chat").header("Content-Type", "text/plain").body("{}"),
            Ask::post("/api/chat/cancel", &json!({"threadId": "t"})),
            Ask::new("POST", "/v1/runs/r/cancel"),
        ] {
            let answer = site.ask(&ask.header("Origin", origin));
            assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
            let (code, message) = answer.refused(403);
            assert_eq!(code, "forbidden", "{origin}");
            assert!(message.contains("cors_origins"), "what to do: {message}");
        }
    }
    assert_eq!(site.get("/v1/runs").ok()["runs"], json!([]));
}

#[test]
fn cors_is_off_unless_it_is_configured() {
    let preflight = |origin: &str| {
        Ask::new("OPTIONS", "/api/chat")
            .header("Origin", origin)
            .header("Access-Control-Request-Method", "POST")
            .header("Access-Control-Request-Headers", "content-type,x-run-id,last-event-id,authorization")
    };
    let app = "https://app.example";
    let off = Site::new();
    let refused = off.ask(&preflight("http://localhost:5173"));
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (405, None));
    let read = off.ask(&Ask::get("/v1/runs").header("Origin", "http://localhost:5173"));
    assert_eq!((read.status, read.header("access-control-allow-origin")), (200, None));

    let bench = bench();
    configure(&bench, "1500ms", &format!("cors_origins = [{app:?}]"), "");
    let server = serve_with(&bench, &[], &[("OUTLAST_TOKEN", TOKEN)]);
    let allowed = server.ask(&preflight(app));
    assert_eq!(allowed.status, 200, "without the token, which browsers do not send with it");
    assert_eq!(allowed.header("access-control-allow-origin"), Some(app));
    let header = |name: &str| allowed.header(name).unwrap_or_default().to_lowercase();
    for method in ["get", "post"] {
        assert!(header("access-control-allow-methods").contains(method));
    }
    for name in ["content-type", "authorization", "x-run-id", "last-event-id", "accept"] {
        assert!(header("access-control-allow-headers").contains(name), "{name}");
    }
    let other = server.ask(&preflight("https://evil.example"));
    assert_eq!(other.header("access-control-allow-origin"), None);
    let post = bearing(Ask::post("/api/chat", &input("r", "t", "echo hi")), TOKEN).header("Origin", app);
    let streamed = server.ask(&post);
    assert_eq!(streamed.header("access-control-allow-origin"), Some(app));
    assert_eq!(streamed.header("access-control-expose-headers"), Some("retry-after"));
    Stream::of(streamed).whole();
    let unauthorized = server.ask(&Ask::get("/v1/runs").header("Origin", app));
    assert_eq!((unauthorized.status, unauthorized.header("access-control-allow-origin")), (401, Some(app)));

    let any = Site::with("cors_origins = [\"*\"]", "");
    let post = Ask::post("/api/chat", &input("r", "t", "echo hi")).header("Origin", "https://any.example");
    let answer = any.ask(&post);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    Stream::of(answer).whole();
}
