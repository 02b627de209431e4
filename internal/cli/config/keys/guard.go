package keys

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
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

// Guarded reports whether the repository's value needs trust. own is the value of the user's own file, nil when it has none.
// Where it has one, only that counts: a repository may repeat it or make it stricter, also where the default is stricter still.
func (k Key) Guarded(v, own any, repo string) bool {
	if own != nil {
		return k.loosens(v, own) || k.Levels != nil && v != own && k.Level(v) == k.Level(own)
	}
	if path, _ := v.(string); k.Guard == Outside {
		return path != "" && !Inside(Resolve(path, repo, ""), repo)
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
		return k.Level(v) > k.Level(than)
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

// Level is the place of a value among the key's levels; what is on none of them is the weakest.
func (k Key) Level(v any) int {
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

// Inside reports whether the path stays in the repository and out of its git directory, as it is written.
func Inside(path, repo string) bool {
	rel, err := filepath.Rel(repo, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), func(part string) bool {
		return strings.EqualFold(part, ".git")
	})
}
