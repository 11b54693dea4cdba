//! Sessions as files.

use std::io::Cursor;
use std::time::Duration;

use outlast_session::bodies::BodyError;
use outlast_session::transfer::{
    ExportError, ExportOptions, FileError, FileReader, ImportError, ImportOptions, Imported,
};
use sha2::{Digest, Sha256};

use super::world::{World, checkpoint, large, message, run, started, thread};

async fn exported(world: &World, name: &str) -> Vec<u8> {
    let mut file = Vec::new();
    let head = world.head(name).await;
    world.sessions.export(&head, &ExportOptions::default(), &mut file).await.unwrap();
    file
}

async fn import(world: &World, file: &[u8], to: Option<&str>) -> Result<Imported, ImportError> {
    let options = ImportOptions { thread_id: to.map(thread) };
    world.sessions.import(&world.tenant, Cursor::new(file), &options).await
}

/// Some records, each of another second.
async fn some() -> World {
    let world = World::new();
    let new = [
        started("r"),
        message("r", -1, "small"),
        message("r", 2, &large("two ")),
        message("r", 3, "\u{1F980}\n\""),
    ];
    for record in new {
        world.add("t", vec![record]).await;
        world.clock.advance(Duration::from_secs(1));
    }
    world
}

/// The file with these lines, and a trailer that fits.
fn file(lines: &[&str]) -> Vec<u8> {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let digest = outlast_core::hex::encode(&Sha256::digest(body.as_bytes()));
    let records = lines.len() - 1;
    format!("{body}{}\n", serde_json::json!({ "records": records, "incomplete": 0, "sha256": digest }))
        .into_bytes()
}

fn lines(file: &[u8]) -> Vec<&str> {
    std::str::from_utf8(file).unwrap().lines().collect()
}

fn line(seq: u64, kind: &str, skip: bool, id: &str, body: &str) -> String {
    let sum = outlast_core::ledger::checksum(kind, id, body);
    let skip = if skip { ",\"skip\":true" } else { "" };
    format!(
        "{{\"seq\":{seq},\"at\":1000,\"record\":{{\"v\":1,\"kind\":\"{kind}\"{skip},\"id\":\"{id}\",\"sum\":\"{sum}\",\"body\":{body}}}}}"
    )
}

#[test]
fn there_and_back() {
    run(async {
        let world = some().await;
        world.orphan("t", 'a').await;
        world.age();
        world.sessions.collect(&world.head("t").await, &world.options(), &|| true).await.unwrap();
        let file = exported(&world, "t").await;
        assert!(std::str::from_utf8(&file).unwrap().contains(&large("two ")), "with its bodies");
        let elsewhere = World::new();
        let done = import(&elsewhere, &file, None).await.unwrap();
        assert_eq!((done.added, done.known, done.passed_over, done.without_snapshot), (4, 0, 1, 0));
        let (before, after) = (world.read("t").await, elsewhere.read("t").await);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!((before.at, &before.id, &before.sum), (after.at, &after.id, &after.sum));
            let read = |world: &World, stored| {
                let (bodies, session) = (world.sessions.bodies(), world.id("t"));
                async move { bodies.resolve_record(&session, stored).await.unwrap() }
            };
            assert_eq!(read(&world, before).await, read(&elsewhere, after).await);
        }
        assert_eq!(elsewhere.keys("t").await.len(), 1, "the large one is off-loaded again");
        assert_eq!(elsewhere.head("t").await.fold.unwrap().title.as_deref(), Some("Do it"));
    });
}

#[test]
fn twice_adds_nothing() {
    run(async {
        let world = some().await;
        let file = exported(&world, "t").await;
        let elsewhere = World::new();
        import(&elsewhere, &file, Some("u")).await.unwrap();
        let records = elsewhere.read("u").await;
        let again = import(&elsewhere, &file, Some("u")).await.unwrap();
        assert_eq!((again.added, again.known), (0, 4));
        assert_eq!(elsewhere.read("u").await, records);
    });
}

