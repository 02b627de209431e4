package keys

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/leak"
	"github.com/ralph-pool/ralph/internal/nearest"
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/identity"
)

func checkLabel(s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return errors.New("is empty; a label needs a name")
	case strings.TrimSpace(s) != s:
		return errors.New("begins or ends with a space")
	}
	return nil
}

// checkLine refuses an empty command, such as from an unset variable: a gate that silently checks nothing is worse than none.
func checkLine(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("is empty; write a command, or remove it")
	}
	return nil
}

// checkInside refuses a path outside of the repository. An empty one is valid: as a flag it empties the list.
func checkInside(s string) error {
	if s != "" && (!filepath.IsLocal(s) || filepath.Clean(s) == ".") {
		return errors.New("is not a path inside the repository; write it from the repository's top, such as .env")
	}
	return nil
}

// checkArgument refuses a value that git or an engine would read as an option.
func checkArgument(s string) error {
	if strings.HasPrefix(s, "-") {
		return errors.New("begins with a dash")
	}
	return nil
}

func checkRemote(s string) error {
	if s == "" {
		return errors.New("is empty; for no remote write none")
	}
	return checkArgument(s)
}

func checkPrice(s string) error {
	_, err := ledger.ParseOwn([]string{s})
	return errors.Unwrap(err)
}

// checkShare checks AGENT=USD or AGENT=USD/TOKENS, but not whether the agent exists, which needs the registry.
func checkShare(s string) error {
	_, err := ledger.ParseShares([]string{s})
	return errors.Unwrap(err)
}

// checkModel checks the form of a model's name. Only the model's service knows whether it exists.
func checkModel(s string) error {
	if _, err := agents.ParseChoice("agent:" + s); err != nil {
		return errors.New("is not the name of a model: no leading dash, no blanks and at most 256 characters")
	}
	return nil
}

// checkBranchPrefix checks the beginning of a branch name. The whole name is checked where it is made.
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

// checkName checks the name of a variable.
func checkName(s string) error {
	if strings.Contains(s, "=") || checkEnv(s) != nil {
		return errors.New("is not the name of a variable")
	}
	return nil
}

// checkIdent checks NAME <MAIL>; an empty text is valid.
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
		return errors.New("is not a numeric id")
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

// hideEnv hides the value in NAME=VALUE.
func hideEnv(s string) string {
	if name, _, ok := strings.Cut(s, "="); ok {
		return name + "=(hidden)"
	}
	return s
}

// password matches the password, or else the user, before the host of an address, and the credential of a request.
var password = pattern.Lazy(`(://(?:[^/\s?#:@]*:)?)[^/\s?#]*(@)|((?i:authorization):\s*\S+\s+)\S+`)

// hideSecretEnv hides the value in NAME=VALUE if the name is that of a secret, and otherwise only what looks like a credential within
// it. The name of a setting of git is no secret, and git may run its value.
func hideSecretEnv(s string) string {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return s
	}
	if leak.NamesSecret(name) && !strings.HasPrefix(name, "GIT_CONFIG_") {
		return hideEnv(s)
	}
	value = password().ReplaceAllString(value, "${1}${3}(hidden)${2}")
	for _, secret := range append(leak.Assigned([]byte("VALUE="+value), true), leak.Tokens([]byte(value))...) {
		value = strings.ReplaceAll(value, secret, "(hidden)")
	}
	return name + "=" + value
}

// check checks one text or list item.
func (k Key) check(s string, choices []string) error {
	if s == "" && k.Default == "" {
		return nil // an empty value counts as unset
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
		return fmt.Errorf("%s is not one of %s%s", k.quote(name), strings.Join(choices, ", "), nearest.DidYouMean(name, "", choices))
	}
	if k.Check != nil {
		if err := k.Check(s); err != nil {
			return fmt.Errorf("%s %w", k.quote(s), err)
		}
	}
	return nil
}

// quote quotes a value for an error, unless it may be a secret.
func (k Key) quote(s string) string {
	if k.Hide != nil {
		return "a value"
	}
	return fmt.Sprintf("%q", s)
}

// checkLabelNumber accepts LABEL=NUMBER.
func checkLabelNumber(s string) error {
	label, _, err := tracker.ParseLabelNumber(s)
	if wrong := checkLabel(label); wrong != nil && (err == nil || label != "") {
		err = errors.New("has a label that " + wrong.Error())
	}
	return err
}
