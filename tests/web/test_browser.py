"""The web client in Debian's Chromium, against a real service, its store and its lab."""

from __future__ import annotations

from tests.shows import shows
from tests.web.report import Report


def test_every_test_in_the_browser_passes(browser: Report) -> None:
    """The live feed, tabs, the inbox by mouse and keyboard, axe, and web push."""
    assert not browser.broken
    browser.passed(*browser.results)
    assert len(browser.results) > 24


@shows("S3-133", "S3-09", "S3-10")
def test_a_notification_goes_the_whole_way(browser: Report) -> None:
    browser.passed("registered, created, sent, shown, clicked, read: the whole way")


@shows("S3-01")
def test_a_start_without_permission_calls_nothing(browser: Report) -> None:
    browser.passed("a start without permission asks nobody and calls nothing")


@shows("S3-02")
def test_a_renewed_subscription_is_registered_with_one_call(browser: Report) -> None:
    browser.passed("a renewed subscription is registered with one call")


@shows("S3-03", "S3-04")
def test_a_token_follows_login_and_logout(browser: Report) -> None:
    browser.passed("a login ties the token to the user who logged in, and a logout ends it")


@shows("S3-11")
def test_a_push_is_shown_while_no_page_is_open(browser: Report) -> None:
    browser.passed("a push that comes while no page is open is shown")


@shows("S3-13", "S3-14")
def test_pages_load_while_scrolling(browser: Report) -> None:
    browser.passed("pages load while scrolling, each once, and none past the end")


@shows("S3-15", "S3-41")
def test_entries_are_marked(browser: Report) -> None:
    browser.passed("one is marked as read and unread again, all are marked as read, and the server knows")


@shows("S3-16")
def test_entries_are_deleted(browser: Report) -> None:
    browser.passed("one is deleted, and comes back by undo")


@shows("S3-12")
def test_the_page_says_in_words_what_did_not_work(browser: Report) -> None:
    browser.passed("what is refused comes back, and the page says so in words")


@shows("S2-27")
def test_a_push_that_comes_twice_is_shown_once(browser: Report) -> None:
    browser.passed(
        "what comes twice is shown once, and a newer one with the same tag takes the place of the older",
        "a cut connection goes on where it was: what came meanwhile is told once, in order",
    )


@shows("S3-114")
def test_users_change_their_preferences_in_the_inbox(browser: Report) -> None:
    browser.passed("the settings pane says what the user wants, and writes it with each click")
