package config

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/trust"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Guard says what loosens a key. The rule for all of them: what the user's own file says, a repository's file may only make
// stricter, and where that file does not have the key, the repository may set what acts inside the sandbox or restricts. It
// may not run something on the host, weaken the sandbox, open network or files, direct credentials or act in somebody's name:
// of such a key the default counts as the user's own value then.
type Guard string

// The guards: what is no stricter than the value it is compared with. A key without one is as Changed.
const (
	Ordinary Guard = "ordinary" // another value; without one of the user's own every value is free
	Changed  Guard = "changed"  // another value; without one of the user's own, than the default
	Listed   Guard = "listed"   // a list with another item; without one of the user's own, than the default's
	Outside  Guard = "outside"  // another path, and without one of the user's own one out of the repository or in its git directory
	Above    Guard = "above"    // a larger number; see Key.amount
	Below    Guard = "below"    // a smaller number
	Lacking  Guard = "lacking"  // a list without one of its items
	Beyond   Guard = "beyond"   // a filter with another item, or an empty one, which admits all
	Looser   Guard = "looser"   // one that is not on a stronger level; see Key.Levels
	Own      Guard = "own"      // a repository may not set it at all
)

// bound reports whether the default counts as the user's own value where their file does not have the key.
func (k Key) bound() bool {
	return k.Bound || !slices.Contains([]Guard{Ordinary, Outside, Above, Below, Lacking, Beyond, Looser}, k.Guard)
}

// guarded reports whether the repository's value needs trust. own is the value of the user's own file, nil when it has none.
// Where it has one, only that counts: a repository may repeat it or make it stricter, also where the default is stricter still.
func (k Key) guarded(v, own any, repo string) bool {
	if own != nil {
		return k.loosens(v, own) || k.Levels != nil && v != own && k.level(v) == k.level(own)
	}
	if path, _ := v.(string); k.Guard == Outside {
		return path != "" && !inside(Resolve(path, repo, ""), repo)
	}
	return k.bound() && k.loosens(v, k.Default)
}

// loosens reports whether a value is looser than another one.
func (k Key) loosens(v, than any) bool {
	items, others := listOf(v), listOf(than)
	switch k.Guard {
	case Above:
		return k.amount(v) > k.amount(than)
	case Below:
		return k.amount(v) < k.amount(than)
	case Lacking:
		return !contains(items, others)
	case Listed:
		return !contains(others, items)
	case Beyond:
		return len(others) > 0 && (len(items) == 0 || !contains(others, items))
	case Looser:
		return k.level(v) > k.level(than)
	case Ordinary, Changed, Outside, Own:
	}
	return YAML(v) != YAML(than)
}

// amount is a number or duration. A negative one is no limit, and so is 0 where it is the default, or where negative ones are
// allowed.
func (k Key) amount(v any) float64 {
	var n float64
	switch v := v.(type) {
	case int:
		n = float64(v)
	case int64:
		n = float64(v)
	case float64:
		n = v
	case time.Duration:
		n = float64(v)
	}
	if n < 0 || n == 0 && (k.Min < 0 || YAML(v) == YAML(k.Default)) {
		return math.Inf(1)
	}
	return n
}

// level is the place of a value among the key's levels; what is on none of them is the weakest.
func (k Key) level(v any) int {
	for i, names := range k.Levels {
		if slices.Contains(names, fmt.Sprint(v)) {
			return i
		}
	}
	return len(k.Levels)
}

// listOf is a list; a text is one of a single item, or of none.
func listOf(v any) []string {
	items, _ := v.([]string)
	if text, _ := v.(string); text != "" {
		items = []string{text}
	}
	return items
}

// contains reports whether items has all the others.
func contains(items, others []string) bool {
	return !slices.ContainsFunc(others, func(item string) bool { return !slices.Contains(items, item) })
}

// guardedIn are the values of the repository's layer that need trust.
func guardedIn(repository, user *layer, repo string) trust.Values {
	var values trust.Values
	for _, k := range table() {
		v, set := repository.values[k.Name]
		if !set {
			continue
		}
		own, said := user.values[k.Name]
		if !said && slices.ContainsFunc(k.Beside, user.has) {
			own = k.Default
		}
		if k.guarded(v, own, repo) {
			written := repository.written[k.Name]
			shown := YAML(k.show(written))
			if said {
				shown += ", and your own file says " + YAML(k.show(own))
			}
			values = append(values, trust.Of(k.Name, shown, YAML(written)))
		}
	}
	slices.SortFunc(values, func(a, b trust.Value) int { return strings.Compare(a.Key, b.Key) })
	return values
}

