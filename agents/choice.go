package agents

import (
	"fmt"
	"strings"
)

// Choice names an agent and a model. Users write AGENT or AGENT:MODEL.
type Choice struct {
	Agent string
	Model string // the agent's spelling; empty: the agent's default
}

// ParseChoice parses AGENT or AGENT:MODEL. A model may contain colons, an agent's name cannot. It does not check whether the
// agent exists: see Registry.Lookup and Check.
func ParseChoice(text string) (Choice, error) {
	agent, model, colon := strings.Cut(text, ":")
	switch {
	case agent == "" || strings.ContainsFunc(agent, isSpaceOrControl):
		return Choice{}, fmt.Errorf("%q is not AGENT or AGENT:MODEL", Clip(text, 60))
	case colon && model == "":
		return Choice{}, fmt.Errorf("%q names no model after the colon", Clip(text, 60))
	}
	if err := checkModel(Description{Models: true}, model); err != nil {
		return Choice{}, agentError(agent, err)
	}
	return Choice{agent, model}, nil
}

// String returns the form that ParseChoice parses.
func (c Choice) String() string {
	if c.Model == "" {
		return c.Agent
	}
	return c.Agent + ":" + c.Model
}
