//go:build tools

// Package peers names the programs that benchmarks compare with, so that go.mod pins all they are made of.
package peers

import (
	_ "github.com/argoproj/argo-rollouts/cmd/rollouts-controller"
)
