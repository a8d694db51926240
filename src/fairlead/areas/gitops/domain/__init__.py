"""What a deployment from git decides; knows neither git nor a cluster."""
