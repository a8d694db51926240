"""What decides a release: checks, and who answers them; this floor knows no area.

    check ──► providers (problems, before anything is asked)
    check + subject ──► registry ──► a file of sources, gates or notifiers ──► clients

`spec` is pure and all that a domain knows of it; `wiring` opens the providers of an installation
for a platform, which brings a `Naming` of its sides.
"""
