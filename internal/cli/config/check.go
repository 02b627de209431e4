package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/identity"
)

func checkLabel(s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return errors.New("is empty; a label has a name")
	case strings.TrimSpace(s) != s:
		return errors.New("begins or ends with a space")
	}
	return nil
}

// checkLine refuses a command that a variable was to hold: a gate that silently checks nothing is worse than none.
func checkLine(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("is empty; write a command, or leave it out")
	}
	return nil
}

// checkArgument refuses what git would take for an option.
func checkArgument(s string) error {
	if strings.HasPrefix(s, "-") {
		return errors.New("begins with a dash")
	}
	return nil
}

func checkRemote(s string) error {
	if s == "" {
		return errors.New("is empty; write none for no remote")
	}
	return checkArgument(s)
}

func checkPrice(s string) error {
	_, err := ledger.ParseOwn([]string{s})
	return errors.Unwrap(err)
}

// checkShare holds AGENT=USD or AGENT=USD/TOKENS; whether there is such an agent is checked where it is looked up.
func checkShare(s string) error {
	_, err := ledger.ParseShares([]string{s})
	return errors.Unwrap(err)
}

// checkModel holds the name of a model. Whether there is such a model only its service knows.
func checkModel(s string) error {
	if _, err := agents.ParseChoice("agent:" + s); err != nil {
		return errors.New("is no name of a model, which has no leading dash, no blanks and at most 256 characters")
	}
	return nil
}

// checkBranchPrefix holds what must be true of the beginning of a branch name; the whole name is checked where it is made.
func checkBranchPrefix(s string) error {
	switch {
	case s == "":
		return errors.New("is empty; ralph's branches need a prefix of their own")
	case strings.HasPrefix(s, "-"), strings.HasPrefix(s, "/"), strings.HasPrefix(s, "."),
		strings.Contains(s, ".."), strings.Contains(s, "//"), strings.Contains(s, "/."),
		strings.ContainsFunc(s, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r)
		}):
		return errors.New("cannot begin a branch name; write something like ralph/ (A to Z, a to z, 0 to 9, . _ - /)")
	}
	return nil
}

// checkName holds a variable's name.
func checkName(s string) error {
	if strings.Contains(s, "=") || checkEnv(s) != nil {
		return errors.New("is no name of a variable")
	}
	return nil
}

// checkIdent takes an empty text for none.
func checkIdent(s string) error {
	if s == "" {
		return nil
	}
	if _, err := identity.Parse(s); err != nil {
		return errors.New("is not of the form: Name <mail@example.com>")
	}
	return nil
}

func checkID(s string) error {
	if id, err := strconv.ParseInt(s, 10, 64); err != nil || id < 1 {
		return errors.New("is no numeric id")
	}
	return nil
}

func checkEnv(s string) error {
	name, _, _ := strings.Cut(s, "=")
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) {
		return errors.New("is neither NAME nor NAME=VALUE")
	}
	return nil
}

// hideEnv shows which variable is set, not to what.
func hideEnv(s string) string {
	if name, _, ok := strings.Cut(s, "="); ok {
		return name + "=(hidden)"
	}
	return s
}

// check applies the key's rules to one text or list item.
func (k Key) check(s string, choices []string) error {
	if s == "" && k.Default == "" {
		return nil // as if it were not set
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return errors.New(k.quote(s) + " contains control characters")
	}
	name := s
	if k.Agents {
		choice, err := agents.ParseChoice(s)
		if err != nil {
			return fmt.Errorf("%q is not AGENT or AGENT:MODEL", s)
		}
		name = choice.Agent
	}
	if len(choices) > 0 && !slices.Contains(choices, name) {
		return fmt.Errorf("%s is not one of %s%s", k.quote(name), strings.Join(choices, ", "), DidYouMean(name, "", choices))
	}
	if k.Check != nil {
		if err := k.Check(s); err != nil {
			return fmt.Errorf("%s %w", k.quote(s), err)
		}
	}
	return nil
}

// quote shows a value in an error, unless it may be a secret.
func (k Key) quote(s string) string {
	if k.Hide != nil {
		return "a value"
	}
	return fmt.Sprintf("%q", s)
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, " or ")
}

