"""Reading FCM's conditions: `'a' in topics && ('b' in topics || !('c' in topics))`."""

import re

MAX_TOPICS = 5
_WORD = re.compile(r"\s*(?:('[a-zA-Z0-9-_.~%]{1,900}'\s+in\s+topics)|(&&|\|\||[!()]))")


def condition_fault(text: str) -> str:
    """Explain what is wrong with a condition; empty when nothing is."""
    words: list[str] = []
    at = 0
    while text[at:].strip():
        match = _WORD.match(text, at)
        if match is None:
            return "Invalid condition expression provided."
        words.append("topic" if match[1] else match[2])
        at = match.end()
    if words.count("topic") > MAX_TOPICS:
        return f"Invalid condition expression provided: more than {MAX_TOPICS} topics."
    if _either(words, 0) != len(words):
        return "Invalid condition expression provided."
    return ""


def _either(words: list[str], at: int) -> int:
    """Read terms joined by operators from *at*; return the place behind them, or -1."""
    at = _term(words, at)
    while 0 <= at < len(words) and words[at] in ("&&", "||"):
        at = _term(words, at + 1)
    return at


def _term(words: list[str], at: int) -> int:
    """Read a topic, a negated term or a group from *at*; return the place behind it, or -1."""
    word = words[at] if at < len(words) else ""
    if word == "topic":
        return at + 1
    if word == "!":
        return _term(words, at + 1)
    if word == "(":
        end = _either(words, at + 1)
        return end + 1 if 0 <= end < len(words) and words[end] == ")" else -1
    return -1
