package config

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/trust"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Guard says which values a repository's file may give a key only when the user trusts them. A key is ordinary when it acts
// inside the sandbox or restricts. It is guarded when it runs something on the host, weakens the sandbox, opens network or
// files, directs credentials, acts in somebody's name, or loosens a limit that the user's own file sets.
type Guard string

// The guards. A key without one is as Changed.
const (
	Ordinary Guard = "ordinary" // none
	Changed  Guard = "changed"  // any but the default
	Listed   Guard = "listed"   // a list that is not empty
	Fewer    Guard = "fewer"    // a list without one of the default's items
	Outside  Guard = "outside"  // a path out of the repository, or into its git directory
	Weaker   Guard = "weaker"   // one that is weaker than the default; see Key.Levels
	Own      Guard = "own"      // none: a repository may not set it at all
)

// The guards of limits. They compare with the user's own file, and where it does not set the key every value is ordinary.
const (
	Above   Guard = "above"   // a larger number; see Key.amount
	Below   Guard = "below"   // a smaller number
	Lacking Guard = "lacking" // a list without one of its items
	Beyond  Guard = "beyond"  // a list with another item, or an empty one, which admits all
	Other   Guard = "other"   // another text
	Looser  Guard = "looser"  // one that is weaker; see Key.Levels
)

// limit reports a guard of limits.
func (g Guard) limit() bool {
	return slices.Contains([]Guard{Above, Below, Lacking, Beyond, Other, Looser}, g)
}

// guarded reports whether the repository's value needs trust. own is the value of the user's own file, nil when it has none:
// what it says is no more weakened than the default.
func (k Key) guarded(v, own any, repo string) bool {
	if own == nil {
		if k.Guard.limit() {
			return false
		}
		own = k.Default
	}
	items, _ := v.([]string)
	switch k.Guard {
	case Above:
		return k.amount(v) > k.amount(own)
	case Below:
		return k.amount(v) < k.amount(own)
	case Lacking:
		return !contains(items, own)
	case Beyond:
		mine, _ := own.([]string)
		return len(mine) > 0 && (len(items) == 0 || !contains(mine, v))
	case Other:
		return v != own && own != ""
	case Looser:
		return k.level(v) > k.level(own)
	case Ordinary:
		return false
	case Listed:
		return len(items) > 0
	case Fewer:
		return !contains(items, k.Default) || !contains(items, own)
	case Outside:
		if path, ok := v.(string); ok {
			items = nil
			if path != "" {
				items = []string{path}
			}
		}
		return slices.ContainsFunc(items, func(path string) bool { return !inside(resolve(path, repo, ""), repo) })
	case Weaker:
		return k.level(v) > min(k.level(k.Default), k.level(own))
	case Changed, Own:
	}
	return YAML(v) != YAML(k.Default) || YAML(v) != YAML(own)
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

// note says in the example which values need trust; empty: none.
func (k Key) note() string {
	if k.Guard == Weaker {
		if free := slices.Concat(k.Levels[:k.level(k.Default)+1]...); len(free) > 1 {
			return "guarded but for " + strings.Join(free, ", ")
		}
	}
	note, special := map[Guard]string{
		Ordinary: "",
		Outside:  "guarded outside the repository",
		Fewer:    "guarded where it lacks one of these",
		Above:    "guarded above your own",
		Below:    "guarded below your own",
		Lacking:  "guarded where it lacks some of your own",
		Beyond:   "guarded where it admits more than your own",
		Other:    "guarded where it is not your own",
		Looser:   "guarded where it is looser than your own",
		Own:      "yours alone",
	}[k.Guard]
	if !special {
		return "guarded"
	}
	return note
}

// contains reports whether items has all those of the other list.
func contains(items []string, of any) bool {
	all, _ := of.([]string)
	return !slices.ContainsFunc(all, func(item string) bool { return !slices.Contains(items, item) })
}

// guardedIn are the values of the repository's layer that need trust.
func guardedIn(repository, user *layer, repo string) trust.Values {
	var values trust.Values
	for _, k := range table() {
		v, set := repository.values[k.Name]
		if !set {
			continue
		}
		if k.guarded(v, user.values[k.Name], repo) {
			written := repository.written[k.Name]
			values = append(values, trust.Of(k.Name, YAML(k.show(written)), YAML(written)))
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
