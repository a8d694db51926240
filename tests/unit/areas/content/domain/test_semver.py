"""Semantic versions: their order, and the original's words for what is none."""

import pytest

from fairlead import errors
from fairlead.areas.content.domain import semver

RISING = [
    *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"),
    *("1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "4.17.6-0.ci-2024-08-19-220527", "4.17.6"),
]


def test_versions_stand_in_the_order_of_the_standard() -> None:
    assert sorted(set(RISING), key=lambda each: semver.parse(each).key) == RISING


def test_build_metadata_does_not_count() -> None:
    assert semver.parse("1.2.3+build.5").key == semver.parse("1.2.3").key


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Version string empty"),
        ("vfake", "No Major.Minor.Patch elements found"),
        ("4.17", "No Major.Minor.Patch elements found"),
        ("v4.17.0", 'Invalid character(s) found in major number "v4"'),
        ("4.x.0", 'Invalid character(s) found in minor number "x"'),
        ("4.17.01", 'Patch number must not contain leading zeroes "01"'),
        ("04.17.1", 'Major number must not contain leading zeroes "04"'),
        (".1.2", 'strconv.ParseUint: parsing "": invalid syntax'),
        (f"4.{'9' * 30}.0", f'strconv.ParseUint: parsing "{"9" * 30}": value out of range'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a+b", 'Invalid character(s) found in build meta data "a+b"'),
        ('1.2."\n\x00\u200b', 'Invalid character(s) found in patch number "\\"\\n\\x00\\u200b"'),
    ],
)
def test_what_is_no_version_is_refused_in_the_words_of_the_original(text: str, said: str) -> None:
    with pytest.raises(errors.Rejected) as refused:
        semver.parse(text)

    assert refused.value.message == said
