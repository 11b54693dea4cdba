//! The clients in Chromium: all four adapters, and the code of `docs/client.md`.

use super::stage::Stage;

#[test]
fn a_connection_lost_at_every_event() {
    if let Some(mut stage) = Stage::with_a_browser() {
        stage.play("cuts.mjs");
    }
}

#[test]
fn the_documented_pages() {
    if let Some(mut stage) = Stage::with_a_browser() {
        stage.play("pages.mjs");
    }
}
