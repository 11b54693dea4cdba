//! What is not to be stored is not stored.

use outlast_session::workspace::{SnapshotError, SnapshotOptions, escape};

use super::support::*;

async fn kept(world: &World, options: SnapshotOptions) -> (Vec<String>, u64) {
    let snapshot = world.workspaces.snapshot(&world.root(), &options).await.unwrap();
    let manifest = world.workspaces.manifest(&snapshot.reference).await.unwrap();
    (manifest.entries().iter().map(|entry| escape(&entry.path)).collect(), snapshot.excluded)
}

#[test]
fn secrets_are_not_stored() {
    let world = World::new();
    let secret = [
        ".env",
        ".env.local",
        "app/.env.production",
        "app/.netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "keys/id_rsa",
        "keys/id_ed25519",
        "keys/server.pem",
        "keys/server.key",
        "a.p12",
        "a.pfx",
        ".ssh/config",
        "home/.aws/credentials",
        ".aws/credentials",
        "home/.config/gcloud/x",
        ".docker/config.json",
        ".kube/config",
        ".claude/.credentials.json",
    ];
    let harmless = [
        ".env.example",
        ".env.sample",
        ".env.template",
        "app/env",
        "keys/id_rsa.pub",
        ".aws/config",
        "docker/config.json",
        ".gitignore",
        "node_modules/x/index.js",
        "monkey",
        ".envoy",
    ];
    for name in secret.iter().chain(&harmless) {
        write(world.root().join(name), name);
    }
    write(world.root().join(".gitignore"), "node_modules/\n");
    run(async {
        let (kept_paths, excluded) = kept(&world, SnapshotOptions::default()).await;
        for name in secret {
            assert!(!kept_paths.iter().any(|path| path == name), "{name}");
        }
        for name in harmless {
            assert!(kept_paths.iter().any(|path| path == name), "{name}");
        }
        // `.ssh` and `gcloud` count once, with what is in them.
        assert_eq!(excluded, secret.len() as u64);
        for key in world.storage.keys().await {
            let body = zstd::decode_all(&world.storage.read(&key).await[..]).unwrap();
            let text = String::from_utf8_lossy(&body).into_owned();
            assert!(!secret.contains(&text.as_str()), "{key} is {text:?}");
        }
        let all = SnapshotOptions { include_secrets: true, ..SnapshotOptions::default() };
        assert_eq!(kept(&world, all).await.1, 0);
        let back = SnapshotOptions { exclude: vec!["!.npmrc".to_owned()], ..SnapshotOptions::default() };
        assert!(kept(&world, back).await.0.contains(&".npmrc".to_owned()));
    });
}

#[test]
fn patterns_of_caller_and_tree() {
    let world = World::new();
    let root = world.root();
    for name in ["a.log", "keep.log", "sub/b.log", "sub/top", "top", "out/x", "sub/out/y", "sub/gone", ".env"]
    {
        write(root.join(name), "");
    }
    write(root.join(".outlastignore"), "# a remark\n*.log\n!keep.log\n/top\n!.env\n");
    write(root.join(".gitignore"), "out/\n");
    write(root.join("sub/.gitignore"), "gone\n!out/\n");
    run(async {
        let (paths, excluded) = kept(&world, SnapshotOptions::default()).await;
        let expected = [
            ".gitignore",
            ".outlastignore",
            "keep.log",
            "out",
            "out/x",
            "sub",
            "sub/.gitignore",
            "sub/gone",
            "sub/out",
            "sub/out/y",
            "sub/top",
        ];
        assert_eq!(paths, expected, "who writes into the tree takes no exclusion of secrets back");
        assert_eq!(excluded, 4);
        let git = SnapshotOptions { gitignore: true, ..SnapshotOptions::default() };
        let (paths, _) = kept(&world, git).await;
        let expected = [
            ".gitignore",
            ".outlastignore",
            "keep.log",
            "sub",
            "sub/.gitignore",
            "sub/out",
            "sub/out/y",
            "sub/top",
        ];
        assert_eq!(paths, expected, "the innermost counts");
        let mine = SnapshotOptions { exclude: vec!["/sub".to_owned()], ..SnapshotOptions::default() };
        let (paths, _) = kept(&world, mine).await;
        assert_eq!(paths, [".gitignore", ".outlastignore", "keep.log", "out", "out/x"]);
    });
}

#[test]
fn patterns_that_cannot_be_used_stop_the_snapshot() {
    let world = World::new();
    let own = world.root().join(".outlastignore");
    run(async {
        let refused = async |options| {
            let made = world.workspaces.snapshot(&world.root(), &options).await;
            assert!(matches!(made, Err(SnapshotError::Patterns { .. })), "{made:?}");
        };
        refused(SnapshotOptions { exclude: vec!["[".to_owned()], ..SnapshotOptions::default() }).await;
        write(&own, "ok\na[\n");
        refused(SnapshotOptions::default()).await;
        write(&own, b"\xff\n");
        refused(SnapshotOptions::default()).await;
        write(&own, vec![b'\n'; (1 << 20) + 1]);
        refused(SnapshotOptions::default()).await;
        std::fs::remove_file(&own).unwrap();
        write(world.path("elsewhere"), "");
        std::os::unix::fs::symlink(world.path("elsewhere"), &own).unwrap();
        refused(SnapshotOptions::default()).await;
        std::fs::remove_file(&own).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &own, 0o600.into()).unwrap();
        refused(SnapshotOptions::default()).await;
        assert_eq!(world.storage.keys().await, [""; 0]);
    });
}
