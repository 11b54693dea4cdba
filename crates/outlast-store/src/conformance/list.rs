//! The list of cases.

/// Makes one `#[test]` of each case. The expression makes a [`crate::conformance::Backend`], once for each test; it is
/// evaluated in an async block.
#[macro_export]
macro_rules! conformance_tests {
    ($backend:expr) => {
        $crate::conformance_tests! { @ $backend =>
            accept: [
                records_the_run, the_same_request_again, another_request_under_the_id, a_live_thread_is_busy,
                a_lent_workspace_is_busy, the_same_attempt_again, racing_with_one_id, racing_on_one_thread, racing_in_one_workspace,
            ],
            claim: [
                refusals_write_nothing, every_grant_is_an_epoch, racing_claims, a_lease_runs_out_exactly,
                a_reboot_ends_a_lease, a_release_lets_the_next_in, a_stale_release_does_nothing,
                closing_gives_claims_back, an_owner_excludes_itself, the_same_wish_again,
                only_where_nobody_watches,
            ],
            renew: [
                lengthens_what_is_held, leaves_alone_what_is_not_named, tells_of_cancels, leaves_out_what_is_lost,
                racing_a_claim,
            ],
            fence: [
                a_stale_token_changes_nothing, a_lapsed_lease_still_writes, appends_racing_a_claim,
                an_append_that_waits_while_a_claim_is_made, a_claim_that_waits_while_an_append_is_made,
                an_unknown_run, after_the_end,
            ],
            append: [
                a_moved_tail_changes_nothing, a_batch_counts_once, racing_from_one_tail,
                what_is_not_said_stays, nothing_but_a_cursor, launched_counts_once, only_finish_ends_a_log,
            ],
            finish: [
                ends_everything_at_once, the_same_finish_again, once_out_of_many, a_moved_tail_ends_nothing,
                ends_with_one_terminal_event, the_end_stays,
            ],
            cancel: [
                the_first_wish_stays, a_viewer_who_is_there_wins, an_end_must_know_of_it, racing_the_end, only_the_end_may_be_claimed,
                the_driver_writes_on,
            ],
            presence: [
                detached_from_the_start, the_latest_viewer_counts, a_viewer_leaves, an_ended_run_is_not_detached,
                who_never_came_cannot_leave,
            ],
            read: [
                pages_end_where_they_should, bytes_come_back_as_they_were, beyond_the_tail, ten_thousand_events,
                a_closed_log_is_complete, subscribers_wake, origins_and_times,
            ],
            list: [
                newest_first_in_pages, filters, runs_without_a_driver, the_active_run,
            ],
            messages: [
                later_updates_replace, a_thread_is_in_order_of_acceptance, sessions_of_a_thread,
            ],
            lost_answers: [
                of_an_append, of_a_launch, of_an_end, of_an_acceptance, of_a_claim, of_an_intent,
                of_a_cancel_and_a_release,
            ],
            instances: [
                creating_binds_the_run, using_binds_the_run, ids_are_never_used_again, never_back,
                not_destroyed_while_used, racing_to_use_and_to_destroy, racing_to_create, found_by_key_and_machine, a_launched_run_stays_where_it_is,
            ],
            reclaim: [
                the_end_of_a_run_says_when, an_unverified_kill_is_due_at_once, another_turn_takes_it_back,
                tried_until_it_is_gone, one_at_a_time, listed_in_pages,
            ],
            retain: [
                events_age_out_and_messages_stay, in_small_steps,
            ],
            ledger: [
                runs_write_their_own_records, the_same_record_again, a_moved_tip_changes_nothing, racing_appends,
                beside_a_driver, read_in_pages, messages_in_pages, the_fold_is_that_of_the_records, times_of_elsewhere, no_session,
                sessions_are_listed, who_is_idle,
            ],
            bodies: [
                come_back_as_they_were, a_barrier_moves, condemned_for_ever, racing_to_point_and_to_condemn,
                of_events_that_aged_out,
            ],
            leases: [
                one_holder_at_a_time, lost_ones_do_nothing, given_back_at_the_end, pins_hold_until_they_run_out,
            ],
            deleting: [
                nothing_begins_again, in_small_steps, not_what_lives_or_was_used,
            ],
            watch: [
                detached_runs_are_listed, stalls_are_counted, hosts_that_are_alive,
            ],
            tenants: [
                see_nothing_of_each_other, one_deployment,
            ],
        }
    };
    (@ $backend:expr => $($group:ident: [$($case:ident,)*],)*) => {
        $(
            mod $group {
                #[allow(unused_imports, reason = "what the expression needs, it may have from here")]
                use super::*;
                $(
                    #[test]
                    fn $case() {
                        $crate::conformance::run_case(
                            async { $backend },
                            $crate::conformance::cases::$group::$case,
                        );
                    }
                )*
            }
        )*
    };
}
