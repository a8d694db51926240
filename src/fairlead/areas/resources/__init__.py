"""Resources: any API that a Swagger or OpenAPI document describes, kept equal to a spec."""
