//! What an agent is given: its thread, its workspace, its prompt, its environment; and what it is not given.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::{Bench, Finished, Proc, eventually, parse_stream};

/// Every variable that an agent may get although neither its definition nor its run names it.
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

/// A definition of agents that are shell scripts.
fn agents(scripts: &[(&str, &str, &str)]) -> String {
    let table = |(name, script, more): &(&str, &str, &str)| {
        let argv = serde_json::json!(["sh", "-c", script]);
        format!("[agents.{name}]\nkind = \"command\"\nargv = {argv}\n{more}\n")
    };
    scripts.iter().map(table).collect()
}

/// What a run's agent said.
#[track_caller]
fn said(finished: Finished) -> String {
    Bench::text(&parse_stream(&finished.ok()))
}

#[test]
fn a_thread_keeps_its_workspace_and_its_messages() {
    let script = "cat notes 2>/dev/null; echo \"$OUTLAST_RUN_ID: $(cat)\" >> notes; \
                  echo \"$OUTLAST_THREAD_ID $(pwd) $OUTLAST_WORKSPACE\"";
    let bench = Bench::with_config(&agents(&[("a", script, "")]));
    let run = |run: &str, thread: &str, prompt: &str| {
        said(bench.outlast(["run", "--json", "--agent", "a", "--run-id", run, "--thread", thread, prompt]))
    };
    let place = |last: &str| -> [String; 3] {
        let words: Vec<String> = last.split_whitespace().map(str::to_owned).collect();
        words.try_into().expect("thread, directory, workspace")
    };
    let first = run("r1", "t", "one");
    let second = run("r2", "t", "two");
    let other = run("r3", "u", "three");
    let third = run("r4", "t", "four");

    let [thread, directory, workspace] = place(&first);
    assert_eq!(thread, "t");
    assert_eq!(directory, workspace, "it works in its workspace");
    assert!(Path::new(&workspace).starts_with(bench.data_dir()), "{workspace}");
    assert_eq!(second, format!("r1: one\n{first}"), "what the run before has left is there");
    assert_eq!(third, format!("r1: one\nr2: two\n{first}"));
    let [thread, elsewhere, _] = place(&other);
    assert_eq!(thread, "u");
    assert_ne!(elsewhere, workspace, "another thread works elsewhere");
    assert!(!other.contains("one"), "{other}");

    assert_eq!(bench.record("r1")["instanceId"], bench.record("r4")["instanceId"]);
    assert_ne!(bench.record("r1")["instanceId"], bench.record("r3")["instanceId"]);
    let texts: Vec<String> =
        bench.messages("r2").into_iter().map(|message| message.content.unwrap_or_default()).collect();
    assert_eq!(texts, ["two".to_owned(), second], "a run's transcript is its own turn");
}

#[test]
fn a_lent_workspace_is_the_working_directory() {
    let bench = Bench::with_config(&agents(&[
        ("a", "pwd; echo $OUTLAST_WORKSPACE", ""),
        ("b", "pwd", "cwd = \"sub\""),
    ]));
    let real = fs::canonicalize(bench.workspace()).expect("path");
    let lent = real.to_str().expect("utf-8");
    fs::create_dir(real.join("sub")).expect("mkdir");
    assert_eq!(
        said(bench.outlast(["run", "--json", "--agent", "a", "--workspace", "work"])),
        format!("{lent}\n{lent}\n")
    );
    assert_eq!(
        said(bench.outlast(["run", "--json", "--agent", "b", "--workspace", lent])),
        format!("{lent}/sub\n")
    );
    let plain = bench.outlast(["run", "--json", "--workspace", lent, "--", "pwd"]);
    assert_eq!(said(plain), format!("{lent}\n"));
}

/// Runs the program with this as its standard input.
fn with_input(bench: &Bench, args: &[&str], input: &[u8]) -> Finished {
    let mut command = bench.command(args);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("spawn");
    child.stdin.take().expect("stdin").write_all(input).expect("write");
    Proc::new(child).finish()
}

