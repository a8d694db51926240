"""What the settings say of where a release may act."""

from pathlib import Path

import pytest

from fairlead import bootstrap, errors
from fairlead.areas.content.area import CONTENT
from fairlead.areas.content.release import host

WHERE = "https://git.example/acme/ops.git"


def test_the_kind_of_git_host_decides_whether_pull_requests_are_opened(tmp_path: Path) -> None:
    given = {"FAIRLEAD_STATE_DIR": str(tmp_path), "FAIRLEAD_CONTENT_GIT_URL": WHERE}
    read = bootstrap.installation((CONTENT,)).settings

    assert host.platform(read(given)).queues
    assert host.platform(read({**given, "FAIRLEAD_CONTENT_GIT_REQUESTS": "gitlab"})).queues
    with pytest.raises(errors.Rejected, match="unknown kind of git host: svn"):
        host.platform(read({**given, "FAIRLEAD_CONTENT_GIT_REQUESTS": "svn"}))
