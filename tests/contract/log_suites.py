"""Which tests of the Work suites run on the log, too, and where it differs.

A test there takes a second of a broker, so those are chosen that meet what is the log's own: leases over partitions,
settlements as transactions, replacements, retry topics, intents. What is handed to the store is tested there.

| promise | on the log |
|---|---|
| schedules, replays and bulk jobs are work | the store has them: leased in turn with the log's, never together |
| an intent becomes ``unknown`` at its deadline | 15 s after it, when the recorder has nothing more to read |
| a content duplicate leaves a record | it is answered, and leaves none |
| ``withdraw`` says what was taken back | ``TooLate``: nobody knows yet whether a worker has begun |
| a confirmation counts | once the settlement that it follows is recorded |
| a collapse key stands for all older notifications | those that are recorded |
| a batch is accepted whole or not at all | what of it is the store's and what the log's, each for itself |
"""

from __future__ import annotations

ON_LOG = frozenset(
    {
        # test_work_lease
        "test_an_empty_queue_leases_nothing_and_does_not_wait",
        "test_what_is_leased_is_not_leased_again",
        "test_fresh_items_of_a_user_come_in_accept_order",
        "test_a_waiting_retry_does_not_hold_later_messages",
        "test_apps_take_turns_between_leases",
        "test_a_dead_workers_items_come_back_in_accept_order",
        "test_two_workers_share_the_work_without_overlap",
        "test_concurrent_accepts_and_leases_of_two_workers_lose_and_repeat_nothing",
        "test_depth_is_what_could_be_leased_now",
        # test_work_backlog
        "test_what_is_leased_parked_or_waits_for_its_retry_counts_until_it_is_over",
        # test_work_settle
        "test_the_settle_that_closes_the_last_target_ends_the_notification",
        "test_settling_part_keeps_the_rest_under_the_lease",
        "test_after_a_crash_only_the_unsettled_targets_come_back",
        "test_before_the_first_write_a_new_lease_resolves_again",
        "test_the_final_status_of_targets_settled_one_by_one",
        "test_the_targets_of_a_notification_that_are_due_together_come_as_one_item",
        "test_a_retry_may_be_leased_while_its_neighbour_is_still_under_way",
        "test_attempts_only_grow_and_each_stays_readable",
        "test_a_given_back_fresh_item_is_leasable_at_once_and_fresh",
        "test_giving_back_the_rest_of_an_item_frees_only_what_is_open",
        "test_an_unstarted_target_is_leasable_at_once_and_spends_no_attempt",
        "test_a_settle_of_nothing_writes_nothing",
        # test_work_release
        "test_a_retry_is_released_at_its_time_and_not_before",
        "test_earlier_retries_are_released_first",
        "test_a_lifted_condition_lets_as_many_through_as_it_says",
        "test_each_condition_that_something_waits_for_is_named_while_it_does",
        "test_those_that_expire_first_come_back_first",
        "test_a_parked_delivery_comes_back_to_expire",
        "test_a_lifted_delivery_whose_worker_dies_is_not_lost",
        # test_work_intent
        "test_an_intent_counts_as_open_and_reads_processing",
        "test_before_the_intent_a_crash_sends_again",
        "test_an_intent_that_was_never_begun_can_be_given_back",
        # test_work_amend
        "test_a_confirmation_moves_receipt_status_journal_and_counters_together",
        "test_what_is_late_repeated_or_foreign_changes_nothing",
        "test_a_target_waits_until_its_time",
        "test_a_target_is_sent_when_its_sibling_was_not_confirmed_in_time",
        "test_a_confirmed_sibling_ends_the_wait",
        "test_the_wait_begins_with_the_settlement_and_outlives_the_worker",
        "test_a_failed_sibling_is_not_waited_for",
        "test_what_is_leased_goes_on_and_is_not_tried_again",
        "test_withdrawn_a_waiting_target_is_never_sent",
    }
)
