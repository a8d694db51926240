"""The two shapes of the original, byte for byte."""

import json

from fairlead.areas.content.domain import gathering
from tests import contents

RULE = (
    '{"conditions":[{"alert":{"name":"SamplesImagestreamImportFailing"},"type":"alert_is_firing"}],'
    '"gathering_functions":{"logs_of_namespace":'
    '{"namespace":"openshift-cluster-samples-operator","tail_lines":100}}}'
)


def test_version_1_has_its_version_first_and_maps_in_order() -> None:
    data = json.loads(contents.version_files("1.0.2")["v1/rules.json"])

    assert gathering.v1(data) == f'{{"version":"1.0.2","rules":[{RULE}]}}'


def test_version_2_has_its_version_last_and_escapes_what_browsers_read() -> None:
    data = {"version": "1.0.2", "conditional_gathering_rules": [], "container_logs": [contents.LOG]}

    assert gathering.v2(data) == (
        '{"conditional_gathering_rules":[],"container_logs":[{"namespace":"openshift-monitoring",'
        '"pod_name_regex":"prom.*","messages":["a\\u003cb \\u0026 c"]}],"version":"1.0.2"}'
    )


def test_what_go_would_leave_out_is_left_out() -> None:
    log = {**contents.LOG, "previous": False, "unknown": 1}
    rule = {"conditions": [], "gathering_functions": {}, "note": "x"}
    data = {"version": "1", "conditional_gathering_rules": [rule], "container_logs": [log]}

    shown = json.loads(gathering.v2(data))

    assert shown["conditional_gathering_rules"] == [{"gathering_functions": {}}]
    assert list(shown["container_logs"][0]) == ["namespace", "pod_name_regex", "messages"]


def test_a_log_of_a_former_container_says_so_before_its_messages() -> None:
    data = {
        "version": "1",
        "conditional_gathering_rules": [],
        "container_logs": [{**contents.LOG, "previous": True}],
    }

    assert '"pod_name_regex":"prom.*","previous":true,"messages"' in gathering.v2(data)
