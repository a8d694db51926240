"""What lamps bring; the only file that names their other files."""

from fairlead.area import Area, Command, Link, Verb

_HERE = "tests.toy_area"

DOUSE = Verb(
    name="douse",
    command="Delete",
    help="Put a lamp out.",
    usage="Put the lamp NAME out.",
    label="Put out",
)
LAMPS = Area(
    name="lamps",
    core=f"{_HERE}.core:core",
    commands={"light": Command(f"{_HERE}.commands:light", "Light a lamp.")},
    nouns={"lamp": f"{_HERE}.commands:LAMP", "lamps": f"{_HERE}.commands:LAMP"},
    verbs={DOUSE.name: DOUSE},
    navigation=(Link("Lamps", "/lamps"),),
    settings=f"{_HERE}.settings:LampSettings",
    platform=f"{_HERE}.platform:platform",
    operator=f"{_HERE}.kubernetes:operator_part",
    web=f"{_HERE}.web:mount",
)
