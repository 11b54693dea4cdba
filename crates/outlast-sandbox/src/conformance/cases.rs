//! The list.

use std::pin::Pin;
use std::sync::Arc;

use super::{Subject, create, destroy, journal, kill, launch, prune};

/// A case at work.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One promise: its name, and what shows it.
#[derive(Clone, Copy)]
pub struct Case {
    /// What is promised.
    pub name: &'static str,
    /// Panics where the promise is broken.
    pub run: fn(Arc<dyn Subject>) -> Running,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! cases {
    ($($module:ident::$case:ident,)*) => {
        vec![$(Case {
            name: concat!(stringify!($module), "::", stringify!($case)),
            run: |subject| Box::pin($module::$case(subject)),
        },)*]
    };
}

/// Every case of the suite.
pub fn cases() -> Vec<Case> {
    cases![
        create::repeating_is_harmless,
        create::an_unknown_instance_does_not_exist,
        launch::one_of_many_takes_the_latch,
        launch::a_cancel_comes_first_or_not_at_all,
        launch::a_cancelled_run_is_never_launched,
        launch::no_sandbox_no_launch,
        launch::environment_and_prompt_are_exact,
        launch::the_second_attempt_is_one_launch,
        launch::what_cannot_be_started_is_an_exit,
        launch::facts_at_every_stage,
        journal::bytes_and_exit_are_exact,
        journal::no_foreign_line_break_without_the_exit,
        journal::reading_resumes_at_a_byte,
        journal::a_missing_journal_is_patience,
        journal::a_reader_is_woken,
        journal::the_quota_ends_the_run,
        journal::the_standard_error_has_a_tail,
        kill::what_was_not_started_needs_no_kill,
        kill::escapees_die,
        kill::the_stubborn_die_in_time,
        kill::a_short_grace_is_kept,
        kill::many_killers_agree,
        kill::an_ended_run_is_dead_and_its_neighbour_lives,
        destroy::only_what_was_made,
        destroy::a_live_run_prevents_it,
        destroy::what_is_put_aside_is_listed_and_can_be_destroyed,
        journal::the_probe_tells_what_is_so,
        prune::files_are_listed_with_their_ages,
        prune::one_runs_files_go_and_its_latch_stays,
        prune::not_under_a_shim,
        prune::not_under_a_reader,
        prune::a_latch_that_is_free_is_taken_first,
        prune::removing_and_launching_race,
    ]
}
