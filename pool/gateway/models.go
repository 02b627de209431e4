package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/meter"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// caller is an agent that sends requests to its service. What it may request must not depend on what it says: the program in the
// sandbox may be anything. A nil caller may request every model.
type caller struct {
	agent   string
	names   agents.ModelNames
	options []agents.Options // of each of the agent's links
	extra   []string         // patterns of the user
}

func newCaller(a agents.Agent, chain agents.Chain, extra []string) *caller {
	c := &caller{agent: a.Name(), names: a.Describe().Endpoint.Models, extra: extra}
	for _, l := range chain {
		if l.Agent.Name() == c.agent {
			c.options = append(c.options, l.Options)
		}
	}
	return c
}

// chooses reports whether the program chooses its model in one of the links.
func (c *caller) chooses() bool {
	return slices.ContainsFunc(c.options, func(o agents.Options) bool { return c.names.Own(o) == nil })
}

// expects reports whether the model is the one of a link, or one that the agent requests besides it.
func (c *caller) expects(model string) bool {
	return slices.ContainsFunc(c.options, func(o agents.Options) bool {
		return agents.MatchModel(slices.Concat(c.names.Own(o), c.names.Besides(o), c.names.Aliased(o)), model)
	})
}

// named returns the user's patterns without the one that matches every name.
func (c *caller) named() []string {
	return slices.DeleteFunc(slices.Clone(c.extra), func(p string) bool { return p == "*" })
}

// configured returns the names of the models of the links, for people.
func (c *caller) configured() string {
	var list []string
	for _, o := range c.options {
		list = append(list, cmp.Or(o.Model, "the program's own choice"))
	}
	return strings.Join(list, ", ")
}

// checkModels refuses a request for a model that the agent may not use, or whose cost would be unknown although it is limited. A
// model that the user has named may have no price: then the dearest one counts.
func (m *Meter) checkModels(from *caller, q meter.Request, limitsCost bool) error {
	models := q.Models
	if len(models) == 0 {
		models = []string{""}
	}
	if from != nil {
		for _, model := range models {
			switch {
			case m.allows(from, model, limitsCost):
			case from.chooses():
				m.note(sandboxes.Noticef("requests for %s were refused: its price is not known, and the cost is limited; "+
					"configure the model, or its price", modelText(model)))
				return fmt.Errorf("%s has no known price, so it is %w here", modelText(model), egress.ErrOtherModel)
			default:
				n := sandboxes.Noticef("requests for %s were refused: %s may use %s, and models that the configuration allows",
					modelText(model), from.agent, from.configured())
				n.Cause = sandboxes.ModelRefused
				m.note(n)
				return fmt.Errorf("%s is %w for this run", modelText(model), egress.ErrOtherModel)
			}
		}
	}
	if !limitsCost {
		return nil
	}
	var named []ledger.Terms
	for tier := range q.Tiers {
		named = append(named, ledger.Terms{Tier: tier})
	}
	for region := range q.Regions {
		named = append(named, ledger.Terms{Region: region})
	}
	for _, terms := range named {
		for _, model := range models {
			if price, known := m.prices.Of(model); terms.String() != "" && (!known || !price.Covers(terms)) {
				m.note(sandboxes.Noticef("requests for %s %s were refused: its price is not known, and the cost is limited", modelText(model), terms))
				return fmt.Errorf("%s %s has no known price, so it is %w here", modelText(model), terms, egress.ErrOtherModel)
			}
		}
	}
	return nil
}

func (m *Meter) allows(from *caller, model string, limitsCost bool) bool {
	switch {
	case from.expects(model) || agents.MatchModel(from.extra, model):
		return true
	case !from.chooses():
		return false
	}
	_, known := m.prices.Of(model)
	return known || !limitsCost
}

// noteAnswered records that a model has answered that neither is the configured one nor was allowed by its name.
func (m *Meter) noteAnswered(from *caller, model string) {
	if from != nil && model != "" && !from.chooses() && !from.expects(model) && !agents.MatchModel(from.named(), model) {
		m.note(sandboxes.Noticef("%s answered %s, whose model is %s", modelText(model), from.agent, from.configured()))
	}
}

func modelText(model string) string {
	if model == "" {
		return "an unnamed model"
	}
	return "model " + model
}

// maxNotices is the number of notices of a run about models. An agent could request any number of names.
const maxNotices = 20

// note records a notice, once, and tells the observer.
func (m *Meter) note(n sandboxes.Notice) {
	m.mu.Lock()
	added := len(m.notices) < maxNotices && !slices.Contains(m.notices, n)
	if added {
		m.notices = append(m.notices, n)
	}
	tell := m.tell
	m.mu.Unlock()
	if added && tell != nil {
		tell(n)
	}
}

// Notices returns the notices about models so far. The list only grows.
func (m *Meter) Notices() []sandboxes.Notice {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.notices)
}

// Tell makes the meter call tell with each further notice.
func (m *Meter) Tell(tell func(sandboxes.Notice)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell = tell
}

// mainOf identifies the main model of an agent with certain options; without options the first one that it requests.
type mainOf struct{ agent, option string }

// noteRequest remembers the models that are the agent's main ones. Which model an option such as "opus" means, the first request
// for one says: later ones may come from a command that the model runs.
func (m *Meter) noteRequest(from *caller, model string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := func(option string) {
		key := mainOf{from.name(), option}
		m.mains[key] = cmp.Or(m.mains[key], model)
	}
	if from == nil {
		first("")
		return
	}
	for _, o := range from.options {
		if agents.MatchModel(from.names.Own(o), model) {
			first(o.Model)
		}
		if !agents.MatchModel(from.names.Besides(o), model) {
			first("")
		}
	}
}

func (c *caller) name() string {
	if c == nil {
		return ""
	}
	return c.agent
}
