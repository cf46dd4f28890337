from openrecipes.engines.flags import Flags, read_flags
from openrecipes.engines.shell import parse_script


def flags(script: str) -> Flags:
    return read_flags(parse_script(script).commands[0].words[1:], switches={"--on"})


def test_names_and_values() -> None:
    found = flags("x --a 1 --b=2 --c 3 4 --on -5 'y z'")
    assert [(flag.name, [word.text for word in flag.values]) for flag in found.flags] == [
        ("--a", ["1"]),
        ("--b", ["2"]),
        ("--c", ["3", "4"]),
        ("--on", ["-5", "y z"]),
    ]


def test_a_word_that_could_hold_any_flag() -> None:
    assert [word.source for word in flags('x ${A[@]} --a $B --on $C --d "$E" $F --g ${H[@]}').may_hold_more] == [
        "${A[@]}",
        "$C",
        "$F",
        "${H[@]}",
    ]


def test_the_last_of_equal_flags_counts_and_only_another_value_is_an_override() -> None:
    found = flags("x --a 1 --b 2 --a=3 --b 2 --on --on")
    assert found.last("--a") is found.flags[2]
    assert [(earlier.text, later.text) for earlier, later in found.repeated()] == [("--a 1", "--a=3")]
