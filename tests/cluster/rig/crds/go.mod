module fairlead.dev/tests/cluster/rig/crds

go 1.26.0

require (
	github.com/argoproj/argo-cd/v3 v3.5.6
	istio.io/api v1.31.1
	sigs.k8s.io/gateway-api v1.6.3
)
