//! The clients under Node: the adapters that fetch.

use super::stage::Stage;

macro_rules! played {
    ($($name:ident: $script:literal),+ $(,)?) => {
        $(#[test] fn $name() {
            if let Some(mut stage) = Stage::new() {
                stage.play($script);
            }
        })+
    };
}

played! {
    a_connection_lost_at_every_event: "cuts.mjs",
    a_client_that_comes_in_the_middle: "joins.mjs",
    a_run_whose_events_have_aged_out: "aged.mjs",
    a_thread_is_opened_as_clients_build_it: "hydration.mjs",
    a_server_that_dies_or_is_away: "outages.mjs",
    stop_and_the_next_message: "stop.mjs",
    limits_of_the_client: "limits.mjs",
}
