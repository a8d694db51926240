import pytest

from fairlead import errors
from fairlead.areas.deployments.migrations import statements

QUOTES = {
    "strings": "SELECT 'a;b', 'it''s; fine'",
    "identifiers": 'SELECT "a;""b"',
    "escapes": r"SELECT E'it\'s; fine'",
    "a continued escape": "SELECT E'a'\n  -- why\n  'it\\'s; fine'",
    "dollar quotes": "DO $$ BEGIN; PERFORM 1; END $$",
    "tagged dollar quotes": "DO $a$ x; $b$ ; $b$ $$ ; $$ $a$",
    "dollars in names": "SELECT a$b$c, 1 AS d$",
    "comments at the end of a line": "SELECT 1 -- ; not here\n + 1",
    "nested comments": "SELECT 1 /* ; /* ; */ ; */ + 1",
    "rules": "CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM a; DELETE FROM b)",
    "atomic bodies": "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true"
    " THEN 1 END; END",
}


@pytest.mark.parametrize("sql", QUOTES.values(), ids=QUOTES)
def test_a_semicolon_that_ends_nothing_splits_nothing(sql: str) -> None:
    found = statements.split(f"{sql};\nSELECT 2;")

    assert [each.sql for each in found] == [sql, "SELECT 2"]


def test_a_statement_knows_its_line_and_its_words() -> None:
    first, second = statements.split('-- why\n;;\ncreate TABLE a(); /* x */\n\ndrop table "b"')

    assert (first.line, second.line) == (3, 5)
    assert first.tokens == ("CREATE", "TABLE", "A", "(", ")")
    assert second.starts("DROP", "TABLE")
    assert '"b"' in second


def test_a_file_without_statements_has_none() -> None:
    assert statements.split("-- nothing yet\n/* here */ ;\n") == []


@pytest.mark.parametrize("text", ["SELECT 'a", 'SELECT "a', "/* a", "SELECT $a$ b $$", "\\dt"])
def test_what_cannot_be_split_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(errors.Rejected, match="line: 2"):
        statements.split(f"SELECT 1;\n{text}")
