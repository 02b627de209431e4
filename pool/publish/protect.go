package publish

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

//go:embed protected.txt
var protected string

// ProtectedPaths are the paths that an agent's commits may not touch by default: what runs by itself on a forge or in
// somebody's editor, what decides who has to review, and what directs agents. A pattern without a slash holds in every
// folder. Whoever wants agents to change their own instructions leaves those patterns out.
func ProtectedPaths() []string {
	var out []string
	for line := range strings.Lines(protected) {
		fields := strings.Fields(line)
		if len(fields) > 0 && fields[0] != "#" {
			out = append(out, fields[0])
		}
	}
	return out
}

// folded is a path as file systems that take several names for one see it: without case, with letters and accents
// composed in one way, and without the invisible characters that HFS+ leaves out.
func folded(path string) string {
	plain := strings.IndexFunc(path, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if plain {
		return strings.ToLower(path)
	}
	path = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, path)
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(path)))
}

// protects returns the pattern, or the setting of git's, that protects the path; empty when none does.
func (p Policy) protects(file string) string {
	lower := folded(file)
	for _, pattern := range p.Protected {
		name := lower
		if !strings.Contains(pattern, "/") {
			name = path.Base(lower)
		}
		if doublestar.MatchUnvalidated(folded(pattern), name) {
			return pattern
		}
	}
	for _, n := range p.named {
		if named := folded(n.Path); lower == named || strings.HasPrefix(lower, named+"/") {
			return n.Setting + " names it"
		}
	}
	return ""
}

// protectsBelow returns a pattern that protects paths below the folder. A pattern that holds in every folder does not
// count: it protects those paths wherever a link of the folder's name leads to.
func (p Policy) protectsBelow(folder string) string {
	lower := folded(folder)
	for _, pattern := range p.Protected {
		for at, c := range pattern {
			if c == '/' && pattern[:at] != "**" && doublestar.MatchUnvalidated(folded(pattern[:at]), lower) {
				return pattern
			}
		}
	}
	for _, n := range p.named {
		if strings.HasPrefix(folded(n.Path), lower+"/") {
			return n.Setting + " names " + n.Path
		}
	}
	return ""
}

// CheckPatterns refuses patterns that can never match.
func CheckPatterns(patterns []string) error {
	var errs []error
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			errs = append(errs, fmt.Errorf("protected path %q is no valid pattern", p))
		}
	}
	return errors.Join(errs...)
}
