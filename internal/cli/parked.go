package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
)

// parked lists the agents that runs on this host found unavailable, and that are not expected back yet.
func (p *parts) parked(ctx context.Context) ([]journal.Parked, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return parking.Load(ctx, p.journal, "", host, time.Now())
}

// sayParked names agents that are unavailable, until when and why.
func (a *app) sayParked(list []journal.Parked) {
	for _, p := range list {
		a.ui.printf("%s\n", cleanLine(parkedText(p)))
	}
}

func parkedText(p journal.Parked) string {
	why := map[agents.Class]string{
		agents.RateLimit: "its limit is reached", agents.Overload: "its model service is overloaded", agents.Auth: "it is not logged in", agents.NoCredit: "its account has no credit left",
		agents.NotStarted: "its program cannot be started",
	}[p.Class]
	text := fmt.Sprintf("Agent %s is parked until %s: %s", p.Choice(), p.Until.Local().Format(time.DateTime), why)
	if p.Until.IsZero() {
		text = fmt.Sprintf("Agent %s is not used: %s", p.Choice(), why)
	}
	if p.Key != "" {
		text += " (met by " + p.Key + ")"
	}
	return text + "."
}

// choices are the agents of an issue's nth attempt, in the order in which they are tried.
func choices(c config.Config, attempt int) []agents.Choice {
	list := []agents.Choice{{Agent: c.Agent, Model: c.Model}}
	if n := len(c.Attempts); n > 0 {
		list[0], _ = agents.ParseChoice(c.Attempts[min(max(attempt, 1), n)-1])
	}
	for _, text := range c.Fallback {
		choice, _ := agents.ParseChoice(text) // the configuration has been checked
		list = append(list, choice)
	}
	return list
}
