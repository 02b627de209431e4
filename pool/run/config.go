package run

import (
	"github.com/ralph-pool/ralph/pool/run/config"
)

// What a caller says of how runs are done.
type (
	// Config is how runs are done. Its fields are in package config.
	Config = config.Config
	// Labels are the labels that show an issue's state to people.
	Labels = config.Labels
	// GateOn says where the gate has to pass before a run may succeed.
	GateOn = config.GateOn
	// Reviewer is the second agent.
	Reviewer = config.Reviewer
)

// Where the gate has to pass.
const (
	GateOnCheckout = config.GateOnCheckout
	GateOnWorktree = config.GateOnWorktree
)
