"""A deployment on moto's AWS and a real PostgreSQL, from files."""

import copy
import json
from typing import Any

from psycopg import conninfo

from fairlead.areas.deployments.domain.messages import PerformStep
from fairlead.areas.deployments.specs import build, reading
from tests.aws import REGION, Cloud
from tests.unit.areas.deployments.specs.files import CLUSTER

BUCKET = "templates"
SQL = {"orders": {"0001_orders.sql": "CREATE TABLE orders (id int PRIMARY KEY)"}}
APP: dict[str, Any] = {
    "name": "shop",
    "databases": [
        {
            "name": "orders",
            "postgres": {"server_group": "main", "db_name": "fl_orders", "migrations": "sql"},
        }
    ],
    "runtimes": [
        {
            "name": "web",
            "containers": [
                {
                    "name": "app",
                    "image": {"name": "shop"},
                    "env_vars": [{"name": "DB", "database": "orders"}],
                }
            ],
        }
    ],
    "targets": [{"name": "orders"}],
    "blobstores": [{"name": "images"}],
    "secrets": [{"name": "api"}],
}


def cluster(admin_url: str) -> dict[str, Any]:
    """With the address of a real server; no role, as moto has none."""
    where = conninfo.conninfo_to_dict(admin_url)
    found = copy.deepcopy(CLUSTER)
    del found["aws"]["o5_deployer"]
    (host,) = found["aws"]["rds_hosts"]
    host |= {"endpoint": str(where["host"]), "port": int(where["port"] or 5432)}
    return found


def built(
    environment: str,
    admin_url: str = "postgresql://h:1/",
    app: Any = APP,
    version: str = "v1",
    sql: Any = SQL,
) -> build.Built:
    application = build.build_application(reading.application(app), version, sql)
    env = reading.environment({"full_name": environment})
    return build.build_spec(application, env, reading.cluster(cluster(admin_url)), BUCKET)


def step(made: build.Built, name: str, kind: str, **words: Any) -> PerformStep:
    return PerformStep(made.spec, name, kind, 1, f"d1-{name}-1", words)


def prepare(cloud: Cloud) -> None:
    """What is there before any deployment: a bucket, a cluster, the administrator's secret."""
    where = {"LocationConstraint": REGION}
    cloud.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
    cloud.client("ecs").create_cluster(clusterName="ecs")
    admin = json.dumps({"username": "postgres", "password": "unused"})
    cloud.client("secretsmanager").create_secret(Name="rds/main", SecretString=admin)


def store(cloud: Cloud, made: build.Built) -> None:
    for key, text in {made.spec.template.key: made.template, **made.beside}.items():
        cloud.client("s3").put_object(Bucket=BUCKET, Key=key, Body=text.encode())
