package config

import (
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/nearest"
)

// ListenTokenVariable holds the token for clients of the service, WebhookSecretVariable the secret with which forges sign.
const ListenTokenVariable, WebhookSecretVariable = keys.EnvPrefix + "LISTEN_TOKEN", keys.EnvPrefix + "WEBHOOK_SECRET"

// DatabaseVariable holds the address of a fleet's database, with its password.
const DatabaseVariable = keys.EnvPrefix + "DATABASE"

// SecretVariables lists the variables for ralph alone, which none of its child processes may get.
func SecretVariables() []string {
	return []string{ListenTokenVariable, WebhookSecretVariable, DatabaseVariable}
}

// forAgents reports variables that ralph sets for its child processes. They are no configuration, but ralph may find them in its
// environment: an agent may start ralph.
func forAgents(name string) bool {
	switch name {
	case "RALPH_MARK", "RALPH_RUN", "RALPH_BRANCH", "RALPH_ITERATION":
		return true
	}
	return strings.HasPrefix(name, "RALPH_ISSUE_") || strings.HasPrefix(name, "RALPH_TEST_")
}

// readEnv reads ralph's variables. An empty variable counts as unset. An unknown one gives a warning only, because another version
// of ralph may know it.
func readEnv(environ []string, r rules) (l *layer, warnings []string) {
	l = newLayer(FromEnvironment)
	byName := map[string]keys.Key{}
	var names []string
	for _, k := range keys.All() {
		byName[k.Env()] = k
		names = append(names, strings.TrimPrefix(k.Env(), keys.EnvPrefix))
	}
	seen := map[string]string{} // of two entries the last one counts, as everywhere
	for _, entry := range environ {
		if name, v, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, keys.EnvPrefix) {
			seen[name] = v
		}
	}
	for name, v := range seen {
		k, known := byName[name]
		switch {
		case !known && !forAgents(name) && name != trustVariable && !slices.Contains(SecretVariables(), name):
			guess := nearest.DidYouMean(strings.TrimPrefix(name, keys.EnvPrefix), keys.EnvPrefix, names)
			warnings = append(warnings, "unknown variable "+name+guess)
		case known && v != "":
			l.setText(k, v, name, r)
		}
	}
	slices.Sort(warnings)
	slices.SortFunc(l.problems, func(a, b Problem) int { return strings.Compare(a.Where, b.Where) })
	return l, warnings
}

// setText sets a key from the text of a variable.
func (l *layer) setText(k keys.Key, s, where string, r rules) {
	var (
		v   any
		err error
	)
	if k.List() {
		v, err = k.ListText(s, true)
	} else {
		v, err = k.Scalar(s)
	}
	if err != nil {
		l.fail(where, err.Error())
		return
	}
	l.set(k, k.Place(v, r.dir, r.home), where, "", r.choices(k))
}

// Getenv is os.Getenv for a list of "K=V". Of several entries the last one counts.
func Getenv(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if n, v, ok := strings.Cut(entry, "="); ok && n == name {
			return v
		}
	}
	return ""
}
