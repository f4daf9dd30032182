# SPDX-License-Identifier: Apache-2.0
"""Where a fault can be planted in a C source: candidates_of(path, text) finds every place and what would stand there.

A tokenizer and a walk over statements, no more: it knows functions, blocks, statements and conditions, and the layout
that clang-format gives our code (a binary operator has spaces around it, a unary one has not).
"""
import dataclasses
import hashlib
import re

TOKEN = re.compile(r"""
    (?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*)
  | (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<string>(?:L|u8?|U)?"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])
""", re.X | re.S | re.M)

KINDS = ("relation", "arithmetic", "logic", "constant", "dropped", "negated", "return")

RELATION = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&",
              "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "%=": "/=", "<<=": ">>=", ">>=": "<<=", "&=": "|=",
              "|=": "&=", "^=": "|=", "++": "--", "--": "++"}
LOGIC = {"&&": "||", "||": "&&"}

# What is said, checked or measured, not done: nothing within such a call is changed, and the call is not dropped.
SAID = re.compile(r"(_?_?[sS]tatic_assert|assert|tc_log|tc_log_about|tc_log_at|tc__note|tc__note_as|tb_fail|tb_diag_\w+|"
                  r"__attribute__|__asm__|perror|printf|fprintf|dprintf|abort|TO_REFUSE|REFUSE)$")
# Calls without which a program does the same. Without free() or a lock, too, as far as a test can see that no sanitizer
# watches; `make test` runs all of them under sanitizers, which see both.
UNSEEN = re.compile(r"(free|fini|munmap|\w+_free|\w+_fini|\w+_destroy|\w+_free_unpacked|pthread_mutex_lock|"
                    r"pthread_mutex_init|\w*fadvise\w*|\w*madvise\w*|\w*prefetch\w*|readahead|pthread_setname_np|sched_yield|\w+_pause)$")
TYPES = set("const struct enum union unsigned signed int char bool void double float long short volatile register static "
            "extern inline typedef __typeof__ typeof _Thread_local _Alignas _Atomic size_t ssize_t off_t".split())
CONTROL = {"if", "while", "for", "switch"}


@dataclasses.dataclass(frozen=True)
class Fault:
    """One place in a file, and what stands there instead."""
    path: str
    line: int
    column: int
    kind: str
    start: int
    end: int
    instead: str
    change: str  # how the output shows it
    text: str    # the line as it is
    nth: int = 0  # of those with the same text and change in the file

    @property
    def where(self):
        return f"{self.path}:{self.line}:{self.column}"

    def rank(self, seed):
        """Chance that does not depend on what stands elsewhere in the file."""
        key = f"{seed}|{self.path}|{self.text}|{self.nth}|{self.change}"
        return hashlib.sha256(key.encode()).digest()

    def planted(self, text):
        return text[:self.start] + self.instead + text[self.end:]


