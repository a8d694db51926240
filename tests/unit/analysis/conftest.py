"""Property tests here count arithmetic, not time: a busy machine must not fail them."""

import hypothesis

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
