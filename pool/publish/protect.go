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

	"github.com/ralph-pool/ralph/worktree/named"
)

//go:embed protected.txt
var protected string

// ProtectedPaths returns the paths that an agent's commits may not change by default: files that a forge or an editor runs
// by itself, files that determine the reviewers, and instructions for agents. A pattern without a slash applies in every
// folder. To let agents change their own instructions, leave those patterns out.
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

// folded returns a path in the form that case-insensitive and normalising file systems compare: in lower case, with letters
// and accents composed in one way, and without the invisible characters that HFS+ ignores.
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

// guard is the compiled form of the protected paths.
type guard struct {
	patterns []pattern
	named    []named.File // files that settings name
	lower    []string     // paths of named, folded
}

// pattern is one protected path.
type pattern struct {
	text, lower string
	anywhere    bool     // it applies in every folder
	plain       bool     // it is a path without wildcards
	above       []string // the folders that contain it
}

func newGuard(protected []string, files []named.File) *guard {
	g := &guard{named: files}
	for _, text := range protected {
		p := pattern{text: text, lower: folded(text), anywhere: !strings.Contains(text, "/"), plain: !strings.ContainsAny(text, `*?[]{}\`)}
		for at, c := range text {
			if c == '/' && text[:at] != "**" {
				p.above = append(p.above, folded(text[:at]))
			}
		}
		g.patterns = append(g.patterns, p)
	}
	for _, n := range files {
		g.lower = append(g.lower, folded(n.Path))
	}
	return g
}

// protects returns the pattern or git setting that protects the path, or "".
func (g *guard) protects(file string) string {
	lower := folded(file)
	base := path.Base(lower)
	for i := range g.patterns {
		p := &g.patterns[i]
		name := lower
		if p.anywhere {
			name = base
		}
		if p.lower == name || !p.plain && doublestar.MatchUnvalidated(p.lower, name) {
			return p.text
		}
	}
	for i, named := range g.lower {
		if lower == named || strings.HasPrefix(lower, named) && lower[len(named)] == '/' {
			return g.named[i].Setting + " names it"
		}
	}
	return ""
}

// protectsBelow returns a pattern that protects paths below the folder. Patterns for every folder do not count: they
// protect those paths wherever a link of the folder's name leads.
func (g *guard) protectsBelow(folder string) string {
	lower := folded(folder)
	for i := range g.patterns {
		for _, above := range g.patterns[i].above {
			if doublestar.MatchUnvalidated(above, lower) {
				return g.patterns[i].text
			}
		}
	}
	for i, named := range g.lower {
		if strings.HasPrefix(named, lower+"/") {
			return g.named[i].Setting + " names " + g.named[i].Path
		}
	}
	return ""
}

// CheckPatterns refuses patterns that can never match.
func CheckPatterns(patterns []string) error {
	var errs []error
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			errs = append(errs, fmt.Errorf("protected path %q is not a valid pattern", p))
		}
	}
	return errors.Join(errs...)
}
