"""Naming an agent on the command line."""

from __future__ import annotations

import pytest

from proctor_grader.agents.base import AgentKind, AgentSpec, parse_agent
from proctor_grader.errors import UserError


@pytest.mark.parametrize(
    ("text", "kind", "argument"),
    [
        pytest.param("oracle", AgentKind.ORACLE, "", id="the-oracle"),
        pytest.param("none", AgentKind.NONE, "", id="nobody"),
        pytest.param("replay:a:b.yaml", AgentKind.REPLAY, "a:b.yaml", id="a-file-with-a-colon"),
        pytest.param("command:my agent", AgentKind.COMMAND, "my agent", id="a-line"),
    ],
)
def test_an_agent_is_read_and_written_alike(text: str, kind: AgentKind, argument: str) -> None:
    spec = parse_agent(text)

    assert spec == AgentSpec(kind, argument)
    assert str(spec) == text


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        pytest.param("a 'b c' \"d e\" f\\ g", ("a", "b c", "d e", "f g"), id="quotes"),
        pytest.param("a $HOME *.txt ; b", ("a", "$HOME", "*.txt", ";", "b"), id="no-shell"),
        pytest.param("a ''", ("a", ""), id="an-empty-word"),
    ],
)
def test_a_line_is_split_into_words_and_never_meets_a_shell(
    line: str, argv: tuple[str, ...]
) -> None:
    assert parse_agent(f"command:{line}").argv == argv


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "--agent: is missing", id="nothing"),
        pytest.param("  ", "--agent: is missing", id="blank"),
        pytest.param("replya:x", "did you mean 'replay'?", id="a-slip"),
        pytest.param("claude", "unknown agent 'claude'", id="another-word"),
        pytest.param("replay", "'replay' needs an argument: use replay:FILE", id="no-file"),
        pytest.param("command: ", "'command' needs an argument: use command:LINE", id="no-line"),
        pytest.param("oracle:x", "'oracle' takes no argument", id="an-argument-too-many"),
        pytest.param("command:a 'b", "close the quotes", id="an-open-quote"),
        pytest.param("command:'' b", "the command line is empty", id="an-empty-program"),
    ],
)
def test_a_misnamed_agent_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_agent(text)

    assert message in str(caught.value)
