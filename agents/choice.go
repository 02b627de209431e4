package agents

import (
	"fmt"
	"strings"
)

// Choice is an agent and a model, both by name. Users write AGENT or AGENT:MODEL.
type Choice struct {
	Agent string
	Model string // as the agent spells it; empty leaves the choice to the agent
}

// ParseChoice reads AGENT or AGENT:MODEL. A model may contain colons, an agent's name has none. Whether there is such an
// agent is not checked: see Registry.Lookup and Check.
func ParseChoice(text string) (Choice, error) {
	agent, model, colon := strings.Cut(text, ":")
	switch {
	case agent == "" || strings.ContainsFunc(agent, odd):
		return Choice{}, fmt.Errorf("%q is not AGENT or AGENT:MODEL", Clip(text, 60))
	case colon && model == "":
		return Choice{}, fmt.Errorf("%q names no model after the colon", Clip(text, 60))
	}
	if err := checkModel(Description{Models: true}, model); err != nil {
		return Choice{}, ofAgent(agent, err)
	}
	return Choice{agent, model}, nil
}

// String is the form that ParseChoice reads.
func (c Choice) String() string {
	if c.Model == "" {
		return c.Agent
	}
	return c.Agent + ":" + c.Model
}
