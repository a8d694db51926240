"""AWS as deployments need it: CloudFormation, S3, Secrets Manager, ECS, SNS, and roles to assume.

Calls are synchronous, as boto3 is: whoever awaits runs them in a thread. Each has a time limit,
and each that changes something can be sent again: a token, a name made of the content, or what is
there already makes the second one do nothing.
"""
