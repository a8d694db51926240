"""Files as people write them, as plain data."""

from typing import Any

APP: dict[str, Any] = {
    "name": "shop",
    "targets": [{"name": "orders"}],
    "blobstores": [{"name": "images", "grants": [{"principal": "cart"}], "emit_events": True}],
    "databases": [
        {
            "name": "orders",
            "postgres": {
                "server_group": "main",
                "db_extensions": ["pg_trgm"],
                "migrate_container": {"name": "migrate", "image_url": "shop:1"},
            },
        }
    ],
    "runtimes": [
        {
            "name": "web",
            "containers": [
                {
                    "name": "app",
                    "image": {"name": "shop"},
                    "env_vars": [
                        {"name": "DB", "database": "orders"},
                        {"name": "IMAGES", "blobstore": {"name": "images"}},
                        {"name": "KEY", "secret": {"secret_name": "api", "json_key": "key"}},
                        {"name": "REGION", "from_env": {"name": "region"}},
                    ],
                }
            ],
            "routes": [{"prefix": "/shop", "protocol": "HTTP", "route_group": "NORMAL"}],
            "subscriptions": [{"name": "/shop.v1.Orders"}],
            "worker_config": {"replay_chance": 10},
        }
    ],
    "secrets": [{"name": "api"}],
}
ENV: dict[str, Any] = {
    "full_name": "prod-eu",
    "cluster_name": "east",
    "vars": [{"name": "region", "value": "eu"}],
    "deployments": {
        "queue": "supersede",
        "approve": True,
        "at_least": "BEFORE",
        "freezes": [
            {"from": "2030-12-20T00:00:00Z", "until": "2031-01-02T00:00:00Z", "reason": "rest"}
        ],
    },
}
CLUSTER: dict[str, Any] = {
    "name": "east",
    "aws": {
        "vpc_id": "vpc-1",
        "aws_account": "123456789012",
        "aws_region": "eu-west-1",
        "o5_deployer": {"assume_role_arn": "arn:role"},
        "ecs_cluster": {
            "cluster_name": "ecs",
            "task_execution_role": "arn:exec",
            "default_registry": "registry.example",
        },
        "alb_ingress": {"listener_arn": "arn:listener", "security_group_id": "sg-1"},
        "event_bridge": {"event_bus_arn": "arn:bus"},
        "rds_hosts": [
            {
                "server_group_name": "main",
                "endpoint": "db.example",
                "auth": {"secrets_manager": {"secret_name": "rds/main"}},
            }
        ],
    },
}
