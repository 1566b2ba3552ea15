"""Writes cases.json: short templates of every part of Jinja that the interpreter has, and what jinja2 makes of them.

Needs jinja2 3.1, set up as transformers' apply_chat_template sets it up. Usage: make_cases.py > cases.json
A case has `text`, `refuses` (the message of raise_exception) or `fails` (jinja2 stops).
"""
import datetime
import json

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 3, 7, 15, 4, 9)
VARIABLES = {
    "messages": [
        {"role": "system", "content": "  Be kind.\n"},
        {"role": "user", "content": "Grüße, \"Ö\" & <b>it's</b> 😀\ttab"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5, "y": [True, None]}}}]},
        {"role": "tool", "content": [{"type": "text", "text": "one"}, {"type": "image"}]},
    ],
    "tools": [{"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {"items": {"type": "array"}, "n": {"type": ["integer", "null"], "enum": [1, 2]}}}}}],
    "n": 7, "m": -3, "r": 2.5, "big": 9007199254740993, "yes": True, "no": False, "nothing": None, "empty": [], "void": {}, "blank": "",
    "words": ["pear", "Apple", "fig", "apple", "Fig"], "numbers": [3, 1, 2, 3.5, -1], "s": "hello world", "lines": "a\n  b\r\nc\n\nd",
    "people": [{"name": "Ann", "age": 30, "city": {"n": "X"}}, {"name": "bob", "age": 25, "city": {"n": "Y"}}, {"name": "Cy", "age": 30, "city": {"n": "X"}}],
    "nested": {"a": {"b": [10, 20, {"c": "deep"}]}, "items": "key", "1": "one"}, "pairs": [["k", 1], ["l", 2]],
    "tiny": 1e-7, "huge": 1e22, "third": 0.1, "whole": 4.0, "long": 123456789.123456789,
}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}

