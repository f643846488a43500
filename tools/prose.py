#!/usr/bin/env python3
"""Checks comments, documents, names and commit subjects for plain English.

    tools/prose.py [--base COMMIT] [FOLDER]

Checks all files or those of a folder, and the subjects of all commits since the base. The base is
COMMIT or, by default, the commit at which the branch left its upstream branch.

- Comments, and the first sentence of a section, begin with a noun phrase or a whole sentence.
- Functions are named by verb phrases, and tests by at most eight words.
- Comments, and all lines of Python, have at most 100 characters per line.
- Commit subjects are imperative, and have at most 72 characters.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from step import ROOT

#: Generated files, data, text by other authors, and the lists of words in this file.
EXCLUDED = re.compile(
    r"THIRD-PARTY-LICENSES|static/src/wire/|docs/reference/|tests/fuzz/seeds/|/snapshots/"
    r"|tools/prose\.py|tests/python/test_prose\.py"
)
MAX_LINE = 100
COMMENT_LINE = re.compile(r"\s*(?://|/?\*(?:[ */]|$))")
MAX_SUBJECT = 72
MAX_TEST_WORDS = 8
#: The maximum length of one-word names that are checked, because longer words are clear.
MAX_SHORT_NAME = 8

#: The first words of comments that are fragments. A question may begin with these words.
FRAGMENTS = ["What", "Who", "Of", "Where", "As", "It", "They"]

#: Expressions that sound translated, and their replacements.
DIALECT = {
    r"\b(?:tell|tells|told)\b(?! apart)": "report, return, send, notify or show",
    r"\bsays\b": "reports, states or shows",
    r"\bbeside\b": "next to, or compared with",
    r"\bwhat is left of\b": "the remaining",
    r"\bwhat of (?:it|them|the)\b": "the part of … that …",
    r"\bstands for itself\b": "is alone",
    r"\bcomes? to an end\b": "ends",
    r"\bgoes on\b": "continues",
    r"\b(?:is|are) to be had\b": "is available",
    r"\b(?:is|are) known of\b": "is recorded",
    r"\bdear(?:er|est)?\b": "expensive",
    r"\bthe own\b": "the server's own, the user's own",
    r"\bin such as\b": "in a directory that, in a file that",
    r"\b(?:whoever|whomever|thereof|of whom|of which)\b": "a sentence with its own subject",
}

#: Words that must not be part of a name, and their replacements.
DIALECT_NAMES = {
    "told": "reported, sent, notification",
    "tells": "reports, sends",
    "whose": "owner",
    "who": "owner, user, process",
    "wish": "request",
    "beside": "baseline, reference",
    "doors": "access",
    "diary": "log, model",
    "pen": "writer, model",
}

#: Names of one word that are clear: verbs, and names of the standard libraries.
KNOWN_NAMES = set(
    """
    abort accept acquire activate add admit adopt advance align all allocate allow amend
    announce any append apply arm ask assert attach await back begin bind build cache call
    cancel capture cast chain change check choose clamp clean clear click clone close cmp
    collect color columns combine commit compare compile compute connect consume contains
    convert copy cos count cover create cut data dec decode default delete deliver deny deref
    describe destroy detach detect difference digest discard dispatch display dispose divide
    done drain draw drop dump emit empty enable encode end enter entries entry eq error escape
    evaluate exec execute exit expand expect explain export extend extract fail fetch field
    fields fill filter find finish first flush fmt focus fold follow forbid forget fork format
    forward frame free freeze from gather generate get group grow guard handle hash head height
    hide host id identify ignore import inc increase index ingest init insert inspect install
    into invoke is items iter join json keep key keys kill kind label last launch layout learn
    leave len length limit line lines link list listen load locate lock log lookup loop lower
    main make map mark match max mean measure median merge message min mix mock modify mount
    move mul multiply name names neg new next normal notify now observe offset ok open order
    pack pad page paint parent parse partial pass path pause percent pick pid ping place plan
    play poll pop port position prepare press print probe process product program prune publish
    pull push put query quit quote raise range rank rate read ready rebuild receive record
    reduce refresh refuse register reject release reload remove rename render repeat replace
    reply report request reset resize resolve respond restart restore resume retain retry return
    reverse revoke root rotate round route row rows run sample save scale scan schedule scroll
    seal search seek select send serve set settle setup show shrink shut shutdown sign sin size
    skip sleep slice sort source spawn split sqrt start state status step stop store stream
    strip style sub submit subscribe sum swap sync take target test text tick time title to
    toggle total touch trace track train transform translate trim truncate try tune type unblock
    unit units unlink unlock unmount unpack unwrap update upgrade url usage use uuid validate
    value values verify version view visit wait wake walk warn watch width with wrap write yield
    zip
    """.split()
)

#: Names that break the rules but are allowed. The keys are the reasons.
EXCEPTIONS = {
    "benchmarks, which `tests/bench/run.py --only` takes by name": """
        calls churn clients cost day guesses history hung idle kills look python readers scrapes
        top wire
    """,
    "the public Python interface, and magics": """
        absence at epoch gpu history lost shared snapshot started stored
    """,
    "functions of other libraries that a program imitates or overrides": """
        __dir__ __gt__ __pow__ __rmul__ arc array asarray asnumpy avalues clip cpu exp function
        hostname numel rect reshape square stroke tobytes where
    """,
    "functions that macros, serde or fuzz targets name": """
        answer cgroup constant dcgm device except fdinfo fit forbid help info mig named numbers one
        owner part plain random replay rounded scratch sigmoid since static system unknown watts
        xml zero
    """,
    "nouns that tests replace by mocks of the same name": "actions feed running",
    "verbs and getters that read at once": """
        base ceiling chart enqueue includes matches measured refusal subtract summary tasks
    """,
}
EXCEPTED_NAMES = set(" ".join(EXCEPTIONS.values()).split())
#: The option `--beside` keeps its name for a version, and so do its variables.
KEPT_NAMES = {"beside"}

#: Words that are not a clear name for a value. A method that only returns a value of `self` may
#: have any other word as its name.
OPAQUE = re.compile(
    r"\w+ed|of|at|by|in|on|to|over|under|until|since|between|within|below|above|after|before|behind"
    r"|without|against|who|what|where|when|why|whose|own|none|each|both|one|two|other|only|rest"
    r"|much|most|more|least|same|such|so|that|this|shown|known|told|held|lost|found|given|seen|kept"
    r"|left|made|said|taken|written|met|sent|begun|come|gone|has|does"
)

#: First words of commit subjects that are not imperatives.
NO_IMPERATIVE = re.compile(
    r"^(?:[a-z]|[A-Z]\w*(?:ed|ing)\b|\w+:"
    r"|(?:A|An|The|This|What|Where|Who|As|It|No|Some|All|Every)\b)"
)
#: Imperatives that look like participles.
IMPERATIVES = {
    "Bring",
    "Embed",
    "Exceed",
    "Feed",
    "Need",
    "Proceed",
    "Seed",
    "Shed",
    "Speed",
    "String",
    "Succeed",
    "Ping",
}


@dataclass(frozen=True)
class Finding:
    """A problem in one line of a file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--base", help="the commit before the first checked subject")
    arguments.add_argument("folder", nargs="?", default="", help="the folder with the files")
    options = arguments.parse_args()
    errors = [
        str(finding)
        for name in _git("ls-files")
        if name.startswith(options.folder) and is_checked(name)
        for finding in check_file(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    errors += [
        f"commit {subject}: {problem}"
        for subject in _subjects(options.base or find_merge_base())
        for problem in check_subject(subject)
    ]
    print(*errors, sep="\n", end="\n" if errors else "")
    return 1 if errors else 0


def is_checked(name: str) -> bool:
    return bool(language_of(name)) and not EXCLUDED.search(name)


def language_of(name: str) -> str | None:
    """Returns the language of a file, or nothing for one that is not checked."""
    kinds = {
        ".rs": "rust",
        ".ts": "typescript",
        ".tsx": "typescript",
        ".js": "typescript",
        ".mjs": "typescript",
        ".py": "python",
    }
    return {**kinds, ".md": "markdown"}.get(Path(name).suffix)


def check_file(name: str, text: str) -> list[Finding]:
    kind, lines = language_of(name), text.splitlines()
    found: list[tuple[int, str]] = []
    # Lines of Markdown may be longer: Prettier does not wrap Markdown, and a row of a table must be
    # one line.
    if kind != "markdown":
        found += [
            (number, f"has {len(line)} characters: at most {MAX_LINE}")
            for number, line in _long_lines(kind or "", lines)
        ]
    texts = {"markdown": _paragraphs, "python": _python_comments}.get(kind or "", _comments)(lines)
    for first, paragraph, next_code in texts:
        found += _check_text(first, paragraph, next_code)
    if kind != "markdown":
        found += _check_names(kind or "", name, lines)
    return [Finding(name, number, message) for number, message in sorted(set(found))]


def _long_lines(kind: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        # rustfmt and Prettier already wrap all other code, so only comments and Python are checked.
        # A line with a URL may be longer, because a URL cannot be wrapped.
        is_broken_by_hand = kind == "python" or COMMENT_LINE.match(line)
        if is_broken_by_hand and len(line) > MAX_LINE and "://" not in line:
            yield number, line


#: A piece of prose: the number of its first line, its lines, and the line of code that follows.
Text = tuple[int, list[str], str]


def _comments(lines: list[str]) -> Iterator[Text]:
    """Yields the comments of Rust and TypeScript; an empty line of a comment begins another."""
    yield from _comment_blocks(
        lines,
        re.compile(r"^\s*(?://[/!]?|/\*\*?|\*/?)(?: |$)(.*?)(?:\*/)?$"),
        re.compile(r"\s//[/!]? (.+)$"),
    )


def _python_comments(lines: list[str]) -> Iterator[Text]:
    yield from _comment_blocks(
        lines, re.compile(r"^\s*#:?(?: |$)(.*)$"), re.compile(r"\s#:? (.+)$")
    )
    number = 0
    while number < len(lines):
        opening = re.match(r'^\s*[rf]?"""(.*)$', lines[number])
        if opening is None:
            number += 1
            continue
        first, body = number, [opening[1]]
        while '"""' not in body[-1] and number + 1 < len(lines):
            number += 1
            body.append(lines[number].strip())
        body[-1] = body[-1].split('"""')[0]
        for start, end in _find_runs(body):
            yield first + start + 1, body[start:end], ""
        number += 1


def _comment_blocks(
    lines: list[str], whole: re.Pattern[str], trailing: re.Pattern[str]
) -> Iterator[Text]:
    block: list[str] = []
    is_code = False
    for number, line in enumerate([*lines, ""]):
        match = whole.match(line)
        content = match[1].strip() if match else ""
        if content.startswith("```"):
            is_code = not is_code
        if content and not is_code and not content.startswith("```"):
            block.append(content)
            continue
        if block:
            yield number - len(block) + 1, block, "" if match else line
            block = []
        if match is None:
            is_code = False
            if (after := trailing.search(line)) and line[: after.start()].count('"') % 2 == 0:
                yield number + 1, [after[1]], ""


def _paragraphs(lines: list[str]) -> Iterator[Text]:
    """Yields the lines of Markdown, without code."""
    is_code, is_first = False, True
    for number, line in enumerate(lines, 1):
        content = line.strip()
        if content.startswith("```"):
            is_code = not is_code
        if is_code or not content or content.startswith(("```", "<", "[")):
            continue
        heading = content.startswith("#")
        # Only the first sentence is checked for a pronoun at its beginning. In a later sentence,
        # the pronoun can refer to the sentence before.
        yield number, [content.lstrip("#>-* ") if is_first or heading else f"… {content}"], ""
        is_first = heading


def _find_runs(body: list[str]) -> Iterator[tuple[int, int]]:
    """Yields the start and the end of each run of nonblank lines."""
    start = None
    for number, line in enumerate([*body, ""]):
        if line.strip() and start is None:
            start = number
        elif not line.strip() and start is not None:
            yield start, number
            start = None


def _check_text(first: int, paragraph: list[str], next_code: str) -> Iterator[tuple[int, str]]:
    text = " ".join(paragraph)
    word = re.match(r"(\w+)\b(?!`)", text.lstrip("-* "))
    sentence = re.split(r"(?<=[.:?!])(?: |$)", text)[0]
    if word and not sentence.endswith("?"):
        if word[1] in FRAGMENTS:
            yield (
                first,
                f"begins with “{word[1]}”: write a noun phrase, or a sentence with its subject",
            )
        if word[1] == "Whether" and re.search(r"\bfn ", next_code):
            yield first, "begins with “Whether”: write “Returns whether”"
    for number, line in enumerate(paragraph, first):
        prose = re.sub(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|\*[^*]+\*", "", line)
        for expression, instead in DIALECT.items():
            for match in re.finditer(expression, prose, re.IGNORECASE):
                yield number, f"“{match[0]}”: write {instead}"


#: The definition of a function, with its name.
FUNCTIONS = {
    "rust": re.compile(r"^\s*(?:pub(?:\([^)]*\))? |const |async |unsafe )*fn (?:r#)?(\w+)"),
    "python": re.compile(r"^\s*(?:async )?def (\w+)"),
    "typescript": re.compile(
        r"^\s*(?:export |default |async )*function (\w+)"
        r"|^  (?:private |protected |public |static |override |async |get |set )*"
        r"(\w+)\([^)]*\)(?:: [^={]+)? \{$"
    ),
}
#: The definition of anything that has a name.
DEFINITIONS = re.compile(
    r"\b(?:fn|def|function|struct|enum|trait|type|class|interface|mod|const|static|let|mut) (\w+)"
)
#: A test of vitest, with its name.
QUOTED_TEST = re.compile(r"^\s*(?:it|test)(?:\.\w+)*\(\s*(['\"])(.+?)\1")


def _check_names(kind: str, name: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    is_test = False
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*#\[(?:tokio::)?test", line):
            is_test = True
            continue
        for defined in DEFINITIONS.findall(line.split("#" if kind == "python" else "//")[0]):
            for word in re.findall(r"[A-Z]?[a-z]+", defined):
                if defined not in KEPT_NAMES and (instead := DIALECT_NAMES.get(word.lower())):
                    yield number, f"“{word}” in {defined}: {instead}"
        quoted = QUOTED_TEST.match(line) if ".test." in name else None
        if quoted:
            yield from _check_test_name(number, quoted[2].split())
        found = FUNCTIONS[kind].match(line)
        if found is None:
            continue
        own = next(filter(None, found.groups()))
        words = [word for word in own.split("_") if word]
        if kind == "python" and own.startswith("test_"):
            is_test, words = True, words[1:]
        if is_test:
            yield from _check_test_name(number, words)
        elif not is_clear_name(own, line):
            yield (
                number,
                f"fn {own}: name a function by a verb phrase, or as a standard library does",
            )
        is_test = False


def _check_test_name(number: int, words: list[str]) -> Iterator[tuple[int, str]]:
    if len(words) > MAX_TEST_WORDS:
        yield number, f"the test has a name of {len(words)} words: at most {MAX_TEST_WORDS}"


def is_clear_name(name: str, definition: str) -> bool:
    """Returns whether a name is more than one short word, or a word that readers know."""
    if len(name) > MAX_SHORT_NAME or not name.islower() or "_" in name.strip("_"):
        return True
    is_getter = re.search(r"\(&?self\) (?:->|:)", definition) is not None
    known = name.strip("_") in KNOWN_NAMES or name in EXCEPTED_NAMES
    return known or (is_getter and not OPAQUE.fullmatch(name))


def check_subject(subject: str) -> Iterator[str]:
    if len(subject) > MAX_SUBJECT:
        yield f"has {len(subject)} characters: at most {MAX_SUBJECT}"
    if NO_IMPERATIVE.match(subject) and subject.split()[0] not in IMPERATIVES:
        yield "is not imperative: begin with a verb such as “Add”"


def find_merge_base() -> str:
    """Returns the commit at which the branch left its upstream branch, or the last commit if there
    is no upstream branch.
    """
    for upstream in ("@{upstream}", "origin/HEAD"):
        command = ["git", "merge-base", "HEAD", upstream]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    return "HEAD"


def _subjects(base: str) -> list[str]:
    return _git("log", "--no-merges", "--format=%s", f"{base}..HEAD")


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
