package pool

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// withheld stands in a report where text would have carried a secret.
const withheld = "(withheld: it carries a secret)"

// shortestSecret is the least length of a value that is looked for; shorter ones are in ordinary text by chance.
const shortestSecret = 8

// secrets are values that must never get into a report, with the forms in which they may hide.
type secrets []string

func newSecrets(values []string) secrets {
	var s secrets
	add := func(form string) {
		if len(form) >= shortestSecret && !slices.Contains(s, form) {
			s = append(s, form)
		}
	}
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) < shortestSecret {
			continue
		}
		reversed := []byte(v)
		slices.Reverse(reversed)
		quoted, _ := json.Marshal(v) // a string always marshals
		for _, form := range []string{
			v, string(reversed), hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))),
			url.QueryEscape(v), url.PathEscape(v), strings.Trim(string(quoted), `"`),
		} {
			add(form)
		}
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for shift := range 3 { // the value may stand anywhere in what was encoded
				add(inner(enc, v, shift))
			}
		}
	}
	return s
}

// inner is the part of an encoding that does not depend on what stands before and after the value.
func inner(enc *base64.Encoding, v string, shift int) string {
	coded := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + v))
	head := []int{0, 2, 3}[shift]
	tail := 0
	if (shift+len(v))%3 != 0 {
		tail = 1
	}
	return coded[head : len(coded)-tail]
}

// in reports whether the text carries one of them, or what looks like a well-known credential.
func (s secrets) in(text string) bool {
	return credential.MatchString(text) || slices.ContainsFunc(s, func(v string) bool { return strings.Contains(text, v) })
}

// clean returns the text, or what stands in its place.
func (s secrets) clean(text string) string {
	if s.in(text) {
		return withheld
	}
	return text
}

// verdict returns a copy of which nothing carries a secret.
func (s secrets) verdict(v Verdict) Verdict {
	v.Reason, v.Message, v.Question, v.Published = s.clean(v.Reason), s.clean(v.Message), s.clean(v.Question), s.clean(v.Published)
	v.Gate, v.Warnings = slices.Clone(v.Gate), slices.Clone(v.Warnings)
	for i := range v.Gate {
		v.Gate[i].Tail, v.Gate[i].Command = s.clean(v.Gate[i].Tail), s.clean(v.Gate[i].Command)
	}
	for i := range v.Warnings {
		v.Warnings[i] = s.clean(v.Warnings[i])
	}
	return v
}
