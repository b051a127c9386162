"""The list of security and privacy that the service was built by (spycodes-facts 15): each line has its tests."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import icy.study.service

HERE = Path(__file__).parent
SERVICE = Path(icy.study.service.__file__).parent
CLIENTS = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "telnetlib", "urllib3"}

LIST = {
    # 1. replies
    "no reply tells code, meaning, is_holdout, seed or future items before the answer is graded": (
        "web/test_security.py::test_before_an_answer_is_graded_nothing_tells_it",
        "web/test_security.py::test_a_page_is_the_same_whatever_waits",
        "web/test_browser.py::test_a_whole_game_and_its_whole_traffic",
    ),
    "picture addresses are opaque tokens, and texts of pictures are neutral": (
        "web/test_security.py::test_pictures_have_opaque_addresses_and_tell_nothing",
        "web/test_security.py::test_only_pictures_on_screen_are_shown_and_to_their_person_alone",
    ),
    # 2. tokens
    "tokens of persons and items have 128 random bits": (
        "test_keys.py::test_tokens_are_128_random_bits_without_small_letters",
        "test_persons.py::test_names_and_links_are_random_and_not_the_same",
    ),
    "tokens are checked on every call": (
        "web/test_security.py::test_tokens_are_checked_on_every_call",
        "web/test_security.py::test_one_persons_form_is_not_anothers",
        "test_play.py::test_an_item_of_another_person_is_none_of_ours",
    ),
    "conditions are the server's choice": ("web/test_security.py::test_the_condition_is_the_servers_choice",),
    "an unknown study is a page of its own, with 404": (
        "web/test_security.py::test_unknown_addresses_are_a_page_of_their_own",
    ),
    # 3. answers and forms
    "answers have 64 letters, NFKC, trimmed, case-folded; others cost nothing; raw input is kept": (
        "web/test_security.py::test_answers_are_read_kindly_and_kept_as_typed",
        "web/test_pages.py::test_what_is_no_answer_is_told_and_costs_nothing",
        "test_play.py::test_what_is_no_answer_costs_nothing_and_is_kept",
    ),
    "forms have a cross-site token": ("web/test_security.py::test_forms_without_their_token_are_refused",),
    "forms must be of the same origin": (
        "web/test_security.py::test_forms_of_other_sites_are_refused",
        "web/test_security.py::test_forms_of_our_own_pages_are_taken",
        "web/test_security.py::test_behind_a_proxy_the_site_is_the_one_that_people_use",
        "web/test_security.py::test_one_site_may_be_written_in_several_ways",
        "web/test_security.py::test_other_sites_stay_others",
        "web/test_security.py::test_without_a_base_the_site_is_the_host_that_was_asked",
    ),
    "strict content security policy": (
        "web/test_security.py::test_every_reply_has_the_headers",
        "web/test_security.py::test_the_policy_lets_nothing_in_from_elsewhere",
    ),
    "no third-party requests": (
        "web/test_security.py::test_no_page_asks_third_parties",
        "web/test_browser.py::test_a_whole_game_and_its_whole_traffic",
    ),
    "limits of size": (
        "web/test_security.py::test_large_and_strange_requests_are_refused",
        "web/test_security.py::test_remarks_have_a_length",
    ),
    "a limit of how often a person may ask": (
        "web/test_security.py::test_one_person_cannot_ask_for_everything",
        "web/test_security.py::test_newcomers_cannot_flood_a_study",
    ),
    # 4. stale tabs
    "an answer to an item that is no longer there changes nothing": (
        "test_play.py::test_an_answer_to_another_item_is_told_and_changes_nothing",
        "web/test_pages.py::test_two_windows_show_one_game",
        "web/test_browser.py::test_double_clicks_reloads_back_and_two_tabs",
    ),
    # 5. coming back
    "reload, restart and crash lead back to the same item with the same picture": (
        "web/test_pages.py::test_a_restart_shows_the_same_item_with_the_same_picture",
        "test_play.py::test_killed_between_any_two_writes_nothing_is_lost",
        "web/test_kills.py::test_a_hundred_kills_lose_nothing",
    ),
    "the id of the platform leads back": ("web/test_pages.py::test_the_platforms_id_leads_back",),
    "one id has one game": (
        "test_persons.py::test_one_id_is_one_person_with_one_game",
        "test_persons.py::test_small_and_capital_letters_are_one_person_where_the_platform_says_so",
    ),
    "strangers with a link that was not filled in never share a game": (
        "web/test_links.py::test_strangers_with_an_unfilled_link_never_share_a_game",
    ),
    "another study can exclude those of an earlier one": ("test_persons.py::test_an_earlier_study_can_be_excluded",),
    # 6. the researcher
    "the researcher's page is off by default, for this machine or behind a password": (
        "web/test_security.py::test_the_researchers_page_is_off_by_default",
        "web/test_security.py::test_without_a_password_it_is_for_this_machine",
        "web/test_security.py::test_with_a_password_it_is_for_who_knows_it",
        "test_serve.py::test_whoever_others_can_reach_needs_a_password",
    ),
    "ids are left out of the export, and files with ids or codes are for their owner": (
        "test_export.py::test_ids_stay_out_unless_asked_for",
        "test_export.py::test_completion_codes_stay_out_unless_asked_for",
        "test_export.py::test_files_with_ids_are_for_their_owner",
        "test_database.py::test_the_database_is_private_from_its_first_byte",
    ),
    # 7. privacy
    "no network address and no name of a browser is stored": (
        "web/test_security.py::test_no_address_and_no_browser_name_is_stored",
    ),
    "consent tells purpose, controller, contact, retention and the right to withdraw": (
        "web/test_security.py::test_consent_tells_what_the_law_wants",
        "test_plan.py::test_an_open_study_tells_what_it_must",
    ),
    "people can withdraw in the game": ("web/test_pages.py::test_stopping_is_possible_on_every_page_and_asks_once",),
    "forget erases ids, and data if wished": (
        "test_persons.py::test_who_is_forgotten_is_in_no_byte_of_the_file",
        "test_persons.py::test_who_withdraws_keeps_or_deletes_the_data",
    ),
    "ids are deleted after payment": ("test_persons.py::test_ids_are_deleted_some_days_after_payment",),
    "no cookie but a necessary one: none is": ("web/test_security.py::test_no_cookie_is_set",),
    # 8. cheating and quality
    "pastes, looks elsewhere and times are recorded": (
        "web/test_pages.py::test_notes_of_the_page_are_logged",
        "web/test_browser.py::test_leaving_and_pasting_are_noted",
        "test_play.py::test_a_page_cannot_claim_any_time",
    ),
    "notes are allowed, and questions are asked twice, and then it ends kindly": (
        "web/test_pages.py::test_questions_are_asked_twice_and_then_it_ends_kindly",
    ),
    "programs are told by a field that people do not see and by their speed": (
        "web/test_security.py::test_programs_are_told_from_people",
    ),
    "what is odd is reported, and nobody is rejected by it": (
        "test_review.py::test_what_is_odd_is_shown",
        "test_security_list.py::test_only_a_researcher_rejects",
    ),
    # 9. pay
    "the bonus is the server's, of closed games alone, and capped": (
        "test_review.py::test_a_bonus_is_capped_and_of_finished_games_alone",
        "web/test_security.py::test_points_after_the_end_count_nothing",
    ),
    "reviews are exported as platforms read them": (
        "test_review.py::test_prolific_gets_its_files",
        "test_review.py::test_mturk_gets_its_file",
    ),
    "the tool moves no money": ("test_security_list.py::test_the_service_asks_nobody",),
}


@cache
def names_in(file: str) -> set[str]:
    """Return the names of the tests in a file of this folder."""
    found = ast.walk(ast.parse((HERE / file).read_text(encoding="utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_line_has_its_tests() -> None:
    places = [(line, place, *place.split("::")) for line, named in LIST.items() for place in named]
    wrong = [f"{line}: {place}" for line, place, file, name in places if name not in names_in(file)]
    assert not wrong, "\n".join(wrong)


def test_the_tests_of_security_are_all_in_the_list() -> None:
    """But for those of what the list does not ask for."""
    beyond = {
        *("test_nothing_but_the_files_of_the_pages_is_served", "test_what_people_type_is_shown_as_text"),
        *("test_the_page_of_information_is_good_for_a_day", "test_reading_is_not_doing"),
        *("test_limits_forget_who_came_long_ago", "test_it_tells_of_nobody"),
        "test_requests_are_answered_under_the_names_of_the_service",
        *("test_other_names_of_the_machine_are_refused", "test_faults_tell_nothing_of_the_inside"),
    }
    named = {place.partition("::")[2] for places in LIST.values() for place in places}
    assert names_in("web/test_security.py") - named == beyond


def test_only_a_researcher_rejects() -> None:
    """A decision is written in one place, which `icy study review` alone leads to."""
    writers = [path.name for path in SERVICE.rglob("*.py") if "INSERT INTO review" in path.read_text(encoding="utf-8")]
    callers = [path.name for path in SERVICE.rglob("*.py") if "decide(" in path.read_text(encoding="utf-8")]
    assert writers == callers == ["review.py"]


def test_the_service_asks_nobody() -> None:
    """Nothing in it is a client of another service, so it can move no money and send no data."""
    for path in SERVICE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not {name.partition(".")[0] for name in names} & CLIENTS, path
            assert "urllib.request" not in names, path
