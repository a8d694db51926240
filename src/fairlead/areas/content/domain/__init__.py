"""What is decided about content, pure.

`population` says who gets the canary. `edition` makes a version of its files and refuses what is
wrong with them: `located` reads JSON and knows its lines, `semver` orders versions, `gathering` and
`go_json` write what the original service wrote.
"""
