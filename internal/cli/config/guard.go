package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/trust"
	"github.com/ralph-pool/ralph/worktree/git"
)

// guardedIn returns the values of the repository's layer that need trust.
func guardedIn(repository, user *layer, repo string) trust.Values {
	var values trust.Values
	for _, k := range keys.All() {
		v, set := repository.values[k.Name]
		if !set {
			continue
		}
		own, said := user.values[k.Name]
		if !said && slices.ContainsFunc(k.Beside, user.has) {
			own = k.Default
		}
		if k.Guarded(v, own, repo) {
			written := repository.written[k.Name]
			shown := keys.YAML(k.ShowToAccept(written))
			if said {
				shown += ", but your own file says " + keys.YAML(k.Show(own))
			}
			value := trust.Of(k.Name, shown, keys.YAML(written))
			if items, list := written.([]string); list && k.Guard == keys.Listed {
				value = value.Granting(items)
			}
			values = append(values, value)
		}
	}
	slices.SortFunc(values, func(a, b trust.Value) int { return strings.Compare(a.Key, b.Key) })
	return values
}

// leaveOut removes all guarded values in the groups of the refused keys. Values of one group act together, such as a token and the
// address to which it is sent, so accepted values do not stay without the refused ones.
func (l *layer) leaveOut(guarded trust.Values, refused []string) {
	headings := map[string]bool{}
	for _, name := range refused {
		k, _ := keys.Lookup(name)
		headings[k.Group] = true
	}
	for _, v := range guarded {
		if k, _ := keys.Lookup(v.Key); headings[k.Group] {
			delete(l.values, v.Key)
			delete(l.origins, v.Key)
		}
	}
}

// yield removes repository values that would override the user's choice in a stronger layer through another key, see Key.Beside.
// It keeps guarded values and those of keys in the user's file, which guardedIn has judged. It warns of each removed value that no
// stronger layer replaces.
func (l *layer) yield(user *layer, stronger []*layer, guarded trust.Values, repo string) (warnings []string) {
	for _, k := range keys.All() {
		v, set := l.values[k.Name]
		judged := slices.ContainsFunc(guarded, func(g trust.Value) bool { return g.Key == k.Name })
		if !set || judged || user.has(k.Name) || !k.Guarded(v, k.Default, repo) {
			continue
		}
		beside := ""
		for _, s := range stronger {
			for _, other := range k.Beside {
				beside = cmp.Or(s.origins[other].Where, beside)
			}
		}
		if beside == "" {
			continue
		}
		if !slices.ContainsFunc(stronger, func(s *layer) bool { return s.has(k.Name) }) {
			warnings = append(warnings, fmt.Sprintf("%s: %s is ignored because %s is set; to use it, give --%s or %s",
				l.origins[k.Name].Where, k.Name, beside, k.Flag(), k.Env()))
		}
		delete(l.values, k.Name)
		delete(l.origins, k.Name)
	}
	return warnings
}

// Guarded lists the values of the repository's file that need trust, accepted or not. It reads only the two files. Its error is a
// Problems.
func Guarded(s Sources) (trust.Values, error) {
	_, user, repository := s.files()
	if problems := append(slices.Clone(user.problems), repository.problems...); len(problems) > 0 {
		return nil, problems
	}
	return guardedIn(repository, user, s.Repo), nil
}

// UntrustedError reports guarded values of the repository's file that the user has not accepted. Its text is one line.
type UntrustedError struct {
	File    string
	Keys    []string // new or changed keys
	Changed bool     // the user accepted other values before
	Hash    string   // of the current values
	Named   string   // the hash in RALPH_TRUST; empty: none
	Command string   // the command that shows and accepts the values
}

// What returns the first half of the error: file and keys.
func (e *UntrustedError) What() string {
	keys := strings.Join(e.Keys, ", ")
	if e.Changed {
		return e.File + " has changed " + keys + " since you accepted it"
	}
	return e.File + " sets " + keys + " without your consent"
}

// Error names file, keys and command.
func (e *UntrustedError) Error() string {
	what := "it"
	if e.Changed {
		what = "the change"
	}
	text := e.What() + "; read and accept " + what + " with: " + e.Command
	if e.Named != "" {
		text += fmt.Sprintf(" (%s accepts %q, and these values are %s)", trustVariable, e.Named, e.Hash)
	}
	return text
}

// trustVariable is the variable that accepts the guarded values by their hash, for example in CI.
const trustVariable = keys.EnvPrefix + "TRUST"

// trusted refuses guarded values of the repository's file that the user has not accepted.
func (s Sources) trusted(values trust.Values) error {
	if len(values) == 0 {
		return nil
	}
	hash, named := values.Hash(), strings.TrimSpace(Getenv(s.Environ, trustVariable))
	if strings.EqualFold(named, hash) {
		return nil
	}
	var before trust.Values
	if s.Trusted != nil {
		var err error
		if before, err = s.Trusted(); err != nil {
			return err
		}
	}
	e := &UntrustedError{
		File: filepath.Join(s.Repo, File), Changed: len(before) > 0, Hash: hash, Named: named, Command: "ralph trust",
	}
	for _, c := range trust.Compare(before, values) {
		if !c.Accepted() {
			e.Keys = append(e.Keys, c.Key())
		}
	}
	if len(e.Keys) == 0 {
		return nil
	}
	if rel, err := filepath.Rel(s.Repo, s.Dir); err != nil || !filepath.IsLocal(rel) {
		e.Command += " --repo " + git.Quote(s.Repo)
	}
	return e
}
