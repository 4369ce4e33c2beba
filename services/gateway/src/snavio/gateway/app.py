"""The API as an ASGI application."""

from __future__ import annotations

from litestar import Litestar
from litestar.di import Provide
from litestar.middleware import DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme

from snavio.control.authority import Principal
from snavio.gateway.description import Description
from snavio.gateway.guard import PUBLIC, Authentication, check_form, principal_of
from snavio.gateway.platform_api import BansApi, PlatformApi, QuotasApi, healthz, readyz
from snavio.gateway.problems import ProblemHandlers
from snavio.gateway.rate import RateLimiter
from snavio.gateway.routes_api import GrantsApi, RoutesApi
from snavio.gateway.site import Site
from snavio.gateway.tenants_api import ServicesApi, TenantsApi, tenant_config
from snavio.gateway.tokens import Tokens
from snavio.runtime.logs import Log

VERSION = "1.0.0"
"""Of the API, not of the program."""


def make_app(site: Site, *, limiter: RateLimiter, max_body_bytes: int, log: Log) -> Litestar:
    """The application for one installation."""
    authentication = DefineMiddleware(
        Authentication, tokens=site.tokens, access=site.control.access, limiter=limiter, exclude=PUBLIC
    )
    return Litestar(
        route_handlers=[
            TenantsApi,
            ServicesApi,
            tenant_config,
            RoutesApi,
            GrantsApi,
            QuotasApi,
            BansApi,
            PlatformApi,
            healthz,
            readyz,
        ],
        dependencies={
            "here": Provide(lambda: site, sync_to_thread=False),
            "caller": Provide(principal_of, sync_to_thread=False),
        },
        middleware=[authentication],
        before_request=check_form,
        exception_handlers=ProblemHandlers(log).by_type,
        request_max_body_size=max_body_bytes,
        # Answers hold secrets and the state of the moment: nobody on the way should keep them.
        response_headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        signature_types=[Site, Principal, Tokens],
        openapi_config=OpenAPIConfig(
            title="Snavio control plane",
            version=VERSION,
            path="/schema",
            render_plugins=[Description(path=["/", "/openapi.json"])],
            components=Components(
                security_schemes={"token": SecurityScheme(type="http", scheme="bearer", bearer_format="JWT")}
            ),
            security=[{"token": []}],
        ),
        logging_config=None,
        debug=False,
    )
