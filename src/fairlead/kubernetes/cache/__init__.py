"""What we hold of the cluster: objects as last observed, indexes over them, and their watches."""
