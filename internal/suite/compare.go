package suite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/plural"
)

// Change is a file that commits changed. Old and New are its contents before and after the change, empty if it did not exist.
type Change struct {
	// Path is the path after the change, or the former path of a removed file.
	Path string
	// OldPath is the path before a rename. Empty: the same as Path.
	OldPath string
	Old     []byte
	New     []byte
	Added   bool
	Removed bool
	// Link means that the path is a symbolic link after the change.
	Link bool
	// Found is what [Imports.Find] found.
	Found Found
}

// Summary describes what a change did to the checks of a repository.
type Summary struct {
	// Files are the changed files on which the checks depend, sorted by role, the strongest first, then by path.
	Files []File
	// Findings are facts that a person should look at, sorted by path and kind. Honest changes can have some, too.
	Findings []Finding
	// Totals over all files. Renamed and moved tests count as neither added nor removed.
	Added, Removed, Skipped, Focused, Assertions int
}

// File is a changed file on which the checks depend.
type File struct {
	Path    string
	OldPath string // path before a rename, or empty
	Role    ecosystem.Role
	Reason  string // why it has the role: "holds Go tests"
	Added   bool
	Removed bool
	// Grown means that the file has tests in a known language, and that the change only added tests and the imports that they need.
	Grown bool
	// Inline means that only the tests in the file matter: the rest is code.
	Inline bool
	// Helper means that the content, not the name, shows that tests use the file.
	Helper bool
	// Before and After count the file's tests.
	Before, After Tests
}

// Further kinds of findings, which need no shapes.
const (
	TestsRemoved      ecosystem.Kind = "tests-removed"
	TestsSkipped      ecosystem.Kind = "tests-skipped"
	TestsFocused      ecosystem.Kind = "tests-focused"
	AssertionsRemoved ecosystem.Kind = "assertions-removed"
	Shadowing         ecosystem.Kind = "shadowing"      // a file replaces a module of a library
	RunnerLibrary     ecosystem.Kind = "runner-library" // code loads or changes a library of tests
	Unread            ecosystem.Kind = "unread"         // too large to read
)

// Finding is a fact about one file.
type Finding struct {
	Path   string
	Kind   ecosystem.Kind
	Count  int    // increase compared with before
	Detail string // description: "ends the process with success"
}

// String returns the finding as one line.
func (f Finding) String() string { return f.Path + ": " + f.Detail }

// compared is the state of comparing one change.
type compared struct {
	Change
	ecosystem    language
	sameLanguage bool // the same before and after a rename
	role         ecosystem.Role
	reason       string
	old, new     textFacts
	moved        int            // former assertions of tests that moved here, minus those of tests that moved away
	removed      map[string]int // removed tests by name
	added        map[string]int // new tests by name
}

// Compare describes what the changes did to the checks. gate are the lines of the gate.
func Compare(changes []Change, gate []string) Summary {
	roleOf := roles(gate)
	var all []*compared
	for _, change := range changes {
		all = append(all, compare(change, roleOf))
	}
	slices.SortFunc(all, func(a, b *compared) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.OldPath, b.OldPath))
	})
	settleMoves(all)

	var s Summary
	for _, c := range all {
		s.Skipped += c.new.Skipped - c.old.Skipped
		s.Focused += c.new.Focused - c.old.Focused
	}
	for _, c := range all {
		s.list(c)
		s.tests(c)
		s.shapes(c)
		s.libraries(c)
	}
	s.Skipped, s.Focused = max(0, s.Skipped), max(0, s.Focused)
	slices.SortStableFunc(s.Files, func(a, b File) int { return cmp.Compare(b.Role, a.Role) })
	slices.SortFunc(s.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Detail, b.Detail))
	})
	return s
}

func compare(change Change, roleOf func(string) (ecosystem.Role, string)) *compared {
	c := &compared{Change: change, removed: map[string]int{}, added: map[string]int{}}
	if c.OldPath == "" {
		c.OldPath = c.Path
	}
	c.role, c.reason = roleOf(c.Path)
	if before, reason := roleOf(c.OldPath); before > c.role {
		c.role, c.reason = before, reason+", before it was renamed"
	}
	if c.Found.Replaces != "" && c.role <= ecosystem.Environment {
		c.role, c.reason = ecosystem.Environment, "takes the place of the module "+c.Found.Replaces
	}
	c.ecosystem = sourceOf(c.Path)
	c.sameLanguage = c.ecosystem.Name == sourceOf(c.OldPath).Name
	if !c.Added {
		c.old = examine(c.OldPath, c.Old)
	}
	if !c.Removed {
		c.new = examine(c.Path, c.New)
	}
	if c.old.Unread || c.new.Unread {
		return c
	}
	for name, n := range c.old.names {
		if d := n - c.new.names[name]; d > 0 {
			c.removed[name] = d
		}
	}
	for name, n := range c.new.names {
		if d := n - c.old.names[name]; d > 0 {
			c.added[name] = d
		}
	}
	return c
}