# Expressions, printed between brackets.
EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, 7 / 2, 2 ** 10, 2 ** -1
-n, +m, - -n, -n ** 2
1.5 + 1, 7.0 // 2, 7.5 % 2, -7.5 % 2, 1e3, 1_000, 0x1f, 0b101, 0o17
r, whole, third, tiny, huge, long, big, 1e16, 1e15, 123456789012345678.0, 0.1 + 0.2, 1 / 3, 2 / 3 * 3, 100.0, 1e-5, 0.0001, 5e-324, 1.7976931348623157e308
0.1, 0.5, 1.25, 3.14159, 2.718281828459045, 1234.5678, 1e100, 1.5e-10, 9.999999999999999e22, 4.35, 0.000123456
1 == 1.0, true == 1, 'a' == 'a', 'a' != 'b', [1] == [1], (1,) == [1], {'a': 1} == {'a': 1.0}, none == none, nothing is none
1 < 2 < 3, 1 < 2 > 3, 'a' < 'b', 'B' < 'a', [1, 2] < [1, 3], 2 >= 2, 1 <= 0.5
'ell' in s, 'x' not in s, 1 in [1, 2], 'a' in nested, 'z' in nested, 3 in numbers, none in [none]
not yes, not not yes, yes and n, no and n, no or n, blank or 'default', yes or missing.x, no and missing.x
not 1 == 2, not yes or yes, 1 + 1 == 2 and 2 + 2 == 4, 1 if yes else 2, 1 if no, 'a' if no else 'b' if no else 'c'
'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x'], 'a' + 'b' 'c', 'ab' * 3, 3 * 'ab', [1] * 2, 'x' * -1
s[0], s[-1], s[0:5], s[6:], s[:-6], s[::2], s[::-1], s[10:2:-3], s[100:], s[-100:3], s[5:2]
messages[1].content[0:6], messages[1].content[-5:], messages[1].content | length, messages[1].content[::-1]
numbers[0], numbers[-1], numbers[1:3], numbers[::-1], numbers[::2], (1, 2, 3)[1:], numbers[10:], numbers[-2:]
nested.a.b[2].c, nested['a']['b'][0], nested.a['b'][-1]['c'], nested['1'], nested.a.b.0
nested.missing, nested['missing'], nested.missing is defined, s.missing is defined, n.missing is defined, nothing.x is defined
messages[0].role, messages[0]['content'], messages[2].tool_calls[0].function.arguments
[], [1, 'two', 3.0, none, true], (), (1,), (1, 2), {}, {'a': 1, 'b': [2, {'c': none}]}, {1: 'x', none: 2}
'it\'s', "say \"no\"", 'tab\tnew\nline\\ \x41 \u00e9 \U0001F600 \101 \q'
['it\'s', "q\"q", 'both \' and "', 'tab\t', 'é', '\x07', '\u200b', '\xa0', '😀']
s.upper(), s.title(), s.capitalize(), 'ABC def'.lower(), 'straße ÿ éà'.upper(), 'ÀÉ ŽŠ ΑΒΓ ЖЯ'.lower(), "they're bill's".title()
'  x '.strip(), '  x '.lstrip(), '  x '.rstrip(), 'xxaxx'.strip('x'), 'abcba'.strip('ab'), 'xya'.lstrip('yx'), ' 　x '.strip(), 'a\n'.rstrip('\n')
'a,b,,c'.split(','), ' a  b c '.split(), 'a b c d'.split(' ', 2), 'a b c d'.split(none, 1), ''.split(), ''.split(','), 'abc'.split('abc'), '  a b  '.split(none, 1)
'a,b,c'.rsplit(',', 1), ' a b c '.rsplit(none, 1), 'a  b  c'.rsplit(), 'x'.rsplit(','), 'a b c'.rsplit(' ')
lines.splitlines(), lines.splitlines(true), ''.splitlines(), 'a\n'.splitlines(), 'a\x0bb\u2028c'.splitlines()
'a-b-c'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.partition('-'), 'abc'.rpartition('-')
s.find('o'), s.find('o', 5), s.rfind('o'), s.find('zz'), s.index('w'), s.count('l'), s.count(''), s.find('o', -3), 'ééa'.find('a'), s.find('l', 0, 3)
s.startswith('he'), s.startswith(('x', 'h')), s.endswith('d'), s.startswith('w', 6), s.endswith('o', 0, 5), s.startswith('')
s.replace('l', 'L'), s.replace('l', 'L', 1), s.replace('o w', ''), 'aaa'.replace('a', 'aa'), 'abc'.replace('', '-'), 'abc'.replace('', '-', 2)
', '.join(['a', 'b']), ''.join(words), '-'.join('abc'), ','.join([]), 'x'.join(nested.keys())
'{} and {}'.format(1, 'b'), '{1} {0}'.format('a', 'b'), '{x!r} {y}'.format(x='q', y=2), '{{}}'.format(), '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:+d}|{:x}|{:*^7}'.format('a', 'b', 'c', 42, 3.14159, 1234567, 5, 255, 'm'), '{0[a]} {1.name}'.format({'a': 1}, {'name': 2})
'%s is %d, %.1f%%, %5s|%-5s|%05d|%x|%r' % ('a', 3, 99.55, 'r', 'l', 42, 255, 'q'), '%s' % 'one', '%(a)s-%(b)d' % {'a': 'x', 'b': 2}, '%s' % [1], '%5.1f|%+d' % (2.25, 3)
'abc'.center(9), 'abc'.center(8, '*'), 'ab'.center(5), 'abc'.ljust(5) ~ '|', 'abc'.rjust(5), '42'.zfill(5), '-42'.zfill(5), 'abc' | center(8)
'abc'.removeprefix('a'), 'abc'.removesuffix('bc'), 'abc'.removeprefix('x')
'abc'.isalpha(), 'a1'.isalnum(), '12'.isdigit(), ' \t'.isspace(), 'AB'.isupper(), 'ab1'.islower(), ''.isalpha(), 'a b'.isalpha(), '1'.isupper()
nested.items() | list, nested.keys() | list, void.values() | list, nested.get('a'), nested.get('z'), nested.get('z', 'dflt'), {'b': 1}.get('b', 2)
nested.items is defined, nested['items'], {'get': 1}.get is callable, {'get': 1}['get']
[1, 2, 1].index(2), [1, 2, 1].count(1), (1, 2).index(1), {'a': 1}.copy(), [1].copy()
range(3) | list, range(1, 4) | list, range(10, 0, -3) | list, range(0) | list, range(3)[1], range(5)[1:3] | list, 2 in range(3), range(3) | length
dict(a=1, b='x'), dict({'a': 1}, b=2), dict([('k', 1)]), dict(pairs)
words | sort, words | sort(reverse=true), words | sort(case_sensitive=true), numbers | sort, people | sort(attribute='age') | map(attribute='name') | list, people | sort(attribute='city.n,name') | length
words | unique | list, words | unique(case_sensitive=true) | list, [1, 1.0, 2] | unique | list, people | unique(attribute='age') | map(attribute='name') | list
nested.a | dictsort, {'b': 1, 'A': 2, 'c': 0} | dictsort, {'b': 1, 'A': 2} | dictsort(true), {'b': 1, 'A': 2} | dictsort(by='value'), {'b': 1, 'A': 2} | dictsort(reverse=true)
words | first, words | last, empty | first is defined, 'abc' | first, 'abc' | last, '' | first is defined, {'a': 1} | first
words | length, s | count, nested | length, '' | length, missing | length, (1, 2) | length
'abc' | list, {'a': 1} | list, range(2) | list, 'abc' | reverse, [1, 2] | reverse | list, missing | list
words | join, words | join('+'), people | join(', ', attribute='name'), [1, none, 'x'] | join('-'), 'abc' | join('.'), missing | join(',')
people | map(attribute='name') | list, people | map(attribute='city.n') | list, people | map(attribute='zip', default='?') | list, words | map('upper') | list, words | map('replace', 'p', 'P') | join(' ')
numbers | select('odd') | list, [1, 2, 3] | reject('even') | list, [0, 1, '', 'a'] | select | list, [1, 2, 3] | select('>', 1) | list, words | select('in', ['fig']) | list, [1, 'a', none] | select('string') | list
people | selectattr('age', 'equalto', 30) | map(attribute='name') | list, people | rejectattr('age', 'gt', 25) | list | length, people | selectattr('zip', 'defined') | list, people | selectattr('name') | list | length, people | selectattr('city.n', '==', 'Y') | map(attribute='name') | first
numbers | sum, people | sum(attribute='age'), [] | sum, [[1], [2]] | sum(start=[]), numbers | min, numbers | max, words | min, words | max, people | max(attribute='age') == people[0], [] | max is defined
people | groupby('age') | list | length, people | groupby('city.n') | map('first') | list, people | groupby('age') | map('last') | map('length') | list, people | groupby('zip', default='none') | map(attribute='grouper') | list
[1, 2, 3, 4, 5] | batch(2) | list, [1, 2, 3] | batch(2, 'x') | list, [1, 2, 3, 4, 5] | slice(3) | list, [1, 2, 3, 4] | slice(3, 'x') | list, [] | batch(3) | list
nested | items | list, missing | items | list, blank | default('d'), blank | default('d', true), missing | default('d'), missing | d, nothing | default('d'), nothing | default('d', boolean=true), missing.x | default('d') if no
'42' | int, '42.9' | int, 'x' | int, 'x' | int(5), 3.99 | int, -3.99 | int, true | int, none | int(7), '0x1f' | int(0, 16), 'ff' | int(base=16), ' 12 ' | int, [] | int
'1.5' | float, 'x' | float, 'x' | float(2.5), 3 | float, '1e3' | float, none | float, 'nan' | float, '-inf' | float, ' 2 ' | float, '12345678901234567890' | float, '0.1000000000000000055511151231257827' | float, '1e-320' | float, '2.2250738585072011e-308' | float
3 | abs, -3 | abs, -2.5 | abs, 2.5 | round, 3.5 | round, 2.567 | round(2), 42 | round, 2.5 | round(0, 'floor'), 2.1 | round(0, 'ceil'), 2.675 | round(2), -0.5 | round, 1.005 | round(2, 'ceil'), 0.15 | round(1)
'a b' | upper, 'A B' | lower, 'foo bar-baz (qux) o\'neil' | title, 'FOO bar' | capitalize, ' x ' | trim, 'xxaxx' | trim('x'), 5 | upper, none | lower, true | string, 1.0 | string, [1] | string, 'b' | replace('b', 'c') | replace('c', 5)
'a\nb\n\nc' | indent, 'a\nb\n\nc' | indent(2, true), 'a\nb\n\nc\n' | indent(2, blank=true), 'a\nb' | indent('> '), 'a' | indent, '' | indent, 'a\n' | indent
'foo bar baz qux quux' | truncate(9), 'foo bar baz qux quux' | truncate(9, true), 'foo bar baz' | truncate(11), 'foo bar baz qux' | truncate(11, false, '...', 0), 'short' | truncate(10, end='!')
'foo  bar-baz x1' | wordcount, 'a b/c?d=é&f' | urlencode
'<a & "b" \'c\'>' | escape ~ ' ' ~ '<' | e ~ ' ' ~ '<x>' | safe ~ ' ' ~ (('<' | e) + '<') ~ ' ' ~ ('<' + ('>' | safe)) ~ ' ' ~ '<' | e | e ~ ' ' ~ ('<' | safe) ~ '>' ~ ['<' | e] | join('<')
'%s-%s' | format('a', 1), '%(x)s' | format(x=3), '%05.1f' | format(3.14159)
nested | tojson, words | tojson, 'é"\\/\n\t\x01\u2028<>&\'' | tojson, 1.0 | tojson, 1e22 | tojson, none | tojson, true | tojson, [] | tojson, {} | tojson, (1, 2) | tojson
nested | tojson(indent=2), [] | tojson(indent=2), [1, [2, {}]] | tojson(indent=4), {'b': 1, 'a': [1, 2]} | tojson(sort_keys=true), {'a': 1} | tojson(separators=(',', ':')), 'é😀' | tojson(ensure_ascii=true), {'a': [1]} | tojson(indent='--'), {1: 2, none: 3, true: 4, 1.5: 5} | tojson, tools | tojson(indent=1, separators=(',', ':'))
tools | tojson, messages | tojson, people[0] | string
n is defined, missing is defined, missing is undefined, nothing is none, n is not none, s is string, n is string, nested is mapping, s is mapping, words is iterable, s is iterable, n is iterable, words is sequence, nested is sequence, n is sequence, missing is iterable, missing is sequence
n is number, r is number, s is number, yes is number, n is integer, r is integer, yes is integer, r is float, n is float, yes is boolean, n is boolean, yes is true, no is false, 1 is true, n is odd, n is even, n is divisibleby 7, n is divisibleby(2)
n is eq 7, n is equalto(7), n is ne 3, n is lt 10, n is gt 10, n is ge(7), n is le(6), n is in [1, 7], 'a' is in 'abc', 'abc' is lower, 'ABC' is upper, 'Abc' is lower, '1' is upper, range is callable, s is callable, none is sameas none, 'x' is sameas 'y', ('<' | e) is escaped, 'upper' is filter, 'nope' is filter, 'odd' is test
words is defined and words | length > 3, not words is undefined, words is not string and words is iterable, (n is odd) == true, n is odd and m is odd
'{}|{!s}|{!r}|{:5}|{:d}'.format(true, true, false, true, true), '{}|{}|{}'.format(none, [1, 'a'], missing), '{!s:>6}|{!r:^6}|{!s:.1}'.format(5, 'a', none)
'{:.2}|{:.10}|{:.2}|{:.3}|{:.1}|{:.0}|{:.4}|{:.17}|{:.2}'.format(3.14159, 0.1, 12345.0, 12.0, 3.14, 0.5, 1e-7, 1e16, 0.0), '{:.17}|{:.55}|{:8.3}|{:<8.3}|{:08.3}|{:.2}'.format(0.1, 0.1, 2.5, 2.5, -2.5, 99.99)
'{:05}|{:<05}|{:*<05}|{:*^05}|{:>05}|{:010}'.format('a', 1, 1, 1, 'b', 'é'), '{: d}|{: .1f}|{:+}|{:+.1f}|{:=+5}|{:0=+5}|{:*=5}'.format(42, -1.5, 3, 0.0, 7, 7, -1), '{:.2F}|{:,.2f}|{:,}|{:,}'.format(1.255, -1234567.891, -123456, 1234.5)
'{:100001}'.format('a') | length, ('%100001s' % 'a') | length, '{:>200000}'.format(1) | length
'%05s|%-5s|%05r|%.2s' % ('a', 'b', 'c', 'def'), '% d|% d|%+ d|% +d|% .1f' % (42, -42, 1, 2, 1.5), '%0-5d|%-05d|%05d|%+05d|%05.1f' % (4, 4, -4, 4, -1.5), '%d|%d|%i|%F|%x|%X|%d' % (1e20, -0.5, -3.9, 1.5, -255, 255, 123456789012345678)
'{0[a][b]}|{0[a].b}|{0.a[b]}|{1[0][1]}|{1[1]}|{x[y]}|{0[z.w]}'.format({'a': {'b': 1}, 'z.w': 2}, [[3, 4], 5], x={'y': 6}), '{0} {0} {1}'.format('a', 'b')
'abc'.find('', 5), 'abc'.find('', 3), 'abc'.find('', 2, 1), 'abc'.rfind('', 5), 'abc'.rfind('', 1, 2), 'abc'.find('c', 1, 9), 'éab'.find('', 2), 'abc'.count('', 1), 'abc'.count('', 5), 'abc'.count('', 3), 'abc'.count('', 2, 1), 'éé'.count(''), 'abc'.count('b', 5), 'abc'.startswith('', 5), 'abc'.startswith('', 3), 'abc'.endswith('', 4), 'abc'.endswith('c', 2), 'abc'.startswith(('x', ''), 4), 'abc'.find('a', -9, -1)
-0.0 % 3, 0.0 % -3, -7.5 % 2.5, 1.0 // 0.1, 1.0 % 0.1, -1.0 // 0.1, 7.5 // -2, -0.0 // 3, 0.3 // 0.1, 1e300 // 1e-10
9007199254740993 == 9007199254740992.0, 9007199254740992 == 9007199254740992.0, 9007199254740993 > 9007199254740992.0, 9007199254740992.0 < big, 9223372036854775807 == 9223372036854775808.0, 9223372036854775807 < 9223372036854775808.0, 1 < 1.5, 2 > 1.5, -1 > -1.5, 1 == ('nan' | float), ('nan' | float) != ('nan' | float), 5 < ('inf' | float), [9007199254740993, 9007199254740992.0] | sort
1.7976931348623159e308, 1.7976931348623158e308, 1.7976931348623155e308, 1.797693134862315807e308, 1.7976931348623158079372897140530341507993413271003782693617e308, 1.7976931348623158079372897140530341507993413271003782693618e308, 1e999, -1e400
'1__0' | int, '1_0' | int, '_1' | int, '1_' | int, '1__0' | float, '1_0.5' | float, '1_.5' | float, '1._5' | float, '1e1_0' | float, '1_000.0' | int, 'zz' | int(0, 36), 'z' | int(7, 35), '12' | int(0, 37), 'x' | int(3, 37), '12' | int(0, 1), '12' | int(0, -5), '0b11' | int(0, 0), '1e3' | int, 'inf' | int(4), 'nan' | int(4), '-9223372036854775808' | int
{'a': 1} | urlencode, {'a b': 'c/d', 'é': '&', '~_.-': none} | urlencode, [('a', 1), ('b', 2)] | urlencode, {} | urlencode, 7 | urlencode, {'a': 1}.items() | urlencode, 'a b/c' | urlencode
'abc'.isnumeric(), '12'.isnumeric(), '½'.isnumeric(), '²'.isnumeric(), '½'.isalnum(), '٣'.isalnum(), 'a٣'.isalnum(), 'Ⅷ'.isalnum(), '½'.isdigit(), 'a½ b²' | wordcount
0x7f, 00, 0_0, 0.5, 00.5, 007.5, 10_0
[1, 2] + [3], (1,) + (2,), [[1, 2], [3]] | map('join', ',') | list, (1, 2) + ()
0 | map(attribute='name') | list, nothing | selectattr('a') | list, none | select | list, none | map('upper') | list
nothing[1:]
n[::-1]
nested[1:]
missing, [missing], missing == missing, missing == none, missing ~ 'x', missing | upper, missing | default(1) + 1, (missing or 'x'), not missing, missing in [1], 'a' in missing
(words | select('string')) is iterable, (words | select('lower') | list), (empty | select) and true, (words | map('lower')) is sequence
namespace(a=1).a, namespace({'b': 2}).b, namespace().x is defined
strftime_now('%Y-%m-%d'), strftime_now('%d %b %Y'), strftime_now('%B %d, %Y'), strftime_now('%A %a %H:%M:%S %I %p %y %j %%'), strftime_now('%-d/%-m'), strftime_now('%F %T %e'), strftime_now('')
bos_token ~ eos_token, bos_token + 'x', unk_token is defined
cycler('a', 'b').next(), joiner(', ')() ~ '|', cycler(1).current
{'a': 1, 'a': 2}, {'x': {'y': 1}}.x.y, {'k' ~ 1: 2}['k1'], [1, 2, 3][-1:], 'abc'[1], 'abc'[5] is defined, [][0] is defined
1 if 2 if 0 else 3 else 4
messages | selectattr('role', 'equalto', 'user') | list | length, messages | map(attribute='role') | join(','), messages | selectattr('tool_calls', 'defined') | list | length, (messages | last).content | map(attribute='type') | list
'a' < 1
1 + 'a'
'a' + 1
missing + 1
missing.x
missing[0]
missing()
n()
s.nope()
nested.nope()
1 / 0
1 % 0
n in 5
1 in 'abc'
none[0].x
-'a'
[1, 2].append(3)
{'a': 1}.update({'b': 2})
{'a': 1}.pop('a')
n | length
n | list
missing | tojson
range | tojson
words | nope
n is nope
n is divisibleby 0
people | map(attribute='name') | length
[3, 'a'] | sort
range(1000000)
'%d' % 'x'
'%s %s' % ('a',)
'{} {}'.format(1)
s | replace('a')
s.split('')
s.index('zz')
[1].index(2)
','.join([1])
dict(1)
{[1]: 2}
{}[[1]]
'a' * 'b'
[1] + (2,)
1 < none
s | round
n | int(1, 2, 3, 4)
range()
cycler()
'{:d}'.format(3.5)
'{:s}'.format(5)
'{:5}'.format(none)
'{:5}'.format([1])
'{:5}'.format(missing)
'{:,}'.format('a')
'{:+}'.format('a')
'{:=5}'.format('a')
'{:.2}'.format(5)
'{:.2d}'.format(5)
'{:,x}'.format(5)
'{!r:d}'.format(5)
'{0} {}'.format(1, 2)
'{} {0}'.format(1, 2)
'{0[a}'.format({'a': 1})
'{0[a]b}'.format({'a': 1})
'{0.}'.format({'a': 1})
'{0[]}'.format({'a': 1})
'%x' % 1.5
'abc'.index('', 5)
0 ** -1
0.0 ** -2
2.0 ** 2000
007
1e400 | int
missing | int
(1
people[0] | attr('name') is defined, 'x' | attr('upper') is defined, nothing | attr('x') is defined
numbers | select('<', 2) | list, numbers | select('<=', 2) | list, numbers | select('>=', 2) | list, numbers | reject('!=', 3) | list
numbers | select('lessthan', 2) | list, numbers | select('greaterthan', 2) | list, 3 is lessthan 4, 3 is greaterthan(4)
words.extend([1])
words.insert(0, 'x')
words.remove('fig')
words.clear()
nested.clear()
nested.popitem()
nested.setdefault('a', 1)
'GRÜN'.casefold(), 'a-b-a'.rindex('a'), 'a-b-a'.rindex('a', 0, 3), '12'.isdecimal(), '1x'.isdecimal(), ''.isdecimal()
'abc'.rindex('z')
""".strip().split("\n")

# Whole templates.
TEMPLATES = {
    # Whole conversations, in the shapes that models' templates have.
    "types of tools by a recursive macro": """{%- macro type_of(p) -%}
{%- if p.type is string -%}
  {%- if p.type == 'array' -%}list of {{ type_of(p['items']) if p['items'] is mapping and 'type' in p['items'] else 'anything' }}
  {%- elif p.type == 'object' -%}{ {%- for k, v in p.properties.items() %}{{ k }}: {{ type_of(v) }}{{ ', ' if not loop.last }}{% endfor -%} }
  {%- else -%}{{ p.type }}{%- endif -%}
{%- elif p.type is sequence -%}{{ p.type | join(' or ') }}{%- else -%}unknown{%- endif -%}
{%- if p.enum is defined %} of {{ p.enum | map('tojson') | join('|') }}{% endif -%}
{%- endmacro -%}
{%- for tool in tools -%}{%- set f = tool.function if tool.function is defined else tool %}
tool {{ f.name }}({{ type_of(f.parameters) }})
{%- endfor %}""",
    "the last question before tools answer": """{%- set ns = namespace(last=-1, open=true) -%}
{%- for message in messages[::-1] -%}
  {%- set i = messages | length - 1 - loop.index0 -%}
  {%- if ns.open and message.role == 'user' and message.content is string and not message.content.startswith('<reply>') -%}
    {%- set ns.open = false -%}{%- set ns.last = i -%}
  {%- endif -%}
{%- endfor -%}
{%- for message in messages -%}
{%- if loop.index0 > ns.last %}after{% elif loop.index0 == ns.last %}question{% else %}before{% endif %}:{{ message.role }}
{% endfor -%}""",
    "runs of one role share a frame": """{%- for message in messages + [{'role': 'tool', 'content': 'two'}, {'role': 'user', 'content': 'more'}] -%}
{%- if message.role == 'tool' -%}
  {%- if loop.first or loop.previtem.role != 'tool' %}[tools{% endif %} <{{ message.content if message.content is string else message.content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join(' ') }}>
  {%- if loop.last or loop.nextitem.role != 'tool' %}]{% endif -%}
{%- else %}({{ message.role }}){% endif -%}
{%- endfor -%}""",
    "thoughts are cut out of older answers": """{%- for content in ['<think>\\nwhy\\n</think>\\n\\nBecause.', 'No thought', '<think></think>'] -%}
{%- set answer = content.split('</think>')[-1].lstrip('\\n') -%}
{%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') if '</think>' in content else '' -%}
{{ '<' ~ thought ~ '|' ~ answer ~ '>' }}{%- endfor -%}""",
    "an answer between generation tags in a loop that ends early": """{%- for message in messages -%}
{%- if message.role == 'assistant' -%}{% generation %}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
  {{- '\\ncall ' + call.function.name + ' ' + (call.function.arguments if call.function.arguments is string else call.function.arguments | tojson) -}}
{%- endfor %}<end>{% endgeneration %}{%- break -%}{%- endif -%}
{{ message.role | title }}: {{ message.content | trim }}
{% endfor -%}""",
    "a frame around a caller's text": """{%- macro frame(role, end='<end>') -%}<{{ role }}>{{ caller(role | upper) | trim }}{{ end }}{%- endmacro -%}
{%- for message in messages if message.content is string -%}
{%- call(name) frame(message.role, end='' if loop.last else '<end>') %}
  {{ name }} says {{ message.content | replace('<b>', '') | replace('</b>', '') }}
{% endcall -%}
{%- endfor -%}""",
    "escaped twice": "{{ '<a>' | forceescape }} {{ '<a>' | safe | forceescape }} {{ '<a>' | escape | forceescape }}",
    "dates and days": """{%- if date is not defined -%}{%- set date = strftime_now('%d %b %Y') -%}{%- endif -%}
Cut off at 2023. Now {{ date }}, {{ strftime_now('%A, %B %d, %Y') }}, {{ strftime_now('%Y-%m-%dT%H:%M:%S') }}.""",
    "roles must take turns": """{%- set ns = namespace(expected='user') -%}
{%- for message in messages -%}
{%- if loop.first and message.role == 'system' -%}{%- continue -%}{%- endif -%}
{%- if message.role in ['tool', 'tool_results'] -%}{{ raise_exception('a ' ~ message.role ~ ' speaks after ' ~ (loop.previtem.role)) }}{%- endif -%}
{%- if message.role != ns.expected -%}{{ raise_exception('not ' ~ ns.expected) }}{%- endif -%}
{%- set ns.expected = 'assistant' if ns.expected == 'user' else 'user' -%}{{ message.role }}
{% endfor -%}""",
    "parts of messages with places of images": """{%- set ns = namespace(images=0) -%}
{%- for message in messages -%}
{%- if message.content is string -%}{{ message.content | trim }}
{%- elif message.content is not none and message.content is iterable -%}
{%- for part in message.content -%}
{%- if part.type == 'image' or 'image_url' in part -%}{%- set ns.images = ns.images + 1 -%}<image {{ ns.images }}>
{%- elif 'text' in part -%}{{ part.text }}{%- endif -%}
{%- endfor -%}
{%- endif %};
{% endfor -%}
{{ 'with ' ~ ns.images ~ ' image' ~ ('s' if ns.images != 1) }}""",
    "a list of tools in two forms of JSON": """{%- set names = tools | map(attribute='function.name') | list -%}
{{ names | join(', ') }}
{{ tools | tojson(indent=2) }}
{%- for tool in tools | selectattr('type', 'equalto', 'function') | rejectattr('hidden', 'defined') %}
{{ {'name': tool.function.name} | tojson }} {{ (tool.function | string)[:12] }}
{%- for key, value in tool.function.parameters.properties | dictsort %} {{ key }}={{ value | tojson(sort_keys=true) }}{% endfor -%}
{% endfor %}""",
    "loop variables": "{% for w in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "loop cycle and changed": "{% for p in people %}{{ loop.cycle('a', 'b') }}{{ loop.changed(p.age) }} {% endfor %}",
    "loop else": "{% for x in empty %}x{% else %}none{% endfor %}{% for x in words %}x{% else %}none{% endfor %}",
    "loop with condition": "{% for x in numbers if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% else %}no{% endfor %}{% for x in numbers if x > 9 %}x{% else %}no{% endfor %}",
    "loop unpacking": "{% for k, v in nested.items() %}{{ k }}={{ v }};{% endfor %}{% for k, (a, b) in [(1, (2, 3))] %}{{ k }}{{ a }}{{ b }}{% endfor %}{% for (a, b) in pairs %}{{ a }}{{ b }}{% endfor %}",
    "loop break": "{% for x in range(10) %}{% if x == 5 %}{% break %}{% endif %}{% if x is odd %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "loop nested": "{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ a }}{{ b }}{% if b == 3 %}{% continue %}{% endif %}!{% endfor %}{{ loop.index }}{% endfor %}",
    "loop recursive": "{% for x in [[1, [2, 3]], [4]] recursive %}[{{ loop.depth }}{% if x is iterable %}{{ loop(x) }}{% else %}{{ x }}{% endif %}]{% endfor %}",
    "loop over text and dict": "{% for c in 'aé😀' %}{{ c }}.{% endfor %}{% for k in nested %}{{ k }}.{% endfor %}{% for x in missing %}x{% else %}-{% endfor %}",
    "loop over generator twice": "{% set g = words | select('string') %}{% for x in g %}{{ x }}{% endfor %}|{% for x in g %}{{ x }}{% endfor %}",
    "line continued in a text": "{{ 'a\\\nb' }}",
    "loop scope": "{% set x = 0 %}{% for i in [1, 2, 3] %}{{ x }}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}{{ i is defined }}",
    "loop reads outer": "{% for i in [1, 2] %}{% if loop.first %}{% set y = 'a' %}{% endif %}{{ y is defined }}{% endfor %}{{ y is defined }}",
    "loop variable shadows": "{% set x = 'out' %}{% for x in [1] %}{{ x }}{% endfor %}{{ x }}",
    "namespace in loop": "{% set ns = namespace(n=0, found=false) %}{% for i in [1, 2, 3] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{{ ns.found }}{% set ns.new = 'x' %}{{ ns.new }}",
    "set tuple": "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}{% set (c, d) = 'xy' %}{{ c }}{{ d }}",
    "set block": "{% set x %} a {{ n }} {% endset %}[{{ x }}]{% set y | upper | trim %} b {% endset %}[{{ y }}]{{ x is string }}",
    "set in if": "{% if yes %}{% set x = 1 %}{% else %}{% set x = 2 %}{% endif %}{{ x }}",
    "if chain": "{% for i in range(5) %}{% if i == 0 %}a{% elif i == 1 %}b{% elif i == 2 %}{% else %}c{% if i == 4 %}d{% endif %}e{% endif %}{% endfor %}",
    "if values": "{% for v in [0, 1, '', 'a', none, [], [0], {}, {'a': 1}, 0.0, missing] %}{% if v %}1{% else %}0{% endif %}{% endfor %}",
    "macro": "{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c='y') }} {{ m(a=5, b=6) }} {{ m() }}",
    "macro defaults see parameters": "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}",
    "macro varargs": "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}{{ m(1) }}",
    "macro scope": "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{% set x = 2 %}{{ m() }}{{ x }}",
    "macro recursion": "{% macro f(n) %}{{ n }}{% if n > 0 %},{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "macro in loop": "{% for i in [1, 2] %}{% macro m() %}<{{ i }}>{% endmacro %}{{ m() }}{% endfor %}",
    "macro as text": "{% macro m() %} a {% endmacro %}{{ m() | trim | upper }}{{ m().strip() ~ '!' }}{{ m() is string }}{{ m.name }}",
    "macro too many": "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "macro unknown": "{% macro m(a) %}{% endmacro %}{{ m(z=2) }}",
    "call block": "{% macro m(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call m('b') %}in {{ n }}{% endcall %}",
    "call block with parameters": "{% macro m() %}{% for i in [1, 2] %}{{ caller(i, k=i * 2) }}{% endfor %}{% endmacro %}{% call(a, k=0) m() %}{{ a }}:{{ k }} {% endcall %}",
    "caller absent": "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "filter block": "{% filter upper | replace('B', 'x') %}abc {{ s }}{% endfilter %}",
    "filter block without text": "{% filter length %}abc{% endfilter %}",
    "with": "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}{% with %}{% set a = 9 %}{% endwith %}{{ a }}",
    "generation": "{% for m in messages %}{% generation %}{{ m.role }}{% set q = 1 %}{% endgeneration %}{{ q is defined }} {% endfor %}",
    "comment": "a{# comment {{ x }} {% if %} #}b{#- c -#} d {#\nlines\n#}e",
    "raw": "{% raw %}{{ x }}{% if %}{# y #}{% endraw %}|{%- raw -%}  a  {%- endraw -%} b",
    "trim blocks": "{% if yes %}\na\n{% endif %}\nb\n{{ n }}\nc\n{# x #}\nd\n",
    "lstrip blocks": "  {% if yes %}\n    a\n  {% endif %}\n  {{ n }}\n  {# x #}\n   b {% if yes %}c{% endif %}",
    "minus": "a  {%- if yes -%}  b  {%- endif -%}  c  {{- n -}}  d \n {#- x -#} \n e",
    "plus": "a\n  {%+ if yes %}b{% endif +%}\n  c",
    "carriage returns": "a\r\n{% if yes %}\r\nb\rc{% endif %}\r\n",
    "last line feed": "a\n\n",
    "line starts after tag": "{% if yes %}  {% if yes %}x{% endif %}{% endif %}\n  {% if no %}{% endif %}  {% if yes %}y{% endif %}",
    "braces": "{ {{ '{' }} } {{ {'a': {'b': 1}}['a']['b'] }} {{ {} }} { % } {",
    "tag over lines": "{{ {\n  'a': 1,\n  'b': [\n 1, 2,\n ],\n} }}{%\n if\n yes\n %}x{%\nendif\n%}",
    "strings with tags": "{{ '}}' }}{{ '%}' }}{{ \"{{ x }}\" }}",
    "unicode": "Grüße 😀 {{ 'ä' ~ 'ö' }}{{ messages[1].content }}",
    "refusal": "x{{ raise_exception('No ' ~ n ~ '!\nSecond line') }}",
    "refusal in expression": "{% set x = raise_exception('bad') if yes else 1 %}",
    "cycler": "{% set c = cycler('a', 'b') %}{% for i in range(3) %}{{ c.next() }}{{ c.current }}{% endfor %}{{ c.reset() }}{{ c.next() }}",
    "joiner": "{% set j = joiner(', ') %}{% for w in words %}{{ j() }}{{ w }}{% endfor %}",
    "spread": "{% macro m(a, b, c=0) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(*[1], **{'b': 5, 'c': 6}) }}",
    "tools": "{%- for t in tools %}\n{{ t.function | tojson(indent=2) }}\n{%- for name, p in t.function.parameters.properties.items() %}\n- {{ name }}: {{ p.type if p.type is string else p.type | join('|') }}{% if p.enum is defined %} {{ p.enum }}{% endif %}\n{%- endfor %}\n{%- endfor %}",
    "messages": "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>\n{% if m.content is string %}{{ m.content | trim }}{% elif m.content is none %}{% for c in m.tool_calls %}{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}{{ ', ' if not loop.last }}{% endfor %}){% endfor %}{% else %}{% for p in m.content %}{{ p.text if p.type == 'text' else '<' ~ p.type ~ '>' }}{% endfor %}{% endif %}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    "groupby unpacking": "{% for age, group in people | groupby('age') %}{{ age }}:{% for p in group %}{{ p.name }} {% endfor %}{% endfor %}{% for g in people | groupby('city.n') %}{{ g.grouper }}{{ g.list | length }}{% endfor %}",
    "unclosed if": "{% if yes %}a",
    "unclosed tag": "{% if yes",
    "unclosed print": "{{ n",
    "unclosed comment": "a {# b",
    "unclosed raw": "{% raw %} a",
    "unclosed text": "{{ 'a }}",
    "unexpected end": "{% endif %}",
    "unexpected else": "{% for x in words %}{% endif %}",
    "unknown tag": "{% include 'x' %}",
    "unknown statement": "{% nope %}",
    "empty print": "{{ }}",
    "wrong bracket": "{{ (1] }}",
    "two values": "{{ 1 2 }}",
    "break outside": "{% break %}",
    "unpack too few": "{% set a, b = [1] %}",
    "unpack too many": "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "set attribute of no namespace": "{% set x = {} %}{% set x.a = 1 %}",
    "positional after named": "{% macro m(a=1, b) %}{% endmacro %}",
    "for without in": "{% for x words %}{% endfor %}",
    "assign to number": "{% set 1 = 2 %}",
    "call without call": "{% call n %}{% endcall %}",
    "chained test": "{{ n is is odd }}",
    "assign to true": "{% set true = 1 %}",
    "loop over none": "{% for none in [1] %}{% endfor %}",
    "parameter false": "{% macro m(False) %}{% endmacro %}",
    "macro none": "{% macro none() %}{% endmacro %}",
    "parameter twice": "{% macro m(a, a) %}{% endmacro %}",
    "not recursive": "{% for x in [[1]] %}{{ loop(x) }}{% endfor %}",
}


class Generation(jinja2.ext.Extension):
    """The `generation` block, whose body is only printed here."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("body"), [], [], body).set_lineno(line)

    def body(self, caller):
        return caller()


class Refusal(Exception):
    pass


def raise_exception(message):
    raise Refusal(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = NOW.strftime


def outcome(template):
    try:
        return {"text": environment.from_string(template).render(**SPECIAL, **VARIABLES, add_generation_prompt=True)}
    except Refusal as refusal:
        return {"refuses": str(refusal)}
    except Exception:
        return {"fails": True}


def cases():
    for line in EXPRESSIONS:
        yield line, "[{{ " + line + " }}]"
    yield from TEMPLATES.items()


if __name__ == "__main__":
    variables = {**VARIABLES, "add_generation_prompt": True}
    made = [{"name": name, "template": template, **outcome(template)} for name, template in cases()]
    print(json.dumps({"special": SPECIAL, "now": NOW.isoformat(), "variables": variables, "cases": made}, ensure_ascii=False, indent=1))