#[test]
fn the_prompt_is_standard_input_and_a_file() {
    let script = "cat; printf '|'; cat \"$OUTLAST_PROMPT_FILE\"; printf '|%s' \"$*\"";
    let bench = Bench::with_config(&agents(&[("both", script, ""), ("quiet", script, "stdin = \"none\"")]));
    for prompt in
        ["hello", "a\n'b' \"c\" $(touch pwned) `d` \\ é 🦀\n\n", " ", "a=b", "{\"type\":\"NONE\"} \r\n"]
    {
        let both = bench.outlast(["run", "--json", "--agent", "both", prompt]);
        assert_eq!(said(both), format!("{prompt}|{prompt}|"), "{prompt:?}");
        let quiet = bench.outlast(["run", "--json", "--agent", "quiet", prompt]);
        assert_eq!(said(quiet), format!("|{prompt}|"), "{prompt:?}");
    }
    let large = "0123456789abcde\n".repeat(40_000);
    let args = ["run", "--json", "--agent", "both", "--run-id", "large", "-"];
    assert_eq!(said(with_input(&bench, &args, large.as_bytes())), format!("{large}|{large}|"));
    let messages = bench.messages("large");
    assert_eq!(messages[0].content.as_deref(), Some(large.as_str()));
    let dashes = with_input(&bench, &["run", "--json", "--agent", "both", "-"], b"--help");
    assert_eq!(said(dashes), "--help|--help|");
    let no_text = with_input(&bench, &["run", "--json", "--agent", "both", "-"], b"\xff");
    assert_eq!(no_text.code(), 2, "{}", no_text.stderr);
    assert!(no_text.stderr.contains("UTF-8"), "{}", no_text.stderr);
    assert!(!bench.path().join("pwned").exists());
}

#[test]
fn no_prompt_is_an_empty_input_and_no_file() {
    let script = "cat; echo \"${OUTLAST_PROMPT_FILE-unset}\"";
    let bench = Bench::with_config(&agents(&[("a", script, "")]));
    assert_eq!(said(bench.outlast(["run", "--json", "--agent", "a"])), "unset\n");
    let empty = said(with_input(&bench, &["run", "--json", "--agent", "a", "-"], b""));
    assert!(empty.ends_with('\n') && empty.lines().count() == 1, "{empty}");
    // Whoever starts it may have a standard input of its own; the agent does not get it.
    assert_eq!(
        said(with_input(&bench, &["run", "--json", "--", "sh", "-c", script], b"not yours")),
        "unset\n"
    );
}

/// All living processes' arguments, this test's own left out.
fn arguments_of_all() -> Vec<(i32, Vec<u8>)> {
    let own = i32::try_from(std::process::id()).expect("pid");
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid: i32| Some((pid, fs::read(format!("/proc/{pid}/cmdline")).ok()?)))
        .collect()
}

