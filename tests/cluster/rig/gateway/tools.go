//go:build tools

// Package gateway names Envoy Gateway, so that go.mod pins all it is made of.
package gateway

import _ "github.com/envoyproxy/gateway/cmd/envoy-gateway"
