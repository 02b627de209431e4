package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/internal/attack"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/escape"
)

// probe is one thing that must not be possible inside a sandbox, or on the host by way of what comes out of it.
type probe struct {
	What    string `json:"what"`
	Stopped bool   `json:"stopped"`
	// Known: the provider says of itself that it does not stop this.
	Known bool `json:"known,omitempty"`
	// Breach is the first that succeeded, and More the number of others.
	Breach string `json:"breach,omitempty"`
	More   int    `json:"more,omitempty"`
	// Untried says why the attack could not be made.
	Untried string `json:"untried,omitempty"`
}

// attackSandbox tries what must not be possible. Nothing on the host is harmed where it is. The error says why nothing at
// all could be tried.
func attackSandbox(ctx context.Context, provider sandboxes.Provider) ([]probe, error) {
	var probes []probe
	var untried error
	tried := false
	for _, r := range escape.Try(ctx, attack.All(), provider) {
		p := probe{What: r.Name, Stopped: len(r.Breaches) == 0 && r.Err == nil && !r.Known, Known: r.Known}
		if len(r.Breaches) > 0 {
			p.Breach, p.More = shorten(cleanLine(r.Breaches[0]), 120), len(r.Breaches)-1
		}
		if r.Err != nil {
			p.Untried = shorten(cleanLine(r.Err.Error()), 160)
			untried = cmp.Or(untried, fmt.Errorf("sandbox %s: %w", provider.Name(), r.Err))
		}
		tried = tried || r.Err == nil
		probes = append(probes, p)
	}
	if !tried && untried != nil {
		return nil, untried
	}
	return probes, nil
}