#[test]
fn an_import_that_fails_is_gone_on_with() {
    run(async {
        let world = World::new();
        // More than one batch.
        let many: Vec<_> = (0..250).map(|n| message("r", n, &format!("message {n}"))).collect();
        world.add("t", many).await;
        let file = exported(&world, "t").await;
        for operation in 0..20 {
            let elsewhere = World::new();
            elsewhere.trouble.fail_after(operation);
            let failed = import(&elsewhere, &file, None).await;
            elsewhere.trouble.heal();
            let done = import(&elsewhere, &file, None).await.unwrap();
            assert_eq!(done.added + done.known, 250, "{operation}: {failed:?}");
            let ids = |records: Vec<outlast_store::StoredRecord>| {
                records.into_iter().map(|r| r.id).collect::<Vec<_>>()
            };
            assert_eq!(ids(elsewhere.read("t").await), ids(world.read("t").await));
        }
    });
}

#[test]
fn a_file_that_was_cut_is_refused() {
    run(async {
        let file = exported(&some().await, "t").await;
        for at in (0..file.len()).step_by(97).chain([file.len() - 1, file.len() - 2]) {
            // Without its last line break it is whole.
            if at == file.len() - 1 {
                continue;
            }
            let elsewhere = World::new();
            let refused = import(&elsewhere, &file[..at], None).await;
            assert!(matches!(refused, Err(ImportError::File(_))), "cut at {at}: {refused:?}");
            assert_eq!(elsewhere.sessions.find(&elsewhere.tenant, "t").await.unwrap(), None, "cut at {at}");
        }
        let kept = lines(&file);
        let without = [&kept[..2], &kept[3..]].concat().join("\n");
        let refused = import(&World::new(), without.as_bytes(), None).await;
        assert!(matches!(refused, Err(ImportError::File(FileError::Cut(_)))), "{refused:?}");
        let more = [&file[..], b"{}\n"].concat();
        assert!(matches!(
            import(&World::new(), &more, None).await,
            Err(ImportError::File(FileError::Cut(_)))
        ));
    });
}

#[test]
fn a_file_that_was_changed_is_refused() {
    run(async {
        let file = exported(&some().await, "t").await;
        for at in (0..file.len()).step_by(61) {
            let mut changed = file.clone();
            changed[at] = if changed[at] == b'7' { b'8' } else { b'7' };
            let elsewhere = World::new();
            let refused = import(&elsewhere, &changed, None).await;
            assert!(matches!(refused, Err(ImportError::File(_))), "changed at {at}: {refused:?}");
            assert_eq!(
                elsewhere.sessions.find(&elsewhere.tenant, "t").await.unwrap(),
                None,
                "changed at {at}"
            );
        }
    });
}

#[test]
fn another_threads_past_is_not_mixed_with_it() {
    run(async {
        let file = exported(&some().await, "t").await;
        let elsewhere = World::new();
        elsewhere.add("t", vec![message("mine", 1, "mine")]).await;
        let before = elsewhere.read("t").await;
        let refused = import(&elsewhere, &file, None).await;
        assert!(
            matches!(&refused, Err(ImportError::Taken { id, .. }) if id == "message/mine/1"),
            "{refused:?}"
        );
        assert_eq!(elsewhere.read("t").await, before);
        // The same ids with other content: nothing is written over.
        let elsewhere = World::new();
        elsewhere.add("t", vec![message("r", -1, "something else")]).await;
        let refused = import(&elsewhere, &file, None).await;
        assert!(matches!(refused, Err(ImportError::Add(_))), "{refused:?}");
        assert_eq!(elsewhere.read("t").await.len(), 1);
    });
}

