package keys

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Guard says when a repository's value of a key needs the user's trust. The rule behind all guards: a repository may only make a
// value of the user's own file stricter. For a key that is not in the user's file, a repository may choose what acts inside the
// sandbox or restricts. It may not run programs on the host, weaken the sandbox, open network or files, direct credentials or act
// in somebody's name: for such keys the default counts as the user's own value.
type Guard string

// The guards. Each describes a value that needs trust, compared with the user's own value. A key without a guard is Changed.
const (
	Ordinary Guard = "ordinary" // a different value; without a value of the user's own, none
	Changed  Guard = "changed"  // a different value; without a value of the user's own, than the default
	Listed   Guard = "listed"   // a list with an additional item; without a list of the user's own, than the default
	Outside  Guard = "outside"  // a different path; without one of the user's own, a path outside of the repository or in its git directory
	Above    Guard = "above"    // a larger number; see Key.amount
	Below    Guard = "below"    // a smaller number
	Lacking  Guard = "lacking"  // a list that lacks an item
	Beyond   Guard = "beyond"   // a filter with an additional item, or an empty one, which admits everything
	Looser   Guard = "looser"   // a value on a weaker level; see Key.Levels
	Own      Guard = "own"      // any value: a repository may not set it
)

// bound reports whether the default counts as the user's own value if their file does not set the key.
func (k Key) bound() bool {
	return k.Bound || !slices.Contains([]Guard{Ordinary, Outside, Above, Below, Lacking, Beyond, Looser}, k.Guard)
}

// Guarded reports whether the repository's value v needs trust. own is the value in the user's own file, nil if there is none. Only
// own counts then, even if the default is stricter: a repository may repeat it or make it stricter.
func (k Key) Guarded(v, own any, repo string) bool {
	if own != nil {
		return k.loosens(v, own) || k.Levels != nil && v != own && k.Level(v) == k.Level(own)
	}
	if path, _ := v.(string); k.Guard == Outside {
		return path != "" && !Inside(Resolve(path, repo, ""), repo)
	}
	return k.bound() && k.loosens(v, k.Default)
}

// loosens reports whether v is looser than another value.
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
		return k.Level(v) > k.Level(than)
	case Ordinary, Changed, Outside, Own:
	}
	return YAML(v) != YAML(than)
}

// amount converts a number or duration for comparison. Negative values mean no limit; so does 0 if it is the default, or if the key
// allows negative values.
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

// Level returns the index of a value among the key's levels. A value on no level is the weakest.
func (k Key) Level(v any) int {
	for i, names := range k.Levels {
		if slices.Contains(names, fmt.Sprint(v)) {
			return i
		}
	}
	return len(k.Levels)
}

// listOf returns v as a list. A text is a list of one item, an empty text an empty list.
func listOf(v any) []string {
	items, _ := v.([]string)
	if text, _ := v.(string); text != "" {
		items = []string{text}
	}
	return items
}

// contains reports whether items contains all others.
func contains(items, others []string) bool {
	return !slices.ContainsFunc(others, func(item string) bool { return !slices.Contains(items, item) })
}

// Inside reports whether the path, links not followed, is in the repository and outside of its git directory.
func Inside(path, repo string) bool {
	rel, err := filepath.Rel(repo, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), func(part string) bool {
		return strings.EqualFold(part, ".git")
	})
}
