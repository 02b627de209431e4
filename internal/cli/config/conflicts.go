package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// conflicts checks the rules between keys. Each problem names the keys and the fix.
func (l *Loaded) conflicts() []Problem {
	f := &conflictFinder{Loaded: l}
	f.labels()
	f.labelNumbers("priority-labels", f.Config.PriorityLabels)
	f.labelNumbers("parallel-by-label", f.Config.ParallelByLabel)
	f.agents()
	f.models()
	f.reviewer()
	f.amounts()
	return f.found
}

// conflictFinder collects the problems of one configuration.
type conflictFinder struct {
	*Loaded
	found []Problem
}

// add records a problem at the key's origin.
func (f *conflictFinder) add(key, format string, args ...any) {
	f.found = append(f.found, Problem{Where: f.origins[key].Where, Message: fmt.Sprintf(format, args...)})
}

// labels checks that a label set by ralph does not pick an issue up, does not stop its own run, and has one meaning.
func (f *conflictFinder) labels() {
	c := f.Config
	if len(c.Labels) == 0 {
		f.add("labels", "labels is empty; name at least one, because ralph would work every open issue")
	}
	states := []struct{ key, label string }{
		{"review-label", c.ReviewLabel},
		{"needs-human-label", c.NeedsHumanLabel},
		{"needs-info-label", c.NeedsInfoLabel},
		{"claimed-label", c.ClaimedLabel},
		{"failed-label", c.FailedLabel},
	}
	among := func(list []string, label string) bool {
		return slices.ContainsFunc(list, func(o string) bool { return tracker.SameLabel(o, label) })
	}
	for n, own := range states {
		switch {
		case own.label == "":
			continue
		case among(c.Labels, own.label):
			f.add(own.key, "%s %q is one of the labels that pick an issue up; choose another", own.key, own.label)
		case n > 2 && among(c.ExcludeLabels, own.label): // the label would stop the run that sets it, or the next one
			f.add(own.key, "%s %q is also one of exclude-labels; choose another", own.key, own.label)
		}
		for _, other := range states[:n] {
			if tracker.SameLabel(own.label, other.label) {
				f.add(own.key, "%s %q is also %s; choose another", own.key, own.label, other.key)
			}
		}
	}
	for _, label := range c.ExcludeLabels {
		if among(c.Labels, label) {
			f.add("exclude-labels", "exclude-labels %q is one of the labels that pick an issue up; choose another", label)
		}
	}
}

// labelNumbers checks that no label has two numbers.
func (f *conflictFinder) labelNumbers(key string, list []string) {
	if _, label := tracker.ParseLabelNumbers(list); label != "" {
		f.add(key, "%s names the label %q twice; remove one", key, label)
	}
}

// isCommand reports whether the agent in AGENT or AGENT:MODEL takes its program from the configuration.
func (f *conflictFinder) isCommand(choice string) bool {
	name, _, _ := strings.Cut(choice, ":")
	return slices.Contains(f.commanded, name)
}

// agents checks that agent-command is set if, and only if, a configured agent needs it.
func (f *conflictFinder) agents() {
	c := f.Config
	if c.PermissionMode != "" && c.SkipPermissions {
		f.add("permission-mode", "permission-mode and skip-permissions exclude each other; choose one")
	}
	all := append(slices.Concat(c.Fallback, c.Attempts), c.Agent)
	switch commanded := slices.ContainsFunc(all, f.isCommand); {
	case !commanded && len(c.AgentCommand) > 0 && !f.yielded:
		f.add("agent-command", "agent-command needs agent %s, not %q (%s)", quoteAll(f.commanded), c.Agent, f.origins["agent"])
	case commanded && len(c.AgentCommand) == 0:
		f.add("agent", "agent %s needs its program: agent-command: PROGRAM ARG…", quoteAll(f.commanded))
	}
}

// models checks that no model is set for an agent whose program comes from the configuration: ralph cannot pass it on.
func (f *conflictFinder) models() {
	c := f.Config
	for _, set := range []struct {
		key     string
		choices []string
	}{
		{"model", []string{c.Agent + ":" + c.Model}},
		{"fallback", c.Fallback},
		{"attempts", c.Attempts},
		{"review", []string{c.Review}},
	} {
		for _, choice := range set.choices {
			if _, model, _ := strings.Cut(choice, ":"); model != "" && f.isCommand(choice) {
				f.add(set.key, "model %q cannot be passed to your own program; put it into the program's command", model)
			}
		}
	}
}

// reviewer checks that review-command is set if, and only if, the reviewer needs it.
func (f *conflictFinder) reviewer() {
	c := f.Config
	switch commanded := f.isCommand(c.Review); {
	case !commanded && len(c.ReviewCommand) > 0 && !f.yielded:
		f.add("review-command", "review-command needs review %s, not %q (%s)", quoteAll(f.commanded), c.Review, f.origins["review"])
	case commanded && len(c.ReviewCommand) == 0:
		f.add("review", "review %q needs its program: review-command: PROGRAM ARG…", c.Review)
	}
}

// amounts checks keys that need another key, and maximums against their minimums.
func (f *conflictFinder) amounts() {
	c := f.Config
	if c.GitHubAppID != 0 && c.GitHubAppKey == "" {
		f.add("github-app-id", "github-app-id needs github-app-key; give --github-app-key FILE")
	}
	if c.EstimateUSD == 0 {
		f.add("estimate-usd", "estimate-usd is 0, so budget-usd would never end an agent that does not report its cost; "+
			"set an amount, such as 2")
	}
	if c.CompletionCap < c.CompletionTimeout {
		f.add("completion-cap", "completion-cap %s is less than completion-timeout %s", c.CompletionCap, c.CompletionTimeout)
	}
	if c.RetryBackoffMax < c.RetryBackoff {
		f.add("retry-backoff-max", "retry-backoff-max %s is less than retry-backoff %s", c.RetryBackoffMax, c.RetryBackoff)
	}
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, " or ")
}
