"""Administration of a PostgreSQL server: roles, databases, extensions, owners, credentials.

Every statement can be done twice, so a run that was cut anywhere is done again from its beginning
and ends in the same state. No superuser is needed: CREATEROLE and CREATEDB do, as managed services
give them.
"""
