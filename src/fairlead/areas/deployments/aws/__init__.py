"""AWS as a platform: who performs the steps of a plan there, on a queue of its own."""
