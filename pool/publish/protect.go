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

// guard is protected paths in the form in which many paths are compared with them.
type guard struct {
	patterns []pattern
	named    []named.File // what the user's git configuration names
	lower    []string     // its paths, folded
}

// pattern is one protected path.
type pattern struct {
	text, lower string
	anywhere    bool     // it holds in every folder
	plain       bool     // it is a path
	above       []string // the folders on its way
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

// protects returns the pattern, or the setting of git's, that protects the path; empty when none does.
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

// protectsBelow returns a pattern that protects paths below the folder. A pattern that holds in every folder does not
// count: it protects those paths wherever a link of the folder's name leads to.
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
			errs = append(errs, fmt.Errorf("protected path %q is no valid pattern", p))
		}
	}
	return errors.Join(errs...)
}