#[test]
fn kinds_of_another_version() {
    run(async {
        let file_of = exported(&some().await, "t").await;
        let header = lines(&file_of)[0];
        let small =
            line(1, "message", false, "message/r/1", "{\"id\":\"m\",\"role\":\"user\",\"content\":\"x\"}");
        let skipped = line(2, "of_tomorrow", true, "x/1", "{\"a\":1}");
        let elsewhere = World::new();
        let done = import(&elsewhere, &file(&[header, &small, &skipped]), None).await.unwrap();
        assert_eq!((done.added, done.passed_over), (1, 1));

        let unknown = line(2, "of_tomorrow", false, "x/1", "{\"a\":1}");
        let elsewhere = World::new();
        let refused = import(&elsewhere, &file(&[header, &small, &unknown]), None).await;
        assert!(matches!(refused, Err(ImportError::Record(_))), "{refused:?}");
        assert_eq!(
            elsewhere.sessions.find(&elsewhere.tenant, "t").await.unwrap(),
            None,
            "nothing of it is there"
        );
        // Also far behind what would be added before.
        let mut many: Vec<String> = (1..=150)
            .map(|n| {
                line(
                    n,
                    "message",
                    false,
                    &format!("message/r/{n}"),
                    "{\"id\":\"m\",\"role\":\"user\",\"content\":\"x\"}",
                )
            })
            .collect();
        many.push(line(151, "of_tomorrow", false, "x/1", "{\"a\":1}"));
        let all: Vec<&str> = std::iter::once(header).chain(many.iter().map(String::as_str)).collect();
        let refused = import(&elsewhere, &file(&all), None).await;
        assert!(matches!(refused, Err(ImportError::Record(_))), "{refused:?}");
        assert_eq!(
            elsewhere.sessions.find(&elsewhere.tenant, "t").await.unwrap(),
            None,
            "nothing of it is there"
        );

        let newer = header.replace("\"version\":1", "\"version\":2");
        let refused = import(&elsewhere, &file(&[&newer, &small]), None).await;
        assert!(matches!(refused, Err(ImportError::File(FileError::Version { found: 2 }))), "{refused:?}");
        let newer = small.replace("\"v\":1", "\"v\":2");
        let refused = import(&elsewhere, &file(&[header, &newer]), None).await;
        assert!(matches!(refused, Err(ImportError::File(FileError::Record { line: 2, .. }))), "{refused:?}");
        let other = header.replace("\"session\"", "\"workspace\"");
        let refused = import(&elsewhere, &file(&[&other]), None).await;
        assert!(matches!(refused, Err(ImportError::File(FileError::NoSession(_)))), "{refused:?}");
    });
}

#[test]
fn a_missing_body_is_told_or_left_out_on_purpose() {
    run(async {
        let world = some().await;
        let head = world.head("t").await;
        let pointer = world.read("t").await[2].pointer.clone().unwrap();
        world.bucket.delete(&pointer.key).await.unwrap();
        let failed = world.sessions.export(&head, &ExportOptions::default(), &mut Vec::new()).await;
        let missing = matches!(&failed, Err(ExportError::Body { seq: 3, error: BodyError::Pointer(_), .. }));
        assert!(missing, "{failed:?}");
        let mut file = Vec::new();
        let options = ExportOptions { incomplete: true };
        let done = world.sessions.export(&head, &options, &mut file).await.unwrap();
        assert_eq!((done.records, done.incomplete, done.bytes), (4, 1, file.len() as u64));
        let (header, reader) = FileReader::open(&file[..]).unwrap();
        assert_eq!(header.thread_id, thread("t"));
        assert_eq!(reader.check().unwrap().incomplete, 1);
        assert_eq!(import(&World::new(), &file, None).await.unwrap().added, 4);
        world.trouble.alter_records(|record| record.sum.clear());
        let failed = world.sessions.export(&head, &options, &mut Vec::new()).await;
        assert!(matches!(failed, Err(ExportError::Damaged { .. })), "{failed:?}");
    });
}

#[test]
fn a_body_of_another_record_is_not_exported() {
    run(async {
        let world = some().await;
        let head = world.head("t").await;
        world.trouble.alter_records(|record| {
            if record.pointer.is_some() {
                record.sum.clear();
            }
        });
        let failed = world.sessions.export(&head, &ExportOptions::default(), &mut Vec::new()).await;
        assert!(matches!(failed, Err(ExportError::Damaged { seq: 3, .. })), "{failed:?}");
    });
}

#[test]
fn snapshots_that_are_not_there_are_left_out() {
    run(async {
        let world = some().await;
        world.add("t", vec![checkpoint("c", 1, None)]).await;
        let file = exported(&world, "t").await;
        let done = import(&World::new(), &file, None).await.unwrap();
        assert_eq!((done.added, done.without_snapshot), (4, 1));
    });
}