class Source:
    """The tokens of a file, and the candidates among them."""

    def __init__(self, path, text):
        self.path, self.text, self.found = path, text, []
        self.tokens = [m for m in TOKEN.finditer(text) if m.lastgroup not in ("comment", "directive")]
        self.words = [m.group() for m in self.tokens]
        self.pair = self._pairs()
        self.quiet = self._quiet()
        self.bounds = set()  # comparisons of which the one with = does the same

    def _pairs(self):
        """The closing bracket of each opening one."""
        pair, open_at = {}, []
        for i, word in enumerate(self.words):
            if word in ("(", "[", "{"):
                open_at.append(i)
            elif word in (")", "]", "}") and open_at:
                pair[open_at.pop()] = i
        return pair

    def _quiet(self):
        """Tokens in what is only said or checked."""
        quiet = set()
        for i, word in enumerate(self.words[:-1]):
            if SAID.match(word) and self.words[i + 1] == "(":
                quiet.update(range(i, self.pair.get(i + 1, i) + 1))
        return quiet

    def walk(self):
        """Into each function's body. A { that follows a ) where no other is open begins one."""
        i, shown = 0, {}
        while i < len(self.words):
            if self.words[i] == "{" and i > 0:
                end = self.pair.get(i, len(self.words) - 1)
                if self.words[i - 1] == ")":
                    self.body(i, end)
                elif self.tokens[i - 1].lastgroup == "string":  # extern "C"
                    end = i
                i = end
            elif self.words[i] == "(":
                i = self.pair.get(i, i)
            i += 1
        faults = []
        for fault in sorted(self.found, key=lambda f: (f.start, f.change)):
            key = (fault.text, fault.change)
            shown[key] = shown.get(key, -1) + 1
            faults.append(dataclasses.replace(fault, nth=shown[key]))
        return faults

    # Statements.

    def body(self, first, last):
        self.returns = []
        self.block(first, last)
        self.swap_returns()

    def block(self, first, last):
        i = first + 1
        while i < last:
            i = self.statement(i, last)

    def statement(self, i, last):
        """Walks the one that begins at i, and says where the next begins."""
        words = self.words
        word = words[i]
        if word == "{":
            self.block(i, self.pair[i])
            return self.pair[i] + 1
        if word == ";" or word == "else":
            return i + 1
        if word == "do":
            i = self.statement(i + 1, last)
            close = self.pair[i + 1]
            self.negate(i, close)
            self.expressions(i + 2, close)
            return close + 2
        if word in CONTROL or word != "return" and self.is_loop_of_ours(i):
            close = self.pair[i + 1]
            if word == "if" and self.only_says(close + 1):
                return self.statement(close + 1, last)
            if word in ("if", "while"):
                self.negate(i, close)
            if word == "if":
                self.note_bound(i + 2, close)
            self.expressions(i + 2, close)
            return self.statement(close + 1, last)
        if word in ("case", "default"):
            while words[i] != ":":
                i += 1
            return i + 1
        if words[i + 1] == ":" and self.tokens[i].lastgroup == "name":
            return i + 2
        end = self.end_of(i, last)
        if word == "return":
            self.returned(i, end)
            self.expressions(i + 1, end)
        elif self.is_declaration(i):
            self.declaration(i, end)
        else:
            self.drop(i, end)
            self.expressions(i, end)
        return end + 1

    def only_says(self, i):
        """A statement that is a line of the log, or the like."""
        first = i + (self.words[i] == "{")
        if not SAID.match(self.words[first]) or self.words[first + 1] != "(":
            return False
        after = self.pair[first + 1] + 2  # behind the ;
        return self.words[after] != "else" if first == i else self.words[after] == "}" and self.words[after + 1] != "else"

    def note_bound(self, first, close):
        """if (a > b) b = a;"""
        words = self.words
        for i in range(first, close):
            if words[i] in ("<", ">", "<=", ">="):
                one, other = words[first:i], words[i + 1:close]
                if words[close + 1:self.end_of(close + 1, len(words))] in ([*one, "=", *other], [*other, "=", *one]):
                    self.bounds.add(i)

    def end_of(self, i, last):
        while i < last and self.words[i] != ";":
            i = self.pair.get(i, i) + 1
        return i

    def is_loop_of_ours(self, i):
        """A macro that a statement follows."""
        if self.tokens[i].lastgroup != "name" or self.words[i + 1] != "(":
            return False
        after = self.words[self.pair[i + 1] + 1]
        return after == "{" or self.tokens[self.pair[i + 1] + 1].lastgroup == "name"

    def is_declaration(self, i):
        words, tokens = self.words, self.tokens
        if words[i] in TYPES or words[i] in ("static", "enum"):
            return True
        if tokens[i].lastgroup != "name" or words[i] in ("break", "continue", "goto"):
            return False
        if words[i + 1] == "(":
            return False
        j = i + 1
        while words[j] == "*" or words[j] == "const":
            j += 1
        return tokens[j].lastgroup == "name" and (j == i + 1 or words[j + 1] in ("=", ";", ",", "["))

    def declaration(self, i, end):
        """What it is set to; not its type, its name, its size. A static one has no code."""
        if self.words[i] in ("static", "enum", "typedef", "extern"):
            return
        while i < end:
            if self.words[i] == "=":
                first, i = i + 1, i + 1
                while i < end and self.words[i] != ",":
                    i = self.pair.get(i, i) + 1
                self.expressions(first, i)
            else:
                i = self.pair.get(i, i) + 1

    # Faults.

    def add(self, kind, first, last, instead, change):
        """Of the tokens from first to last, both included."""
        if first in self.quiet:
            return
        start, end = self.tokens[first].start(), self.tokens[last].end()
        line = self.text.count("\n", 0, start) + 1
        begin = self.text.rfind("\n", 0, start) + 1
        shown = self.text[begin:self.text.find("\n", start)].strip()
        instead += "\n" * self.text.count("\n", start, end)  # lines keep their numbers
        self.found.append(Fault(self.path, line, start - begin + 1, kind, start, end, instead, change, shown))

    def negate(self, i, close):
        inner = self.text[self.tokens[i + 1].end():self.tokens[close].start()]
        if inner.strip() in ("true", "false", "0", "1"):
            return
        begin = self.tokens[i + 1].start()
        line = self.text.count("\n", 0, begin) + 1
        at = self.text.rfind("\n", 0, begin) + 1
        self.found.append(Fault(self.path, line, begin - at + 1, "negated", begin, self.tokens[close].end(),
                                f"(!({inner}))", f"{self.words[i]} (...) -> {self.words[i]} (!(...))",
                                self.text[at:self.text.find("\n", begin)].strip()))

    def drop(self, i, end):
        words = self.words
        name = words[i]
        if SAID.match(name) or name == "(" and words[i + 1] == "void":
            return
        if words[i + 1] == "(" and UNSEEN.match(name):
            return
        shown = re.sub(r"\s+", " ", self.text[self.tokens[i].start():self.tokens[end].end()])
        self.add("dropped", i, end, ";", f"{shown if len(shown) <= 60 else shown[:57] + '...'} -> ;")

    def returned(self, i, end):
        self.returns.append((i, end))
        if i + 2 == end and self.words[i + 1] in ("true", "false"):
            return  # a constant

    def swap_returns(self):
        """An early one gives what the last one gives."""
        if len(self.returns) < 2:
            return
        i, end = self.returns[-1]
        final = self.text[self.tokens[i].start():self.tokens[end].end()]
        if SAID.match(self.words[i + 1]) or end - i > 6:
            return
        for i, end in self.returns[:-1]:
            early = re.sub(r"\s+", " ", self.text[self.tokens[i].start():self.tokens[end].end()])
            if early != final and {early, final} != {"return true;", "return false;"}:
                self.add("return", i, end, final, f"{early if len(early) <= 60 else early[:57] + '...'} -> {final}")

    def expressions(self, first, last):
        """Each operator and constant from first on, before last. Statements in it (a for's) count as expressions."""
        i = first
        while i < last:
            if i == first or self.words[i - 1] == ";":  # `for (type name = ...; ...`
                if self.words[i] != "(" and self.tokens[i].lastgroup == "name" and self.is_declaration(i):
                    while i < last and self.words[i] not in ("=", ";"):
                        i += 1
            if i not in self.quiet:
                self.operator(i)
            i += 1

    def is_binary(self, i):
        begin, end = self.tokens[i].start(), self.tokens[i].end()
        before = self.tokens[i - 1]
        return (self.text[begin - 1] in " \n" and self.text[end] in " \n" and self.words[i + 1] not in (")", ",", ";") and
                (before.lastgroup in ("name", "number", "string") or before.group() in (")", "]", "++", "--")) and
                before.group() not in ("return", "case", "const", "sizeof"))

    def operator(self, i):
        word, group = self.words[i], self.tokens[i].lastgroup
        if group == "number":
            self.number(i, word)
        elif word in ("true", "false"):
            other = "false" if word == "true" else "true"
            self.add("constant", i, i, other, f"{word} -> {other}")
        elif group != "mark":
            return
        elif word in ("++", "--"):
            self.add("arithmetic", i, i, ARITHMETIC[word], f"{word} -> {ARITHMETIC[word]}")
        elif word == "!" and self.words[i + 1] != "=":
            self.add("logic", i, i, "", "! -> nothing")
        elif not self.is_binary(i):
            return
        elif word in RELATION:
            for other in RELATION[word]:
                if i in self.bounds and (other + "=" == word or word + "=" == other):
                    continue
                self.add("relation", i, i, other, f"{word} -> {other}")
        elif word in ARITHMETIC:
            self.add("arithmetic", i, i, ARITHMETIC[word], f"{word} -> {ARITHMETIC[word]}")
        elif word in LOGIC:
            self.add("logic", i, i, LOGIC[word], f"{word} -> {LOGIC[word]}")

    def number(self, i, word):
        match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)", word)
        if not match or self.words[i - 1] == "{" and self.words[i + 1] == "}":  # { 0 } clears
            return
        digits, suffix = match.groups()
        is_hex, is_octal = digits[:2] in ("0x", "0X"), digits[0] == "0" and digits != "0"
        value = int(digits, 16 if is_hex else 8 if is_octal else 10)
        more = () if self.words[i - 2] == "calloc" else (value + 1,)  # more memory than is needed is no fault
        for other in (*more, value - 1):
            if other >= 0:
                shown = (hex(other) if is_hex else str(other)) + suffix
                self.add("constant", i, i, shown, f"{word} -> {shown}")


def candidates_of(path, text):
    return Source(path, text).walk()


def chosen_from(faults, seed):
    """All of a room, in the order in which they are taken: each kind in its turn, by chance, no line twice."""
    by_kind = {kind: sorted((f for f in faults if f.kind == kind), key=lambda f: f.rank(seed), reverse=True)
               for kind in KINDS}
    seen = set()
    while any(by_kind.values()):
        for kind in KINDS:
            while by_kind[kind]:
                fault = by_kind[kind].pop()
                if (fault.path, fault.line) not in seen:
                    seen.add((fault.path, fault.line))
                    yield fault
                    break
