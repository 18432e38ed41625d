from dragoman.serving.documents.slots import Slot, fill_slots
from dragoman.serving.markup.placeholders import parse_message


def test_what_is_between_slots_stays_and_each_slot_gets_its_translations():
    text = "a=one %s;b=12;c=two\nthree;"
    slots = [
        Slot(begin=begin, end=end, message=message, encode=lambda shown: f"<{shown}>")
        for begin, end, message in (
            (2, 8, parse_message("one %s")),
            (11, 13, None),
            (16, 25, parse_message("two\nthree")),
        )
    ]
    document = fill_slots(text, slots, str.encode)
    assert document.texts == ["one", "two", "three"]
    written = document.write([("un", ()), ("deux", ()), ("trois", ())])
    assert written == b"a=<un %s>;b=<>;c=<deux\ntrois>;"


def test_a_text_without_slots_stays_as_it_is():
    assert fill_slots("a=1;", [], str.encode).write([]) == b"a=1;"