// leaveOut drops the guarded values under the headings of keys that are not accepted, as if the file did not set them. Values
// under one heading act together, such as a token and where it is sent: accepted ones do not stay without the others.
func (l *layer) leaveOut(guarded trust.Values, refused []string) {
	headings := map[string]bool{}
	for _, name := range refused {
		k, _ := Lookup(name)
		headings[k.Group] = true
	}
	for _, v := range guarded {
		if k, _ := Lookup(v.Key); headings[k.Group] {
			delete(l.values, v.Key)
			delete(l.origins, v.Key)
		}
	}
}

// yield drops the repository's values that would act in place of what the stronger layers, which are the user's, say. It keeps
// those that the user's file decides on: they are no weaker than its own, or guarded. The warnings name what nobody else sets.
func (l *layer) yield(user *layer, stronger []*layer, guarded trust.Values, repo string) (warnings []string) {
	for _, k := range table() {
		v, set := l.values[k.Name]
		judged := slices.ContainsFunc(guarded, func(g trust.Value) bool { return g.Key == k.Name })
		if !set || judged || user.has(k.Name) || !k.guarded(v, k.Default, repo) {
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
			warnings = append(warnings, fmt.Sprintf("%s: %s does not count beside %s; to have it, give --%s or %s",
				l.origins[k.Name].Where, k.Name, beside, k.Flag(), k.Env()))
		}
		delete(l.values, k.Name)
		delete(l.origins, k.Name)
	}
	return warnings
}

// Guarded lists the values of the repository's file that need trust, without asking whether they have it. Only the files
// are read. The error is a Problems.
func Guarded(s Sources) (trust.Values, error) {
	_, user, repository := s.files()
	if problems := append(slices.Clone(user.problems), repository.problems...); len(problems) > 0 {
		return nil, problems
	}
	return guardedIn(repository, user, s.Repo), nil
}

// UntrustedError is the error of Load for a repository's file with guarded keys that the user has not accepted. It is one
// line.
type UntrustedError struct {
	File    string
	Keys    []string // that are new or changed
	Changed bool     // other values were accepted before
	Hash    string   // of the values as they are
	Named   string   // the hash that RALPH_TRUST has instead; empty: none
	Command string   // that shows and accepts them
}

// What names file and keys.
func (e *UntrustedError) What() string {
	keys := strings.Join(e.Keys, ", ")
	if e.Changed {
		return e.File + " has changed " + keys + " since you accepted it"
	}
	return e.File + " sets " + keys + ", which a repository may do only with your consent"
}

// Error names file, keys and command.
func (e *UntrustedError) Error() string {
	what := "it"
	if e.Changed {
		what = "the change"
	}
	text := e.What() + "; read and accept " + what + " with: " + e.Command
	if e.Named != "" {
		text += fmt.Sprintf(" (%s accepts %q, and these values are %s)", TrustVariable, e.Named, e.Hash)
	}
	return text
}

// TrustVariable is the variable that accepts the guarded values with one hash, such as in CI.
const TrustVariable = envPrefix + "TRUST"

// trusted refuses guarded values of the repository's file that the user has not accepted.
func (s Sources) trusted(values trust.Values) error {
	if len(values) == 0 {
		return nil
	}
	hash, named := values.Hash(), strings.TrimSpace(Getenv(s.Environ, TrustVariable))
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
	if len(before) > 0 && before.Hash() == hash {
		return nil
	}
	e := &UntrustedError{
		File: filepath.Join(s.Repo, File), Changed: len(before) > 0, Hash: hash, Named: named, Command: "ralph trust",
	}
	for _, c := range trust.Compare(before, values) {
		if !c.Same() {
			e.Keys = append(e.Keys, c.Key())
		}
	}
	if rel, err := filepath.Rel(s.Repo, s.Dir); err != nil || !filepath.IsLocal(rel) {
		e.Command += " --repo " + git.Quote(s.Repo)
	}
	return e
}