// conflicts are the rules between keys. Each names the keys and what to do.
func (l *Loaded) conflicts() []Problem {
	c := l.Config
	var all []Problem
	add := func(key, format string, args ...any) {
		all = append(all, Problem{Where: l.origins[key].Where, Message: fmt.Sprintf(format, args...)})
	}
	if len(c.Labels) == 0 {
		add("labels", "labels is empty; name at least one, so that not every open issue is worked")
	}
	states := []struct{ key, label string }{
		{"review-label", c.ReviewLabel}, {"needs-human-label", c.NeedsHumanLabel}, {"needs-info-label", c.NeedsInfoLabel},
		{"claimed-label", c.ClaimedLabel}, {"failed-label", c.FailedLabel},
	}
	among := func(list []string, label string) bool {
		return slices.ContainsFunc(list, func(o string) bool { return tracker.SameLabel(o, label) })
	}
	for n, own := range states {
		switch {
		case own.label == "":
			continue
		case among(c.Labels, own.label):
			add(own.key, "%s %q is one of the labels that pick an issue up; choose another", own.key, own.label)
		case n > 2 && among(c.ExcludeLabels, own.label): // it would stop the run that sets it, or the next one
			add(own.key, "%s %q is also one of exclude-labels; choose another", own.key, own.label)
		}
		for _, other := range states[:n] {
			if tracker.SameLabel(own.label, other.label) {
				add(own.key, "%s %q is also %s; choose another", own.key, own.label, other.key)
			}
		}
	}
	for _, label := range c.ExcludeLabels {
		if among(c.Labels, label) {
			add("exclude-labels", "exclude-labels %q is one of the labels that pick an issue up; choose another", label)
		}
	}
	if _, label := tracker.ParsePriorities(c.PriorityLabels); label != "" {
		add("priority-labels", "priority-labels names the label %q twice; leave one", label)
	}
	if _, label := schedule.ParseLimits(c.ParallelByLabel); label != "" {
		add("parallel-by-label", "parallel-by-label names the label %q twice; leave one", label)
	}
	if c.PermissionMode != "" && c.SkipPermissions {
		add("permission-mode", "permission-mode and skip-permissions exclude each other; choose one")
	}
	commands := func(agent string) bool {
		name, _, _ := strings.Cut(agent, ":")
		return slices.Contains(l.commanded, name)
	}
	switch commanded := slices.ContainsFunc(append(slices.Concat(c.Fallback, c.Attempts), c.Agent), commands); {
	case !commanded && len(c.AgentCommand) > 0 && !l.yielded:
		add("agent-command", "agent-command needs agent %s, not %q (%s)", quoteAll(l.commanded), c.Agent, l.origins["agent"])
	case commanded && len(c.AgentCommand) == 0:
		add("agent", "agent %s needs its program: agent-command: PROGRAM ARG…", quoteAll(l.commanded))
	}
	for _, set := range []struct {
		key     string
		choices []string
	}{{"model", []string{c.Agent + ":" + c.Model}}, {"fallback", c.Fallback}, {"attempts", c.Attempts}, {"review", []string{c.Review}}} {
		for _, choice := range set.choices {
			if _, model, _ := strings.Cut(choice, ":"); model != "" && commands(choice) {
				add(set.key, "model %q cannot be passed to your own program; put it into the program's command", model)
			}
		}
	}
	reviewer, _, _ := strings.Cut(c.Review, ":")
	switch commanded := slices.Contains(l.commanded, reviewer); {
	case !commanded && len(c.ReviewCommand) > 0 && !l.yielded:
		add("review-command", "review-command needs review %s, not %q (%s)", quoteAll(l.commanded), c.Review, l.origins["review"])
	case commanded && len(c.ReviewCommand) == 0:
		add("review", "review %q needs its program: review-command: PROGRAM ARG…", c.Review)
	}
	if c.GitHubAppID != 0 && c.GitHubAppKey == "" {
		add("github-app-id", "github-app-id needs github-app-key; give --github-app-key FILE")
	}
	if c.EstimateUSD == 0 {
		add("estimate-usd", "estimate-usd is 0, so budget-usd would never end an agent that does not say what it costs; give it an amount, such as 2")
	}
	if c.CompletionCap < c.CompletionTimeout {
		add("completion-cap", "completion-cap %s is less than completion-timeout %s", c.CompletionCap, c.CompletionTimeout)
	}
	if c.RetryBackoffMax < c.RetryBackoff {
		add("retry-backoff-max", "retry-backoff-max %s is less than retry-backoff %s", c.RetryBackoffMax, c.RetryBackoff)
	}
	return all
}

// checkLabelled checks LABEL=NUMBER.
func checkLabelled[T any](parse func(string) (string, T, error)) func(string) error {
	return func(s string) error {
		label, _, err := parse(s)
		if wrong := checkLabel(label); wrong != nil && (err == nil || label != "") {
			err = errors.New("has a label that " + wrong.Error())
		}
		return err
	}
}
