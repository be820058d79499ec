"""What the terminal shows of what a program prints."""

from __future__ import annotations

import pytest

from antorcha.lab.screen import BURST, KEPT, WIDEST, Screen, columns, plain


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("a\tb\r\nc\x08d", "a\tb\r\nc\x08d"),
        ("\x1b[1;31mred\x1b[0m\x1b[2K\x1b[3A", "\x1b[1;31mred\x1b[0m\x1b[2K\x1b[3A"),
        ("\x1b]0;a title\x07x", "x"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07", ""),  # the clipboard
        ("\x1b[c\x1b[6n\x1b[5n\x1b[>q", ""),  # questions that a terminal answers by typing
        ("\x1bPq#0\x1b\\x\x1bc\x1b(0y", "xy"),
        ("\x1b[?1049h\x1b[?25l\x1b[8;1;1t", ""),
        ("\x9b31m\x00\x05\x7f", "31m"),
        ("ñ 日本 <b>&", "ñ 日本 <b>&"),
    ],
)
def test_what_a_terminal_would_act_on_is_left_out(printed: str, shown: str) -> None:
    assert plain(printed) == shown


def test_a_sequence_may_come_in_pieces() -> None:
    screen = Screen()
    for piece in ("a\x1b", "]0;ti", "tle\x07b\x1b[3", "1mc"):
        screen.write(piece)
    assert screen.since(0) == "ab\x1b[31mc"


def test_readers_get_what_is_new_to_them() -> None:
    screen = Screen()
    screen.write("one\n")
    place = screen.end
    screen.write("two\n")
    assert screen.since(place) == "two\n"
    screen.clear()
    screen.write("three\n")
    assert screen.since(0) == "three\n"


def test_endless_output_is_bounded() -> None:
    screen = Screen()
    for number in range(200_000):
        screen.write(f"line {number}\n")
    assert screen.end == sum(len(f"line {number}\n") for number in range(200_000))
    assert len(screen._text) <= 2 * KEPT
    shown = screen.since(0)
    assert len(shown) < BURST + 100
    assert shown.endswith("line 199999\n")


def test_what_is_said_is_kept_no_longer_than_its_place() -> None:
    screen = Screen()
    screen.say(lambda words: "first")
    place = screen.end
    for number in range(100):  # as a run that takes the place of the last one
        screen.cut(place)
        screen.say(lambda words, number=number: f"{words} {number}")
    assert screen.since(0, "run") == "firstrun 99"
    assert len(screen._said) == 2
    screen.write("x" * 2 * KEPT + "\n")
    assert len(screen._said) == 0
    screen.say(lambda words: "last")
    assert screen.since(0).endswith("last")
    screen.clear()
    assert len(screen._said) == 0


def test_of_one_endless_line_the_end_is_shown() -> None:
    screen = Screen()
    screen.write("begin\n" + "y" * 3_000_000 + "\n> Done.\n")
    text = screen.since(0)
    assert text.endswith("y\n> Done.\n")
    assert text.count("y") > 50_000


def test_what_the_lab_says_is_said_in_the_words_and_lines_of_each_page() -> None:
    screen = Screen()
    screen.write("it printed\n")
    screen.say(lambda words: f"> {words} that is long\n    and code, which is never broken")
    screen.write("\n")
    assert screen.since(0, "English", 12) == (
        "it printed\n> English\nthat is long\n    and code, which is never broken\n"
    )
    assert "> Español that" in screen.since(0, "Español", 80)


def test_no_program_speaks_for_the_lab() -> None:
    screen = Screen()
    screen.say(lambda words: "the lab")
    screen.clear()
    screen.write("\x010\x02 \x01\x02 \x01999\x02\n")
    assert screen.since(0, "") == "0  999\n"


@pytest.mark.parametrize(
    ("text", "wide"),
    [("", 0), ("ab\ncde\rf", 3), ("\x1b[31mab\x1b[0m\x1b[2K", 2), ("日本語", 6), ("a\tb", 9),
     ("x" * 5000, WIDEST), ("é" * 90 + "\nx", 90)],
)  # fmt: skip
def test_the_longest_line_is_measured(text: str, wide: int) -> None:
    assert columns(text) == wide
