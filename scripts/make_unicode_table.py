#!/usr/bin/env python3
"""Writes the Unicode tables of engine/text from Python's Unicode data (3.14 has Unicode 16):

    for each in categories classes canonical composed compatibility lower; do
      scripts/make_unicode_table.py $each > engine/text/unicode_$each.inc
    done

Each is a table of columns, written column after column in the form that engine/text/packed_table.h reads. It stores
differences from the number above, which compress to a third of the numbers' size.

categories     the beginning of each run of a category: first, category (engine/text/unicode.h). A run ends at the next
               entry's first. White space is a category of its own
classes        the beginning of each run of a canonical combining class: first, class
canonical      characters that decompose: code, first, second or 0; one step, without Hangul's syllables
composed       indices in `canonical` of pairs that compose again, ascending by first and second
compatibility  characters that decompose further than canonically: code, length, then that many characters; all steps.
               Its columns are the codes, the lengths and the characters. A character is the difference from the last
               one at the same position of an entry
lower          characters with another lower case: code, first, second or 0
"""

import sys
import unicodedata

CATEGORIES = {"Lu": 1, "Ll": 2, "Lt": 3, "Lm": 4, "Lo": 5, "Mn": 6, "Mc": 7, "Me": 8, "N": 9, "P": 10, "S": 11, "Z": 12, "Cn": 13}
WHITE = {*range(0x09, 0x0E), 0x85}
CODES = range(sys.maxunicode + 1)
HANGUL = range(0xAC00, 0xD7A4)


def category(code: int) -> int:
    name = unicodedata.category(chr(code))
    return CATEGORIES["Z"] if code in WHITE else CATEGORIES.get(name, CATEGORIES.get(name[0], 0))


def categories() -> list[tuple[int, ...]]:
    return [(c, category(c)) for c in CODES if c == 0 or category(c) != category(c - 1)]


def classes() -> list[tuple[int, ...]]:
    kind = [unicodedata.combining(chr(c)) for c in CODES]
    return [(c, kind[c]) for c in CODES if c == 0 or kind[c] != kind[c - 1]]


def canonical() -> list[tuple[int, ...]]:
    found = []
    for code in CODES:
        text = unicodedata.decomposition(chr(code))
        if text and not text.startswith("<") and code not in HANGUL:
            first, second = ([int(each, 16) for each in text.split()] + [0])[:2]
            found.append((code, first, second))
    return found


def composed() -> list[tuple[int, ...]]:
    again = []
    for i, (code, first, second) in enumerate(canonical()):
        if second and unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code):
            again.append((first, second, i))
    return [(i,) for _, _, i in sorted(again)]


def compatibility() -> list[tuple[int, ...]]:
    found = []
    for code in CODES:
        text = unicodedata.normalize("NFKD", chr(code))
        if text != unicodedata.normalize("NFD", chr(code)):
            found.append((code, *map(ord, text)))
    return found


def lower() -> list[tuple[int, ...]]:
    found = []
    for code in CODES:
        text = chr(code).lower()
        if text != chr(code):
            found.append((code, *([*map(ord, text), 0][:2])))
    return found


def packed(number: int) -> list[int]:
    """Returns a number as bytes of seven bits, lowest first. All bytes except the last have the top bit."""
    return [number] if number < 128 else [number & 127 | 128, *packed(number >> 7)]


def difference(number: int) -> list[int]:
    return packed(2 * number if number >= 0 else -2 * number - 1)


def column(numbers: list[int]) -> list[int]:
    return [byte for before, number in zip([0, *numbers], numbers) for byte in difference(number - before)]


def columns(table: list[tuple[int, ...]]) -> list[int]:
    return [byte for numbers in zip(*table) for byte in column(list(numbers))]


def records(table: list[tuple[int, ...]]) -> list[int]:
    """Returns the number of entries, their codes and lengths, and the differences of their characters."""
    before = [0] * max(map(len, table))
    characters = []
    for _, *text in table:
        for place, code in enumerate(text):
            characters += difference(code - before[place])
            before[place] = code
    return packed(len(table)) + column([r[0] for r in table]) + column([len(r) - 1 for r in table]) + characters


def write(numbers: list[int]) -> None:
    line = ""
    for number in numbers:
        text = f"{number},"
        if len(line) + len(text) > 119:
            print(line)
            line = ""
        line += " " * bool(line) + text
    print(line)


TABLES = {each.__name__: each for each in (categories, classes, canonical, composed, compatibility, lower)}

if __name__ == "__main__":
    print(f"// Unicode {unicodedata.unidata_version}. Made by scripts/make_unicode_table.py.")
    name = sys.argv[1]
    write((records if name == "compatibility" else columns)(TABLES[name]()))
