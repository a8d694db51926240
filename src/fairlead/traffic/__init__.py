"""The science of traffic: how requests are shared between two versions, and by what route."""
