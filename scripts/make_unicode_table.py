#!/usr/bin/env python3
"""Writes the Unicode tables of engine/text from Python's Unicode data (3.14 has Unicode 16):

    for each in categories classes canonical composed compatibility lower; do
      scripts/make_unicode_table.py $each > engine/text/unicode_$each.inc
    done

categories     where each category begins: first << 4 | category (engine/text/unicode.h), up to the next entry's first.
               White space is a category of its own
classes        where each canonical combining class begins: first << 8 | class
canonical      characters that decompose: code, first, second or 0; one step, without Hangul's syllables
composed       places in `canonical` of what composes again, ascending by first and second
compatibility  characters that decompose further than canonically: code, length, then so many characters; all steps
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


def categories() -> list[int]:
    return [c << 4 | category(c) for c in CODES if c == 0 or category(c) != category(c - 1)]


def classes() -> list[int]:
    kind = [unicodedata.combining(chr(c)) for c in CODES]
    return [c << 8 | kind[c] for c in CODES if c == 0 or kind[c] != kind[c - 1]]


def steps() -> list[tuple[int, int, int]]:
    found = []
    for code in CODES:
        text = unicodedata.decomposition(chr(code))
        if text and not text.startswith("<") and code not in HANGUL:
            first, second = ([int(each, 16) for each in text.split()] + [0])[:2]
            found.append((code, first, second))
    return found


def canonical() -> list[int]:
    return [number for step in steps() for number in step]


def composed() -> list[int]:
    again = []
    for i, (code, first, second) in enumerate(steps()):
        if second and unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code):
            again.append((first, second, i))
    return [i for _, _, i in sorted(again)]


def compatibility() -> list[int]:
    numbers = []
    for code in CODES:
        text = unicodedata.normalize("NFKD", chr(code))
        if text != unicodedata.normalize("NFD", chr(code)):
            numbers += [code, len(text), *map(ord, text)]
    return numbers


def lower() -> list[int]:
    numbers = []
    for code in CODES:
        text = chr(code).lower()
        if text != chr(code):
            numbers += ([code, *map(ord, text)] + [0])[:3]
    return numbers


def write(numbers: list[int]) -> None:
    line = ""
    for number in numbers:
        text = f"0x{number:x},"
        if len(line) + len(text) > 119:
            print(line)
            line = ""
        line += " " * bool(line) + text
    print(line)


if __name__ == "__main__":
    print(f"// Unicode {unicodedata.unidata_version}. Made by scripts/make_unicode_table.py.")
    write({each.__name__: each for each in (categories, classes, canonical, composed, compatibility, lower)}[sys.argv[1]]())
