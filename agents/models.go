package agents

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// ModelNames says which models an agent's program requests. Patterns are those of path.Match, for names without their dates.
type ModelNames struct {
	// Aliases maps names that users may write to patterns of the models that the program then requests. Other names stand for
	// themselves. A name without a pattern lets the program choose.
	Aliases map[string][]string
	// Helpers are patterns of the models that the program requests for small tasks. One of them may also be its main model.
	Helpers []string
	// Var is the variable with which users choose the main model, if there is no Options.Model. AliasVars name the models for which
	// aliases stand, by alias. OtherVars name further models.
	Var       string
	AliasVars map[string][]string
	OtherVars []string
	// Families are the beginnings of the names of the service's models.
	Families []string
}

// Own returns patterns of the main models of an agent with these options; nil: the program chooses.
func (n ModelNames) Own(o Options) []string {
	name := cmp.Or(o.Model, setting(o.Env, n.Var))
	if name == "" {
		return nil
	}
	patterns, known := n.Aliases[undated(name)]
	switch {
	case known && len(patterns) == 0:
		return nil
	case !known:
		patterns = []string{literal(name)}
	}
	return slices.Concat(patterns, named(o, n.AliasVars[undated(name)]))
}

// Besides returns patterns of the other models that the agent may request.
func (n ModelNames) Besides(o Options) []string {
	return slices.Concat(n.Helpers, named(o, n.OtherVars))
}

// Aliased returns patterns of the models for which the user lets aliases stand, used or not.
func (n ModelNames) Aliased(o Options) (list []string) {
	for _, vars := range n.AliasVars {
		list = append(list, named(o, vars)...)
	}
	return list
}

// named returns patterns of the models that variables name.
func named(o Options, vars []string) (list []string) {
	for _, name := range vars {
		if value := setting(o.Env, name); value != "" {
			list = append(list, literal(value))
		}
	}
	return list
}

// setting returns the value of the last setting of a variable.
func setting(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if key, value, _ := strings.Cut(entry, "="); key == name && name != "" {
			return value
		}
	}
	return ""
}

// literal returns a pattern that matches only this name.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(undated(name))
}

// dated matches what a program or a service adds to the name of the same model: its date, or the size of its context.
var dated = pattern.Lazy(`(?:[-@]20\d{6}|[-@]20\d\d-\d\d-\d\d|-latest|\[1m\])*$`)

func undated(model string) string {
	model = strings.ToLower(model)
	return model[:dated().FindStringIndex(model)[0]]
}

// SameModel reports whether two names are those of the same model.
func SameModel(a, b string) bool { return undated(a) == undated(b) }

// MatchModel reports whether a pattern matches the model. The pattern "*" matches every name.
func MatchModel(patterns []string, model string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		matches, err := path.Match(strings.ToLower(p), undated(model))
		return p == "*" || err == nil && matches || SameModel(p, model)
	})
}