// settleMoves removes tests that moved between files from gone and fresh, and moves their assertions with them.
func settleMoves(all []*compared) {
	gained := map[string][]*compared{}
	for _, c := range all {
		for name := range c.added {
			gained[name] = append(gained[name], c)
		}
	}
	for _, from := range all {
		for _, name := range slices.Sorted(maps.Keys(from.removed)) {
			for from.removed[name] > 0 && len(gained[name]) > 0 {
				to := gained[name][0]
				n := min(from.removed[name], to.added[name])
				from.removed[name] -= n
				to.added[name] -= n
				from.moved -= from.old.checks[name]
				to.moved += from.old.checks[name]
				from.old.checks[name] = 0
				if to.added[name] == 0 {
					gained[name] = gained[name][1:]
				}
			}
		}
	}
}

// onlyAdded reports whether the change only added tests to a test file.
func (c *compared) onlyAdded() bool {
	if c.Added || c.Removed || c.OldPath != c.Path || len(c.ecosystem.Tests) == 0 || c.old.Unread || c.new.Unread {
		return false
	}
	if c.ecosystem.Inline {
		return onlyGrew([]byte(c.old.inline), []byte(c.new.inline), c.old.names)
	}
	return onlyGrew(c.Old, c.New, c.old.names)
}

// list adds the file to the summary if the checks depend on it.
func (s *Summary) list(c *compared) {
	inline := c.role == ecosystem.None && c.ecosystem.Inline && c.old.inline != c.new.inline
	if inline {
		c.role, c.reason = ecosystem.Test, "has tests among its code"
	}
	role, reason, helper := c.role, c.reason, c.role == ecosystem.None && (c.old.helper || c.new.helper)
	if helper {
		role, reason = ecosystem.Test, "is a helper of tests"
	}
	if role == ecosystem.None {
		return
	}
	// Additions to a helper may replace what is there.
	f := File{
		Path:    c.Path,
		Role:    role,
		Reason:  reason,
		Added:   c.Added,
		Removed: c.Removed,
		Grown:   !helper && c.onlyAdded(),
		Inline:  inline,
		Helper:  helper,
		Before:  c.old.Tests,
		After:   c.new.Tests,
	}
	if c.OldPath != c.Path {
		f.OldPath = c.OldPath
	}
	s.Files = append(s.Files, f)
	if c.old.Unread || c.new.Unread {
		s.find(c, Unread, 1, "is too large to be read")
	}
	module, ok := shadowed(c.Path, ecosystem.All())
	if module = cmp.Or(c.Found.Replaces, module); (ok || c.Found.Replaces != "") && !c.Removed {
		s.find(c, Shadowing, 1, "takes the place of the module "+module)
	}
}

// libraries adds findings for what code does to the libraries of tests.
func (s *Summary) libraries(c *compared) {
	for _, name := range c.Found.TestOnly {
		s.find(c, RunnerLibrary, 1, "loads "+name+", which only tests have loaded so far")
	}
	for _, name := range c.Found.Assigned {
		s.find(c, RunnerLibrary, 1, "changes "+name+", which tests load")
	}
}

// tests adds the changes of the file's tests to the summary.
func (s *Summary) tests(c *compared) {
	if lost := sum(c.removed) - sum(c.added); lost > 0 {
		s.Removed += lost
		s.find(c, TestsRemoved, lost, fmt.Sprintf("has %s fewer", plural.Of(lost, "test")))
	} else {
		s.Added -= lost
	}
	if n := c.new.Skipped - c.old.Skipped; n > 0 && s.Skipped > 0 {
		s.find(c, TestsSkipped, n, fmt.Sprintf("skips tests, or expects them to fail, in %s more", plural.Of(n, "place")))
	}
	if n := c.new.Focused - c.old.Focused; n > 0 && s.Focused > 0 {
		s.find(c, TestsFocused, n, fmt.Sprintf("leaves out all other tests in %s more", plural.Of(n, "place")))
	}
	if n := c.old.Assertions + c.moved - c.new.Assertions; n > 0 && !c.new.Unread {
		s.Assertions += n
		s.find(c, AssertionsRemoved, n, fmt.Sprintf("has %s fewer", plural.Of(n, "assertion")))
	}
}

// shapes adds findings for shapes that the file has more often than before.
func (s *Summary) shapes(c *compared) {
	for i, shape := range c.ecosystem.Shapes {
		if i >= len(c.new.shapes) || len(shape.Roles) > 0 && !slices.Contains(shape.Roles, c.role) || c.new.main && !shape.Main {
			continue
		}
		n := c.new.shapes[i]
		if i < len(c.old.shapes) && c.sameLanguage {
			n -= c.old.shapes[i]
		}
		if n > 0 {
			s.find(c, shape.Kind, n, shape.Detail)
		}
	}
}

func (s *Summary) find(c *compared, kind ecosystem.Kind, count int, detail string) {
	s.Findings = append(s.Findings, Finding{Path: c.Path, Kind: kind, Count: count, Detail: detail})
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}
