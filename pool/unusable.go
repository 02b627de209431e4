package pool

import (
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/agents"
)

// AgentError says that the agent cannot be used as things are, whatever it is to do. Its text names what mends that.
type AgentError struct{ err error }

func (e *AgentError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *AgentError) Unwrap() error { return e.err }

// SandboxError says that a sandbox could not be opened over a worktree that has nothing but the base's files, and that none
// could be before: whatever the reason, an image or a user or an engine, every other run would meet it.
type SandboxError struct{ err error }

func (e *SandboxError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *SandboxError) Unwrap() error { return e.err }

// unusable reports what is wrong with the place or the agent of every run, and with no issue.
func unusable(err error) bool {
	var (
		agent   *AgentError
		sandbox *SandboxError
	)
	return errors.As(err, &agent) || errors.As(err, &sandbox)
}

// service is the agent's model service, and the agent as what can be pointed at it. Both are zero where the agent reaches
// its service by itself. The error is an *AgentError: there is no login that could be used.
func (l leaving) service() (agents.Endpointer, agents.Service, error) {
	pointer, can := l.agent.(agents.Endpointer)
	if !can || !l.provider.Capabilities().Egress {
		return nil, agents.Service{}, nil
	}
	service, err := pointer.Service(l.network.User)
	if err != nil {
		return nil, service, &AgentError{fmt.Errorf("sandbox %s: %w", l.provider.Name(), err)}
	}
	return pointer, service, nil
}

// loggedIn looks for the login that every run would need, so that a missing one is told once and not issue by issue.
func (p *Pool) loggedIn() error {
	_, _, err := leaving{provider: p.cfg.Sandboxes, agent: p.cfg.Agent, network: p.cfg.Network}.service()
	return err
}

// passes reports that an agent which was away comes back by itself: over its limit, or with its service overloaded. A
// login or a program that is missing waits for a person, and counts as soon as it is there.
func (v Verdict) passes() bool {
	if len(v.Iterations) == 0 {
		return false
	}
	f := v.Iterations[len(v.Iterations)-1].Failure
	return f != nil && (f.Class == agents.RateLimit || f.Class == agents.Overload)
}