fn contains(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[test]
fn the_prompt_is_never_an_argument() {
    let bench =
        Bench::with_config(&agents(&[("a", "cat; echo; while [ -e ../prompts ]; do sleep 0.05; done", "")]));
    let prompt = format!("prompt-of-{}", std::process::id());
    let args = ["run", "-d", "--run-id", "r", "--agent", "a", "-"];
    with_input(&bench, &args, prompt.as_bytes()).ok();
    let mut viewer = bench.spawn(["attach", "--json", "r"]);
    viewer.wait_for(&prompt);
    let found: Vec<_> =
        arguments_of_all().into_iter().filter(|(_, arguments)| contains(arguments, &prompt)).collect();
    assert_eq!(found, [], "while the agent works");
    bench.outlast(["cancel", "r"]).ok();
    assert_eq!(viewer.finish().code(), 143);
}

/// The environment that the agent of a run was given, as it printed it.
fn environment(finished: Finished) -> BTreeMap<String, String> {
    let text = said(finished);
    let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.lines().filter_map(pair).collect()
}

#[test]
fn the_environment_is_an_allow_list() {
    let bench = Bench::with_config(
        "[agents.a]\nkind = \"command\"\nargv = [\"env\"]\nenv = { MODE = \"fast\", LANG = \"xx\" }\n\
         pass_env = [\"PASSED\"]\n",
    );
    let mut command =
        bench.command(["run", "--json", "--run-id", "r", "--thread", "t", "--agent", "a", "hello"]);
    let secrets = [
        ("AWS_SECRET_ACCESS_KEY", "s1"),
        ("GITHUB_TOKEN", "s2"),
        ("ANTHROPIC_API_KEY", "s3"),
        ("SSH_AUTH_SOCK", "/s4"),
        ("LD_LIBRARY_PATH", "/s5"),
        ("PASSED_TOO", "s6"),
        ("OUTLAST_SECRET", "s7"),
        ("RUST_LOG", "s8"),
    ];
    command.envs(secrets).env("PASSED", "value of it").env("LC_MESSAGES", "C").env("LANG", "C");
    let got = environment(Proc::new(command.spawn().expect("spawn")).finish());
    let own =
        ["OUTLAST_RUN_ID", "OUTLAST_THREAD_ID", "OUTLAST_WORKSPACE", "OUTLAST_PROMPT_FILE", "MODE", "PASSED"];
    for name in got.keys() {
        assert!(
            ALLOWED.contains(&name.as_str()) || name.starts_with("LC_") || own.contains(&name.as_str()),
            "{name}"
        );
    }
    assert_eq!(got["OUTLAST_RUN_ID"], "r");
    assert_eq!(got["OUTLAST_THREAD_ID"], "t");
    assert!(Path::new(&got["OUTLAST_WORKSPACE"]).is_dir());
    assert_eq!(fs::read_to_string(&got["OUTLAST_PROMPT_FILE"]).expect("prompt"), "hello");
    assert_eq!((got["MODE"].as_str(), got["PASSED"].as_str()), ("fast", "value of it"));
    assert_eq!(
        (got["LANG"].as_str(), got["LC_MESSAGES"].as_str()),
        ("xx", "C"),
        "the definition is stronger"
    );
    assert_eq!(got["PATH"], std::env::var("PATH").expect("PATH"));
    assert_eq!(got.get("HOME"), std::env::var("HOME").ok().as_ref());

    // The same for a command that is no configured agent.
    let mut command = bench.command(["run", "--json", "--", "env"]);
    command.envs(secrets).env("PASSED", "value of it");
    let got = environment(Proc::new(command.spawn().expect("spawn")).finish());
    for (name, _) in secrets.iter().chain(&[("PASSED", ""), ("MODE", ""), ("OUTLAST_PROMPT_FILE", "")]) {
        assert!(!got.contains_key(*name), "{name}");
    }
}

#[test]
fn a_missing_variable_at_run() {
    let bench = Bench::with_config(&agents(&[("a", "true", "pass_env = [\"NEEDED_KEY\"]")]));
    for args in [["run", "--json", "--agent", "a"].as_slice(), &["run", "-d", "--json", "--agent", "a"]] {
        let refused = bench.outlast(args);
        assert_eq!(refused.code(), 125, "{}", refused.stderr);
        check_env_missing(&refused);
    }
    assert_eq!(bench.outlast(["ps", "-a", "--json"]).ok(), "[]\n", "nothing was recorded");
    // Set and empty is set.
    let mut command = bench.command(["run", "--json", "--agent", "a"]);
    command.env("NEEDED_KEY", "");
    Proc::new(command.spawn().expect("spawn")).finish().ok();
}

#[track_caller]
fn check_env_missing(refused: &Finished) {
    let (code, message) = refused.failure();
    assert_eq!(code, "launch_env_missing");
    assert!(message.contains("NEEDED_KEY"), "{message}");
}

/// Every file below the directory in which the text occurs.
fn files_with(dir: &Path, needle: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut rest = vec![dir.to_owned()];
    while let Some(next) = rest.pop() {
        for entry in fs::read_dir(&next).expect("read").flatten() {
            let path = entry.path();
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => rest.push(path),
                Ok(metadata)
                    if metadata.is_file() && fs::read(&path).is_ok_and(|bytes| contains(&bytes, needle)) =>
                {
                    found.push(path);
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn a_secret_is_given_to_the_agent_and_written_nowhere() {
    let script =
        "printf %s \"$NEEDED_KEY\" | sha256sum; while [ -e ../runs ] && [ ! -e stop ]; do sleep 0.05; done";
    let bench = Bench::with_config(&agents(&[("a", script, "pass_env = [\"NEEDED_KEY\"]")]));
    // Nowhere in this source as it is searched for.
    let secret = format!("sk-{}-{}", "very".repeat(3), std::process::id());
    let with_secret = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("NEEDED_KEY", &secret);
        Proc::new(command.spawn().expect("spawn"))
    };
    let mut command = bench.command(["run", "-d", "--json", "--run-id", "r", "--agent", "a", "hello"]);
    command.env("NEEDED_KEY", &secret).env("OUTLAST_FAILPOINT", "launch.before=kill");
    assert_eq!(Proc::new(command.spawn().expect("spawn")).finish().code(), 137);

    // From a shell without the variable it cannot be launched; from one with it, it can, and at once.
    for _ in 0..2 {
        let without = bench.outlast(["attach", "--json", "r"]);
        assert_eq!(without.code(), 125, "{}", without.stderr);
        check_env_missing(&without);
        let record = bench.record("r");
        assert_eq!(record["status"], "running", "{record}");
        assert_eq!(record["driver"], Value::Null, "the claim was given back: {record}");
        assert_eq!(record["probe"]["state"], "notLaunched", "{record}");
        assert!(record["detachedSince"].is_u64(), "{record}");
    }
    let mut attached = with_secret(&["attach", "--json", "r"]);
    let digest: String = Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    attached.wait_for(&digest);

    let in_arguments: Vec<_> =
        arguments_of_all().into_iter().filter(|(_, arguments)| contains(arguments, &secret)).collect();
    assert_eq!(in_arguments, [], "while the agent works");
    assert_eq!(files_with(bench.path(), &secret), [] as [std::path::PathBuf; 0], "while the agent works");
    // Another host needs no secret to follow what was launched.
    let mut other = bench.spawn(["attach", "--json", "r"]);
    other.wait_for(&digest);
    attached.kill9();
    let work = work_of(&bench, "r");
    fs::write(work.join("stop"), "").expect("stop");
    let other = other.finish();
    assert_eq!(other.code(), 0, "{}", other.stderr);
    bench.check_ended("r");
    assert_eq!(files_with(bench.path(), &secret), [] as [std::path::PathBuf; 0], "and after its end");
    for args in [
        ["logs", "--json", "r"].as_slice(),
        &["show", "--json", "r"],
        &["show", "--messages", "r"],
        &["ps", "-a", "--json"],
    ] {
        let shown = with_secret(args).finish();
        assert!(!shown.stdout.contains(&secret) && !shown.stderr.contains(&secret), "{args:?}");
    }
}

/// The run's own workspace.
fn work_of(bench: &Bench, run: &str) -> std::path::PathBuf {
    let instance = bench.record(run)["instanceId"].as_str().expect("instance").to_owned();
    let work = bench.data_dir().join("sandboxes").join(instance).join("work");
    eventually("its workspace", || work.is_dir().then(|| work.clone()))
}

#[test]
fn a_variable_of_the_definition_is_no_secret_and_part_of_the_run() {
    let bench = Bench::with_config(&agents(&[("a", "echo \"$MODE\"", "env = { MODE = \"one\" }")]));
    let mut command = bench.command(["run", "--run-id", "r", "--agent", "a"]);
    command.env("OUTLAST_FAILPOINT", "accept.after=kill");
    Proc::new(command.spawn().expect("spawn")).finish();
    // Whoever takes the run over launches what was accepted, whatever the configuration says by now.
    let config = agents(&[("a", "echo changed", "env = { MODE = \"two\" }")]);
    fs::write(bench.data_dir().join("outlast.toml"), config).expect("configuration");
    assert_eq!(said(bench.outlast(["attach", "--json", "r"])), "one\n");
}
