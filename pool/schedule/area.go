package schedule

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// Area is the set of files that a piece of work is likely to change. Paths start at the top of the repository.
type Area struct {
	Paths    []string // files, and folders with everything in them
	Patterns []string // `*` and the like match parts of a name, `**` matches folders, too
}

func (a Area) empty() bool { return len(a.Paths)+len(a.Patterns) == 0 }

// Files has the file names of a commit.
type Files struct {
	sorted []string
	byName map[string][]string // by last part of the path
}

// NewFiles returns the Files of a commit with these paths.
func NewFiles(paths []string) *Files {
	f := &Files{sorted: slices.Sorted(slices.Values(paths)), byName: map[string][]string{}}
	for _, p := range f.sorted {
		f.byName[path.Base(p)] = append(f.byName[path.Base(p)], p)
	}
	return f
}

func (f *Files) has(file string) bool {
	_, found := slices.BinarySearch(f.sorted, file)
	return found
}

// below returns the file of that path, or the files in that folder.
func (f *Files) below(place string) []string {
	if f.has(place) {
		return []string{place}
	}
	from, _ := slices.BinarySearch(f.sorted, place+"/")
	to := from
	for to < len(f.sorted) && strings.HasPrefix(f.sorted[to], place+"/") {
		to++
	}
	return f.sorted[from:to]
}

// Patterns returns the area of a person's list of paths and patterns.
func (f *Files) Patterns(list []string) (a Area) {
	for _, p := range list {
		p = trim(p)
		switch {
		case p == "":
		case strings.ContainsAny(p, `*?[{\`) && !f.has(p) && pattern.Valid(p):
			a.Patterns = append(a.Patterns, p)
		default:
			a.Paths = append(a.Paths, p)
		}
	}
	return a
}

// Limits of reading an issue's text.
const (
	maxText  = 64 << 10 // bytes
	maxPaths = 100
)

// Named returns the files and folders of the commit that a text names. The end of a file's path is enough, if only one file has
// it. A word without a dot or a slash is a path only between backticks.
func (f *Files) Named(text string) (a Area) {
	seen := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text[:min(len(text), maxText)], between) {
		code := strings.HasPrefix(word, "`") && len(word) > 2
		word = lineNumber().ReplaceAllString(strings.TrimRight(strings.Trim(word, "`:!"), "."), "")
		if !code && !strings.ContainsAny(word, "./") || strings.Contains(word, "://") {
			continue
		}
		if p := f.find(trim(word), strings.Contains(word, "/")); p != "" && !seen[p] {
			seen[p] = true
			a.Paths = append(a.Paths, p)
		}
		if len(a.Paths) == maxPaths {
			break
		}
	}
	return a
}

// between reports whether a rune separates words of a text.
func between(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'()<>,;|", r) }

// lineNumber matches a line number after the name of a file: ":12", ":12:3", "#L12".
var lineNumber = pattern.Lazy(`(?::\d+){1,2}$|#L\d+(?:-L?\d+)?$`)

// find returns the path of the file, or folder, that a word names; empty: none.
func (f *Files) find(word string, folder bool) string {
	if f.has(word) || folder && word != "" && len(f.below(word)) > 0 {
		return word
	}
	found := ""
	for _, p := range f.byName[path.Base(word)] {
		if strings.HasSuffix(p, "/"+word) {
			if found != "" {
				return ""
			}
			found = p
		}
	}
	return found
}

func trim(p string) string {
	p = strings.TrimPrefix(strings.Trim(strings.TrimSpace(p), "`"), "./")
	return strings.Trim(p, "/")
}

// touches matches a line of an issue's text that declares which files it changes.
var touches = pattern.Lazy(`(?im)^[ \t]*(?:[-*+][ \t]+)?\**touches:\**[ \t]*(.*)$`)

// Declared returns the patterns of a line "Touches: a.go, docs/**" in an issue's text; "none" means no file.
func Declared(text string) (list []string, ok bool) {
	m := touches().FindStringSubmatch(text[:min(len(text), maxText)])
	if m == nil {
		return nil, false
	}
	list = strings.FieldsFunc(m[1], func(r rune) bool { return r <= ' ' || r == ',' || r == '`' })
	if len(list) == 1 && strings.EqualFold(list[0], "none") {
		list = nil
	}
	return list[:min(len(list), maxPaths)], true
}

// common returns a path that is in both areas; empty: none.
func (f *Files) common(a, b Area) string {
	for _, p := range a.Paths {
		for _, q := range b.Paths {
			switch {
			case p == q, strings.HasPrefix(p, q+"/"):
				return p
			case strings.HasPrefix(q, p+"/"):
				return q
			}
		}
		if file := f.matched(b.Patterns, p); file != "" {
			return file
		}
	}
	for _, q := range b.Paths {
		if file := f.matched(a.Patterns, q); file != "" {
			return file
		}
	}
	for _, p := range a.Patterns {
		for _, q := range b.Patterns {
			if p == q {
				return p
			}
			for _, file := range f.sorted {
				if covers(p, file) && covers(q, file) {
					return file
				}
			}
		}
	}
	return ""
}

// matched returns the path, or a file in the folder, that one of the patterns covers.
func (f *Files) matched(patterns []string, place string) string {
	for _, p := range patterns {
		if covers(p, place) {
			return place
		}
		for _, file := range f.below(place) {
			if covers(p, file) {
				return file
			}
		}
	}
	return ""
}

// covers reports whether a pattern matches the path, or a folder that contains it.
func covers(p, place string) bool {
	for ; place != "." && place != "/"; place = path.Dir(place) {
		if doublestar.MatchUnvalidated(p, place) {
			return true
		}
	}
	return false
}
