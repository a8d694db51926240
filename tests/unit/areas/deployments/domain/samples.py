"""Specifications that the tests of deployments are about."""

from dataclasses import replace
from typing import Any

from fairlead.areas.deployments.domain.spec import (
    Database,
    DeploymentSpec,
    Flag,
    TemplatePlace,
)

TEMPLATE = TemplatePlace("templates", "prod/shop/abc.json", "eu-west-1")
ORDERS = Database("orders", "prod_shop_orders", "main")
STOCK = Database("stock", "prod_shop_stock", "main")
BARE = DeploymentSpec("shop", "prod", "v2", TEMPLATE)
SPEC = replace(BARE, databases=(ORDERS,))
TWO = replace(BARE, databases=(ORDERS, STOCK))


def flagged(*flags: Flag, spec: DeploymentSpec = SPEC, **fields: Any) -> DeploymentSpec:
    return replace(spec, flags=flags, **fields)
