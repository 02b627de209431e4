package leak

import (
	"bytes"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

var (
	// assignment matches NAME=VALUE and NAME: VALUE, as in a file of variables, in YAML and in JSON.
	assignment = pattern.Lazy(`^\s*(?:export\s+)?["']?([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*[=:]\s*(.*?)\s*,?\s*$`)
	// comment matches a comment after an unquoted value.
	comment = pattern.Lazy(`\s+(?:#|//).*$`)
	// camel matches the places in a name where a new word begins: apiKey.
	camel = pattern.Lazy(`([a-z0-9])([A-Z])`)
	// hexKey matches values that are too long to be a number or a short hash.
	hexKey = pattern.Lazy(`^[0-9a-fA-F]{32,}$`)
	// base64Key matches values that may be random base64.
	base64Key = pattern.Lazy(`^[A-Za-z0-9+/_=-]{20,}$`)
)

// Assigned returns the secrets among the values that the lines of a text give to names: those of names that suggest a secret, unless
// they are words, paths or addresses, and passwords in addresses. In a file of environment variables any text can be a value, and
// values that look random are secrets whatever their names. Other files may be code.
func Assigned(text []byte, variables bool) (values []string) {
	for line := range bytes.Lines(text) {
		m := assignment().FindSubmatch(line)
		if m == nil {
			continue
		}
		name, value := string(m[1]), unquoted(string(m[2]))
		if u, err := url.Parse(value); err == nil && u.Scheme != "" && u.Host != "" {
			name = "password"
			value, _ = u.User.Password()
		}
		random := variables && (hexKey().MatchString(value) || base64Key().MatchString(value) && random64([]byte(value)))
		code := !variables && strings.ContainsAny(value, " \t(){}[];<>\"'`")
		if len(value) < Shortest || Word(value) || isPath(value) || strings.Contains(value, "${") || code || !random && !NamesSecret(name) {
			continue
		}
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}

// unquoted returns a value without quotes or, if it has none, without a comment.
func unquoted(value string) string {
	for _, quote := range []string{`"`, "'"} {
		if rest, ok := strings.CutPrefix(value, quote); ok {
			if inner, _, closed := strings.Cut(rest, quote); closed {
				return inner
			}
		}
	}
	return comment().ReplaceAllString(value, "")
}

// NamesSecret is SecretName for names in files, which are written in more ways: api-key, apiKey, DB_PASS.
func NamesSecret(name string) bool {
	name = strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(camel().ReplaceAllString(name, "${1}_${2}")))
	return SecretName(name) || slices.ContainsFunc(strings.Split(name, "_"), func(word string) bool {
		return slices.Contains([]string{"PASS", "PWD", "PASSPHRASE"}, word)
	})
}

// isPath reports whether a value looks like the path of a file. A random value may begin with a slash, too.
func isPath(value string) bool {
	for _, start := range []string{"./", "../", "~/"} {
		if strings.HasPrefix(value, start) {
			return true
		}
	}
	return strings.HasPrefix(value, "/") && (strings.Count(value, "/") > 1 || path.Ext(value) != "") && !strings.ContainsAny(value, "+=")
}
