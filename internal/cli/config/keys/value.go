package keys

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/words"
	"github.com/ralph-pool/ralph/internal/pattern"
)

// Scalar parses a text as the key's kind. It refuses kinds that are lists; see ListText.
func (k Key) Scalar(s string) (any, error) {
	switch k.Kind {
	case Int:
		return k.Number(s)
	case Float:
		f, err := strconv.ParseFloat(s, 64)
		if errors.Is(err, strconv.ErrRange) || err == nil && f > mostAmount {
			return nil, outside(s, k.Min, int64(mostAmount))
		}
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is not a number", s)
		}
		if f < float64(k.Min) {
			return nil, fmt.Errorf("%s is less than %d", s, k.Min)
		}
		return f, k.enough(f)
	case Bool:
		switch s {
		case "true", "false":
			return s == "true", nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", s)
	case Duration:
		return k.duration(s)
	case Text, Path:
		return s, nil
	}
	return nil, fmt.Errorf("%s is a list", k.Name)
}

// Number parses a whole number within the key's bounds: an int64 if the default is one, else an int.
func (k Key) Number(s string) (any, error) {
	most := int64(math.MaxInt32)
	if _, wide := k.Default.(int64); wide {
		most = math.MaxInt64
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if errors.Is(err, strconv.ErrRange) || n > most {
		return nil, outside(s, k.Min, most)
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not a whole number", s)
	}
	if n < k.Min {
		return nil, fmt.Errorf("%d is less than %d", n, k.Min)
	}
	if err := k.enough(float64(n)); err != nil {
		return nil, err
	}
	if most == math.MaxInt64 {
		return n, nil
	}
	return int(n), nil
}

// enough refuses a number that is too small to work with.
func (k Key) enough(n float64) error {
	if n > 0 && n < k.Least {
		return fmt.Errorf("%v is too small; give %v or more, or 0 for the default", n, k.Least)
	}
	return nil
}

// mostAmount is the maximum of a Float. It is more than anybody needs, and no computation overflows with it.
const mostAmount = 1e9

// outside returns the error of a number that is out of range.
func outside(s string, least, most any) error {
	return fmt.Errorf("%s is not from %v to %v", s, least, most)
}

// durationForm matches durations of any length.
var durationForm = pattern.Lazy(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

func (k Key) duration(s string) (any, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		if _, err := strconv.ParseInt(s, 10, 32); err == nil {
			return nil, fmt.Errorf("%q has no unit; write %ss or %sm", s, s, s)
		}
		if durationForm().MatchString(s) {
			return nil, outside(s, time.Duration(k.Min), time.Duration(math.MaxInt64).Truncate(time.Second))
		}
		return nil, fmt.Errorf("%q is not a duration such as 90s or 1h30m", s)
	}
	if d < time.Duration(k.Min) {
		return nil, fmt.Errorf("%s is less than %s", s, time.Duration(k.Min))
	}
	if k.Longest > 0 && d > k.Longest {
		return nil, fmt.Errorf("%s is more than %s", s, k.Longest)
	}
	return d, nil
}

// ListText parses a list that is written as one text. split is for variables: it divides the text at commas or line ends.
func (k Key) ListText(s string, split bool) ([]string, error) {
	if k.Kind == Words {
		return words.Split(s)
	}
	if !split {
		return []string{s}, nil
	}
	sep := "\n"
	if k.Kind == Names || k.Kind == Folders {
		sep = ","
	}
	var items []string
	for item := range strings.SplitSeq(s, sep) {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

// Verify checks a typed value. choices, if not empty, is the closed set of names.
func (k Key) Verify(v any, choices []string) error {
	switch v := v.(type) {
	case string:
		return k.check(v, choices)
	case []string:
		var errs []error
		for _, item := range v {
			if err := k.check(item, choices); err != nil {
				errs = append(errs, err)
			} else if item == "" {
				errs = append(errs, errors.New("an item is empty"))
			}
		}
		return errors.Join(errs...)
	}
	return nil
}

// Show returns a value for display as in a file, with everything hidden that may be a secret.
func (k Key) Show(v any) any { return k.shown(v, k.Hide) }

// ShowToAccept is Show for a value that a person has to accept: it hides only what is a secret by its name or its shape.
func (k Key) ShowToAccept(v any) any {
	if k.Hide == nil {
		return v
	}
	return k.shown(v, hideSecretEnv)
}

func (k Key) shown(v any, hide func(string) string) any {
	items, ok := v.([]string)
	if !ok || k.Hide == nil {
		return v
	}
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = hide(item)
	}
	return out
}

// Resolve makes a path absolute against base and expands a leading "~/".
func Resolve(path, base, home string) string {
	switch rest, tilde := strings.CutPrefix(path, "~/"); {
	case path == "" || filepath.IsAbs(path):
		return path
	case tilde && home != "":
		return filepath.Join(home, rest)
	case base == "":
		return path
	}
	return filepath.Join(base, path)
}

// Place resolves paths against base, and the program of a command if it has a slash.
func (k Key) Place(v any, base, home string) any {
	switch v := v.(type) {
	case string:
		if k.Kind == Path {
			return Resolve(v, base, home)
		}
	case []string:
		if k.Kind == Words && len(v) > 0 && strings.Contains(v[0], "/") {
			return append([]string{Resolve(v[0], base, home)}, v[1:]...)
		}
		if k.Kind == Folders {
			out := slices.Clone(v)
			for i, item := range v {
				if strings.HasPrefix(item, "~/") {
					out[i] = Resolve(item, "", home)
				}
			}
			return out
		}
	}
	return v
}

// YAML formats a value of Config as in a file.
func YAML(v any) string {
	switch v := v.(type) {
	case []string:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = scalarYAML(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		return scalarYAML(v)
	case time.Duration:
		return ShortDuration(v)
	}
	return fmt.Sprint(v)
}

// scalarYAML quotes a text that YAML could read as another type.
func scalarYAML(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '/' && r != '.' && r != '_'
	}) && !strings.HasPrefix(s, "-") && !strings.HasPrefix(s, ".")
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	return strconv.Quote(s)
}

// ShortDuration formats a duration without zero parts at the end: 10m, not 10m0s.
func ShortDuration(d fmt.Stringer) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
